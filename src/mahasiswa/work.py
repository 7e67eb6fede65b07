"""Bounded work: the kinds of work of a worker process, and the maximum of each kind that may run and wait at a time.

Each kind has its own slots, and there is a thread for each, so work of one kind never waits for a thread of another kind. But all changes of an
SQLite file wait for its one writer. The table of kinds is the only place with these limits; docs/reference.md shows it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, NamedTuple, TypeVar, cast

# Maximum time of one database step of a web request, including its time in the queue.
STEP_TIMEOUT_SECONDS = 5.0
# Time between two attempts to stop work. SQLite forgets an interrupt that comes before the query
# has begun, and an export may not be connected yet.
STOP_SECONDS = 0.05

PAGE_MAX_BYTES = 16 * 1024 * 1024  # of a page, before it is compressed

S = TypeVar("S", bound=Sequence[Any])
T = TypeVar("T")


def slices(items: S, length: int) -> Iterator[S]:
    """The items in parts of this length; the last one may be shorter."""
    for at in range(0, len(items), length):
        yield cast("S", items[at : at + length])


class Kind(NamedTuple):
    """A kind of work.

    `running` is the number of its threads, child processes and database connections, or of requests at the same time. One
    address has at most `of_address` of them.
    """

    name: str
    running: int
    waiting: int = 0
    of_address: int = 2000


RECORD = Kind("single records", 4, 1000)
LIST = Kind("the list page", 1, 1000)
PAGE = Kind("pages of the list", 1, 100)
SEARCH = Kind("searches", 2, 32)
IMPORT = Kind("reads of previews", 2, 8)
CHANGE = Kind("changes", 4, 1000)

# On PostgreSQL each of these kinds has a pool of connections, and each export a connection of its own.
POOLED_KINDS = (RECORD, LIST, PAGE, SEARCH, IMPORT, CHANGE)
EXPORT = Kind("exports", 2, 8)
PREVIEW = Kind("uploads that are read", 2, 16)
STAGE = Kind("pages of previews", 4, 100)

# Requests that take memory or disk while their clients are slow.
FORM = Kind("forms that arrive, or wait for their answer", 1000)
PREVIEW_FORM = Kind("forms of previews that arrive", 16)
UPLOAD = Kind("uploads that arrive", 16, of_address=4)
FILE = Kind("files that are made or sent", 32, of_address=16)
LONG_PAGE = Kind("pages of more than 1 MB, except the list, that are made or sent", 16)

# More than the slots of all kinds whose work runs in threads, so no work waits for a thread.
MAX_THREADS = 32

KINDS = (*POOLED_KINDS, EXPORT, PREVIEW, STAGE, FORM, PREVIEW_FORM, UPLOAD, FILE, LONG_PAGE)


class Busy(Exception):
    """There is no room for more work of a kind. Nothing was done. The text names the kind."""


class Threads(ThreadPoolExecutor):
    """Threads that start when work needs them. If one cannot start, `submit` raises Busy.

    A thread that runs may still do that work. It is a read, or a step with a stage that checks its version.
    """

    def submit(self, /, *work: Any, **named: Any) -> Future[Any]:  # noqa: ANN401 - of any function
        try:
            return super().submit(*work, **named)
        except RuntimeError as error:
            raise Busy(str(error)) from error


class Slots:
    """The slots of every kind, and the threads for all of them, for one event loop."""

    def __init__(self) -> None:
        self._held: dict[Kind, list[str]] = {kind: [] for kind in KINDS}  # the address of each
        self._free = {kind: asyncio.Semaphore(kind.running) for kind in KINDS}
        self._threads = Threads(MAX_THREADS)

    @contextmanager
    def place(self, kind: Kind, address: str = "") -> Iterator[None]:
        """Hold a place of a kind, to run or to wait; raise Busy if all are held."""
        held = self._held[kind]
        if len(held) >= kind.running + kind.waiting or held.count(address) >= kind.of_address:
            raise Busy(kind.name)
        held.append(address)
        try:
            yield
        finally:
            held.remove(address)

    @asynccontextmanager
    async def slot(
        self, kind: Kind, timeout_seconds: float = STEP_TIMEOUT_SECONDS
    ) -> AsyncIterator[None]:
        """Hold one slot. Raise Busy at once if the queue is full, or later if no slot became free in time."""
        with self.place(kind):
            try:
                async with asyncio.timeout(timeout_seconds):
                    await self._free[kind].acquire()
            except TimeoutError:
                raise Busy(kind.name) from None
            try:
                yield
            finally:
                self._free[kind].release()

    async def run(self, kind: Kind, function: Callable[[], T]) -> T:
        """Call a function in a thread with a slot of this kind; raise Busy. If the caller is cancelled, wait for its end."""
        async with self.slot(kind):
            return await ended(self.in_thread(function), lambda: None)

    def in_thread(self, function: Callable[[], T]) -> asyncio.Future[T]:
        """Call a function in a thread, for a caller that has a slot."""
        return asyncio.get_running_loop().run_in_executor(self._threads, function)


async def ended(
    running: asyncio.Future[T],
    stop: Callable[[], object],
    timeout_seconds: float | None = None,
) -> T:
    """Wait for work in a thread, and return its result.

    At the timeout, or if the caller is cancelled, call `stop` until the work ends.
    """
    try:
        await asyncio.wait([running], timeout=timeout_seconds)
    finally:
        while not running.done():
            stop()
            with suppress(asyncio.CancelledError):  # the caller may be cancelled more than once
                await asyncio.wait([running], timeout=STOP_SECONDS)
        running.exception()  # asyncio logs an exception that is never retrieved
    try:
        return running.result()
    finally:
        # The future and its exception form a cycle. It would keep the texts of an upload until
        # garbage collection.
        del running
