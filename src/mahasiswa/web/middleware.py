"""Outermost ASGI application, for every route: guard, list cache, errors to pages, compression, and the request log."""

import json
import logging
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import count

from starlette.requests import ClientDisconnect, empty_receive
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from mahasiswa import wording
from mahasiswa.record import NIM_MAX_CHARACTERS
from mahasiswa.sheets.cells import TooHeavy
from mahasiswa.sheets.stage import Gone
from mahasiswa.store.history_items import NAMES_CHANGE, OLEH
from mahasiswa.web.connection import connection_of
from mahasiswa.web.forms import read_form
from mahasiswa.web.page_renderer import NUMBER
from mahasiswa.web.pages import Pages
from mahasiswa.web.request import Request, Service
from mahasiswa.web.request_guard import RequestGuard
from mahasiswa.web.responses import KeptResponse, ProblemPage, compressed, send_response
from mahasiswa.web.uploads import UploadRefused

# In the log, as nginx writes it: the client was gone, or cut off, before its answer ended.
CLIENT_DISCONNECTED = 499
RETRY_AFTER_SECONDS = 2
# Of an upload. A person who knows it can see the upload, so the log has only its beginning.
identifier = re.compile("(?<=/)([0-9a-f]{8})[0-9a-f]{24}$")

log = logging.getLogger(__name__)


@dataclass
class Middleware:
    """Answers every request of a service."""

    guard: RequestGuard
    service: Service
    numbers: Iterator[int] = field(default_factory=lambda: count(secrets.randbelow(10**8)))
    """Of requests. Each worker begins at another number."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        request = Request(scope, receive, self.service)
        began = time.perf_counter()
        request.address, person = self.guard.sender(request)
        # Each request is a task, so no other request has this name and this number.
        OLEH.set(person)
        NUMBER.set(f"{next(self.numbers) % 10**8:08}")
        status = 500
        try:
            async with AsyncExitStack() as request.holding:
                response = await self._respond(request)
                status = response.status_code
                sending = send_response(response, request.method, send)
                is_stream = isinstance(response, StreamingResponse)
                await (request.while_connected(sending) if is_stream else sending)
        except ClientDisconnect:
            status = CLIENT_DISCONNECTED
        except Exception:  # in the middle of a response, which is cut off
            status = 500
            log.exception("an answer could not be completed")
            raise
        finally:
            seconds = time.perf_counter() - began
            route = next(iter(request.methods.values()), None)
            self.service.requests[route.path if route else "other", status] += 1
            self._log(request, status, seconds)

    def kept_list(self, scope: Scope) -> KeptResponse | None:
        """The list from memory, for a GET that needs neither a log nor a wait. All else would take twice the time."""
        if scope["method"] != "GET" or scope["query_string"]:
            return None
        request = Request(scope, empty_receive, self.service)
        # Without the prefix of BASE_URL a path has no route.
        if request.path != "/" or not request.route or self.guard.problem(request):
            return None
        page = self.service.cache.page_now()
        if page is None:
            return None
        response = page.respond(scope, request.sent)
        self.service.requests["/", response.status_code] += 1
        return response

    async def _respond(self, request: Request) -> Response:
        pages = self.service.pages
        if problem := self.guard.problem(request):
            response = pages.error(problem)
        else:
            # The query is parsed only if the guard found it short enough.
            pages = pages.at(request.list_query)
            try:
                response = await self._answer(request, pages)
            except ClientDisconnect:
                raise
            except ProblemPage as shown:
                response = pages.error(shown.problem, text=shown.text, limit=shown.limit)
            except Exception as error:  # noqa: BLE001 - each one becomes a page and a line in the log
                response = pages.error(request.problem_of(error))
        if response.status_code >= 400:
            response.headers["x-request-id"] = NUMBER.get()
            if connection_of(request.scope).awaits_body():
                response.headers["connection"] = "close"
        if response.status_code == 503:
            response.headers["retry-after"] = str(RETRY_AFTER_SECONDS)
        return compressed(response, request.sent)

    async def _answer(self, request: Request, pages: Pages) -> Response:
        route = request.route
        if not request.methods:
            return pages.error("no page")
        if route is None:
            head = ["HEAD"] if "GET" in request.methods else []
            allowed = sorted([*request.methods, *head])
            return pages.error("method", {"allow": ", ".join(allowed)})
        if request.method == "POST" and not isinstance(route.body, str):
            request.fields = await read_form(request, route.body)
        # The redirect of a form of the specification names no change (specification 4.4.2).
        NAMES_CHANGE.set(bool(request.scope["query_string"]) or not route.keeps_query)
        answer = route.handler(request, self.service.store, pages)
        try:
            response = await (request.while_connected(answer) if route.abandons else answer)
        except UploadRefused as refused:
            return pages.upload_form(route.purpose, refused.text, pasted=refused.pasted)
        except TooHeavy:
            return pages.upload_form(route.purpose, wording.TOO_HEAVY, 413)
        except Gone:
            return pages.upload_form(route.purpose, wording.PREVIEW_GONE, 404)
        # Of the kept list there is only one.
        if response.media_type == "text/html" and not isinstance(response, StreamingResponse):
            request.count_page(len(response.body))
        return response

    def _log(self, request: Request, status: int, seconds: float) -> None:
        """Log a request if it is a POST or was refused, with its address and its number.

        The path is logged as it was sent, percent-encoded and without its query, and escaped as by Python; a nim is quoted
        as JSON in ASCII. So a client can put neither a line break nor an escape sequence into the log, and a long text is cut.
        """
        if status < 400 and request.method != "POST":
            return
        level = logging.WARNING if status < 500 else logging.ERROR
        if status < 400:
            level = logging.INFO
        # HttpProtocol bounds its length.
        path = identifier.sub(r"\1", repr(request.scope["raw_path"])[2:-1])
        nim, oleh = request.added_nim, OLEH.get()
        added = "" if nim is None else f" {_quoted(nim[:NIM_MAX_CHARACTERS])}"
        who = "" if oleh is None else f" by {_quoted(oleh)}"
        outcome = f"{status} {seconds * 1000:.1f} ms"
        sender = f"{request.address} {NUMBER.get()}"
        log.log(level, "%s %s%s%s %s %s", request.method, path, added, who, outcome, sender)


def _quoted(text: str) -> str:
    return json.dumps(text).replace("\x7f", "\\u007f")
