"""The application: one table of routes, and what becomes of every error."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import cast
from urllib.parse import quote, unquote_to_bytes

from starlette.applications import Starlette
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp

from mahasiswa.settings import Settings
from mahasiswa.store import Unavailable, open_store
from mahasiswa.web import students, transfers
from mahasiswa.web.cache import ListCache
from mahasiswa.web.forms import BodyRefused
from mahasiswa.web.guard import Guard
from mahasiswa.web.log import Log
from mahasiswa.web.pages import Pages


class NimConvertor(Convertor[str | None]):
    """One raw path segment, decoded once, strictly as UTF-8: None where it is none. The empty text is a nim too."""

    regex = "[^/]*"

    def convert(self, value: str) -> str | None:
        """Decode a segment as it came."""
        try:
            return unquote_to_bytes(value.encode("latin-1")).decode()
        except UnicodeDecodeError:
            return None

    def to_string(self, value: str | None) -> str:
        """Encode everything, so that any nim is one segment."""
        return quote(value or "", safe="")


register_url_convertor("nim", NimConvertor())

# For slow networks, where a page may be long: what the cache does not answer itself.
GZIP = Middleware(GZipMiddleware, minimum_size=1024, compresslevel=4)

ROUTES = [
    # The specification's six, as its section 4 has them.
    Route("/", students.index, methods=["GET"], middleware=[GZIP]),
    Route("/mahasiswa/add", students.new, methods=["GET"]),
    Route("/mahasiswa/edit/{nim:nim}", students.edit, methods=["GET"]),
    Route("/mahasiswa/add", students.create, methods=["POST"]),
    Route("/mahasiswa/edit/{nim:nim}", students.update, methods=["POST"]),
    Route("/mahasiswa/delete/{nim:nim}", students.destroy, methods=["POST"]),
    # Beyond it (docs/decisions.md).
    Route("/mahasiswa/impor", transfers.choose, methods=["GET"]),
    Route("/mahasiswa/impor", transfers.preview, methods=["POST"], middleware=[GZIP]),
    Route("/mahasiswa/impor/simpan", transfers.confirm, methods=["POST"]),
    Route("/mahasiswa/impor/templat.xlsx", transfers.template, methods=["GET"]),
    Route("/mahasiswa/ekspor.xlsx", transfers.export_xlsx, methods=["GET"]),
    Route("/mahasiswa/ekspor.csv", transfers.export_csv, methods=["GET"]),
    Route("/sehat", students.healthy, methods=["GET"]),
]


def create_app(settings: Settings) -> ASGIApp:
    """The whole service as an ASGI application. Its lifespan opens the store, which `prepare` made ready."""
    pages = Pages(settings)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.state.store = cache.store = await open_store(settings.database_url)
        yield
        await app.state.store.close()

    app = Starlette(
        routes=ROUTES,
        lifespan=lifespan,
        exception_handlers={
            404: not_found,
            405: method_not_allowed,
            HTTPException: bad_request,
            BodyRefused: body_refused,
            Unavailable: unavailable,
            Exception: failed,
        },
    )
    app.router.redirect_slashes = False
    app.state.pages = pages
    cache = ListCache(Log(app), pages)
    return Guard(cache, pages, settings)


async def not_found(request: Request, _error: Exception) -> Response:
    """A path that is not there."""
    return _error_page(request, "no page")


async def method_not_allowed(request: Request, _error: Exception) -> Response:
    """A path that is there, with another method: say which would do."""
    matching = [route.methods or set() for route in ROUTES if route.matches(request.scope)[0] != Match.NONE]
    return _error_page(request, "method", {"allow": ", ".join(sorted(set().union(*matching)))})


async def bad_request(request: Request, _error: Exception) -> Response:
    """A multipart body that is none."""
    return _error_page(request, "bad request")


async def body_refused(request: Request, error: Exception) -> Response:
    """A body that cannot be read as a form. What is left of it is not waited for."""
    return _error_page(request, cast("BodyRefused", error).problem, {"connection": "close"})


async def unavailable(request: Request, _error: Exception) -> Response:
    """A read that the store could not answer."""
    return _error_page(request, "not read")


async def failed(request: Request, _error: Exception) -> Response:
    """A fault of ours; the log has it."""
    return _error_page(request, "failed")


def _error_page(request: Request, problem: str, headers: Mapping[str, str] | None = None) -> Response:
    pages: Pages = request.app.state.pages
    return pages.error(problem, headers)
