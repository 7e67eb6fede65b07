"""Outermost ASGI application, for every route: guard, list cache, errors to pages, compression, and the request log."""

import json
import logging
import re
import secrets
import time
from collections.abc import Coroutine, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from mahasiswa import wording
from mahasiswa.record import NIM_MAX_CHARACTERS
from mahasiswa.sheets.cells import TooHeavy
from mahasiswa.sheets.stage import Gone
from mahasiswa.store.history_items import NAMES_CHANGE, OLEH
from mahasiswa.web.forms import read_form
from mahasiswa.web.pages import Pages
from mahasiswa.web.request import ProblemPage
from mahasiswa.web.request_guard import RequestGuard
from mahasiswa.web.responses import FixedResponse, compressed, send_page, takes_gzip
from mahasiswa.web.routes import Router
from mahasiswa.web.service import Request, Service
from mahasiswa.web.uploads import UploadRefused
from mahasiswa.work import Busy

# In the log, as nginx writes it: the client was gone, or cut off, before its answer ended.
CLIENT_DISCONNECTED = 499
RETRY_AFTER_SECONDS = 2
# Of an upload. A person who knows it can see the upload, so the log has only its beginning.
identifier = re.compile("(?<=/)([0-9a-f]{8})[0-9a-f]{24}$")

log = logging.getLogger(__name__)


@dataclass
class Middleware:
    """Answers every request of a service."""

    router: Router
    guard: RequestGuard
    service: Service
    numbers: Iterator[int] = field(default_factory=lambda: count(secrets.randbelow(10**8)))
    """Of requests. Each worker begins at another number."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        began = time.perf_counter()
        request = Request(scope, receive, self.service, self.guard.prefix, self.router)
        request.address = self.guard.address(scope)
        request.number = f"{next(self.numbers) % 10**8:08}"
        # Each request is a task, so no other request has this name.
        OLEH.set(self.guard.person(scope))
        status = 500
        try:
            with ExitStack() as request.holding:
                response = await self._respond(request)
                status = response.status_code
                if isinstance(response, FixedResponse | StreamingResponse):
                    await response(scope, receive, send)
                else:
                    await send_page(response, send)
        except ClientDisconnect:
            status = CLIENT_DISCONNECTED
        except Busy as reason:  # in the middle of a response; uvicorn closes the connection
            status = CLIENT_DISCONNECTED
            log.warning("an answer was cut off: %s", reason)
        except Exception:  # in the middle of a response, which is cut off
            status = 500
            log.exception("an answer could not be completed")
            raise
        finally:
            seconds = time.perf_counter() - began
            route = next(iter(request.methods.values()), None)
            self.service.requests[route.path if route else "other", status] += 1
            self._log(request, status, seconds)

    async def _respond(self, request: Request) -> Response:
        problem = self.guard.problem(request.scope)
        # The query is parsed only if the guard found it short enough.
        pages = self.service.pages
        if not problem:
            pages = pages.at(request.list_query)
        try:
            response = pages.error(problem) if problem else await self._answer(request, pages)
        except ClientDisconnect:
            raise
        except ProblemPage as shown:
            headers = {"connection": "close"} if shown.problem == "too slow" else None
            response = pages.error(shown.problem, headers, text=shown.text, limit=shown.limit)
        except Exception as error:  # noqa: BLE001 - each one becomes a page and a line in the log
            response = pages.error(request.problem_of(error))
        if response.status_code == 503:
            response.headers["retry-after"] = str(RETRY_AFTER_SECONDS)
        if not isinstance(response, FixedResponse):
            response = compressed(response, request.number, takes_gzip=takes_gzip(request.scope))
        elif request.method == "POST":
            return response.with_number(request.number)
        if request.method == "POST" or response.status_code >= 400:
            response.headers["x-request-id"] = request.number
        return response

    async def _answer(self, request: Request, pages: Pages) -> Response:
        if not request.methods:
            return pages.error("no page")
        if request.route is None:
            head = ["HEAD"] if "GET" in request.methods else []
            allowed = sorted([*request.methods, *head])
            return pages.error("method", {"allow": ", ".join(allowed)})
        body = request.route.body
        if request.method == "POST" and not isinstance(body, str):
            request.fields = await read_form(request, body)
        # The redirect of a form of the specification names no change (specification 4.4.2).
        has_query = bool(request.scope["query_string"])
        NAMES_CHANGE.set(has_query or not request.route.keeps_query)
        answer: Coroutine[Any, Any, Response] = request.route.handler(
            request, self.service.store, pages
        )
        if request.route.abandons:
            answer = request.while_connected(answer)
        try:
            response = await answer
        except UploadRefused as refused:
            response = pages.upload_form(request.route.purpose, refused.text, pasted=refused.pasted)
        except TooHeavy:
            response = pages.upload_form(request.route.purpose, wording.TOO_HEAVY, 413)
        except Gone:
            response = pages.upload_form(request.route.purpose, wording.PREVIEW_GONE, 404)
        if not isinstance(response, FixedResponse | StreamingResponse):
            request.count_page(len(response.body))
        return response

    def _log(self, request: Request, status: int, seconds: float) -> None:
        """Log a request if it is a POST or was refused, with its address and its number.

        The path is logged as it was sent, percent-encoded and without its query; a nim is quoted as JSON in ASCII. So a
        client can put neither a line break nor an escape sequence into the log, and a long text is cut.
        """
        method: str = request.method
        level = logging.WARNING if status < 500 else logging.ERROR
        if status < 400:
            level = logging.INFO
        if (status < 400 and method != "POST") or not log.isEnabledFor(level):
            return
        # HttpProtocol bounds its length.
        raw_path = request.scope["raw_path"].decode("latin-1")
        path = identifier.sub(r"\1", _quoted(raw_path)[1:-1])
        added = request.added_nim
        oleh = OLEH.get()
        nim = "" if added is None else f" {_quoted(added[:NIM_MAX_CHARACTERS])}"
        who = "" if oleh is None else f" by {_quoted(oleh)}"
        sender = f"{request.address} {request.number}"
        outcome = f"{status} {seconds * 1000:.1f} ms"
        log.log(level, "%s %s%s%s %s %s", method, path, nim, who, outcome, sender)


def _quoted(text: str) -> str:
    return json.dumps(text).replace("\x7f", "\\u007f")
