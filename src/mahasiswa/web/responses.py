"""Compression of pages with gzip for every route, pages that a thread renders, and files that are sent."""

import asyncio
import hashlib
import re
import struct
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO, cast

from starlette.responses import Response, StreamingResponse

from mahasiswa.web.request import Request
from mahasiswa.work import Kind

try:
    from isal.isal_zlib import MAX_WBITS, Z_SYNC_FLUSH, compressobj, crc32

    GZIP_LEVEL = 1
    """ISA-L takes 0.18 ms for the list of 1,000 records, zlib 1.4 ms for 12% fewer bytes."""
except ImportError:  # isal has no wheel for this machine
    from zlib import MAX_WBITS, Z_SYNC_FLUSH, compressobj, crc32  # type: ignore[assignment]

    GZIP_LEVEL = 4
    """A higher level of zlib takes twice the time for 5% fewer bytes."""

FILE_CHUNK_BYTES = 256 * 1024
"""Bytes of a file that are read and sent at a time, and bytes of a stream that are compressed at a time, which takes
about 3 ms with zlib."""

GZIP_MIN_BYTES = 1024
"""A shorter page fits into one packet as it is."""

_WBITS_GZIP = 16 + MAX_WBITS
_GZIP_HEADER = b"\x1f\x8b\x08" + bytes(6) + b"\xff"
_LAST_BLOCK = b"\x03\x00"

refuses_gzip = re.compile(rb"gzip\s*;\s*q=0(\.0*)?\s*(,|$)")


@contextmanager
def unsent_file() -> Iterator[BinaryIO]:
    """A temporary file to fill and then to send with `sent_and_closed`. If the block raises, the file is closed."""
    file = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115 - it stays open until its last byte was sent
    try:
        yield file
    except BaseException:
        file.close()
        raise


async def sent_and_closed(file: BinaryIO) -> AsyncIterator[bytes]:
    """The bytes of a file from its beginning, in chunks. The file is closed after the last one."""
    with file:
        file.seek(0)
        while chunk := file.read(FILE_CHUNK_BYTES):
            yield chunk


async def rendered_in_thread(request: Request, kind: Kind, render: Callable[[], Response]) -> Response:
    """Render and compress a page in a thread of this kind, because it may be long; raise Busy."""
    accept_encoding = request.accept_encoding
    return await request.limits.slots.run(kind, lambda: compressed(render(), accept_encoding))


def accepts_gzip(accept_encoding: bytes) -> bool:
    """Whether an Accept-Encoding header allows gzip."""
    return b"gzip" in accept_encoding and not refuses_gzip.search(accept_encoding)


class Part:
    """A part of a page. It is deflated once, for every page in which it follows the same bytes."""

    def __init__(self, body: bytes, follows: bytes = b"") -> None:
        self.body = body
        self._follows = follows
        self._deflated: bytes | None = None

    @property
    def is_deflated(self) -> bool:
        """Whether `deflated` is known already."""
        return self._deflated is not None

    def deflated(self) -> bytes:
        """Whole blocks of a deflate stream, of which none is the last. They may refer to the bytes before the part."""
        if self._deflated is None:
            packer = compressobj(GZIP_LEVEL, wbits=-MAX_WBITS, zdict=self._follows[-(1 << MAX_WBITS) :])
            self._deflated = packer.compress(self.body) + packer.flush(Z_SYNC_FLUSH)
        return self._deflated


def gzipped(parts: Sequence[Part]) -> bytes:
    """The parts one after the other as one gzip member (RFC 1952). It holds no time, so equal parts give equal bytes."""
    checksum = length = 0
    deflated = []
    for part in parts:
        checksum = crc32(part.body, checksum)
        length += len(part.body)
        deflated.append(part.deflated())
    _release_vector_registers()
    end = struct.pack("<II", checksum, length & 0xFFFFFFFF)
    return b"".join([_GZIP_HEADER, *deflated, _LAST_BLOCK, end])


def compressed(response: Response, accept_encoding: bytes) -> Response:
    """Compress a page with gzip if the client accepts it. A page that has the header Vary was through here already."""
    if response.media_type != "text/html" or "vary" in response.headers:
        return response
    response.headers.add_vary_header("Accept-Encoding")
    if not accepts_gzip(accept_encoding):
        return response
    if isinstance(response, StreamingResponse):
        response.body_iterator = _gzipped_stream(cast("AsyncIterator[bytes]", response.body_iterator))
    elif len(response.body) >= GZIP_MIN_BYTES:
        response.body = gzipped([Part(bytes(response.body))])
        response.headers["content-length"] = str(len(response.body))
    else:
        return response
    response.headers["content-encoding"] = "gzip"
    return response


async def _gzipped_stream(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    packer = compressobj(GZIP_LEVEL, wbits=_WBITS_GZIP)
    async for chunk in chunks:
        for at in range(0, len(chunk), FILE_CHUNK_BYTES):
            if at:
                await asyncio.sleep(0)
            packed = packer.compress(chunk[at : at + FILE_CHUNK_BYTES])
            _release_vector_registers()
            if packed:
                yield packed
    packed = packer.flush()
    _release_vector_registers()
    yield packed


def _release_vector_registers() -> None:
    """End the use of the long vector registers by ISA-L, which leaves them in use. OpenSSL's SHA-512 does it in 0.5 us.

    On a processor with AVX-512, a read of the list takes SQLite 2.4 times as long while they are in use.
    """
    hashlib.sha512(b"").digest()
