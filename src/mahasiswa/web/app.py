"""The table of routes, and the function that wires the application together."""

import tempfile
from collections import Counter

from mahasiswa.record import Mahasiswa
from mahasiswa.settings import Settings
from mahasiswa.sheets.stage import folder_of
from mahasiswa.store import Store
from mahasiswa.web import checks, guide, history, imports, lists, monitoring, students
from mahasiswa.web.list_cache import ListCache
from mahasiswa.web.middleware import Middleware
from mahasiswa.web.pages import Pages
from mahasiswa.web.request import Service
from mahasiswa.web.request_guard import RequestGuard
from mahasiswa.web.routes import HEALTH_PATH, METRICS_PATH, Route, Router
from mahasiswa.work import Slots

ROUTES: tuple[Route, ...] = (
    # The six routes of the specification, section 4.
    Route("GET", "/", lists.index),
    Route("GET", "/mahasiswa/add", students.new, keeps_query=True),
    Route("GET", "/mahasiswa/edit/:nim", students.edit, keeps_query=True),
    Route(
        "POST",
        "/mahasiswa/add",
        students.create,
        body=Mahasiswa._fields,
        keeps_query=True,
    ),
    Route(
        "POST",
        "/mahasiswa/edit/:nim",
        students.update,
        body=("nama", "alamat", "versi"),
        keeps_query=True,
    ),
    Route("POST", "/mahasiswa/delete/:nim", students.destroy, keeps_query=True),
    # Beyond the specification (docs/decisions.md).
    Route("GET", "/mahasiswa/nim/:nim", students.edit, keeps_query=True),
    Route(
        "POST",
        "/mahasiswa/nim/:nim",
        students.change_nim,
        body=("nim",),
        keeps_query=True,
    ),
    Route("GET", "/mahasiswa/impor", imports.choose),
    Route("POST", "/mahasiswa/impor", imports.upload, body="upload"),
    Route("GET", "/mahasiswa/impor/templat.xlsx", lists.template),
    Route("GET", "/mahasiswa/impor/:id", imports.show),
    Route("POST", "/mahasiswa/impor/:id", imports.change, body="preview"),
    Route("GET", "/mahasiswa/impor/sisa/:id", imports.rest, abandons=True),
    Route("GET", "/mahasiswa/ekspor.xlsx", lists.export, abandons=True),
    Route("GET", "/mahasiswa/ekspor.csv", lists.export, abandons=True),
    Route("GET", "/mahasiswa/cetak", lists.print_list, abandons=True),
    Route("GET", "/mahasiswa/periksa", checks.check, abandons=True),
    Route("POST", "/mahasiswa/periksa", checks.tidy_all),
    Route("GET", "/mahasiswa/pilih", imports.choose, purpose="pilih"),
    Route("POST", "/mahasiswa/pilih", imports.upload, body="upload", purpose="pilih"),
    Route(
        "POST",
        "/mahasiswa/pilih/centang",
        imports.select_ticked,
        body="preview",
        purpose="pilih",
    ),
    Route("POST", "/mahasiswa/pilih/hasil", imports.select_found, abandons=True, purpose="pilih"),
    Route("GET", "/mahasiswa/pilih/:id", imports.show, purpose="pilih"),
    Route(
        "POST",
        "/mahasiswa/pilih/:id",
        imports.change,
        body="preview",
        purpose="pilih",
    ),
    Route(
        "GET",
        "/mahasiswa/pilih/cetak/:id",
        imports.print_selected,
        abandons=True,
        purpose="pilih",
    ),
    Route(
        "GET",
        "/mahasiswa/pilih/ekspor.xlsx/:id",
        imports.export_selected,
        abandons=True,
        purpose="pilih",
    ),
    Route(
        "GET",
        "/mahasiswa/pilih/ekspor.csv/:id",
        imports.export_selected,
        abandons=True,
        purpose="pilih",
    ),
    Route("GET", "/mahasiswa/riwayat", history.show, abandons=True),
    Route("POST", "/mahasiswa/riwayat/perubahan/:id", history.undo),
    Route("GET", "/mahasiswa/riwayat/kelompok/:id", history.show, abandons=True),
    Route("GET", "/mahasiswa/panduan", guide.show),
    Route("GET", "/mahasiswa/panduan/:nama", guide.picture),
    Route("GET", HEALTH_PATH, monitoring.health),
    Route("GET", METRICS_PATH, monitoring.metrics, abandons=True),
)


def create_app(settings: Settings, store: Store, slots: Slots) -> Middleware:
    """The service as an ASGI application on an open store. The caller closes the store."""
    # The first call looks for a folder with room. Make it now: later all folders may be full.
    tempfile.gettempdir()
    pages = Pages(settings)
    cache = ListCache(store, pages, slots)
    routes = [route for route in ROUTES if settings.metrics or route.path != METRICS_PATH]
    router = Router(routes, settings.prefix)
    guard = RequestGuard(settings)
    uploads = folder_of(settings.database_url)
    service = Service(settings, store, uploads, cache, pages, slots, Counter(), router)
    return Middleware(guard, service)
