"""HttpProtocol gives the same answers as uvicorn's own protocol class, for any bytes and any pieces of them."""

import asyncio
import random
import re
from collections.abc import Callable

import uvicorn
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from mahasiswa.http_protocol import HttpProtocol
from mahasiswa.web.cached_page import CachedResponse

HOST = b"Host: a\r\n"
FORM = b"nim=1&nama=a"
SEEDS = (
    b"GET / HTTP/1.1\r\n" + HOST + b"\r\n",
    b"HEAD / HTTP/1.1\r\n" + HOST + b"Accept-Encoding: gzip\r\n\r\n",
    b"GET /a%2Fb?c=d HTTP/1.1\r\n" + HOST + b"Cookie: x\r\n\r\n",
    b"GET / HTTP/1.0\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\n\r\nab",
    b"GET / HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + HOST + b"Connection: upgrade\r\nUpgrade: x\r\n\r\n",
    b"POST /add HTTP/1.1\r\n" + HOST + b"Content-Length: 12\r\n\r\n" + FORM,
    b"POST /add HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\nc\r\n" + FORM + b"\r\n0\r\n\r\n",
    b"POST /add HTTP/1.1\r\n" + HOST + b"Expect: 100-continue\r\nContent-Length: 0\r\n\r\n",
)
PARTS = (
    b"\r\n",
    b"\n",
    b"\r",
    b" ",
    b":",
    b"\0",
    b"\xff",
    b"0",
    b"chunked",
    b"Content-Length: 3\r\n",
    b"HTTP/1.1",
    HOST,
)


class Transport(asyncio.Transport):
    """A connection in memory. Its client reads everything at once."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.ended = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self.ended:
            self.written += data

    def write_eof(self) -> None:
        self.ended = True

    def close(self) -> None:
        self.ended = True

    abort = close

    def is_closing(self) -> bool:
        return self.ended

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        pass

    resume_reading = pause_reading


class Echo:
    """An application that answers with the request itself, so an answer to another request would be seen."""

    list_url = b"/"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await Request(scope, receive).body()
        except ClientDisconnect:
            return
        await self.answer(scope, body)(scope, receive, send)

    def list_page_now(self, scope: Scope) -> CachedResponse:
        return self.answer(scope, b"")

    def answer(self, scope: Scope, body: bytes) -> CachedResponse:
        headers = repr([header for header in scope["headers"] if header[0] != b"host"]).encode()
        return CachedResponse(b"|".join([scope["method"].encode(), scope["raw_path"], body, headers]), {})


async def exchange(protocol: type[HttpToolsProtocol], pieces: list[bytes]) -> bytes:
    """Send the pieces one after the other on one connection; return all that came back."""
    app = Echo()
    config = uvicorn.Config(app, http=protocol, ws="none", interface="asgi3", proxy_headers=False, log_config=None)
    state = ServerState()
    transport = Transport()
    connection = protocol(config, state, {})
    connection.connection_made(transport)
    for piece in pieces:
        if not transport.ended:
            connection.data_received(piece)
            await settled(transport, state.tasks)
    answered = transport.written
    connection.connection_lost(None)
    await asyncio.gather(*state.tasks)
    return answered


async def settled(transport: Transport, tasks: set[asyncio.Task[None]]) -> None:
    """Let the application run until it writes no more: it has answered, or waits for the rest of a body."""
    quiet_turns = 0
    while tasks and quiet_turns < 6:  # an answer takes fewer turns of the loop
        written = len(transport.written)
        await asyncio.wait(tasks, timeout=0)
        quiet_turns = quiet_turns + 1 if len(transport.written) == written else 0


def answers(data: bytes) -> list[bytes]:
    """The answers in order. All bare refusals with a status below 500 count as the same."""
    found = []
    while data:
        head, _, rest = data.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        # If a request with a body asks to close, HttpProtocol closes after the body, and does not announce it.
        head = re.sub(rb"(?:date: [^\r]*|connection: close)\r\n", b"", head + b"\r\n")
        if head.startswith(b"HTTP/1.1 100"):
            data = rest
        elif re.match(rb"HTTP/1.1 4\d\d", head):
            found.append(b"refused")
            break
        else:
            # The answer to HEAD announces the length of a body that does not come.
            taken = int(length[1]) if length and not rest.startswith(b"HTTP/1.1 ") else 0
            found.append(head + b"\r\n" + rest[:taken])
            data = rest[taken:]
    return found


def mutated(dice: random.Random) -> bytes:
    """Some requests in a row, with a few bytes changed."""
    data = bytearray(b"".join(dice.choices(SEEDS, k=dice.choice((1, 1, 2, 3)))))
    for _ in range(dice.choice((0, 1, 1, 2, 4))):
        at = dice.randrange(len(data))
        kind = dice.randrange(4)
        if kind == 0:
            data[at] = dice.randrange(256)
        elif kind == 1:
            data[at:at] = dice.choice(PARTS)
        elif kind == 2:
            del data[at : at + dice.choice((1, 2, 8))]
        else:
            end = at + dice.randrange(1, 20)
            data[at:at] = data[at:end]
        if not data:
            data += b"\r"
    return bytes(data)


def cut(dice: random.Random, data: bytes) -> list[bytes]:
    """The same bytes in random pieces, of which one may come several times."""
    places = sorted(dice.sample(range(1, len(data)), min(len(data) - 1, dice.choice((0, 1, 3)))))
    pieces = [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]
    repeated = dice.randrange(len(pieces))
    pieces[repeated:repeated] = [pieces[repeated]] * dice.choice((0, 0, 1, 2))
    return pieces


async def test_the_protocol_answers_as_uvicorn_does(rounds: Callable[[int, int], int]) -> None:
    """The answers to mutated and pipelined requests are the same, however the bytes are cut into pieces.

    uvicorn's own class gets one byte at a time: otherwise it drops the answers to the requests before a broken one.
    """
    dice = random.Random(1)
    refused = 0
    for number in range(rounds(3000, 100_000)):
        pieces = cut(dice, mutated(dice))
        data = b"".join(pieces)
        expected = answers(await exchange(HttpToolsProtocol, [bytes([byte]) for byte in data]))
        got = answers(await exchange(HttpProtocol, pieces))
        assert got == expected, (number, pieces)
        refused += b"refused" in got
    assert refused > 100
