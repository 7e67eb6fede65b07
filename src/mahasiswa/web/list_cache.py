"""The list page, rendered once per version of the data and served from memory, in front of the framework."""

import asyncio
import gzip
import hashlib
import re
from collections.abc import Sequence

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mahasiswa.store import Store, Version
from mahasiswa.store.errors import Unavailable
from mahasiswa.web.pages import Pages, pack

MAX_PAGE = 32 * 1024 * 1024
"""Bytes of a page that is kept; a longer one is streamed by the route behind."""

MAX_ROWS = MAX_PAGE // 300
"""Rows that surely make a longer one: the markup of a row alone is about 300 bytes."""

WHOLE = 512 * 1024
"""Bytes of a page that is sent in one go: each client that does not read costs a copy of what was sent."""

PIECE = 256 * 1024
"""Bytes of a longer one that are sent at a time, as the client takes them."""

SLICE = 100
"""Rows that are rendered anew where one of them has changed."""

TURN = 10
"""Slices after which other requests get their turn."""

refuses_gzip = re.compile(rb"gzip\s*;\s*q=0(\.0*)?\s*(,|$)")


def takes_gzip(encodings: bytes) -> bool:
    """Whether a client that accepts these encodings can be sent gzip."""
    return b"gzip" in encodings and not refuses_gzip.search(encodings)


class ListCache:
    """An ASGI layer that answers GET / from memory for as long as the store's version stays the same.

    The version is asked on every request, before anything else: there is no timeout, and no call that invalidates.
    """

    store: Store
    """Set when it is open, before the first request."""

    def __init__(self, app: ASGIApp, pages: Pages) -> None:
        self.app = app
        self.pages = pages
        self._version: Version | None = None
        self._page: Page | None = None
        self._slices: list[tuple[bytes, bytes]] = []
        self._next: asyncio.Task[Page | None] | None = None
        self._last: asyncio.Task[Page | None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the list page, or hand on what is not for here."""
        page = None
        if scope["type"] == "http" and scope["path"] == "/" and not scope["query_string"]:
            method = scope["method"]
            if method in ("GET", "HEAD"):
                try:
                    page = await self._current()
                except Unavailable:  # no use in asking again: that may take as long
                    await self.pages.error("not read")(scope, receive, send)
                    return
        if page is None:
            await self.app(scope, receive, send)
        else:
            await page.answer(scope, send)

    async def _current(self) -> "Page | None":
        """The page as of now, which is kept or which many wait for; None for one not to keep."""
        store = self.store
        version = await store.version()
        if version is None:
            return None
        if version == self._version:
            return self._page
        if self._next is None:
            self._next = asyncio.create_task(self._render(store, self._last))
        # Shielded: others wait for the same page, and a client that goes away must not take it from them.
        return await asyncio.shield(self._next)

    async def _render(self, store: Store, before: "asyncio.Task[Page | None] | None") -> "Page | None":
        """The page for all who came before its records were read, one at a time however fast the records change."""
        if before:
            await asyncio.wait([before])
        self._last, self._next = self._next, None  # whoever comes from here on waits for another one
        if before and await store.version() == self._version:
            return self._page
        version, records = await store.snapshot(MAX_ROWS)
        if version is None:
            return None
        page = None if records is None else await self._page_of(records)
        # Kept under the records' own version, which may be a later one than was asked for.
        self._page, self._version = page, version
        return page

    async def _page_of(self, records: Sequence[tuple[str, str, str]]) -> "Page | None":
        before, after = self.pages.list_frame(len(records))
        # All that the page is made of names it, which is a fifth of what it comes to.
        name = hashlib.sha256(before + after + self.pages.row)
        parts, size = [before], 0
        last, self._slices = self._slices, []
        for number, first in enumerate(range(0, len(records), SLICE)):
            packed = pack(records[first : first + SLICE])
            name.update(packed)
            unchanged = number < len(last) and last[number][0] == packed
            rows = last[number][1] if unchanged else self.pages.rows(packed, first + 1)
            self._slices.append((packed, rows))
            parts.append(rows)
            size += len(rows)
            if size > MAX_PAGE:
                self._slices = []
                return None
            if number % TURN == TURN - 1:
                await asyncio.sleep(0)
        return Page(b"".join([*parts, after]), name.hexdigest()[:32], self.pages)


class Page:
    """A page's bytes with everything an answer needs, made once."""

    def __init__(self, body: bytes, tag: str, pages: Pages) -> None:
        self._pages = pages
        self._tag = tag
        self._plain = Variant(body, tag, pages, ())
        self._gzip: asyncio.Task[Variant] | None = None

    async def answer(self, scope: Scope, send: Send) -> None:
        """Send the page, its head, or word that the client has it."""
        encodings = known = b""
        for name, value in scope["headers"]:
            if name == b"accept-encoding":
                encodings = value
            elif name == b"if-none-match":
                known = value
        variant = self._plain
        if takes_gzip(encodings):
            if self._gzip is None:
                self._gzip = asyncio.create_task(self._compress())
            variant = await asyncio.shield(self._gzip)
        if known and (variant.tag in known or known == b"*"):
            await send(variant.not_modified)
            await send(EMPTY)
        else:
            await send(variant.start)
            body: bytes = variant.body["body"]
            if scope["method"] == "HEAD":
                body = b""
            elif len(body) > WHOLE:
                for at in range(0, len(body), PIECE):
                    await send({"type": "http.response.body", "body": body[at : at + PIECE], "more_body": True})
                body = b""
            await send(variant.body if body else EMPTY)

    async def _compress(self) -> "Variant":
        body = await asyncio.to_thread(gzip.compress, self._plain.body["body"], 4, mtime=0)
        return Variant(body, self._tag + "-gzip", self._pages, ((b"content-encoding", b"gzip"),))


EMPTY: Message = {"type": "http.response.body", "body": b""}


class Variant:
    """One encoding of a page, as the messages that answer with it."""

    def __init__(self, body: bytes, tag: str, pages: Pages, headers: tuple[tuple[bytes, bytes], ...]) -> None:
        self.tag = f'"{tag}"'.encode()
        shared = [
            *((name.encode(), value.encode()) for name, value in pages.headers.items()),
            (b"etag", self.tag),
            (b"vary", b"Accept-Encoding"),
        ]
        described = [
            *shared,
            (b"content-type", b"text/html; charset=utf-8"),
            (b"content-length", str(len(body)).encode()),
            *headers,
        ]
        self.start: Message = {"type": "http.response.start", "status": 200, "headers": described}
        self.not_modified: Message = {"type": "http.response.start", "status": 304, "headers": shared}
        self.body: Message = {"type": "http.response.body", "body": body}
