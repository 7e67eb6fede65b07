"""Cache of the list page: rendered once per version of the data, then served from memory."""

import asyncio
import hashlib
import time
from functools import partial
from typing import NamedTuple

from starlette.types import Scope

from mahasiswa.store import SLICE_RECORDS, Snapshot, Store, Version
from mahasiswa.web.cached_page import CachedPage, CachedResponse
from mahasiswa.web.list_rows import INLINE_MAX_CHARACTERS
from mahasiswa.web.list_view import asks_for_view
from mahasiswa.web.pages import Pages
from mahasiswa.web.responses import Part
from mahasiswa.work import LIST, Slots

PAGE_MAX_BYTES = 32 * 1024 * 1024
"""Maximum length of a page that is kept. A longer one is streamed by the route."""

ROW_MIN_BYTES = 300
"""Minimum length of a row in the page: its markup without its texts."""


class _Slice(NamedTuple):
    """The cells of some records, their digest, and their rows."""

    packed: bytes
    digest: bytes
    part: Part


class ListCache:
    """Answers GET and HEAD of the list (specification 4.1) from memory while the store's version stays the same.

    It asks for the version on every request, before it reads anything. So it needs no timeout and no invalidation. The
    page also shows the date, for paper, so it is rendered again at the end of the day.
    """

    def __init__(self, store: Store, pages: Pages, slots: Slots) -> None:
        self._store = store
        self._slots = slots
        self._pages = pages
        self._version: Version | None = None
        self._end = 0.0
        self._rendered = time.monotonic()
        self._page: CachedPage | None = None
        self._slices: list[_Slice] = []
        self._next: asyncio.Task[CachedPage | None] | None = None
        self._last: asyncio.Task[CachedPage | None] | None = None

    def respond_now(self, scope: Scope) -> CachedResponse | None:
        """The answer to GET or HEAD of exactly the list, if the kept page is current; otherwise None."""
        version = self._store.version_now()
        if version is None or self._page is None or not self._is_current(version):
            return None
        return self._page.respond_now(scope)

    def age_seconds(self) -> float:
        """Time since the page was rendered last, or since the start."""
        return time.monotonic() - self._rendered

    async def respond(self, scope: Scope, path: str) -> CachedResponse | None:
        """The answer to a request for the list; None if it asks for something else, or if the page is not kept."""
        if path != "/" or scope["method"] not in ("GET", "HEAD") or asks_for_view(scope["query_string"]):
            return None
        page = await self._current()
        return await page.respond(scope, self._slots) if page else None

    async def _current(self) -> CachedPage | None:
        version = await self._store.version()
        if version is None:
            return None
        if self._is_current(version):
            return self._page
        if self._next is None:
            self._next = asyncio.create_task(self._render(self._last))
        # Shielded: other requests wait for the same page, and a client that disconnects must not cancel it.
        return await asyncio.shield(self._next)

    async def _render(self, before: "asyncio.Task[CachedPage | None] | None") -> CachedPage | None:
        """Render the page for every request that came before its records were read. One page at a time is rendered."""
        if before:
            await asyncio.wait([before])
        self._last, self._next = self._next, None  # a request that comes from here on waits for another page
        if before and self._is_current(await self._store.version()):
            return self._page
        end = self._end if time.time() < self._end else self._pages.end_of_day()
        snapshot = await self._store.snapshot(PAGE_MAX_BYTES // ROW_MIN_BYTES)
        if snapshot.version is None:
            return None
        page = None if snapshot.slices is None else await self._page_of(snapshot)
        # Kept under the version of its records, which may be later than the version that was asked for.
        self._page, self._version, self._end = page, snapshot.version, end
        self._rendered = time.monotonic()
        return page

    def _is_current(self, version: Version | None) -> bool:
        return version == self._version and time.time() < self._end

    async def _page_of(self, snapshot: Snapshot) -> CachedPage | None:
        """The page with these rows; None if it is too long to keep. Unchanged slices are taken from the last page."""
        before, after = self._pages.list_frame(snapshot.total, snapshot.last)
        tag = hashlib.sha256(before + after + self._pages.row)
        parts, length, rendered = [Part(before)], 0, 0
        last, self._slices = self._slices, []
        follows, same_follows = b"", True  # the head of the page is no part of this, because it changes with each page
        for number, packed in enumerate(snapshot.slices or ()):
            kept = last[number] if number < len(last) else None
            if kept and kept.packed == packed:
                kept = kept if same_follows else _Slice(packed, kept.digest, Part(kept.part.body, follows))
                same_follows = True
            else:
                rendered += len(packed)
                if rendered > INLINE_MAX_CHARACTERS:
                    rendered = 0
                    await asyncio.sleep(0)
                rows = await self._rows(packed, number * SLICE_RECORDS + 1)
                kept = _Slice(packed, hashlib.sha256(packed).digest(), Part(rows, follows))
                same_follows = False
            tag.update(kept.digest)
            follows = kept.part.body
            self._slices.append(kept)
            parts.append(kept.part)
            length += len(follows)
            if length > PAGE_MAX_BYTES:
                self._slices = []
                return None
        return CachedPage([*parts, Part(after)], tag.hexdigest()[:32], self._pages.headers)

    async def _rows(self, packed: bytes, first: int) -> bytes:
        if len(packed) <= INLINE_MAX_CHARACTERS:
            return self._pages.rows(packed, first)
        return await self._slots.run(LIST, partial(self._pages.rows, packed, first))
