"""HTTP/1.1 connections: uvicorn's httptools protocol with one request at a time, deadlines, limits, and the list page.

uvicorn runs the application and frames the responses that are not fixed. This subclass parses no byte after the request
that runs.
"""

import asyncio
import logging
import math
import re
import struct
import weakref
from collections import OrderedDict
from socket import SO_LINGER, SOL_SOCKET
from typing import TYPE_CHECKING, Any, Literal, cast

import httptools
from starlette.requests import ClientDisconnect
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from mahasiswa.server.pace import Pace
from mahasiswa.web.connection import KEY
from mahasiswa.work import Busy

if TYPE_CHECKING:
    from starlette.types import Scope

    from mahasiswa.web.middleware import Middleware
    from mahasiswa.web.responses import FixedResponse

# Maximum time for the head of a request, from the connection or from the end of the last response.
HEAD_TIMEOUT_SECONDS = 10.0
# Maximum time without a byte of a body, and in which a client may be slower than pace.py allows.
BODY_TIMEOUT_SECONDS = 10.0
LATE_SECONDS = 2.0  # a check that is later than this moves the deadlines by its delay
CHECK_SECONDS = 1.0  # time between two checks of the deadlines of a connection

WRITE_TIMEOUT_SECONDS = DRAIN_TIMEOUT_SECONDS = 30.0
"""Maximum time in which a client takes no byte of a response, and in which it may be slower than pace.py allows.

After the last response, the connection reads and ignores input for the same time. A reset could delete that response
before the client has read it.
"""

INPUT_MAX_BYTES = 64 * 1024
"""Maximum bytes of a head, and of the input that a connection keeps: if it keeps more, it is not read. The last read may
add 256 KB. In a chunked body it is also the maximum of sizes, extensions and trailers between two pieces of content."""

HEAD_MAX_HEADERS = 100
PATH_MAX_BYTES = 3200  # besides the prefix of BASE_URL; a nim of 255 characters takes at most 3,060
# Maximum bytes of a body that are parsed at a time. Chunks of one byte take the longest.
PARSED_MAX_BYTES = 16 * 1024
head_end = re.compile(rb"\n\r?\n")  # the parser refuses line feeds alone

State = Literal["head", "body", "answer", "drain", "cut"]

log = logging.getLogger(__name__)

# Connections with bytes to parse, in their order. Each turn of the event loop lets the first parse.
waiting: "OrderedDict[HttpProtocol, None]" = OrderedDict()


class UnchunkedCycle(RequestResponseCycle):
    """A request of HTTP/1.0, which has no chunks (RFC 9112, 6.1): the end of the connection ends the response."""

    async def send(self, message: Any) -> None:  # noqa: ANN401 - uvicorn's type is private
        self.chunked_encoding = False
        # uvicorn compares the length of each part with it.
        self.expected_content_length = len(message.get("body", b""))
        await super().send(message)


