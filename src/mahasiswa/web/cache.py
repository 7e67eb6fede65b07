"""The list page, rendered once per version of the data and served from memory, in front of the framework."""

import asyncio
import gzip
import hashlib
import re

from starlette.datastructures import State
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mahasiswa.store import Store, Unavailable, Version
from mahasiswa.web.pages import Pages

MAX_PAGE = 32 * 1024 * 1024
"""Bytes of a page that is kept; a longer one is streamed by the route behind."""

MAX_ROWS = MAX_PAGE // 300
"""Rows that surely make a longer one: the markup of a row alone is about 300 bytes."""

SLICE = 1000
"""Rows rendered before other requests get their turn."""

refuses_gzip = re.compile(rb"gzip\s*;\s*q=0(\.0*)?\s*(,|$)")


class ListCache:
    """An ASGI layer that answers GET / from memory for as long as the store's version stays the same.

    The version is asked on every request, before anything else: there is no timeout, and no call that invalidates.
    """

    def __init__(self, app: ASGIApp, state: State, pages: Pages) -> None:
        self.app = app
        self.state = state  # holds the store, once it is open
        self.pages = pages
        self._version: Version | None = None
        self._page: asyncio.Task[Page | None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the list page, or hand on what is not for here."""
        page = None
        if scope["type"] == "http" and scope["path"] == "/" and not scope["query_string"]:
            method = scope["method"]
            if method in ("GET", "HEAD"):
                try:
                    page = await self._current()
                except Unavailable:  # the route behind says so
                    page = None
        if page is None:
            await self.app(scope, receive, send)
        else:
            await page.answer(scope, send)

    async def _current(self) -> "Page | None":
        """The page as of now, rendered by the first request that finds a new version; None for one not to keep."""
        store: Store = self.state.store
        version = await store.version()
        if version is None:
            return None
        if self._page is None or self._version != version:
            self._version = version
            self._page = asyncio.create_task(self._render(store))
        page = self._page
        if page.done():
            return page.result()
        try:
            # Shielded: others wait for the same page, and a client that goes away must not take it from them.
            return await asyncio.shield(page)
        except Unavailable:
            if self._page is page:
                self._page = None
            raise

    async def _render(self, store: Store) -> "Page | None":
        _, records = await store.snapshot(MAX_ROWS)
        if records is None:
            return None
        before, after = self.pages.list_frame(len(records))
        parts = [before]
        size = 0
        for first in range(0, len(records), SLICE):
            parts.append(self.pages.rows(records[first : first + SLICE], first + 1))
            size += len(parts[-1])
            if size > MAX_PAGE:
                return None
            await asyncio.sleep(0)
        parts.append(after)
        return Page(b"".join(parts), self.pages)


class Page:
    """A page's bytes with everything an answer needs, made once."""

    def __init__(self, body: bytes, pages: Pages) -> None:
        self._pages = pages
        self._tag = hashlib.sha256(body).hexdigest()[:32]
        self._plain = Variant(body, self._tag, pages, ())
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
        if b"gzip" in encodings and not refuses_gzip.search(encodings):
            if self._gzip is None:
                self._gzip = asyncio.create_task(self._compress())
            variant = await asyncio.shield(self._gzip)
        if known and (variant.tag in known or known == b"*"):
            await send(variant.not_modified)
            await send(EMPTY)
        else:
            await send(variant.start)
            await send(EMPTY if scope["method"] == "HEAD" else variant.body)

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
