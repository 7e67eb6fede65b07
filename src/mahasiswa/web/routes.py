"""Routes: the handler of each method and path, and how its body is read. The table is in app.py."""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Literal, NamedTuple

from starlette.responses import Response

HEALTH_PATH = "/sehat"
METRICS_PATH = "/metrics"

UploadPurpose = Literal["impor", "pilih"]  # of an upload, as in the path of its form


class Route(NamedTuple):
    """A method and a path, which is also the label of the route in metrics. `:nim`, `:id` and `:nama` stand for one segment.

    Its handler is asynchronous, and gets the request, the store and the pages.

    `body` names the fields of the form that forms.py reads before the handler runs. An upload or
    the form of a preview is read by its handler. If it `abandons`, its work after the body is
    cancelled if the client leaves. `purpose` is the form that a refused file leads back to. The page
    of a record `keeps_query`: it keeps the URL query of the list page that led to it.
    """

    method: Literal["GET", "POST"]
    path: str
    handler: Callable[[Any, Any, Any], Coroutine[Any, Any, Response]]
    body: Literal["preview", "upload"] | tuple[str, ...] = ()
    abandons: bool = False
    purpose: UploadPurpose = "impor"
    keeps_query: bool = False


class Router:
    """Finds the route of a request. Starlette's router took a fifth of the time of an addition."""

    def __init__(self, routes: Iterable[Route], prefix: str) -> None:
        self._methods: dict[str, dict[str, Route]] = {}
        for route in routes:
            self._methods.setdefault(prefix + route.path, {})[route.method] = route
        self._methods[prefix or "/"] = self._methods[f"{prefix}/"]
        self._by_folder = {path.partition(":")[0]: path for path in self._methods if ":" in path}

    def methods(self, path: str) -> Mapping[str, Route]:
        """The routes of a raw path by method: those of the path itself, or of one whose last segment is a parameter.

        The prefix of BASE_URL is a part of the path.
        """
        return self._methods.get(path) or self._methods.get(
            self._by_folder.get(path[: path.rfind("/") + 1], ""), {}
        )
