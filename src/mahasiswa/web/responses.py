"""How answers are sent: compression with gzip, pages that a thread renders, and bodies that are made while they are sent."""

import asyncio
import copy
import hashlib
import re
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import BinaryIO, cast

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from mahasiswa.web.connection import Readers, connection_of
from mahasiswa.web.request import BareRequest
from mahasiswa.work import FILE, Busy, Kind, ended, slices

# ISA-L is the fastest, for 2 to 6% more bytes than zlib (docs/decisions.md, Measured).
# A higher level of zlib takes twice the time for 5% fewer bytes.
try:
    from isal.isal_zlib import MAX_WBITS, compress, compressobj

    GZIP_LEVEL = 1
except ImportError:  # isal has no wheel for this machine
    from zlib import MAX_WBITS, compress, compressobj  # type: ignore[assignment]

    GZIP_LEVEL = 4

# An answer is sent in such pieces.
STREAM_PIECE_BYTES = 64 * 1024
END = {"type": "http.response.body", "body": b"", "more_body": False}
GZIP_MIN_BYTES = 1024  # a shorter page fits into one packet as it is

NUMBER_MARK = b"<!--number-->"  # in an error page, for the number of its request

refuses_gzip = re.compile(rb"gzip\s*;\s*q=0(\.0*)?\s*(,|$)")


@asynccontextmanager
async def unsent_file(request: BareRequest) -> AsyncIterator[BinaryIO]:
    """A temporary file for Stream, closed if the block raises. The first write creates it, so waiting costs none."""
    request.hold(FILE)
    file = cast("BinaryIO", tempfile.SpooledTemporaryFile(1))  # noqa: SIM115 - open until its last byte was sent
    try:
        yield file
    except BaseException:
        await close_file(file)
        raise


async def close_file(file: BinaryIO) -> None:
    """Close a temporary file in a thread, because the kernel may take long to free its memory."""
    try:
        await ended(asyncio.get_running_loop().run_in_executor(None, file.close), lambda: None)
    except Busy:  # no thread can start
        file.close()


class Stream(StreamingResponse):
    """An answer whose body is made while it is sent, perhaps from a file, which is closed at the end.

    It raises Busy and ClientDisconnect. HEAD gets no chunk.
    """

    def __init__(
        self,
        request: BareRequest,
        chunks: AsyncIterator[bytes],
        headers: Mapping[str, str],
        media_type: str = "text/html",
        file: BinaryIO | None = None,
    ) -> None:
        super().__init__(chunks, headers=headers, media_type=media_type)
        self._request = request
        self._file = file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - the request has both
        try:
            await self._request.while_connected(self.stream_response(send))
        finally:
            if self._file:
                await close_file(self._file)

    async def stream_response(self, send: Send) -> None:
        """Send the head, each chunk in pieces, and the end."""
        await _send_head(self, send)
        if self._request.method != "HEAD":
            async for chunk in cast("AsyncIterator[bytes]", self.body_iterator):
                await _send_pieces(chunk, send)
        await send(END)


async def send_page(page: Response, send: Send) -> None:
    """Send a page, and return when the kernel has taken it, because it counts among long pages until then."""
    await _send_head(page, send)
    await _send_pieces(bytes(page.body), send)
    await send(END)


async def _send_head(response: Response, send: Send) -> None:
    head = {"status": response.status_code, "headers": response.raw_headers}
    await send({"type": "http.response.start", **head})


async def _send_pieces(chunk: bytes, send: Send) -> None:
    """Send a part of an answer. uvicorn writes a piece when the kernel has taken the piece before it."""
    for piece in slices(chunk, STREAM_PIECE_BYTES):
        await send({"type": "http.response.body", "body": piece, "more_body": True})


async def chunks_of(
    file: BinaryIO, before: bytes = b"", after: bytes = b""
) -> AsyncIterator[bytes]:
    """A file that was filled, between two texts. A thread reads it, because a disk may be slow."""
    file.seek(0)
    yield before
    while chunk := await asyncio.to_thread(file.read, STREAM_PIECE_BYTES):
        yield chunk
    yield after


