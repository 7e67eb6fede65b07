"""Outermost ASGI application, for every route: guard, list cache, errors to pages, compression, log."""

import logging
import time
from collections.abc import Awaitable, Callable, Mapping

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from mahasiswa.store.errors import TookTooLong, Unavailable
from mahasiswa.web.cached_page import CachedResponse
from mahasiswa.web.forms import BodyRefused
from mahasiswa.web.list_cache import ListCache
from mahasiswa.web.metrics import Metrics
from mahasiswa.web.pages import Pages
from mahasiswa.web.request import Limits, Request
from mahasiswa.web.request_guard import RequestGuard
from mahasiswa.web.request_log import log_busy, log_request
from mahasiswa.web.responses import compressed
from mahasiswa.wording import ProblemName
from mahasiswa.work import Busy

CLIENT_DISCONNECTED = 499
"""The status in the log of a request whose client disconnected before its answer, as nginx writes it."""

RETRY_AFTER_SECONDS = 2

log = logging.getLogger(__name__)


class Middleware:
    """Answers every request; `handle` answers those that neither the guard nor the list cache answers."""

    def __init__(
        self,
        guard: RequestGuard,
        cache: ListCache,
        pages: Pages,
        limits: Limits,
        handle: Callable[[Request], Awaitable[Response]],
        *,
        metrics: Metrics | None = None,
    ) -> None:
        self.guard = guard
        self.cache = cache
        self.pages = pages
        self.limits = limits
        self.handle = handle
        self.metrics = metrics
        self.list_url = guard.prefix + b"/"

    def list_page_now(self, scope: Scope) -> CachedResponse | None:
        """The answer to GET or HEAD of exactly the list, if nothing has to be waited for."""
        page = None if self.guard.problem(scope) else self.cache.respond_now(scope)
        if page and self.metrics:
            self.metrics.observe("/", scope["method"], page.status_code, 0.0)
        return page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        began = time.perf_counter()
        request = Request(scope, receive, self.guard.prefix, self.limits)
        status = 500
        try:
            response = await self._respond(request)
            status = response.status_code
            await response(scope, receive, send)
        except ClientDisconnect:
            status = CLIENT_DISCONNECTED
        except Exception:  # in the middle of a response, which is cut off
            log.exception("an answer could not be completed")
            raise
        finally:
            seconds = time.perf_counter() - began
            log_request(request, status, seconds)
            if self.metrics:
                self.metrics.observe(request.path, request.method, status, seconds)

    async def _respond(self, request: Request) -> Response:
        try:
            if problem := self.guard.problem(request.scope):
                response = self._error(request, problem)
            elif kept := await self.cache.respond(request.scope, request.path):
                request.scope["extensions"]["mahasiswa.shared"] = True  # http_protocol.py then lets the client be slow
                return kept
            else:
                response = await self.handle(request)
        except BodyRefused as refused:
            headers = {"connection": "close"} if refused.problem == "too slow" else None
            response = self._error(request, refused.problem, headers, refused.limit)
        except Busy as busy:
            log_busy(busy)
            response = self._error(request, "busy write" if request.method == "POST" else "busy")
        except TookTooLong as reason:
            log.warning("interrupted: %s", reason)
            searched = request.query_params.get("cari") and not request.place
            response = self._error(request, "search too long" if searched else "not read")
        except Unavailable as reason:  # by a read: the handler of a write answers this error itself
            log.error("the database could not be read: %s", reason)  # noqa: TRY400 - no traceback needed
            response = self._error(request, "not read")
        except ClientDisconnect:
            raise
        except Exception:
            log.exception("an unexpected error")
            response = self._error(request, "failed")
        if response.status_code == 503:
            response.headers["retry-after"] = str(RETRY_AFTER_SECONDS)
        return compressed(response, request.accept_encoding)

    def _error(
        self, request: Request, problem: ProblemName, headers: Mapping[str, str] | None = None, limit: int = 0
    ) -> Response:
        return self.pages.at(request.place).error(problem, headers, limit=limit)
