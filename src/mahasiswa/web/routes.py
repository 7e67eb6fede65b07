"""The table of routes: for each method and path whether it writes, and how its body is read."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from mahasiswa.settings import Settings

Purpose = Literal["impor", "hapus"]  # of an upload, as in the path of its form


class Route(NamedTuple):
    """A method and a path, which is also the label of the route in metrics. `:nim` and `:id` stand for one segment.

    `body` says which function of forms.py reads the body. `purpose` is the form that a refused file leads back to. A
    page of a record `keeps_query`, the query of the list page that led to it. `needs` is the setting without which the
    route does not exist.
    """

    method: Literal["GET", "POST"]
    path: str
    writes: bool = False
    body: Literal["", "fields", "preview", "upload"] = ""
    purpose: Purpose = "impor"
    keeps_query: bool = False
    needs: Literal["history_days", "metrics"] | None = None

    def exists(self, settings: Settings) -> bool:
        """Whether the service has this route with these settings."""
        return self.needs is None or bool(getattr(settings, self.needs))


HEALTH_PATH, METRICS_PATH = "/sehat", "/metrics"

ROUTES = (
    # The six routes of the specification, section 4.
    Route("GET", "/"),
    Route("GET", "/mahasiswa/add", keeps_query=True),
    Route("GET", "/mahasiswa/edit/:nim", keeps_query=True),
    Route("POST", "/mahasiswa/add", writes=True, body="fields", keeps_query=True),
    Route("POST", "/mahasiswa/edit/:nim", writes=True, body="fields", keeps_query=True),
    Route("POST", "/mahasiswa/delete/:nim", writes=True, keeps_query=True),
    # Beyond the specification (docs/decisions.md).
    Route("GET", "/mahasiswa/nim/:nim", keeps_query=True),
    Route("POST", "/mahasiswa/nim/:nim", writes=True, body="fields", keeps_query=True),
    Route("GET", "/mahasiswa/impor"),
    Route("POST", "/mahasiswa/impor", body="upload"),
    Route("POST", "/mahasiswa/impor/simpan", writes=True, body="preview"),
    Route("GET", "/mahasiswa/impor/templat.xlsx"),
    Route("GET", "/mahasiswa/ekspor.xlsx"),
    Route("GET", "/mahasiswa/ekspor.csv"),
    Route("GET", "/mahasiswa/cetak"),
    Route("GET", "/mahasiswa/rekap"),
    Route("GET", "/mahasiswa/periksa"),
    Route("POST", "/mahasiswa/periksa", writes=True),
    Route("GET", "/mahasiswa/hapus", purpose="hapus"),
    Route("POST", "/mahasiswa/hapus", body="upload", purpose="hapus"),
    Route("POST", "/mahasiswa/hapus/pilihan", body="preview", purpose="hapus"),
    Route("POST", "/mahasiswa/hapus/simpan", writes=True, body="preview", purpose="hapus"),
    Route("GET", "/mahasiswa/riwayat", needs="history_days"),
    Route("POST", "/mahasiswa/riwayat/perubahan/:id", writes=True, body="fields", needs="history_days"),
    Route("GET", "/mahasiswa/riwayat/kelompok/:id", needs="history_days"),
    Route("POST", "/mahasiswa/riwayat/kelompok/:id", writes=True, body="fields", needs="history_days"),
    Route("GET", HEALTH_PATH),
    Route("GET", METRICS_PATH, needs="metrics"),
)


class Router:
    """Finds the route of a request. Starlette's router took a fifth of the time of an addition."""

    def __init__(self, settings: Settings) -> None:
        self._methods: dict[str, dict[str, Route]] = {}
        for route in ROUTES:
            if route.exists(settings):
                self._methods.setdefault(route.path, {})[route.method] = route
        self._by_folder = {path.partition(":")[0]: path for path in self._methods if ":" in path}

    def methods(self, path: str) -> Mapping[str, Route]:
        """The routes of a raw path by method: those of the path itself, or of one whose last segment is a parameter."""
        return self._methods.get(path) or self._methods.get(self._by_folder.get(path[: path.rfind("/") + 1], ""), {})
