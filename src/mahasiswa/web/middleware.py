"""Outermost ASGI application, for every route: guard, list cache, errors to pages, compression, log."""

import logging
import time
from collections.abc import Awaitable, Callable, Mapping

from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from mahasiswa.settings import Settings
from mahasiswa.store.history import OLEH
from mahasiswa.web.cached_page import CachedResponse
from mahasiswa.web.failures import problem_of_failed_request
from mahasiswa.web.forms import BodyRefused
from mahasiswa.web.list_cache import ListCache
from mahasiswa.web.metrics import Metrics
from mahasiswa.web.pages import Pages
from mahasiswa.web.request import Request
from mahasiswa.web.request_guard import RequestGuard
from mahasiswa.web.request_log import log_request
from mahasiswa.web.responses import compressed
from mahasiswa.web.user_header import UserHeader
from mahasiswa.wording import ProblemName
from mahasiswa.work import Busy, Limits

CLIENT_DISCONNECTED = 499
"""The status in the log of a request whose client disconnected before its answer, as nginx writes it."""

RETRY_AFTER_SECONDS = 2

log = logging.getLogger(__name__)


class Middleware:
    """Answers every request; `handle` answers those that neither the guard nor the list cache answers."""

    def __init__(
        self,
        settings: Settings,
        cache: ListCache,
        pages: Pages,
        limits: Limits,
        handle: Callable[[Request], Awaitable[Response]],
        *,
        metrics: Metrics | None,
    ) -> None:
        self.guard = RequestGuard(settings)
        self.user_header = UserHeader(settings)
        self.cache = cache
        self.pages = pages
        self.limits = limits
        self.handle = handle
        self.metrics = metrics
        self.list_url = self.guard.prefix + b"/"

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
        OLEH.set(self.user_header.name(scope))  # each request is a task, so no other request has this name
        status = 500
        try:
            # An answer counts in the budget until the client has taken it.
            with self.limits.answers.hold() as request.count_answer:
                response = await self._respond(request)
                status = response.status_code
                await response(scope, receive, send)
                if not isinstance(response, CachedResponse):
                    await request.sent()
        except ClientDisconnect:
            status = CLIENT_DISCONNECTED
        except Busy as reason:  # in the middle of a response; uvicorn closes the connection
            status = CLIENT_DISCONNECTED
            log.warning("an answer was cut off: %s", reason)
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
            response = await self._answer(request)
        except ClientDisconnect:
            raise
        except BodyRefused as refused:
            headers = {"connection": "close"} if refused.problem == "too slow" else None
            response = self._error(request, refused.problem, headers, refused.limit)
        except Exception as error:  # noqa: BLE001 - each one becomes a page and a line in the log
            response = self._error(request, problem_of_failed_request(request, error))
        if response.status_code == 503:
            response.headers["retry-after"] = str(RETRY_AFTER_SECONDS)
        return response if isinstance(response, CachedResponse) else compressed(response, request.accept_encoding)

    async def _answer(self, request: Request) -> Response:
        if problem := self.guard.problem(request.scope):
            return self._error(request, problem)
        if self.user_header.is_ambiguous(request.scope):
            return self._error(request, "bad request")
        if page := await self.cache.respond(request.scope, request.path):
            extensions = request.scope.setdefault("extensions", {})  # absent if a test calls the application
            extensions["mahasiswa.shared"] = page.body  # http_protocol.py then lets the client be slow
            return page
        response = await self.handle(request)
        if not isinstance(response, CachedResponse | StreamingResponse):
            request.count_answer(len(response.body))
        return response

    def _error(
        self, request: Request, problem: ProblemName, headers: Mapping[str, str] | None = None, limit: int = 0
    ) -> Response:
        return self.pages.at(request.list_query).error(problem, headers, limit=limit)
