"""Cache of the list page: rendered once per version of the data, then served from memory."""

import asyncio
import logging
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from datetime import date
from typing import TYPE_CHECKING

from starlette.responses import Response
from starlette.types import Scope

from mahasiswa.shared_task import SharedTask
from mahasiswa.store import Snapshot, Store, Version
from mahasiswa.web.list_html import LOOP_MAX_BYTES
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

    def respond_now(self, scope: Scope, sent: Mapping[bytes, bytes]) -> Response | None:
        """The answer to GET of exactly the list; None if the page is not kept, or not current.

        The requests that one poll of the event loop has found were all sent before the first of them asks for the version, so
        it is asked for once.
        """
        loop = asyncio.get_running_loop()
        if self._asked_at != loop.time():
            if not self._is_current(self._store.version_now()):
                return None
            self._asked_at = loop.time()
            loop.call_soon(self._ask_again)
        return self._page.respond(scope, sent) if self._page else None

    def _ask_again(self) -> None:
        self._asked_at = 0.0

    async def respond(self, scope: Scope, sent: Mapping[bytes, bytes]) -> Response | None:
        """The same for GET or HEAD, rendered first if need be; None if the list is too long to keep."""
        page = await self._rendering.result()
        return page.respond(scope, sent) if page else None

    async def _render(self) -> CachedPage | None:
        version = await self._store.version()
        if version is None:
            return None
        if not self._is_current(version):
            snapshot = await self._store.snapshot(PAGE_MAX_RECORDS)
            today = self._pages.today()
            page = await self._rendered(snapshot)
            # The page is kept under the version of its records, which may be later than the version that was asked for.
            self._kept_of = snapshot.version, today
            self._page = page
            self._cut_slowest_off()
        return self._page

    def _cut_slowest_off(self) -> None:
        """Reset the clients that still take a very old page, because each page takes memory."""
        if self._page:
            self._readers.append(self._page.readers)
        if len(self._readers) > VERSIONS_MAX:
            for reader in list(self._readers.popleft()):
                log.warning("busy: a client that took an old list too slowly was cut off")
                reader.cut_off()

    def _is_current(self, version: Version | None) -> bool:
        return version is not None and self._kept_of == (version, self._pages.today())

    async def _rendered(self, snapshot: Snapshot) -> CachedPage | None:
        """The page of these records: a short one at once, a long one in a thread. None if it is too long."""
        packed = snapshot.packed
        if packed is None:
            return None

        def render() -> CachedPage:
            frame = self._pages.list_frame(snapshot.total, snapshot.last)
            return CachedPage(with_rows(frame, self._pages.row, packed, 1), self._pages.headers)

        with suppress(ProblemPage):
            if len(packed) <= LOOP_MAX_BYTES:
                return render()
            return await self._slots.run(LIST, render)
        return None
