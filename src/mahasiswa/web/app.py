"""The application: one table of routes, and what becomes of every error."""

import gc
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send

from mahasiswa.settings import Settings
from mahasiswa.store import Store, open_store
from mahasiswa.store.errors import Unavailable
from mahasiswa.web import students, transfers
from mahasiswa.web.forms import BodyRefused, drain_body
from mahasiswa.web.list_cache import ListCache, takes_gzip
from mahasiswa.web.log import note
from mahasiswa.web.pages import Pages
from mahasiswa.web.request_guard import RequestGuard

log = logging.getLogger(__name__)

Handler = Callable[[Request, Store, Pages], Awaitable[Response]]

ROUTES: Mapping[str, Mapping[str, Handler]] = {
    # The specification's six, as its section 4 has them.
    "/": {"GET": students.index},
    "/mahasiswa/add": {"GET": students.new, "POST": students.create},
    "/mahasiswa/edit/:nim": {"GET": students.edit, "POST": students.update},
    "/mahasiswa/delete/:nim": {"POST": students.destroy},
    # Beyond it (docs/decisions.md).
    "/mahasiswa/impor": {"GET": transfers.choose, "POST": transfers.preview},
    "/mahasiswa/impor/simpan": {"POST": transfers.confirm},
    "/mahasiswa/impor/templat.xlsx": {"GET": transfers.template},
    "/mahasiswa/ekspor.xlsx": {"GET": transfers.export_xlsx},
    "/mahasiswa/ekspor.csv": {"GET": transfers.export_csv},
    "/sehat": {"GET": students.healthy},
}


def create_app(settings: Settings) -> ASGIApp:
    """The whole service as an ASGI application. Its lifespan opens the store, which `prepare` made ready."""
    pages = Pages(settings)

    @asynccontextmanager
    async def lifespan(_app: object) -> AsyncIterator[None]:
        application.store = cache.store = await open_store(settings.database_url)
        # What is there by now stays: the collector need not go through it again and again.
        gc.collect()
        gc.freeze()
        yield
        await application.store.close()

    application = Application(pages, Router(lifespan=lifespan).lifespan)
    cache = ListCache(application, pages)
    return RequestGuard(cache, pages, settings)


class Application:
    """Answers each request by the handler of its route, and notes what became of it."""

    store: Store
    """Set when it is open, before the first request."""

    def __init__(self, pages: Pages, lifespan: ASGIApp) -> None:
        self.pages = pages
        self.lifespan = lifespan

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or start and stop."""
        if scope["type"] == "lifespan":
            await self.lifespan(scope, receive, send)
            return
        status = 500
        began = time.perf_counter()
        try:
            request = Request(scope, receive)
            response = await self._respond(request)
            status = response.status_code
            await _compressed(request, response)(scope, receive, send)
        finally:
            note(scope, status, time.perf_counter() - began)
        if scope.get("unread"):
            await drain_body(receive)

    async def _respond(self, request: Request) -> Response:
        try:
            return await self._handle(request)
        except BodyRefused as refused:
            request.scope["unread"] = refused.problem != "too slow"
            return self.pages.error(refused.problem, {"connection": "close"})
        except Unavailable:  # in a read; a write says what became of it
            return self.pages.error("not read")
        except Exception:
            log.exception("a fault of ours")
            return self.pages.error("failed")

    async def _handle(self, request: Request) -> Response:
        path: str = request.scope["path"]
        methods = ROUTES.get(path) or ROUTES.get(path.rpartition("/")[0] + "/:nim")
        if methods is None:
            request.scope["unread"] = True
            return self.pages.error("no page")
        handler = methods.get("GET" if request.method == "HEAD" else request.method)
        if handler is None:
            request.scope["unread"] = True
            allowed = {*methods, "HEAD"} if "GET" in methods else methods
            return self.pages.error("method", {"allow": ", ".join(sorted(allowed))})
        return await handler(request, self.store, self.pages)


def _compressed(request: Request, response: Response) -> ASGIApp:
    """The same answer, for slow networks. Only pages: a workbook is compressed as it is."""
    if response.media_type == "text/html":
        if takes_gzip(request.headers.get("accept-encoding", "").encode()):
            return GZipMiddleware(response, 1024, 4)
        response.headers.add_vary_header("Accept-Encoding")
    return response
