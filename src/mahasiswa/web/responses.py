"""How answers are sent: whole or in chunks, with gzip, and the list page, which is kept."""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import BinaryIO, cast

from starlette.responses import Response, StreamingResponse
from starlette.types import Scope, Send

from mahasiswa.web.connection import Readers, connection_of
from mahasiswa.wording import ProblemName

# ISA-L is the fastest, for 2 to 6% more bytes than zlib (docs/decisions.md, Measured).
# A higher level of zlib takes twice the time for 5% fewer bytes.
try:
    from isal.isal_zlib import MAX_WBITS, compress, compressobj

    GZIP_LEVEL = 1
except ImportError:  # isal has no wheel for this machine
    from zlib import MAX_WBITS, compress, compressobj  # type: ignore[assignment]

    GZIP_LEVEL = 4

STREAM_PIECE_BYTES = 64 * 1024  # of a file that is sent

refuses_gzip = re.compile(rb"gzip\s*;\s*q=0(\.0*)?\s*(,|$)")


@dataclass(eq=False)
class ProblemPage(Exception):
    """The answer is the page of this problem; `text` replaces its sentence, `limit` is in bytes."""

    problem: ProblemName
    limit: int = 0
    text: str = ""


async def send_response(response: Response, method: str, send: Send) -> None:
    """Send an answer, and return when the kernel has taken it, because long pages count until then.

    Raise what making the chunks of a stream raises. HEAD makes none.
    """
    head = {"status": response.status_code, "headers": response.raw_headers}
    await send({"type": "http.response.start", **head})
    if method == "HEAD":
        pass
    elif isinstance(response, StreamingResponse):
        async for chunk in cast("AsyncIterator[bytes]", response.body_iterator):
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    elif response.body:
        await send({"type": "http.response.body", "body": response.body, "more_body": True})
    await send({"type": "http.response.body"})


async def chunks_of(
    file: BinaryIO, before: bytes = b"", after: bytes = b""
) -> AsyncIterator[bytes]:
    """A file that was filled, between two texts. A thread reads it, because a disk may be slow."""
    file.seek(0)
    yield before
    while chunk := await asyncio.to_thread(file.read, STREAM_PIECE_BYTES):
        yield chunk
    yield after


class KeptResponse(Response):
    """A response that is sent many times."""

    @cached_property
    def _head(self) -> bytes:
        return b"".join(b"%b: %b\r\n" % header for header in self.raw_headers)

    def pieces(self, headers: Sequence[tuple[bytes, bytes]]) -> Sequence[bytes]:
        """The response after its status line, with the first of these headers, which is the date."""
        (_, date), *_ = headers
        return self._head, b"date: ", date, b"\r\n\r\n", cast("bytes", self.body)


class CachedPage:
    """A page that is rendered once and sent many times: plain, with gzip, or as 304 to a client that has it."""

    def __init__(self, body: bytes, headers: Mapping[str, str]) -> None:
        self.readers = Readers()
        packed = gzipped(body)
        tag = hashlib.sha256(packed).hexdigest()[:32]  # fewer bytes to hash than those of the page
        shared = {**headers, "vary": "Accept-Encoding", "content-type": "text/html; charset=utf-8"}
        gzip = {**shared, "etag": f'"{tag}-gzip"', "content-encoding": "gzip"}
        self._forms = {True: (packed, gzip), False: (body, {**shared, "etag": f'"{tag}"'})}
        self._responses: dict[tuple[bool, bool], KeptResponse] = {}

    def respond(self, scope: Scope, sent: Mapping[bytes, bytes]) -> KeptResponse:
        """The page, or 304 if the client has it already. `sent` has the headers of the request."""
        connection_of(scope).readers = self.readers
        wants_gzip = takes_gzip(sent)
        body, headers = self._forms[wants_gzip]
        is_known = headers["etag"].encode() in sent.get(b"if-none-match", b"")
        response = self._responses.get((wants_gzip, is_known))
        if response is None:  # making one costs more than sending it
            form = (b"", 304) if is_known else (body, 200)
            response = KeptResponse(*form, headers)
            self._responses[wants_gzip, is_known] = response
        return response


def takes_gzip(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a client that sends these headers accepts gzip."""
    accepted = headers.get(b"accept-encoding", b"")
    return b"gzip" in accepted and not refuses_gzip.search(accepted)


def gzipped(body: bytes) -> bytes:
    """The body as one gzip member (RFC 1952). It holds no time, so equal bodies give equal bytes."""
    return compress(body, GZIP_LEVEL, 16 + MAX_WBITS)


def compressed(response: Response, headers: Mapping[bytes, bytes]) -> Response:
    """Compress a page, once, if a client that sends these headers accepts it."""
    if response.media_type != "text/html" or "vary" in response.headers:
        return response
    response.headers["vary"] = "Accept-Encoding"
    if not takes_gzip(headers):
        return response
    if isinstance(response, StreamingResponse):
        response.body_iterator = _gzipped_stream(
            cast("AsyncIterator[bytes]", response.body_iterator)
        )
    else:
        response.body = gzipped(bytes(response.body))
        response.headers["content-length"] = str(len(response.body))
    response.headers["content-encoding"] = "gzip"
    return response


async def _gzipped_stream(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    packer = compressobj(GZIP_LEVEL, wbits=16 + MAX_WBITS)
    async for chunk in chunks:
        if packed := packer.compress(chunk):
            yield packed
        await asyncio.sleep(0)
    yield packer.flush()
