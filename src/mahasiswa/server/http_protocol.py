"""HTTP/1.1 connections: uvicorn's httptools protocol with deadlines and limits.

uvicorn parses, queues and answers requests. This subclass ends the connections of clients that are slow or break a limit.
The deadline of a body is in web/forms.py. uvicorn documents none of the methods that are replaced here, so its version is
bounded, and tests/web/service fails if they change.
"""

import asyncio
import logging
import struct
import weakref
from itertools import chain
from socket import SO_LINGER, SOL_SOCKET
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from mahasiswa.web.connection import KEY, MIN_BYTES_PER_SECOND, Readers

# Maximum time for the head of a request, from the connection or from the end of the last response.
HEAD_TIMEOUT_SECONDS = 10.0
# Maximum time in which a client takes nothing of a response. What it takes gives time back. For the same time, the input
# after the last response is ignored: a reset could delete that response before the client has read it.
WRITE_TIMEOUT_SECONDS = 30.0
CHECK_SECONDS = 1.0  # time between two checks of the deadlines of a connection

INPUT_MAX_BYTES = 64 * 1024
"""Maximum bytes of a target and its headers, and in a chunked body of sizes, extensions and trailers between two pieces of content.

The last read may add 256 KB to a head that is not complete.
"""

HEAD_MAX_HEADERS = 100
PATH_MAX_BYTES = 3200  # a nim of 255 characters takes at most 3,060
PIPELINE_MAX_REQUESTS = 8  # that wait for the response to an earlier one
NO_LINGER = struct.pack("ii", 1, 0)
REFUSAL = b"content-length: 0\r\nconnection: close\r\n\r\n"

log = logging.getLogger(__name__)


class HttpProtocol(HttpToolsProtocol):
    """A connection.

    `left` are the seconds that the client may still be silent between two requests, or while a part of a response is
    unsent. `written` and `taken` count the bytes of responses, `overhead` those of the input since the last head or piece
    of a body. `readers` are the slow clients of the same list page.
    """

    overhead = written = taken = 0
    is_draining = False
    readers: Readers = Readers()  # of all other answers
    running: Any = None  # uvicorn's cycle of the request that is answered

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(0)  # a response waits while a part of it is unsent
        # The cycle takes this protocol for its transport. It calls is_closing(), write() and close().
        self.is_closing = transport.is_closing
        # Weak, so that no connection waits for the garbage collector. While the application runs, the cycle's
        # on_response keeps this connection.
        self.connection: Any = weakref.proxy(self)
        self.timer = self.loop.call_later(CHECK_SECONDS, self.check_deadlines)
        self.rest()

    def connection_lost(self, exc: Exception | None) -> None:
        self.timer.cancel()
        if self.running:
            self.running.disconnected = True  # uvicorn marks the last request that waits
        super().connection_lost(exc)

    def rest(self) -> None:
        """Begin to wait for the next request, when the response was taken."""
        self.is_idle = True
        if not self.flow.write_paused:
            self.left = WRITE_TIMEOUT_SECONDS if self.is_draining else HEAD_TIMEOUT_SECONDS
            self.taken = self.written

    def check_deadlines(self) -> None:
        """End a connection whose client is too slow. Checks are counted, so a service that was stopped excuses it."""
        unsent = self.transport.get_write_buffer_size()
        earned = (self.written - unsent - self.taken) / MIN_BYTES_PER_SECOND
        self.taken = self.written - unsent
        if self.is_idle or unsent:
            self.left = min(WRITE_TIMEOUT_SECONDS, self.left + earned) - CHECK_SECONDS
        if self.left < 0:
            self.cut_off() if unsent else self.transport.close()
        self.timer = self.loop.call_later(CHECK_SECONDS, self.check_deadlines)

    def write(self, *pieces: bytes) -> None:
        self.written += sum(map(len, pieces))
        self.transport.writelines(pieces)

    def pause_writing(self) -> None:
        super().pause_writing()
        self.readers.add(self)

    def resume_writing(self) -> None:
        super().resume_writing()
        self.readers.discard(self)
        if self.is_idle:
            self.rest()

    def data_received(self, data: bytes) -> None:
        if self.is_draining:
            return
        self.overhead += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # no other protocol is spoken, so HTTP/1.1 goes on with the next read
        except httptools.HttpParserError:
            self.refuse(400)
        if self.overhead > INPUT_MAX_BYTES:
            self.refuse(414 if len(self.url) > PATH_MAX_BYTES else 431)

    def on_headers_complete(self) -> None:
        status = 0
        if len(self.pipeline) >= PIPELINE_MAX_REQUESTS:
            status = 400
        if len(self.headers) > HEAD_MAX_HEADERS or (
            self.overhead > INPUT_MAX_BYTES
            and len(self.url) + sum(map(len, chain(*self.headers))) > INPUT_MAX_BYTES
        ):
            status = 431
        if len(self.url.partition(b"?")[0]) > PATH_MAX_BYTES:
            status = 414
        if status:
            self.refuse(status)
            raise ValueError
        self.overhead = 0
        self.readers = HttpProtocol.readers
        self.scope["extensions"] = {KEY: self.connection}
        super().on_headers_complete()
        self.headers = []  # drops trailers

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:  # noqa: ANN401 - uvicorn's
        self.is_idle = False
        self.running = cycle
        cycle.transport = self.connection
        if not self.flow.write_paused:
            self.left = WRITE_TIMEOUT_SECONDS
            if cycle.keep_alive and (page := self.app.middleware.kept_list(cycle.scope)):
                # The cycle, and a task for it, would take twice the time.
                self.write(STATUS_LINE[page.status_code], *page.pieces(cycle.default_headers))
                cycle.response_complete = True
                cycle.on_response()
                del cycle.on_response  # which would keep this connection
                return
        # With too many connections, `app` is uvicorn's own, which answers 503.
        super()._start_asgi_task(cycle, getattr(app, "middleware", app))

    def on_body(self, body: bytes) -> None:
        self.overhead = 0
        super().on_body(body)

    def on_response_complete(self) -> None:
        """Begin to answer the next request that waits. uvicorn would set a timer too."""
        self.rest()
        if self.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())

    def refuse(self, status: int) -> None:
        """End the connection because of input that breaks HTTP or a limit.

        If the application has all of an earlier request, that request is answered, and nothing else.
        """
        if self.is_draining:
            return
        log.warning("a request that is not valid HTTP/1.1, or too large, was refused: %d", status)
        self.is_draining = True
        if not self.is_idle:
            self.running.keep_alive = False
            if self.running.response_started or not self.running.more_body:
                return
            self.running.disconnected = True  # so the application uses nothing of a broken body
            self.running.message_event.set()
        self.transport.write(STATUS_LINE[status] + REFUSAL)
        self.transport.write_eof()
        self.rest()

    def close(self) -> None:
        """Send the rest of the response, then close our side of the connection. Further input is ignored."""
        self.pipeline.clear()
        self.is_draining = True
        if not self.running.response_complete:
            self.cut_off()
        elif not self.is_closing():
            self.transport.write_eof()

    def awaits_body(self) -> bool:
        return bool(self.running.more_body)

    def cut_off(self) -> None:
        """Reset the connection. If it were closed, the kernel would keep up to 64 KB for a slow client, for minutes."""
        if not self.is_closing():
            own_socket = self.transport.get_extra_info("socket")
            own_socket.setsockopt(SOL_SOCKET, SO_LINGER, NO_LINGER)
        self.transport.abort()
