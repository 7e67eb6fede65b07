"""The handler of each route, and the function that wires the application together."""

import tempfile
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from starlette.responses import Response
from starlette.types import ASGIApp

from mahasiswa.settings import Settings
from mahasiswa.sheets.public import SheetError, TooBig
from mahasiswa.store import Store
from mahasiswa.web import checks, history, lists, monitoring, previews, students
from mahasiswa.web.list_cache import ListCache
from mahasiswa.web.middleware import Middleware
from mahasiswa.web.monitoring import Metrics
from mahasiswa.web.pages import Pages
from mahasiswa.web.request import Request
from mahasiswa.web.request_guard import RequestGuard
from mahasiswa.web.routes import ROUTES, Router
from mahasiswa.work import Limits

Handler = Callable[[Request, Store, Pages], Awaitable[Response]]

HANDLERS: Mapping[str, Handler] = {
    "GET /mahasiswa/add": students.new,
    "GET /mahasiswa/edit/:nim": students.edit,
    "POST /mahasiswa/add": students.create,
    "POST /mahasiswa/edit/:nim": students.update,
    "POST /mahasiswa/delete/:nim": students.destroy,
    "GET /mahasiswa/nim/:nim": students.choose_nim,
    "POST /mahasiswa/nim/:nim": students.change_nim,
    "GET /mahasiswa/impor": previews.choose_import,
    "POST /mahasiswa/impor": previews.preview_import,
    "POST /mahasiswa/impor/simpan": previews.confirm_import,
    "GET /mahasiswa/impor/templat.xlsx": lists.template,
    "GET /mahasiswa/ekspor.xlsx": lists.export_xlsx,
    "GET /mahasiswa/ekspor.csv": lists.export_csv,
    "GET /mahasiswa/cetak": lists.print_list,
    "GET /mahasiswa/rekap": checks.recap,
    "GET /mahasiswa/periksa": checks.check,
    "POST /mahasiswa/periksa": checks.tidy_all,
    "GET /mahasiswa/hapus": previews.choose_deletion,
    "POST /mahasiswa/hapus": previews.preview_deletion,
    "POST /mahasiswa/hapus/pilihan": previews.preview_ticked,
    "POST /mahasiswa/hapus/simpan": previews.confirm_deletion,
    "GET /mahasiswa/riwayat": history.show,
    "POST /mahasiswa/riwayat/perubahan/:id": history.undo,
    "GET /mahasiswa/riwayat/kelompok/:id": history.show,
    "POST /mahasiswa/riwayat/kelompok/:id": history.undo,
    "GET /sehat": monitoring.health,
}
"""The handlers of the routes in routes.py. Those of the list and of /metrics need more, so create_app adds them."""


def create_app(settings: Settings, store: Store, limits: Limits) -> ASGIApp:
    """The service as an ASGI application on an open store. The caller closes the store."""
    tempfile.gettempdir()  # looks for a folder that is not full, so it must not look for the first time when all are
    pages = Pages(settings)
    cache = ListCache(store, pages, limits.slots)
    metrics = Metrics(settings, cache) if settings.metrics else None
    handlers: dict[str, Handler] = {**HANDLERS, "GET /": partial(lists.index, cache)}
    if metrics:
        handlers["GET /metrics"] = metrics.show
    by_route = {route: handlers[f"{route.method} {route.path}"] for route in ROUTES if route.exists(settings)}

    async def handle(request: Request, own: Pages) -> Response:
        if not request.methods:
            return own.error("no page")
        if request.route is None:
            allowed = {*request.methods, "HEAD"} if "GET" in request.methods else request.methods
            return own.error("method", {"allow": ", ".join(sorted(allowed))})
        try:
            return await by_route[request.route](request, store, own)
        except SheetError as error:  # of a file, a pasted text or a preview
            return own.upload_form(
                request.route.purpose, str(error), 413 if isinstance(error, TooBig) else 400, error.pasted
            )

    return Middleware(Router(settings), RequestGuard(settings), cache, pages, limits, handle, metrics)
