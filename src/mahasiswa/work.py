"""Bounded work: the kinds of work of a worker process, and the maximum of each kind that may run and wait at a time.

Each kind has its own slots and threads, so work of one kind never waits for a thread of another
kind. But all changes of an SQLite file wait for its one writer. The table of kinds is the only
place with these limits; docs/reference.md shows it.
"""

import asyncio
import logging
import math
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar, cast

# Maximum time of one database step of a web request, including its time in the queue.
STEP_TIMEOUT_SECONDS = 5.0

# Maximum bytes in the memory of a worker. The reserved parts are for bodies and answers of at most
# SMALL_BYTES.
SMALL_BYTES = 64 * 1024
BODIES_MAX_BYTES = 96 * 1024 * 1024  # of request bodies
FORMS_RESERVED_BYTES = 32 * 1024 * 1024  # room for 512 forms of 64 KB
# Answers that clients have not taken yet, except the list page, which clients share.
ANSWERS_MAX_BYTES = 64 * 1024 * 1024
SMALL_ANSWERS_RESERVED_BYTES = 16 * 1024 * 1024
# Versions of the list page that clients have not taken yet.
SHARED_ANSWERS_MAX_BYTES = 64 * 1024 * 1024
PAGE_MAX_BYTES = 16 * 1024 * 1024  # of a page, before it is compressed

# Temporary files that are being sent.
SENT_FILES_MAX = 32
SENT_FILES_MAX_BYTES = 1024 * 1024 * 1024

UPLOADS_MAX = 16  # uploads that arrive at the same time
UPLOADS_MAX_OF_ADDRESS = 4
PREVIEWS_MAX = 16  # forms of previews that arrive at the same time

Count = Callable[[int], None]
"""Counts bytes in a budget; raises Busy."""

S = TypeVar("S", bound=Sequence[Any])
T = TypeVar("T")

log = logging.getLogger(__name__)


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
    """A kind of work. `running` is the number of its threads or child processes, and of its database connections."""

    name: str
    running: int
    waiting: int


RECORD = Kind("single records", 4, 1000)
EDIT = Kind("edits and deletions", 4, 1000)
LIST = Kind("the list page", 1, 1000)
PAGE = Kind("pages of the list", 1, 100)
SEARCH = Kind("searches", 2, 32)
EXPORT = Kind("exports", 2, 8)
PREVIEW = Kind("uploads that are read", 2, 16)
STAGE = Kind("pages of previews", 4, 100)
IMPORT = Kind("reads of previews, and batches", 2, 8)
CHANGE = Kind("changes", 1, 1000)

KINDS = (RECORD, EDIT, LIST, PAGE, SEARCH, EXPORT, PREVIEW, STAGE, IMPORT, CHANGE)


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
        self._running = dict.fromkeys(KINDS, 0)
        self._waiting = dict.fromkeys(KINDS, 0)
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
        self._running[kind] += 1
        try:
            yield
        finally:
            self._running[kind] -= 1
            self._free[kind].release()

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
        return Busy(f"{kind.name}: {self._running[kind]} running, {self._waiting[kind]} waiting")


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


@dataclass
class Budget:
    """Counts bytes of bodies or of answers.

    A body or an answer that is longer than SMALL_BYTES must leave `reserved_bytes` free.
    """

    name: str
    max_bytes: int
    reserved_bytes: int
    in_memory: int = 0  # bytes that are counted now

    @contextmanager
    def hold(self) -> Iterator[Count]:
        """Count bytes until the end of the block; yield the function that counts further bytes."""
        taken = 0

        def take(count: int) -> None:
            nonlocal taken
            self.keep(count, is_small=taken + count <= SMALL_BYTES)
            taken += count

        try:
            yield take
        finally:
            self.in_memory -= taken

    def keep(self, count: int, *, is_small: bool) -> None:
        """Count bytes, or give them back if `count` is negative; raise Busy.

        Only small bodies and answers may take `reserved_bytes`.
        """
        if count > 0 and self.in_memory + count > self.max_bytes - (
            0 if is_small else self.reserved_bytes
        ):
            raise Busy(f"{self.name}: {self.in_memory >> 20} MB")
        self.in_memory += count


