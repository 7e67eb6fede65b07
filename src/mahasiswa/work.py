"""Bounded work: the kinds of work of a worker process, and the maximum of each kind that may run and wait at a time.

Each kind has its own slots and threads, so work of one kind never waits for a thread of another kind. But all changes of an
SQLite file wait for its one writer. The table of kinds is the only place with these limits; docs/reference.md shows it.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, NamedTuple, TypeVar, cast

# Maximum time of one database step of a web request, including its time in the queue.
STEP_TIMEOUT_SECONDS = 5.0

PAGE_MAX_BYTES = 16 * 1024 * 1024  # of a page, before it is compressed
LONG_PAGE_BYTES = 1024 * 1024

S = TypeVar("S", bound=Sequence[Any])
T = TypeVar("T")


def slices(items: S, length: int) -> Iterator[S]:
    """The items in parts of this length; the last one may be shorter."""
    for at in range(0, len(items), length):
        yield cast("S", items[at : at + length])


def groups(items: Iterable[T], size_of: Callable[[T], int], max_size: int) -> Iterator[list[T]]:
    """The items in groups, each of which ends with the item that makes it larger than `max_size`."""
    group: list[T] = []
    size = 0
    for item in items:
        group.append(item)
        size += size_of(item)
        if size > max_size:
            yield group
            group = []
            size = 0
    if group:
        yield group


class Kind(NamedTuple):
    """A kind of work.

    `running` is the number of its threads, child processes and database connections, or of requests at the same time. One
    address has at most `of_address` of them.
    """

    name: str
    running: int
    waiting: int = 0
    of_address: int = 1000


RECORD = Kind("single records", 4, 1000)
EDIT = Kind("edits and deletions", 4, 1000)
LIST = Kind("the list page", 1, 1000)
PAGE = Kind("pages of the list", 1, 100)
SEARCH = Kind("searches", 2, 32)
EXPORT = Kind("exports", 2, 8)
IMPORT = Kind("reads of previews, and batches", 2, 8)
CHANGE = Kind("changes", 1, 1000)

DATABASE_KINDS = (RECORD, EDIT, LIST, PAGE, SEARCH, EXPORT, IMPORT, CHANGE)

PREVIEW = Kind("uploads that are read", 2, 16)
STAGE = Kind("pages of previews", 4, 100)

# Requests that take memory or disk while their clients are slow.
FORM = Kind("forms that arrive, or wait for their answer", 1000)
PREVIEW_FORM = Kind("forms of previews that arrive", 16)
UPLOAD = Kind("uploads that arrive", 16, of_address=4)
FILE = Kind("files that are made or sent", 32, of_address=16)
LONG_PAGE = Kind("pages of more than 1 MB, except the list, that are made or sent", 16)

KINDS = (*DATABASE_KINDS, PREVIEW, STAGE, FORM, PREVIEW_FORM, UPLOAD, FILE, LONG_PAGE)


class Busy(Exception):
    """There is no room for more work of a kind. Nothing was done. The text names the kind and its load."""


class Threads(ThreadPoolExecutor):
    """Threads that start when work needs them. If one cannot start, `submit` raises Busy, and the work is not done later."""

    def submit(self, function: Callable[..., T], /, *arguments: Any, **named: Any) -> Future[T]:  # noqa: ANN401 - of any function
        is_refused = False

        def work() -> T:
            if is_refused:
                raise Busy
            return function(*arguments, **named)

        try:
            return super().submit(work)
        except RuntimeError as error:
            is_refused = True  # the executor has queued the work before it started the thread
            raise Busy(str(error)) from error


class Slots:
    """The slots and the threads of every kind, for one event loop."""

    def __init__(self) -> None:
        self._free = {kind: asyncio.Semaphore(kind.running) for kind in KINDS}
        self._waiting = Counter[Kind]()
        self._addresses: dict[Kind, Counter[str]] = {kind: Counter() for kind in KINDS}
        self._threads = {kind: Threads(kind.running, kind.name) for kind in KINDS}

    @asynccontextmanager
    async def slot(
        self, kind: Kind, timeout_seconds: float | None = STEP_TIMEOUT_SECONDS
    ) -> AsyncIterator[None]:
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
        with self.place(kind):
            try:
                yield
            finally:
                self._free[kind].release()

    @contextmanager
    def place(self, kind: Kind, address: str = "") -> Iterator[None]:
        """Hold one place of a kind whose work does not wait; raise Busy."""
        held = self._addresses[kind]
        if held.total() >= kind.running or held[address] >= kind.of_address:
            raise self._busy(kind)
        held[address] += 1
        try:
            yield
        finally:
            held[address] -= 1
            if not held[address]:
                del held[address]

    def count_changes(self, count: int) -> None:
        """Count changes that wait in the queue of the store, or that have left it; raise Busy if that queue is full."""
        if count > 0 and self._waiting[CHANGE] >= CHANGE.waiting:
            raise self._busy(CHANGE)
        self._waiting[CHANGE] += count

    async def run(self, kind: Kind, function: Callable[[], T]) -> T:
        """Call a function in a thread of this kind; raise Busy. If the caller is cancelled, wait for its end."""
        async with self.slot(kind):
            return await ended(self.in_thread(kind, function), lambda: None)

    def in_thread(
        self, kind: Kind, function: Callable[..., T], *arguments: object
    ) -> asyncio.Future[T]:
        """Call a function in a thread of this kind, for a caller that has a slot."""
        loop = asyncio.get_running_loop()
        return loop.run_in_executor(self._threads[kind], function, *arguments)

    def _busy(self, kind: Kind) -> Busy:
        running = self._addresses[kind].total()
        return Busy(f"{kind.name}: {running} running, {self._waiting[kind]} waiting")


async def ended(
    running: asyncio.Future[T],
    stop: Callable[[], object],
    *,
    timeout_seconds: float | None = None,
    interval_seconds: float | None = None,
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
                await asyncio.wait([running], timeout=interval_seconds)
        running.exception()  # asyncio logs an exception that is never retrieved
    try:
        return running.result()
    finally:
        # The future and its exception form a cycle. It would keep the texts of an upload until
        # garbage collection.
        del running
