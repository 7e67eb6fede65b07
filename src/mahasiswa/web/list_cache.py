"""Cache of the list page: rendered once per version of the data, then served from memory."""

import asyncio
import logging
from collections import deque
from contextlib import suppress
from datetime import date
from typing import TYPE_CHECKING

from mahasiswa.shared_task import SharedTask
from mahasiswa.store import Snapshot, Store, Version
from mahasiswa.web.pages import Pages, with_rows
from mahasiswa.web.responses import CachedPage, ProblemPage
from mahasiswa.work import LIST, Slots

if TYPE_CHECKING:
    from mahasiswa.web.connection import Readers

PAGE_MAX_RECORDS = 12_000
"""Maximum records of a page that is kept. The route streams a longer list. After a change, a stream
sends its first byte sooner than a page that is rendered as a whole."""

# Maximum versions of the page that slow clients take at a time: the current one and four older ones.
VERSIONS_MAX = 5

log = logging.getLogger(__name__)


class ListCache:
    """Keeps the page of the list (specification 4.1) while the store's version stays the same.

    It asks for the version on every request, before it reads anything. So it needs no timeout and no invalidation. The
    page also shows the date, for paper, so it is rendered again on another day.
    """

    def __init__(self, store: Store, pages: Pages, slots: Slots) -> None:
        self._store = store
        self._slots = slots
        self._pages = pages
        self._kept_of: tuple[Version | None, date] = (None, date.min)
        self._page: CachedPage | None = None
        # The event loop's time of the poll whose requests need not ask for the version.
        self._asked_at = 0.0
        self._readers: deque[Readers] = deque()
        self._rendering = SharedTask(self._render)

    def page_now(self) -> CachedPage | None:
        """The current page, without waiting; None if it is not kept, and cannot be made at once.

        The requests that one poll of the event loop has found were all sent before the first of them asks for the version, so
        it is asked for once.
        """
        loop = asyncio.get_running_loop()
        if self._asked_at != loop.time():
            version = self._store.version_now()
            if version is None or not (self._is_current(version) or self._renew_now(version)):
                return None
            self._asked_at = loop.time()
            loop.call_soon(self._ask_again)
        return self._page

    def _renew_now(self, version: Version) -> bool:
        """Whether the list is short, so that its page was made at once."""
        today = self._pages.today()
        with suppress(Exception):  # the usual way fails too, and reports it
            if snapshot := self._store.snapshot_now(PAGE_MAX_RECORDS):
                self._keep(version, today, self._page_of(snapshot))
                return True
        return False

    def _ask_again(self) -> None:
        self._asked_at = 0.0

    async def page(self) -> CachedPage | None:
        """The current page, rendered first if need be; None if the list is too long to keep."""
        return await self._rendering.result()

    async def _render(self) -> CachedPage | None:
        version = await self._store.version()
        if version is None:
            return None
        if not self._is_current(version):
            today = self._pages.today()
            snapshot = await self._store.snapshot(PAGE_MAX_RECORDS)
            page = await self._slots.run(LIST, lambda: self._page_of(snapshot))
            self._keep(version, today, page)
        return self._page

    def _keep(self, version: Version, today: date, page: CachedPage | None) -> None:
        """Keep a page whose records were read after this version, on this day or on the next one.

        Clients that still take a very old page are reset, because each page takes memory.
        """
        self._kept_of = version, today
        self._page = page
        if page:
            self._readers.append(page.readers)
        if len(self._readers) > VERSIONS_MAX:
            for reader in list(self._readers.popleft()):
                log.warning("busy: a client that took an old list too slowly was cut off")
                reader.cut_off()

    def _is_current(self, version: Version) -> bool:
        return self._kept_of == (version, self._pages.today())

    def _page_of(self, snapshot: Snapshot) -> CachedPage | None:
        """The page of these records; None if it is too long."""
        with suppress(ProblemPage):
            if snapshot.packed is not None:
                frame = self._pages.list_frame(snapshot.total, snapshot.last)
                body = with_rows(frame, self._pages.row, snapshot.packed, 1)
                return CachedPage(body, self._pages.headers)
        return None