class HttpProtocol(HttpToolsProtocol):
    """A connection, and one request at a time. The state says what it waits for, and until when.

    head: the head of the next request (HEAD_TIMEOUT_SECONDS).
    body: the rest of the body, when the application asks for it (`body_pace`).
    answer: the application, and the client that takes the response (`pace`).
    drain: the client, which has its last response; its input is ignored (DRAIN_TIMEOUT_SECONDS).
    cut: nothing; the connection was lost before the client had taken its last response.

    A client that does not take a response is given up in each state (`pace`). `input_ended` is set when the client sends no
    more. Complete requests are still answered. `kept` has the bytes that were not parsed yet. `body_left` is the length
    of the rest of the body, infinite if it is chunked; `wants_body` says that the application waits for it. `written` is
    the length of the response so far, and `shared` its body, if several clients share it.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(0)  # so writing is paused exactly while a byte is unsent
        self.flow.resume_reading = self.want_body  # type: ignore[method-assign] # called by the application's receive()
        self.is_closing = transport.is_closing  # uvicorn calls it, as it calls write() and close()
        self.middleware: Middleware = cast("Any", self.config.loaded_app).middleware
        self.kept = bytearray()
        self.held_bytes = self.framing_bytes = self.searched_bytes = 0
        self.pace: Pace | None = None
        self.body_left = 0.0
        self.body_bytes = 0
        self.body_pace = Pace(BODY_TIMEOUT_SECONDS)
        self.body_is_late = self.wants_body = False
        self.input_ended = asyncio.Event()
        self.state: State
        self.shared: bytes | None = None
        self.timer = self.loop.call_later(CHECK_SECONDS, self.check_deadlines)
        self.await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self.timer.cancel()
        self.middleware.service.limits.shared_answers.release(self.shared, self.cut_off)
        self.shared = None
        is_unsent = self.flow.write_paused or (self.cycle and not self.cycle.response_complete)
        if exc or is_unsent:
            self.state = "cut"
        self.input_ended.set()
        self.kept.clear()
        self.count_held()
        del self.flow.resume_reading  # it refers to this connection
        super().connection_lost(exc)

    def eof_received(self) -> bool:  # type: ignore[override] # asyncio's contract, which uvicorn narrows
        """Keep the connection open for the answers to complete requests."""
        self.input_ended.set()
        self.close_if_over()
        return True

    def close_if_over(self) -> None:
        """Close the connection if its client sends no more and waits for no answer."""
        may_go_on = self in waiting if self.state == "head" else self.kept
        if self.input_ended.is_set() and self.state != "answer" and not may_go_on:
            self.transport.close()

    def shutdown(self) -> None:
        super().shutdown()
        self.persists = False
        if self.cycle and not isinstance(self.cycle, UnchunkedCycle):
            # The process ends, so ignore no input before the close.
            self.cycle.transport = self.transport

    def pause_writing(self) -> None:
        super().pause_writing()
        self.pace = self.pace or Pace(WRITE_TIMEOUT_SECONDS)
        if self.shared:
            held = self.middleware.service.limits.shared_answers
            held.hold(self.shared, len(self.shared), self, self.cut_off)

    def resume_writing(self) -> None:
        super().resume_writing()
        self.middleware.service.limits.shared_answers.release(self.shared, self.cut_off)
        self.on_response_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request if the client has taken the whole response to this one."""
        if (self.cycle is None or self.cycle.response_complete) and not self.flow.write_paused:
            self.shared = None  # which an idle connection must not keep in memory
            if self.state in ("body", "answer"):
                self.await_head()

    def check_deadlines(self) -> None:
        """Close a connection whose client is too slow. While a response is unsent, no head is waited for."""
        late = self.loop.time() - self.timer.when()
        if late > LATE_SECONDS:  # the service was stopped; input may wait in the kernel
            self.deadline += late
            for pace in (self.body_pace, self.pace):
                if pace:
                    pace.excuse(late)
        if self.flow.write_paused:
            if self.pace and self.pace.is_too_slow(self.taken(), has_minimum=self.shared is None):
                self.cut_off()
        elif self.loop.time() > self.deadline:
            self.transport.close()
        elif self.wants_body and self.body_pace.is_too_slow(self.body_bytes):
            self.give_body_up()
        self.timer = self.loop.call_later(CHECK_SECONDS, self.check_deadlines)

    def taken(self) -> int:
        """The bytes of the response that the kernel has taken for the client."""
        return self.written - self.transport.get_write_buffer_size()

    def moved_at(self) -> float:
        if self.state == "body":
            return self.body_pace.moved_at(self.body_bytes)
        return self.pace.moved_at(self.taken()) if self.pace else math.inf

    def address(self) -> str:
        return self.middleware.guard.address(cast("Scope", self.scope))

    def write(self, data: bytes) -> None:
        """Write a part of the response of the cycle."""
        self.written += len(data)
        self.transport.write(data)

    def await_head(self) -> None:
        """Begin to count the time of the next head."""
        self.state = "head"
        self.written = 0
        self.pace = None
        self.deadline = self.loop.time() + HEAD_TIMEOUT_SECONDS
        self.parse_soon()

    def want_body(self) -> None:
        """Parse the next piece of the body as soon as there is one."""
        self.wants_body = self.state == "body"
        self.parse_soon()

    def data_received(self, data: bytes) -> None:
        if self.state == "drain":
            # Until the next turn, because libuv would read up to 8 MB in this one.
            self.transport.pause_reading()
            self.loop.call_soon(self.transport.resume_reading)
            return
        self.kept += data
        if self not in waiting:
            self.parse_kept()
        self.count_held()

    def parse_soon(self) -> None:
        """Parse the kept bytes in a later turn of the event loop, or end if none will come."""
        if self.kept and self not in waiting:
            waiting[self] = None
            if len(waiting) == 1:
                self.loop.call_soon(parse_next)
        elif self.input_ended.is_set():
            self.close_if_over()

    def parse_kept(self) -> None:
        """Parse a head with the first piece of its body, so that no form waits behind long ones, or the next piece."""
        if self.state == "head":
            if self.kept.startswith((b"\r", b"\n")):  # empty lines before the head
                self.kept = self.kept.lstrip(b"\r\n")
                self.searched_bytes = 0
            if self.kept and not self.kept[:1].isalpha():  # TLS, for example
                self.refuse(400)
            # The last two bytes may begin the end, so the search goes on there.
            elif end := head_end.search(
                self.kept, max(0, self.searched_bytes - 2), INPUT_MAX_BYTES
            ):
                self.parse(end.end())
                if self.state == "head":  # the parser found no head, as in the preface of HTTP/2
                    self.parse_soon()
            elif len(self.kept) >= INPUT_MAX_BYTES:
                has_line = b"\n" in self.kept[:INPUT_MAX_BYTES]
                self.refuse(431 if has_line else 414)
            else:
                self.searched_bytes = len(self.kept)
        if self.wants_body and self.kept:
            self.parse(int(min(len(self.kept), PARSED_MAX_BYTES, self.body_left)))

    def parse(self, count: int) -> None:
        """Feed the parser, whose callbacks begin a request or give it a part of its body."""
        piece = bytes(self.kept[:count])
        del self.kept[:count]
        self.searched_bytes = 0
        if self.state == "body":
            self.wants_body = False
            self.body_left -= count
            # Also if the piece has no content, so that the application asks again.
            self.cycle.message_event.set()
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade:
            pass  # no other protocol is spoken, so HTTP/1.1 goes on
        except httptools.HttpParserCallbackError as error:
            # Too many headers, or a target that is too long, or that is no URL, is not ASCII, or has no path. Anything else is a bug.
            if not isinstance(
                error.__context__, (ValueError, httptools.HttpParserError, AttributeError)
            ):
                raise
            self.refuse(
                431
                if len(self.headers) >= HEAD_MAX_HEADERS
                else 414
                if self.is_path_too_long()
                else 400
            )
        except httptools.HttpParserError as error:
            self.refuse(405 if isinstance(error, httptools.HttpParserInvalidMethodError) else 400)
        else:
            self.framing_bytes = 0 if self.cycle and self.cycle.body else self.framing_bytes + count
            if self.body_left and self.framing_bytes > INPUT_MAX_BYTES:
                self.refuse(400)

    def count_held(self) -> None:
        """Count the kept bytes in the budget of bodies, and stop reading if they are many."""
        held = len(self.kept)
        if held == self.held_bytes:
            return
        try:
            # Pipelined requests, which are no body, never take the room that is reserved for forms.
            self.middleware.service.limits.bodies.keep(
                held - self.held_bytes, is_small=self.body_left > 0
            )
            self.held_bytes = held
        except Busy as busy:
            log.warning("busy: %s", busy)
            self.cut_off()
        if held > INPUT_MAX_BYTES:
            self.transport.pause_reading()
        elif not self.input_ended.is_set():
            self.transport.resume_reading()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.state == "head":  # trailers are dropped
            if len(self.headers) >= HEAD_MAX_HEADERS:
                raise ValueError
            # The parser leaves spaces after a value, which are no part of it (RFC 9110, 5.5).
            super().on_header(name, value.rstrip(b" \t"))

    def on_body(self, body: bytes) -> None:
        self.body_bytes += len(body)
        super().on_body(body)

    def on_headers_complete(self) -> None:
        self.scope["method"] = self.parser.get_method().decode("ascii")
        # The second is a request after a chunked body. uvicorn would decode the path on the event loop.
        if self.scope["method"] == "CONNECT" or self.state != "head" or self.is_path_too_long():
            raise ValueError
        headers = dict(self.headers)
        self.body_left = (
            math.inf if b"transfer-encoding" in headers else int(headers.get(b"content-length", 0))
        )
        self.framing_bytes = 0
        self.list_page = self.list_page_now()
        if self.list_page is None:
            is_old = self.parser.get_http_version() == "1.0"
            if is_old:
                self.expect_100_continue = False  # RFC 9110, 10.1.1
            super().on_headers_complete()
            if is_old:
                self.cycle.__class__ = UnchunkedCycle  # uvicorn has made it, and has not begun it
            # Weak, so that no connection waits for the garbage collector. While the application runs, the cycle's
            # on_response keeps this connection.
            connection: Any = weakref.proxy(self)  # a web.connection.Connection
            self.cycle.transport = connection  # its methods write(), close() and is_closing()
            self.scope["extensions"] = {KEY: connection}
            if self.body_left:
                self.body_pace = Pace(BODY_TIMEOUT_SECONDS)
                self.body_bytes = 0
            # A response before the end of the body, or to a chunked request, is the last one of its connection.
            self.persists = self.cycle.keep_alive and self.body_left < math.inf
            self.cycle.keep_alive = False
            # Parse the first piece also if the application does not ask for it.
            self.wants_body = self.body_left > 0 and not self.expect_100_continue
        self.state = "body" if self.body_left else "answer"
        self.deadline = math.inf

    def on_message_complete(self) -> None:
        self.state = "answer"
        self.body_left = 0
        if self.list_page:
            self.shared = self.list_page.body
            self.write_fixed(self.list_page.status_code, self.list_page.head, self.list_page.body)
            return
        if not self.cycle.response_started:
            self.cycle.keep_alive = self.persists
        super().on_message_complete()

    def close(self) -> None:
        """Send the rest of the response, then close our side of the connection. Further input is ignored."""
        if self.would_seem_complete():
            self.cut_off()
            return
        self.state = "drain"
        self.deadline = self.loop.time() + DRAIN_TIMEOUT_SECONDS
        self.kept.clear()
        self.count_held()
        if not self.is_closing():
            self.transport.write_eof()
        self.close_if_over()

    def would_seem_complete(self) -> bool:
        """Whether an incomplete response would seem complete if the connection was closed without a reset."""
        return (
            isinstance(self.cycle, UnchunkedCycle)
            and self.cycle.response_started
            and not self.cycle.response_complete
        )

    def cut_off(self) -> None:
        """Reset the connection. If it were closed, the kernel would keep up to 64 KB for a slow client, for minutes."""
        if not self.is_closing():
            no_linger = struct.pack("ii", 1, 0)
            own_socket = self.transport.get_extra_info("socket")
            own_socket.setsockopt(SOL_SOCKET, SO_LINGER, no_linger)
        self.transport.abort()

    def refuse(self, status: int) -> None:
        """Answer input that breaks HTTP or a limit, and end the connection. All requests before it are answered."""
        if self.state == "answer":  # after a chunked request
            return
        if self.state == "body":
            # The application sees a disconnect, so it uses nothing of the broken body.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.state == "head" or not self.cycle.response_started:
            log.warning(
                "a request that is not valid HTTP/1.1, or too large, was refused: %d", status
            )
            allow = b"allow: GET, HEAD, POST\r\n" if status == 405 else b""
            end = b"content-length: 0\r\nconnection: close\r\n\r\n"
            self.transport.write(STATUS_LINE[status] + allow + end)
        self.close()

    def is_path_too_long(self) -> bool:
        longest = len(self.middleware.guard.prefix) + PATH_MAX_BYTES
        return len(self.url) > longest and len(self.url.partition(b"?")[0]) > longest

    def list_page_now(self) -> "FixedResponse | None":
        """The response to a plain GET or HEAD of the list, if nothing has to be waited for."""
        if (
            self.url != self.middleware.guard.list_url
            or self.body_left
            or self.scope["method"] not in ("GET", "HEAD")
            or self.parser.get_http_version() != "1.1"
            or not self.parser.should_keep_alive()
        ):
            return None
        self.scope["raw_path"] = self.url
        return self.middleware.list_page_now(self.scope)  # type: ignore[arg-type]

    def give_body_up(self) -> None:
        self.body_is_late = True
        self.cycle.message_event.set()

    async def drain(self) -> None:
        await self.flow.drain()
        if self.is_closing():  # a write has failed, perhaps; then connection_lost comes next
            await asyncio.sleep(0)
        if self.state == "cut":
            raise ClientDisconnect

    async def leave(self) -> None:
        await self.input_ended.wait()
        self.cycle.disconnected = True
        if self.would_seem_complete():
            self.cut_off()
        self.transport.close()

    def write_now(self, status: int, head: bytes, body: bytes) -> bool:
        """Write the response of the cycle, unless uvicorn must wait, close the connection afterwards, or write nothing."""
        cycle = self.cycle
        self.shared = body
        is_possible: bool = cycle.keep_alive and not (cycle.disconnected or self.flow.write_paused)
        if is_possible:
            cycle.response_started = cycle.response_complete = True
            self.write_fixed(status, head, body)
        return is_possible

    def write_fixed(self, status: int, head: bytes, body: bytes) -> None:
        """Write a response, which completes the exchange."""
        ((name, date),) = self.server_state.default_headers
        head = b"%b%b: %b\r\n%b" % (STATUS_LINE[status], name, date, head)
        self.written = len(body)
        is_head = self.scope["method"] == "HEAD"
        self.transport.writelines((head,) if is_head else (head, body))
        self.on_response_complete()


def parse_next() -> None:
    """Let the connection that has waited longest parse."""
    connection, _ = waiting.popitem(last=False)
    if waiting:
        connection.loop.call_soon(parse_next)
    connection.parse_kept()
    connection.count_held()
    connection.close_if_over()
