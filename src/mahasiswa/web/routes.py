"""Finds the route of a path."""

from collections.abc import Iterable


class Routes:
    """The routes of the application. The last segment of a route may be a parameter with any name: `/records/:id`."""

    def __init__(self, routes: Iterable[str]) -> None:
        self._exact = frozenset(routes)
        self._by_folder = {route.partition(":")[0]: route for route in routes if ":" in route}

    def match(self, path: str) -> str | None:
        """The route that matches a raw path: the path itself, or one whose last segment is a parameter."""
        return path if path in self._exact else self._by_folder.get(path[: path.rfind("/") + 1])
