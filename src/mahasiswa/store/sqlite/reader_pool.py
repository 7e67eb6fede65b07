"""Reader threads for one SQLite file, each with a connection of its own. With a write-ahead log no writer blocks them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from threading import local
from typing import TypeVar

import apsw

from mahasiswa.store.errors import Unavailable
from mahasiswa.store.sqlite.connection import connect

READER_THREADS = 4

T = TypeVar("T")


class ReaderPool:
    """Runs queries in a few threads. Every SQLite error becomes Unavailable."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._threads = ThreadPoolExecutor(READER_THREADS, "reader")
        self._thread = local()
        self._connections: list[apsw.Connection] = []

    async def read(self, query: Callable[[apsw.Connection], T]) -> T:
        """Run a query on the connection of any thread."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._query, query)
        except apsw.Error as error:
            raise Unavailable(str(error)) from error

    def close(self) -> None:
        """Wait for running queries, then close every connection."""
        self._threads.shutdown()
        for db in self._connections:
            db.close()

    def _query(self, query: Callable[[apsw.Connection], T]) -> T:
        if not hasattr(self._thread, "db"):
            self._thread.db = connect(self._path)
            self._thread.db.execute("PRAGMA query_only = ON")
            self._connections.append(self._thread.db)
        return query(self._thread.db)


@asynccontextmanager
async def long_read(path: Path) -> AsyncIterator[Callable[[Callable[[apsw.Connection], T]], Awaitable[T]]]:
    """Open a connection with a thread of its own, for a read in several steps; yield the function that runs a step.

    The steps see one moment as long as one statement is open. If the file is replaced, they go on to read the old one.
    """
    loop = asyncio.get_running_loop()
    thread = ThreadPoolExecutor(1, "long-read")
    try:
        db = await loop.run_in_executor(thread, connect, path)
        try:
            yield lambda query: loop.run_in_executor(thread, query, db)
        finally:
            await loop.run_in_executor(thread, db.close)
    except apsw.Error as error:
        raise Unavailable(str(error)) from error
    finally:
        thread.shutdown(wait=False)
