"""The route table, and the function that wires the application together."""

import tempfile
from collections.abc import Awaitable, Callable, Mapping

from starlette.responses import Response
from starlette.types import ASGIApp

from mahasiswa.settings import Settings
from mahasiswa.sheets.public import SheetError
from mahasiswa.store import Store
from mahasiswa.web import checks, history, lists, monitoring, previews, students
from mahasiswa.web.list_cache import ListCache
from mahasiswa.web.middleware import Middleware
from mahasiswa.web.monitoring import Metrics
from mahasiswa.web.pages import Pages
from mahasiswa.web.request import Request
from mahasiswa.web.request_guard import RequestGuard
from mahasiswa.work import Limits

Handler = Callable[[Request, Store, Pages], Awaitable[Response]]

# Not Starlette's router: it and its layers took a fifth of the time of an addition.
ROUTES: Mapping[str, Mapping[str, Handler]] = {
    # The six routes of the specification, section 4.
    "/": {"GET": lists.index},
    "/mahasiswa/add": {"GET": students.new, "POST": students.create},
    "/mahasiswa/edit/:nim": {"GET": students.edit, "POST": students.update},
    "/mahasiswa/delete/:nim": {"POST": students.destroy},
    # Beyond the specification (docs/decisions.md).
    "/mahasiswa/nim/:nim": {"GET": students.choose_nim, "POST": students.change_nim},
    "/mahasiswa/impor": {"GET": previews.choose_import, "POST": previews.preview_import},
    "/mahasiswa/impor/simpan": {"POST": previews.confirm_import},
    "/mahasiswa/impor/templat.xlsx": {"GET": lists.template},
    "/mahasiswa/ekspor.xlsx": {"GET": lists.export_xlsx},
    "/mahasiswa/ekspor.csv": {"GET": lists.export_csv},
    "/mahasiswa/cetak": {"GET": lists.print_list},
    "/mahasiswa/rekap": {"GET": checks.recap},
    "/mahasiswa/periksa": {"GET": checks.check, "POST": checks.tidy_all},
    "/mahasiswa/hapus": {"GET": previews.choose_deletion, "POST": previews.preview_deletion},
    "/mahasiswa/hapus/pilihan": {"POST": previews.preview_ticked},
    "/mahasiswa/hapus/simpan": {"POST": previews.confirm_deletion},
    "/sehat": {"GET": monitoring.health},
}

# Only if there is a history (HISTORY_DAYS).
HISTORY_ROUTES: Mapping[str, Mapping[str, Handler]] = {
    "/mahasiswa/riwayat": {"GET": history.show},
    "/mahasiswa/riwayat/perubahan/:id": {"POST": history.undo},
    "/mahasiswa/riwayat/kelompok/:id": {"GET": history.show, "POST": history.undo},
}


def create_app(settings: Settings, store: Store, limits: Limits) -> ASGIApp:
    """The service as an ASGI application on an open store. The caller closes the store."""
    tempfile.gettempdir()  # looks for a folder that is not full, so it must not look for the first time when all are
    pages = Pages(settings)
    cache = ListCache(store, pages, limits.slots)
    table = {**ROUTES, **(HISTORY_ROUTES if settings.history_days else {})}
    by_folder = {route.partition(":")[0]: route for route in table if ":" in route}

    def match(path: str) -> str | None:
        """The route that matches a raw path: the path itself, or one whose last segment is a parameter."""
        return path if path in table else by_folder.get(path[: path.rfind("/") + 1])

    metrics = Metrics(settings, match, cache) if settings.metrics else None
    if metrics:
        table["/metrics"] = {"GET": metrics.show}

    async def handle(request: Request, own: Pages) -> Response:
        route = match(request.path)
        if route is None:
            return own.error("no page")
        methods = table[route]
        handler = methods.get("GET" if request.method == "HEAD" else request.method)
        if handler is None:
            allowed = {*methods, "HEAD"} if "GET" in methods else methods
            return own.error("method", {"allow": ", ".join(sorted(allowed))})
        try:
            return await handler(request, store, own)
        except SheetError as error:  # of a file, a pasted text or a preview
            return own.upload_form("hapus" if "/hapus" in route else "impor", str(error))

    return Middleware(RequestGuard(settings), cache, pages, limits, handle, metrics)
