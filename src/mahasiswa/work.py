"""Bounded work: the kinds of work of a worker process, and the maximum of each kind that may run and wait at a time.

Each kind has its own slots and threads, so work of one kind never waits for another kind. The table of kinds is the
only place with these limits; docs/operations.md shows it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from threading import Event
from typing import NamedTuple, TypeVar

STEP_TIMEOUT_SECONDS = 5.0
"""Maximum time of one step of a web request in the database, including its time in the queue."""

BODIES_MAX_BYTES = 256 * 1024 * 1024
"""Maximum bytes of request bodies in the memory of a worker."""

FORMS_RESERVED_BYTES = 32 * 1024 * 1024
"""The part of BODIES_MAX_BYTES that large bodies can never take: room for 512 forms of 64 KB."""

MAX_LARGE_BODIES = 16
"""Maximum number of large bodies, uploads and confirmations, at the same time."""

T = TypeVar("T")


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
    """There is no room for more work of a kind. Nothing was done. The text names the kind and its load."""


class Slots:
    """The slots and the threads of every kind, for one event loop."""

    def __init__(self) -> None:
        self._free = {kind: asyncio.Semaphore(kind.running) for kind in KINDS}
        self._running = dict.fromkeys(KINDS, 0)
        self._waiting = dict.fromkeys(KINDS, 0)
        self._threads = {kind: ThreadPoolExecutor(kind.running, kind.name) for kind in KINDS}

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

    async def run(self, kind: Kind, function: Callable[[], T], stop: Event | None = None) -> T:
        """Call a function in a thread of this kind; raise Busy.

        If the caller is cancelled, `stop` is set, and the slot is kept until the function returns, so the threads stay
        bounded.
        """
        async with self.slot(kind):
            running = asyncio.get_running_loop().run_in_executor(self._threads[kind], function)
            try:
                return await asyncio.shield(running)
            finally:
                if stop:
                    stop.set()
                await asyncio.gather(running, return_exceptions=True)

    def load(self) -> Iterator[tuple[Kind, int, int]]:
        """Each kind, with the number that runs now and the number that waits."""
        return ((kind, self._running[kind], self._waiting[kind]) for kind in KINDS)

    def _busy(self, kind: Kind) -> Busy:
        return Busy(f"{kind.name}: {self._running[kind]} running, {self._waiting[kind]} waiting")


class BodyBudget:
    """Counts the request bodies in memory, byte by byte as they arrive."""

    def __init__(self) -> None:
        self._bytes = self._large_bodies = 0

    @property
    def in_memory(self) -> int:
        """Bytes of all bodies now."""
        return self._bytes

    @contextmanager
    def body(self, *, large: bool) -> Iterator[Callable[[int], None]]:
        """Count one body until the end of the block; yield the function that counts further bytes. Both raise Busy."""
        limit = BODIES_MAX_BYTES - FORMS_RESERVED_BYTES if large else BODIES_MAX_BYTES
        if large and self._large_bodies >= MAX_LARGE_BODIES:
            raise self._busy()
        taken = 0

        def take(count: int) -> None:
            nonlocal taken
            if self._bytes + count > limit:
                raise self._busy()
            taken += count
            self._bytes += count

        self._large_bodies += large
        try:
            yield take
        finally:
            self._large_bodies -= large
            self._bytes -= taken

    def keep(self, count: int, *, is_body: bool) -> None:
        """Count bytes that a connection keeps unparsed; a negative count gives them back. Raise Busy.

        Pipelined requests, which are no body, never take FORMS_RESERVED_BYTES.
        """
        if count > 0 and self._bytes + count > BODIES_MAX_BYTES - (0 if is_body else FORMS_RESERVED_BYTES):
            raise self._busy()
        self._bytes += count

    def _busy(self) -> Busy:
        return Busy(f"request bodies: {self._bytes >> 20} MB, {self._large_bodies} large ones")
