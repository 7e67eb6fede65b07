"""HTTP/1.1 connections: uvicorn's httptools protocol with deadlines, limits on a head, and a fast path for the list.

uvicorn parses requests and frames responses. This subclass adds the rules that uvicorn lacks.
"""

import asyncio
import logging
import math
from typing import TYPE_CHECKING, cast

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

if TYPE_CHECKING:
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

    from mahasiswa.web.cached_page import CachedResponse
    from mahasiswa.web.middleware import Middleware

HEAD_TIMEOUT_SECONDS = 10.0
"""Maximum time for the head of a request, counted from the connection or from the end of the last response."""

WRITE_TIMEOUT_SECONDS = 30.0
"""Maximum time in which a client takes no byte of a response."""

DRAIN_TIMEOUT_SECONDS, DRAIN_IDLE_SECONDS = 30.0, 5.0
"""Maximum time to read the rest of a body after its response: in all, and without a byte. If the connection were closed
at once, a reset could take the response away from a client that still sends."""

CHECK_SECONDS = 1.0
"""How often a connection looks at its deadlines."""

HEAD_MAX_BYTES = 64 * 1024
HEAD_MAX_HEADERS = 100

PARSE_BYTES = 4096
"""Bytes that are parsed at a time. Pipelined requests after them wait as bytes, which take far less memory."""

POLL_MAX_SOCKETS = 1024
"""Maximum number of ready sockets that libuv serves before it polls again. `Store.version_now` needs the queue of the
event loop to run between two polls, so with more connections the list page is not answered from the callback."""

BODY_HEADERS = frozenset((b"content-length", b"transfer-encoding"))

BARE_RESPONSE = b"content-length: 0\r\nconnection: close\r\n\r\n"

log = logging.getLogger(__name__)


