"""Bounded work: the kinds of work that a worker process does, and how much of each may run and wait at the same time.

Each kind has its own slots, so work of one kind never waits for another kind. This table is the only place that says
how many; docs/operations.md shows it.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

STEP_TIMEOUT_SECONDS = 5.0
"""Maximum time of one step of a web request in the database, including its time in the queue."""


class Kind(NamedTuple):
    """A kind of work. `running` is the number of its threads or child processes, and of its database connections."""

    name: str
    running: int
    waiting: int


RECORD = Kind("single records", 4, 1000)
LIST = Kind("the list page", 1, 1000)
SEARCH = Kind("searches", 2, 32)
EXPORT = Kind("exports", 2, 8)
WORKBOOK = Kind("workbooks", 2, 8)
IMPORT = Kind("pasted cells, CSV and confirmations", 2, 8)

KINDS = (RECORD, LIST, SEARCH, EXPORT, WORKBOOK, IMPORT)

DATABASE_CONNECTIONS = sum(kind.running for kind in KINDS if kind is not WORKBOOK)
"""Maximum connections of a worker to PostgreSQL. Each kind has its share; workbooks are read without the database."""


class Busy(Exception):
    """There is no room for more work of a kind. Nothing was done. The text says which kind, and how full it is."""


class Slots:
    """The slots of every kind, for one event loop."""

    def __init__(self) -> None:
        self._free = {kind: asyncio.Semaphore(kind.running) for kind in KINDS}
        self._running = dict.fromkeys(KINDS, 0)
        self._waiting = dict.fromkeys(KINDS, 0)

    @asynccontextmanager
    async def slot(self, kind: Kind, timeout_seconds: float | None = STEP_TIMEOUT_SECONDS) -> AsyncIterator[None]:
        """Hold one slot. Raise Busy at once if the queue is full, or later if no slot became free in time."""
        if self._free[kind].locked() and self._waiting[kind] >= kind.waiting:
            raise self._busy(kind)
        self._waiting[kind] += 1
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._free[kind].acquire()
        except TimeoutError:
            raise self._busy(kind) from None
        finally:
            self._waiting[kind] -= 1
        self._running[kind] += 1
        try:
            yield
        finally:
            self._running[kind] -= 1
            self._free[kind].release()

    def _busy(self, kind: Kind) -> Busy:
        return Busy(f"{kind.name}: {self._running[kind]} running, {self._waiting[kind]} waiting")