class FixedResponse(Response):
    """A response that is complete when it is made."""

    body: bytes

    def __init__(
        self,
        body: bytes,
        headers: Mapping[str, str],
        status_code: int = 200,
        readers: Readers | None = None,
    ) -> None:
        super().__init__(body, status_code, headers, "text/html" if status_code == 200 else None)
        self.readers = Readers() if readers is None else readers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it as it is. Clients that do not take it are counted with the others of the same page."""
        connection_of(scope).readers = self.readers
        await super().__call__(scope, receive, send)

    def with_number(self, number: str) -> "FixedResponse":
        """A copy with the number of a request, because other requests may get the same response."""
        response = copy.copy(self)
        response.raw_headers = [*self.raw_headers, (b"x-request-id", number.encode())]
        return response


class CachedPage:
    """A page that is rendered once and sent many times: plain, with gzip, or as 304 to a client that has it."""

    def __init__(self, body: bytes, headers: Mapping[str, str]) -> None:
        self.readers = Readers()
        packed = gzipped(body)
        tag = hashlib.sha256(packed).hexdigest()[:32]  # fewer bytes to hash than those of the page
        self._plain = (f'"{tag}"'.encode(), body)
        self._gzipped = (f'"{tag}-gzip"'.encode(), packed)
        self._headers = {**headers, "vary": "Accept-Encoding"}
        self._responses: dict[tuple[bool, bool], FixedResponse] = {}

    def respond(self, scope: Scope) -> FixedResponse:
        """The page, or 304 if the client has it already."""
        wants_gzip, known = accepted_and_known(scope)
        tag, body = self._gzipped if wants_gzip else self._plain
        is_known = tag in known or known == b",*"
        if (wants_gzip, is_known) not in self._responses:  # making one costs more than sending it
            own = {**self._headers, "etag": tag.decode()}
            if wants_gzip:
                own["content-encoding"] = "gzip"
            status, body = (304, b"") if is_known else (200, body)
            response = FixedResponse(body, own, status, self.readers)
            self._responses[wants_gzip, is_known] = response
        return self._responses[wants_gzip, is_known]


async def rendered_in_thread(
    request: BareRequest, kind: Kind, render: Callable[[], Response]
) -> Response:
    """Render and compress a page in a thread of this kind, because it may be long; raise Busy."""

    def packed() -> Response:
        return compressed(render(), request.number, takes_gzip=takes_gzip(request.scope))

    return await request.slots.run(kind, packed)


def takes_gzip(scope: Scope) -> bool:
    """Whether the client accepts gzip."""
    return accepted_and_known(scope)[0]


def accepted_and_known(scope: Scope) -> tuple[bool, bytes]:
    """Whether the client accepts gzip, and the ETags that it has. Headers with the same name count as one (RFC 9110, 5.2)."""
    accepted = known = b""
    for name, value in scope["headers"]:
        if name == b"accept-encoding":
            accepted += b"," + value
        elif name == b"if-none-match":
            known += b"," + value
    return b"gzip" in accepted and not refuses_gzip.search(accepted), known


def gzipped(body: bytes) -> bytes:
    """The body as one gzip member (RFC 1952). It holds no time, so equal bodies give equal bytes."""
    return compress(body, GZIP_LEVEL, 16 + MAX_WBITS)


def compressed(response: Response, number: str, *, takes_gzip: bool) -> Response:
    """Compress a page if the client accepts it. An error page gets its number first.

    A response with a Vary header is left alone, because it was compressed before.
    """
    if response.media_type != "text/html" or "vary" in response.headers:
        return response
    response.headers.add_vary_header("Accept-Encoding")
    if response.status_code >= 400:
        response.body = bytes(response.body).replace(NUMBER_MARK, number.encode())
        response.headers["content-length"] = str(len(response.body))
    if not takes_gzip:
        return response
    if isinstance(response, StreamingResponse):
        response.body_iterator = _gzipped_stream(
            cast("AsyncIterator[bytes]", response.body_iterator)
        )
    elif len(response.body) >= GZIP_MIN_BYTES:
        response.body = gzipped(bytes(response.body))
        response.headers["content-length"] = str(len(response.body))
    else:
        return response
    response.headers["content-encoding"] = "gzip"
    return response


async def _gzipped_stream(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    packer = compressobj(GZIP_LEVEL, wbits=16 + MAX_WBITS)
    async for chunk in chunks:
        for piece in slices(chunk, STREAM_PIECE_BYTES):
            if packed := packer.compress(piece):
                yield packed
            await asyncio.sleep(0)
    yield packer.flush()
