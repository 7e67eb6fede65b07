"""A page that is rendered once and sent many times: plain, with gzip, or as 304 to a client that has it."""

from collections.abc import Mapping
from functools import cached_property

from starlette.responses import Response
from starlette.types import Scope

from mahasiswa.web.responses import accepts_gzip, gzipped
from mahasiswa.work import LIST, Slots

INLINE_GZIP_MAX_BYTES = 1024 * 1024
"""More than this is compressed in a thread. This length takes 0.5 ms with ISA-L, about 10 ms with zlib."""


class CachedResponse(Response):
    """A response that is made once. `head` holds its headers as they are sent, with the blank line."""

    def __init__(self, body: bytes, headers: Mapping[str, str], status_code: int = 200) -> None:
        super().__init__(body, status_code, headers, "text/html" if status_code == 200 else None)
        self.head = b"".join([b"%b: %b\r\n" % header for header in self.raw_headers]) + b"\r\n"


class Variant:
    """The page in one encoding: its ETag, the whole response, and the 304 for a client that has it."""

    def __init__(self, body: bytes, tag: str, headers: Mapping[str, str], encoding: Mapping[str, str]) -> None:
        self.tag = f'"{tag}"'.encode()
        self._headers = {**headers, "etag": f'"{tag}"', "vary": "Accept-Encoding"}
        self.full = CachedResponse(body, {**self._headers, **encoding})

    @cached_property
    def not_modified(self) -> CachedResponse:
        return CachedResponse(b"", self._headers, 304)


class CachedPage:
    """The page in both encodings, each made when it is asked for. `tag` must differ for different pages."""

    def __init__(self, body: bytes, tag: str, headers: Mapping[str, str]) -> None:
        self._body = body
        self._tag = tag
        self._headers = headers

    def respond_now(self, scope: Scope) -> CachedResponse | None:
        """The page, or 304 if the client has it already; None if a long page must be compressed first."""
        accept_encoding = known = b""
        for name, value in scope["headers"]:
            if name == b"accept-encoding":
                accept_encoding = value
            elif name == b"if-none-match":
                known = value
        wants_gzip = accepts_gzip(accept_encoding)
        if wants_gzip and len(self._body) > INLINE_GZIP_MAX_BYTES and "_gzip" not in self.__dict__:
            return None
        variant = self._gzip if wants_gzip else self._plain
        return variant.not_modified if known and (variant.tag in known or known == b"*") else variant.full

    async def respond(self, scope: Scope, slots: Slots) -> CachedResponse:
        """The same, after a long page was compressed in a thread; raise Busy."""
        while (response := self.respond_now(scope)) is None:
            await slots.run(LIST, lambda: self._gzip)  # by one thread, so it is compressed once
        return response

    @cached_property
    def _plain(self) -> Variant:
        return Variant(self._body, self._tag, self._headers, {})

    @cached_property
    def _gzip(self) -> Variant:
        return Variant(gzipped(self._body), self._tag + "-gzip", self._headers, {"content-encoding": "gzip"})
