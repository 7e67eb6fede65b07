"""Reader threads and connections for one kind of work. With a write-ahead log no writer blocks them."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import TypeVar

import apsw

from mahasiswa.store import folding
from mahasiswa.store.errors import TookTooLong, Unavailable
from mahasiswa.store.sqlite.connection import connect
from mahasiswa.work import STEP_TIMEOUT_SECONDS, Kind, Slots

INTERRUPT_INTERVAL_SECONDS = 0.05
"""Time between two interrupts of a query. SQLite forgets an interrupt that comes before the query has begun."""

A = TypeVar("A")
T = TypeVar("T")


class ReaderPool:
    """Reads of one kind. With `slots`, their queue is bounded, and each step has a deadline."""

    def __init__(self, path: Path, kind: Kind, slots: Slots | None) -> None:
        self._path = path
        self._kind = kind
        self._slots = slots
        self._unlimited = asyncio.Semaphore(kind.running)
        self._threads = ThreadPoolExecutor(kind.running, f"reader, {kind.name}")
        self._idle: list[apsw.Connection] = []
        self._is_closed = False

    async def read(self, query: Callable[[apsw.Connection], T]) -> T:
        """Run one query; raise Busy, TookTooLong or Unavailable. The deadline includes the time in the queue."""
        deadline = time.monotonic() + STEP_TIMEOUT_SECONDS
        async with self.connection() as db:
            return await self.step(db, query, deadline)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[apsw.Connection]:
        """Hold a slot and a connection; raise Busy or Unavailable."""
        async with self._slot():
            db = self._idle.pop() if self._idle else await self._connect()
            try:
                yield db
            finally:
                self._idle.append(db)

    async def step(self, db: apsw.Connection, query: Callable[[apsw.Connection], T], deadline: float) -> T:
        """Run a query in a thread. At the deadline, or if the caller is cancelled, it is interrupted."""
        running = self._in_thread(query, db)
        try:
            await asyncio.wait([running], timeout=deadline - time.monotonic() if self._slots else None)
        finally:
            while not running.done():
                db.interrupt()
                with suppress(asyncio.CancelledError):  # the connection must be free before the caller goes on
                    await asyncio.wait([running], timeout=INTERRUPT_INTERVAL_SECONDS)
            running.exception()  # asyncio logs an exception that is never retrieved
        try:
            return running.result()
        except apsw.InterruptError as error:
            raise TookTooLong(f"{self._kind.name}: interrupted after {STEP_TIMEOUT_SECONDS:g} s") from error
        except apsw.Error as error:
            raise Unavailable(str(error)) from error

    def close(self) -> None:
        """Wait for running steps, then close every connection."""
        self._is_closed = True
        self._threads.shutdown()
        while self._idle:
            self._idle.pop().close()

    def _slot(self) -> AbstractAsyncContextManager[None]:
        return self._slots.slot(self._kind) if self._slots else self._unlimited

    async def _connect(self) -> apsw.Connection:
        try:
            return await self._in_thread(_connect_to_read, self._path)
        except apsw.Error as error:
            raise Unavailable(str(error)) from error

    def _in_thread(self, function: Callable[[A], T], argument: A) -> asyncio.Future[T]:
        if self._is_closed:
            raise Unavailable("the store is closed")
        return asyncio.get_running_loop().run_in_executor(self._threads, function, argument)


def _connect_to_read(path: Path) -> apsw.Connection:
    db = connect(path)
    db.execute("PRAGMA query_only = ON")
    db.create_scalar_function("fold", _fold, 1, deterministic=True)  # type: ignore[arg-type]  # declared with any number
    return db


def _fold(text: bytes) -> str:
    return folding.fold(text.decode(errors="replace"))