class BoundedProtocol(HttpToolsProtocol):
    """A connection with deadlines and limits. `head_began` is None from the end of a head to the end of its response."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(0)  # so flow.drain() returns when the buffer is empty
        self.running: RequestResponseCycle | None = None
        self.refusal: int | None = None
        self.held = b""
        self.ignores_input = self.closes = False
        self.unsent_bytes, self.unsent_since = 0, 0.0
        self.timer = self.loop.call_later(CHECK_SECONDS, self.check_deadlines)
        self.await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self.timer.cancel()
        if self.running:  # uvicorn notifies only the newest request
            self.running.disconnected = True
            self.running.message_event.set()
        super().connection_lost(exc)

    def check_deadlines(self) -> None:
        """Close a connection whose client is too slow. While a response is unsent, no head is waited for."""
        now = self.loop.time()
        unsent_bytes = self.transport.get_write_buffer_size()
        if unsent_bytes != self.unsent_bytes:
            self.unsent_bytes, self.unsent_since = unsent_bytes, now
        elif unsent_bytes and now > self.unsent_since + WRITE_TIMEOUT_SECONDS:
            self.transport.abort()
        elif not unsent_bytes and now > self.read_deadline():
            self.transport.close()
        if self.running and self.running.more_body:
            self.running.message_event.set()  # an empty message, so that the handler checks the deadline of the body
        self.timer = self.loop.call_later(CHECK_SECONDS, self.check_deadlines)

    def read_deadline(self) -> float:
        """The deadline for the next head, or for the rest of a body whose response is complete."""
        if self.head_began is not None:
            return self.head_began + HEAD_TIMEOUT_SECONDS
        if self.drain_began is not None:
            return min(self.drain_began + DRAIN_TIMEOUT_SECONDS, self.received_at + DRAIN_IDLE_SECONDS)
        return math.inf

    def await_head(self) -> None:
        """Begin to count the time and the bytes of the next head."""
        self.head_began: float | None = self.loop.time()
        self.head_bytes = 0
        self.drain_began: float | None = None

    def data_received(self, data: bytes) -> None:
        self.received_at = self.loop.time()
        if len(data) <= PARSE_BYTES and not (self.held or self.pipeline or self.ignores_input):
            self.parse(data)
            return
        data = self.held + data
        at = 0
        while at < len(data) and not self.pipeline and not self.ignores_input:
            self.parse(data[at : at + PARSE_BYTES])
            at += PARSE_BYTES
        self.held = b"" if self.ignores_input else data[at:]

    def parse(self, data: bytes) -> None:
        """Feed the parser, whose callbacks answer or queue the requests in `data`."""
        # An upper bound: the bytes that came with the head are counted too.
        self.head_bytes = len(data) + (0 if self.head_began is None else self.head_bytes)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:  # no other protocol is spoken, so HTTP/1.1 goes on
            self.parse(data[upgrade.args[0] :])
        except httptools.HttpParserInvalidMethodError:
            self.refuse(405 if data.lstrip(b"\r\n")[:1].isalpha() else 400)
        except httptools.HttpParserCallbackError as error:
            # A head that is too large, or a target that is no URL or not ASCII. Anything else is a bug.
            if not isinstance(error.__context__, (ValueError, httptools.HttpParserError)):
                raise
            if self.closes:
                self.ignores_input = True
            else:
                self.refuse(self.head_excess() or 400)
        except httptools.HttpParserError:
            self.refuse(400)
        else:
            if self.head_began is not None and self.head_bytes > HEAD_MAX_BYTES:
                self.refuse(431 if self.headers else 414)

    def head_excess(self) -> int | None:
        """The status for a head that exceeds a limit."""
        if len(self.headers or ()) > HEAD_MAX_HEADERS:
            return 431
        if self.head_bytes <= HEAD_MAX_BYTES:
            return None
        if len(self.url) > HEAD_MAX_BYTES:
            return 414
        return 431 if sum(len(name) + len(value) for name, value in self.headers) > HEAD_MAX_BYTES else None

    def on_message_begin(self) -> None:
        if self.closes:  # the request before asked to close the connection, so it was the last one
            raise ValueError
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        if self.head_excess():
            raise ValueError
        self.head_began = None
        self.begin_request()

    def begin_request(self) -> None:
        """Answer or queue the request whose head is complete."""
        self.scope["extensions"] = {"mahasiswa.sent": self.flow.drain}  # type: ignore[dict-item]
        super().on_headers_complete()
        if not self.pipeline:
            self.running = self.cycle
        if not self.cycle.keep_alive and self.has_body():  # close after the body, not after the response
            self.cycle.keep_alive = self.closes = True

    def has_body(self) -> bool:
        """Whether the head announces a body."""
        return not BODY_HEADERS.isdisjoint([name for name, _ in self.headers])

    def on_message_complete(self) -> None:
        super().on_message_complete()
        if self.drain_began is not None:
            self.end_exchange()

    def on_response_complete(self) -> None:
        self.running = self.pipeline[-1][0] if self.pipeline else None
        if self.pipeline:
            super().on_response_complete()
        else:  # without uvicorn's timer for idle connections, which check_deadlines replaces
            self.server_state.total_requests += 1
            self.flow.resume_reading()
        if self.transport.is_closing():
            return
        if self.cycle.response_complete:
            if self.cycle.more_body:
                self.drain_began = self.loop.time()
            else:
                self.end_exchange()
        if self.held:
            self.data_received(b"")

    def end_exchange(self) -> None:
        """The last request and its response are complete."""
        self.await_head()
        if self.refusal is not None:
            self.write_refusal()
        elif self.closes:
            self.transport.close()

    def refuse(self, status: int) -> None:
        """Answer a request that breaks HTTP or a limit, after the responses to the requests before it."""
        if self.drain_began is not None:  # the broken body of a request that was answered already
            self.transport.close()
            return
        self.refusal = status
        self.ignores_input = True  # but read it, so that no reset takes the answer away from the client
        if self.head_began is None and self.cycle and self.cycle.more_body and not self.cycle.response_complete:
            # The body is broken. The application sees a disconnect, so it uses nothing of it.
            broken = self.cycle
            broken.disconnected = True
            broken.message_event.set()
            if broken is self.running:
                self.cycle = cast("RequestResponseCycle", None)  # as before the first request
            else:
                self.pipeline.popleft()
                self.cycle = self.pipeline[0][0] if self.pipeline else cast("RequestResponseCycle", self.running)
            if broken.response_started:
                self.transport.close()
        if self.cycle is None or self.cycle.response_complete:
            self.write_refusal()

    def write_refusal(self) -> None:
        """Write a bare response and no more. The client may send on until the deadline of a head."""
        if not self.transport.is_closing():
            log.warning("a request that is not valid HTTP/1.1, or too large, was refused: %d", self.refusal)
            allow = b"allow: GET, HEAD, POST\r\n" if self.refusal == 405 else b""
            self.transport.write(STATUS_LINE[self.refusal or 400] + allow + BARE_RESPONSE)
            self.transport.write_eof()
            self.await_head()


class HttpProtocol(BoundedProtocol):
    """A connection that answers the list page from the parser's callback if nothing has to be waited for.

    `list_request` has the bytes that came last, if they were one whole request for the list. If the same bytes come
    again, the parser would read the same request, so it is not asked.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.middleware = cast("Middleware", self.config.loaded_app)
        self.list_page: CachedResponse | None = None
        self.list_request: bytes | None = None
        self.begun = self.complete = 0
        self.default_headers: list[tuple[bytes, bytes]] | None = None

    def data_received(self, data: bytes) -> None:
        if data == self.list_request and self.can_answer_now():
            page = self.middleware.list_page_now(self.scope)  # type: ignore[arg-type]
            if page:
                self.write_list_page(page)
                return
        begun, complete = self.begun, self.complete
        super().data_received(data)
        is_whole = begun == complete and self.begun == self.complete == begun + 1
        self.list_request = data if is_whole and self.list_page else None

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.begun += 1

    def begin_request(self) -> None:
        self.list_page = self.list_page_now()
        if self.list_page is None:
            super().begin_request()

    def list_page_now(self) -> "CachedResponse | None":
        """The answer to a plain GET or HEAD of the list, if nothing has to be waited for."""
        parser = self.parser
        if (
            self.url != self.middleware.list_url
            or not self.can_answer_now()
            or self.expect_100_continue
            or parser.get_http_version() != "1.1"
            or not parser.should_keep_alive()
            or parser.should_upgrade()
            or self.has_body()
        ):
            return None
        self.scope["method"] = parser.get_method().decode("ascii")
        self.scope["raw_path"] = self.url
        return self.middleware.list_page_now(self.scope)  # type: ignore[arg-type]

    def can_answer_now(self) -> bool:
        """Whether no other response is on its way."""
        return (
            (self.cycle is None or self.cycle.response_complete)
            and not self.transport.get_write_buffer_size()
            and not self.transport.is_closing()
            and len(self.connections) < POLL_MAX_SOCKETS
        )

    def on_message_complete(self) -> None:
        self.complete += 1
        if self.list_page is None:
            super().on_message_complete()
        else:
            self.write_list_page(self.list_page)

    def write_list_page(self, page: "CachedResponse") -> None:
        """Write the page, which completes the exchange."""
        if self.default_headers is not self.server_state.default_headers:  # uvicorn replaces them each second
            self.default_headers = self.server_state.default_headers
            self.date = b"".join([b"%b: %b\r\n" % header for header in self.default_headers])
        head = STATUS_LINE[page.status_code] + self.date + page.head
        self.transport.writelines((head, page.body) if self.scope["method"] == "GET" else (head,))
        self.await_head()
