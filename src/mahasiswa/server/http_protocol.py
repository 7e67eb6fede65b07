"""HTTP/1.1 connections: uvicorn's httptools protocol with deadlines, limits, and the list page from the parser's callback.

uvicorn parses, queues and answers requests. This subclass ends the connections of clients that are slow or break a limit.
The deadline of a body is in web/forms.py.
"""

import asyncio
import logging
import struct
import weakref
from itertools import chain
from socket import SO_LINGER, SOL_SOCKET
from typing import TYPE_CHECKING, Any, cast

import httptools
from starlette.responses import Response

# uvicorn documents neither of them, so its version is bounded. tests/web/service fails if they change.
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from mahasiswa.web.connection import KEY, MIN_BYTES_PER_SECOND, Readers

if TYPE_CHECKING:
    from mahasiswa.web.middleware import Middleware

# Maximum time for the head of a request, from the connection or from the end of the last response.
HEAD_TIMEOUT_SECONDS = 10.0
# Maximum time in which a client takes nothing of a response. What it takes gives time back.
WRITE_TIMEOUT_SECONDS = 30.0
# Maximum time in which the input after the last response is ignored. A reset could delete that
# response before the client has read it.
DRAIN_TIMEOUT_SECONDS = 30.0
CHECK_SECONDS = 1.0  # time between two checks of the deadlines of a connection

INPUT_MAX_BYTES = 64 * 1024
"""Maximum bytes of a target and its headers, and in a chunked body of sizes, extensions and trailers between two pieces of content.

The last read may add 256 KB to a head that is not complete.
"""

HEAD_MAX_HEADERS = 100
PATH_MAX_BYTES = 3200  # a nim of 255 characters takes at most 3,060
PIPELINE_MAX_REQUESTS = 8  # that wait for the response to an earlier one
NO_LINGER = struct.pack("ii", 1, 0)

log = logging.getLogger(__name__)


