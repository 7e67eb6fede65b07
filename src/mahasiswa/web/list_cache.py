"""Cache of the list page: rendered once per version of the data, then served from memory."""

import asyncio
import hashlib
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from starlette.types import Scope

from mahasiswa.store import Snapshot, Store, Version
from mahasiswa.web.cached_page import CachedPage, CachedResponse
from mahasiswa.web.list_rows import INLINE_MAX_CHARACTERS
from mahasiswa.web.list_view import asks_for_view
from mahasiswa.web.pages import Pages
from mahasiswa.web.responses import Part
from mahasiswa.work import LIST, Slots

PAGE_MAX_BYTES = 32 * 1024 * 1024
"""Maximum length of a page that is kept. A longer one is streamed by the route."""

PAGE_MAX_RECORDS = PAGE_MAX_BYTES // 300
"""A row has at least 300 bytes: its markup without its texts."""


class _Kept(NamedTuple):
    """A part of the page, with the bytes that it was made of and their digest."""

    source: bytes
    digest: bytes
    part: Part


def _kept(source: bytes, part: Part) -> _Kept:
    return _Kept(source, hashlib.sha256(source).digest(), part)


class ListCache:
    """Answers GET and HEAD of the list (specification 4.1) from memory while the store's version stays the same.

    It asks for the version on every request, before it reads anything. So it needs no timeout and no invalidation. The
    page also shows the date, for paper, so it is rendered again at the end of the day.

    A short list is read and rendered at once. A long one is read in a thread and rendered in a task.
    """

    def __init__(self, store: Store, pages: Pages, slots: Slots) -> None:
        self._store = store
        self._slots = slots
        self._pages = pages
        self._version: Version | None = None
        self._end = 0.0
        self._rendered = time.monotonic()
        self._page: CachedPage | None = None
        self._head = _kept(b"", Part(b""))
        self._slices: list[_Kept] = []
        self._next: asyncio.Task[CachedPage | None] | None = None
        self._last: asyncio.Task[CachedPage | None] | None = None

    def respond_now(self, scope: Scope) -> CachedResponse | None:
        """The answer to GET or HEAD of exactly the list; None if something has to be waited for."""
        version = self._store.version_now()
        if version is None or not (self._is_current(version) or self._render_now()):
            return None
        return self._page.respond_now(scope) if self._page else None

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

    def _render_now(self) -> bool:
        """Render the page of a short list. Return False if nothing was rendered because it would take too long."""
        if self._next or (self._last and not self._last.done()):
            return False
        snapshot = self._store.snapshot_now(PAGE_MAX_RECORDS)
        if snapshot is None or snapshot.slices is None:
            return False
        changed = self._changed(snapshot.slices)
        if sum(len(snapshot.slices[number]) for number in changed) > INLINE_MAX_CHARACTERS:
            return False
        self._keep(snapshot, {number: self._pages.rows(snapshot.slices[number], number) for number in changed})
        return True

    async def _render(self, before: "asyncio.Task[CachedPage | None] | None") -> CachedPage | None:
        """Render the page for every request that came before its records were read. One page at a time is rendered."""
        if before:
            await asyncio.wait([before])
        self._last, self._next = self._next, None  # a request that comes from here on waits for another page
        if before and self._is_current(await self._store.version()):
            return self._page
        snapshot = self._store.snapshot_now(PAGE_MAX_RECORDS) or await self._store.snapshot(PAGE_MAX_RECORDS)
        if snapshot.version is None:
            return None
        self._keep(snapshot, await self._rows(snapshot.slices) if snapshot.slices else {})
        return self._page

    async def _rows(self, slices: Sequence[bytes]) -> Mapping[int, bytes] | None:
        """The rows of the changed slices, rendered with pauses or in a thread; None if the page is too long to keep."""
        rows: dict[int, bytes] = {}
        length = rendered = 0
        for number in self._changed(slices):
            packed = slices[number]
            rendered += len(packed)
            if rendered > INLINE_MAX_CHARACTERS:
                rendered = 0
                await asyncio.sleep(0)
            if len(packed) <= INLINE_MAX_CHARACTERS:
                rows[number] = self._pages.rows(packed, number)
            else:
                rows[number] = await self._slots.run(LIST, partial(self._pages.rows, packed, number))
            length += len(rows[number])
            if length > PAGE_MAX_BYTES:
                return None
        return rows

    def _is_current(self, version: Version | None) -> bool:
        return version == self._version and time.time() < self._end

    def _changed(self, slices: Sequence[bytes]) -> Sequence[int]:
        """The numbers of the slices whose rows the last page does not have."""
        kept = self._slices
        return [number for number, packed in enumerate(slices) if number >= len(kept) or kept[number].source != packed]

    def _keep(self, snapshot: Snapshot, rows: Mapping[int, bytes] | None) -> None:
        """Keep the page with these rows of its changed slices. None says that it is too long to keep."""
        # The page is kept under the version of its records, which may be later than the version that was asked for.
        self._version = snapshot.version
        self._rendered = time.monotonic()
        if time.time() >= self._end:
            self._end = self._pages.end_of_day()  # before the date is rendered
        self._page = None
        if snapshot.slices is None or rows is None:
            self._slices = []
            return
        frame = self._pages.list_frame(snapshot.total, snapshot.last)
        if frame.head != self._head.source:
            self._head = _kept(frame.head, Part(frame.head))
        tag = hashlib.sha256(self._head.digest + frame.middle + frame.after + self._pages.row)
        last, self._slices = self._slices, []
        follows, same_follows = b"", True  # the head of the page is no part of this, because it changes with each page
        for number, packed in enumerate(snapshot.slices):
            if number in rows:
                kept = _kept(packed, Part(rows[number], follows))
            else:
                kept = last[number]
                if not same_follows:
                    kept = kept._replace(part=Part(kept.part.body, follows))
            same_follows = number not in rows
            follows = kept.part.body
            tag.update(kept.digest)
            self._slices.append(kept)
        parts = [self._head.part, Part(frame.middle), *(kept.part for kept in self._slices), Part(frame.after)]
        if sum(len(part.body) for part in parts) <= PAGE_MAX_BYTES:
            self._page = CachedPage(parts, tag.hexdigest()[:32], self._pages.headers)
        else:
            self._slices = []
