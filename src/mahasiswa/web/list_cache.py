"""Cache of the list page: rendered once per version of the data, then served from memory."""

import hashlib
import time
from collections.abc import Sequence
from functools import partial

from starlette.types import Scope

from mahasiswa.shared_task import SharedTask
from mahasiswa.store import SLICE_RECORDS, Snapshot, Store, Version
from mahasiswa.web.list_html import INLINE_MAX_CHARACTERS, format_rows
from mahasiswa.web.list_query import is_list_query
from mahasiswa.web.pages import Pages
from mahasiswa.web.responses import CachedPage, FixedResponse
from mahasiswa.work import LIST, PAGE_MAX_BYTES, Slots

PAGE_MAX_RECORDS = 12_000
"""Maximum records of a page that is kept. A longer list is streamed by the route. After a change, a stream sends its first
byte within 10 ms; a kept page of 45,000 records would send it after 60 to 150 ms, and a page of so many records after 30 to 60 ms."""

Rows = dict[tuple[int, bytes], bytes]
"""The formatted rows of each slice of a snapshot, by its place and its texts."""


class ListCache:
    """Answers GET and HEAD of the list (specification 4.1) from memory while the store's version stays the same.

    It asks for the version on every request, before it reads anything. So it needs no timeout and no invalidation. The
    page also shows the date, for paper, so it is rendered again on another day.

    A short list is read and rendered at once, a long one in a thread. A list that is too long is not kept.
    """

    def __init__(self, store: Store, pages: Pages, slots: Slots) -> None:
        self._store = store
        self._slots = slots
        self._pages = pages
        self._version: Version | None = None
        self._day = (0.0, 0.0)
        self._rendered = time.monotonic()
        self._page: CachedPage | None = None
        self._rows: Rows = {}
        self._rendering = SharedTask(self._render)

    def respond_now(self, scope: Scope) -> FixedResponse | None:
        """The answer to GET or HEAD of exactly the list; None if something has to be waited for."""
        version = self._store.version_now()
        if version is None or not (self._is_current(version) or self._render_now()):
            return None
        return self._page.respond_now(scope) if self._page else None

    def age_seconds(self) -> float:
        """Time since the page was rendered last, or since the start."""
        return time.monotonic() - self._rendered

    async def respond(self, scope: Scope, path: str) -> FixedResponse | None:
        """The answer to a request for the list; None if it asks for something else, or if the page is not kept."""
        if path != "/" or scope["method"] not in ("GET", "HEAD") or is_list_query(scope["query_string"]):
            return None
        version = await self._store.version()
        if version is None:
            return None
        page = self._page if self._is_current(version) else await self._rendering.result()
        return await page.respond(scope, self._slots) if page else None

    def _render_now(self) -> bool:
        """Render the page of a short list. Return False if nothing was rendered because it would take too long."""
        snapshot = None if self._rendering.is_active else self._store.snapshot_now(PAGE_MAX_RECORDS)
        if snapshot is None or snapshot.slices is None:
            return False
        changed = [part for part in enumerate(snapshot.slices) if part not in self._rows]
        if sum(len(packed) for _, packed in changed) > INLINE_MAX_CHARACTERS:
            return False
        self._keep(snapshot, self._formatted(snapshot.slices))
        return True

    async def _render(self, _asked: float) -> CachedPage | None:
        """Render the page, unless it is current; None if it is too long to keep."""
        if self._is_current(await self._store.version()):
            return self._page
        snapshot = self._store.snapshot_now(PAGE_MAX_RECORDS)
        snapshot = snapshot or await self._store.reader(LIST).snapshot(PAGE_MAX_RECORDS)
        if snapshot.version is None:
            return None
        rows = None
        if snapshot.slices is not None:
            rows = await self._slots.run(LIST, partial(self._formatted, snapshot.slices))
        self._keep(snapshot, rows)
        return self._page

    def _is_current(self, version: Version | None) -> bool:
        first, end = self._day
        return version == self._version and first <= time.time() < end

    def _formatted(self, slices: Sequence[bytes]) -> Rows | None:
        """The rows of all slices, of which only those that changed are formatted; None if the page is too long to keep."""
        row = self._pages.row
        markup = len(row.text) - 2 * len(row.values)  # of a row without its texts, whose places have two characters
        if sum(map(len, slices)) + markup * SLICE_RECORDS * (len(slices) - 1) > PAGE_MAX_BYTES:
            return None
        rows: Rows = {}
        length = 0
        for number, packed in enumerate(slices):
            kept = self._rows.get((number, packed))
            rows[number, packed] = kept or format_rows(row, packed, number * SLICE_RECORDS + 1)
            length += len(rows[number, packed])
            if length > PAGE_MAX_BYTES:
                return None
        return rows

    def _keep(self, snapshot: Snapshot, rows: Rows | None) -> None:
        """Keep the page with these rows. `rows` is None if the page is too long to keep."""
        # The page is kept under the version of its records, which may be later than the version that was asked for.
        self._version = snapshot.version
        self._rendered = time.monotonic()
        self._day = self._pages.day()  # before the date is rendered
        self._rows, self._page = rows or {}, None
        if rows is not None:
            before, after = self._pages.list_frame(snapshot.total, snapshot.last)
            body = b"".join([before, *rows.values(), after])
            texts = [self._pages.row.text, before, after, *(packed for _, packed in rows)]
            tag = hashlib.sha256(b"\0".join(texts)).hexdigest()[:32]  # they are shorter than the page
            self._page = CachedPage(body, tag, self._pages.headers)