class Client(Protocol):
    """A client that takes an answer, or sends a body."""

    def address(self) -> str:
        """Its address. Behind a trusted proxy it is the address that the proxy names."""

    def moved_at(self) -> float:
        """When it has last taken or sent a byte, in seconds of time.monotonic()."""


@dataclass
class _Held:
    thing: object
    size: int
    clients: dict[Callable[[], None], tuple[str, Client]]
    """By the function that cuts a client off: its address and itself."""

    def addresses(self) -> set[str]:
        return {address for address, _ in self.clients.values()}

    def moved_at(self, address: str) -> float:
        """When a client with this address has last moved a byte."""
        return max(client.moved_at() for known, client in self.clients.values() if known == address)


@dataclass
class SlowClients:
    """Counts what slow clients hold: files, uploads, and versions of the list page.

    Clients share a version of the list page. Each change makes another version, so slow clients can
    hold many versions. If another thing has no room, the address that holds most gives one up: the
    thing of which it has moved no byte for longest. The clients of that address are cut off from
    it.
    """

    name: str
    max_things: float
    max_bytes: int
    _held: dict[int, _Held] = field(default_factory=dict)
    """Each thing and its clients, by the identity of the thing, because equal pages take memory twice."""

    def hold(self, thing: object, size: int, client: Client, cut_off: Callable[[], None]) -> None:
        """Count a thing of `size` bytes until this client releases it."""
        held = self._held.setdefault(id(thing), _Held(thing, size, {}))
        held.clients[cut_off] = client.address(), client
        self._make_room()

    def grow(self, thing: object, size: int) -> None:
        """Count further bytes of a thing that is held."""
        if held := self._held.get(id(thing)):
            held.size += size
            self._make_room()

    def release(self, thing: object, cut_off: Callable[[], None]) -> None:
        if held := self._held.get(id(thing)):
            held.clients.pop(cut_off, None)
            if not held.clients:
                del self._held[id(thing)]

    def _make_room(self) -> None:
        while len(self._held) > 1 and (
            len(self._held) > self.max_things
            or sum(held.size for held in self._held.values()) > self.max_bytes
        ):
            log.warning(
                "busy: slow clients hold too many %s, so the slowest one was cut off", self.name
            )
            self._cut_off_one()

    def _cut_off_one(self) -> None:
        shares: defaultdict[str, float] = defaultdict(float)  # of the room
        for held in self._held.values():
            for address in held.addresses():
                shares[address] += 1 / self.max_things + held.size / self.max_bytes
        greediest = max(shares, key=shares.__getitem__)
        theirs = [held for held in self._held.values() if greediest in held.addresses()]
        slowest = min(theirs, key=lambda held: held.moved_at(greediest))

        for cut_off, (address, _) in list(slowest.clients.items()):
            if address == greediest:
                self.release(slowest.thing, cut_off)
                cut_off()


@dataclass
class Arrivals:
    """Counts bodies that arrive now, so that a few slow clients cannot fill the disk or the memory."""

    name: str
    most: int
    most_of_address: int
    _now: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def one(self, address: str) -> Iterator[None]:
        """Count one more until the end of the block; raise Busy."""
        if self._now.total() >= self.most or self._now[address] >= self.most_of_address:
            raise Busy(
                f"{self.name}: {self._now.total()} arrive, {self._now[address]} of them from {address}"
            )
        self._now[address] += 1
        try:
            yield
        finally:
            self._now[address] -= 1
            self._now += Counter()  # forgets addresses without one


class Limits:
    """The limits of one worker process: slots, budgets, and the files, list pages and uploads of slow clients."""

    def __init__(self) -> None:
        self.slots = Slots()
        self.bodies = Budget("request bodies", BODIES_MAX_BYTES, FORMS_RESERVED_BYTES)
        self.answers = Budget("answers", ANSWERS_MAX_BYTES, SMALL_ANSWERS_RESERVED_BYTES)
        self.shared_answers = SlowClients(
            "versions of the list", math.inf, SHARED_ANSWERS_MAX_BYTES
        )
        self.files = SlowClients("files", SENT_FILES_MAX, SENT_FILES_MAX_BYTES)
        self.arriving_uploads = Arrivals("uploads", UPLOADS_MAX, UPLOADS_MAX_OF_ADDRESS)
        self.arriving_previews = Arrivals("forms of previews", PREVIEWS_MAX, PREVIEWS_MAX)