class HttpProtocol(HttpToolsProtocol):
    """A connection.

    `idle_left` and `write_left` are the seconds that the client may still be silent between two requests, and while a
    byte of a response is unsent. `unsent` is the length of the rest of that response at the last look, and `readers` are
    the slow clients of the same list page. `overhead` counts bytes since the last head or piece of a body. `gone` is set
    when the client sends no more. Its complete requests are still answered.
    """

    overhead = unsent = 0
    write_left = WRITE_TIMEOUT_SECONDS
    is_draining = may_answer = False
    readers: Readers = Readers()  # of all other answers

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(0)  # so writing is paused exactly while a byte is unsent
        self.write = transport.write  # the cycle calls it, as it calls close() and is_closing()
        self.is_closing = transport.is_closing
        self.middleware: Middleware = cast("Any", self.config.loaded_app).middleware
        self.running = self.cycle
        self.gone = asyncio.Event()
        self.timer = self.loop.call_later(CHECK_SECONDS, self.check_deadlines)
        self.rest()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio gives it
        self.timer.cancel()
        self.gone.set()
        if self.running:
            self.running.disconnected = True  # uvicorn marks the last request that waits
        super().connection_lost(None)  # after an error uvicorn would keep its timer

    def shutdown(self) -> None:
        """Close the connection at once, or after the response to a request whose body may still arrive."""
        self.persists = False
        super().shutdown()

    def eof_received(self) -> bool:  # type: ignore[override] # asyncio's contract, which uvicorn narrows
        """Keep the connection open for the answers to complete requests."""
        self.gone.set()
        self.drop_incomplete()
        if self.is_idle:
            self.transport.close()
        return True

    def rest(self) -> None:
        """Begin to wait for the next request."""
        self.is_idle = True
        self.idle_left = DRAIN_TIMEOUT_SECONDS if self.is_draining else HEAD_TIMEOUT_SECONDS
        if self.gone.is_set():
            self.transport.close()

    def check_deadlines(self) -> None:
        """End a connection whose client is too slow. Checks are counted, so a service that was stopped excuses it."""
        if self.flow.write_paused:
            self.count_taken()
            self.write_left -= CHECK_SECONDS
            if self.write_left < 0:
                self.cut_off()
        elif self.is_idle:
            self.idle_left -= CHECK_SECONDS
            if self.idle_left < 0:
                self.transport.close()
        self.timer = self.loop.call_later(CHECK_SECONDS, self.check_deadlines)

    def count_taken(self) -> None:
        """Give the client time for what it has taken of a response since the last look."""
        unsent = self.transport.get_write_buffer_size()
        earned = (self.unsent - unsent) / MIN_BYTES_PER_SECOND
        self.write_left = min(WRITE_TIMEOUT_SECONDS, self.write_left + earned)
        self.unsent = unsent

    def pause_writing(self) -> None:
        super().pause_writing()
        self.unsent = self.transport.get_write_buffer_size()
        self.readers.add(self)

    def resume_writing(self) -> None:
        self.count_taken()
        self.readers.discard(self)
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        if self.is_draining:
            return
        self.may_answer = self.is_idle
        self.overhead += len(data)
        rest = b""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            rest = data[upgrade.args[0] :]  # no other protocol is spoken, so HTTP/1.1 goes on
        except httptools.HttpParserError:
            self.refuse(400)
        if self.overhead > INPUT_MAX_BYTES:
            is_body = self.cycle and self.cycle.more_body
            self.refuse(400 if is_body else 431 if self.headers else 414)
        if rest:
            self.data_received(rest)

    def on_header(self, name: bytes, value: bytes) -> None:
        # The parser leaves spaces after a value, which are no part of it (RFC 9110, 5.5).
        super().on_header(name, value.rstrip(b" \t"))

    def on_headers_complete(self) -> None:
        if len(self.url.partition(b"?")[0]) > PATH_MAX_BYTES:
            self.fail(414)
        if len(self.headers) > HEAD_MAX_HEADERS or (
            self.overhead > INPUT_MAX_BYTES
            and len(self.url) + sum(map(len, chain(*self.headers))) > INPUT_MAX_BYTES
        ):
            self.fail(431)
        if len(self.pipeline) >= PIPELINE_MAX_REQUESTS or self.parser.get_method() == b"CONNECT":
            self.fail(400)
        self.overhead = 0
        if not self.flow.write_paused:
            self.write_left = WRITE_TIMEOUT_SECONDS
        if not (self.may_answer and self.is_answered_now()):
            self.start()
        self.headers = []  # drops trailers

    def start(self) -> None:
        """Let the application answer as soon as it has answered all requests before this one."""
        super().on_headers_complete()
        if self.is_idle:
            self.is_idle = False
            self.running = self.cycle
        self.readers = HttpProtocol.readers
        # Weak, so that no connection waits for the garbage collector. While the application runs, the cycle's
        # on_response keeps this connection.
        connection: Any = weakref.proxy(self)
        self.cycle.transport = connection
        self.scope["extensions"] = {KEY: connection}
        # A response before the end of the body, or to a chunked request, is the last one of its connection.
        self.persists = self.cycle.keep_alive and b"transfer-encoding" not in dict(self.headers)
        self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        self.overhead = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self.is_idle:  # it was answered in the callback
            return
        if not self.cycle.response_started:
            self.cycle.keep_alive = self.persists
        super().on_message_complete()
        if not self.pipeline:
            self.flow.resume_reading()  # so that the end of the input is noticed

    def is_answered_now(self) -> bool:
        """Answer a plain GET or HEAD of the list, if nothing has to be waited for. It is at most one request of each read."""
        self.may_answer = False
        method = self.parser.get_method()
        if (
            self.url != self.middleware.guard.list_url
            or method not in (b"GET", b"HEAD")
            or self.parser.get_http_version() != "1.1"
            or not self.parser.should_keep_alive()
            or not {b"content-length", b"transfer-encoding"}.isdisjoint(dict(self.headers))
            or self.flow.write_paused
        ):
            return False
        self.scope |= {"method": method.decode(), "raw_path": self.url}
        page = self.middleware.list_page_now(self.scope)  # type: ignore[arg-type]
        if page is None:
            return False
        self.readers = page.readers
        ((name, date),) = self.server_state.default_headers
        head = b"%b%b: %b\r\n%b" % (STATUS_LINE[page.status_code], name, date, page.head)
        self.transport.writelines((head, b"" if method == b"HEAD" else page.body))
        self.rest()
        return True

    def on_response_complete(self) -> None:
        following = self.pipeline[-1][0] if self.pipeline else None
        super().on_response_complete()
        if following:
            self.running = following
        else:
            self.rest()

    def drop_incomplete(self) -> None:
        """Drop a request whose body will not be complete. The application sees a disconnect, so it uses nothing of it."""
        cycle = self.cycle
        if cycle is None or cycle.response_complete or not cycle.more_body:
            return
        if self.pipeline:
            self.pipeline.popleft()
            return
        if cycle.response_started:
            self.cut_off()
        cycle.disconnected = cycle.response_complete = self.is_idle = True
        cycle.message_event.set()

    def fail(self, status: int) -> None:
        """Refuse a request in a callback of the parser."""
        self.refuse(status)
        raise ValueError

    def refuse(self, status: int) -> None:
        """Answer input that breaks HTTP or a limit, after all requests before it, and end the connection."""
        if self.is_draining:
            return
        log.warning("a request that is not valid HTTP/1.1, or too large, was refused: %d", status)
        self.drop_incomplete()
        self.is_draining = True
        self.on_message_begin()
        self.url = b"/"
        self.app = Response(status_code=status)
        self.start()
        self.cycle.more_body = False

    def close(self) -> None:
        """Send the rest of the response, then close our side of the connection. Further input is ignored."""
        self.pipeline.clear()
        self.is_draining = True
        if self.running.response_started and not self.running.response_complete:
            self.cut_off()
        elif self.gone.is_set():
            self.transport.close()
        elif not self.is_closing():
            self.transport.write_eof()

    def cut_off(self) -> None:
        """Reset the connection. If it were closed, the kernel would keep up to 64 KB for a slow client, for minutes."""
        if not self.is_closing():
            own_socket = self.transport.get_extra_info("socket")
            own_socket.setsockopt(SOL_SOCKET, SO_LINGER, NO_LINGER)
        self.transport.abort()

    async def leave(self) -> None:
        """Wait until the client sends no more, or is gone. Then it gets no answer."""
        await self.gone.wait()
        self.running.disconnected = True
        self.close()
