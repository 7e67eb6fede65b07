"""The records in one SQLite file: one writer that commits in groups, and readers that never wait for it."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import cast

import apsw

from mahasiswa.record import Mahasiswa
from mahasiswa.store import Query, Snapshot, Store, T, Version
from mahasiswa.store.reader import Begin
from mahasiswa.store.sqlite.connection import (
    has_moved,
    log_inodes,
    remove_wal,
    savepoint,
)
from mahasiswa.store.sqlite.sqlite_errors import translate
from mahasiswa.store.sqlite.sqlite_reader import connect_to_read, read_snapshot, records, take
from mahasiswa.store.sqlite.writer import Writer
from mahasiswa.store.store_errors import Unavailable
from mahasiswa.system.administrator import typed
from mahasiswa.work import EXPORT, LIST, STEP_TIMEOUT_SECONDS, Kind, Slots, ended

# Maximum pages of a file whose list is read on the event loop, 1 MB: about 4,000 records with their history, or 30,000 of
# the shortest records.
SHORT_LIST_PAGES = 256

EXPORT_TIMEOUT_SECONDS = 3600.0  # maximum time of a whole export, also to a slow disk

log = logging.getLogger(__name__)


class SQLiteStore(Store):
    """The Store on a file that `migrate` has made ready."""

    def __init__(self, path: Path, slots: Slots) -> None:
        self._path = path
        self._slots = slots
        self._idle: list[apsw.Connection] = []  # connections for reads
        self._writer = Writer(path, self._check_file)
        # This connection never writes, because data_version shows only the commits of other
        # connections. It is used on the event loop: its queries take a few microseconds, and a
        # switch to another thread takes a hundred.
        self._watch = connect_to_read(path)
        self._watch.set_busy_timeout(0)
        self._watch.pragma("schema_version")  # the first read creates the write-ahead log
        # Connection.pragma compiles its statement each time.
        self._pragmas = self._watch.cursor()
        self._log_inodes = log_inodes(path)
        # The task that gives up a file that was replaced, moved or removed.
        self._giving_up: asyncio.Task[None] | None = None
        self._fault = ""  # the reason why the file is used no more

    async def version(self) -> Version | None:
        if (version := self.version_now()) is None:
            self._check_file()
        return version

    def version_now(self) -> Version | None:
        if self._fault or has_moved(self._watch):
            return None
        # locked, or cannot be read: the read of the records will report the reason
        with suppress(apsw.Error):
            return cast("int", self._pragmas.execute("PRAGMA data_version").get)
        return None

    async def snapshot(self, at_most: int) -> Snapshot:
        # Read the version before the records: then the records are of that version or of a later one.
        version = await self.version()
        # After an error here, the read is repeated in a thread. It waits for a lock, and reports
        # any other fault.
        with suppress(apsw.Error, Unavailable):
            if self._pragmas.execute("PRAGMA page_count").get <= SHORT_LIST_PAGES:
                return read_snapshot(self._watch, version, at_most)
        return await self.query(lambda db: read_snapshot(db, version, at_most), LIST)

    async def read(self, steps: Begin[T], kind: Kind) -> T:
        def do(db: apsw.Connection) -> T:
            with savepoint(db):
                return take(db, steps())

        return await self.query(do, kind)

    async def export(self, query: Query, work: Callable[[Iterator[Mahasiswa]], T]) -> T:
        def read(db: apsw.Connection) -> T:
            with closing(records(db, query)) as found:
                return work(found)

        return await self.query(read, EXPORT, EXPORT_TIMEOUT_SECONDS)

    async def query(
        self,
        query: Callable[[apsw.Connection], T],
        kind: Kind,
        seconds: float = STEP_TIMEOUT_SECONDS,
    ) -> T:
        """Run one query in a thread; raise Busy, TookTooLong or Unavailable. The deadline includes the time in the queue."""
        deadline = time.monotonic() + seconds
        self._check_file()
        async with self._slots.slot(kind):
            try:
                if self._idle:
                    db = self._idle.pop()
                else:
                    db = await self._slots.in_thread(partial(connect_to_read, self._path))
                try:
                    running = self._slots.in_thread(partial(query, db))
                    return await ended(running, db.interrupt, deadline - time.monotonic())
                finally:
                    self._idle.append(db)
            except (apsw.Error, UnicodeDecodeError) as error:
                is_damage = isinstance(error, (apsw.CorruptError, apsw.NotADBError))
                if is_damage and not self._fault:
                    self._fault = f"{self._path} is damaged"
                    log.error("%s (%s). Run: %s", self._fault, error, typed("restore FILE"))  # noqa: TRY400
                raise translate(error) from error

    async def run(self, steps: Begin[T]) -> T:
        return await self._writer.write(steps)

    async def close(self) -> None:
        for db in self._idle:
            db.close()
        if self._giving_up:
            await self._giving_up
        else:
            await self._writer.close()
        self._watch.close()

    def _check_file(self) -> None:
        """Raise Unavailable if the file or its log is gone, or damaged: a change could make the damage worse."""
        if self._giving_up is None and (
            has_moved(self._watch) or log_inodes(self._path) != self._log_inodes
        ):
            self._fault = f"{self._path} or its log was replaced, moved or removed"
            log.error("%s: stop the service, put the file right, start it", self._fault)
            self._giving_up = asyncio.create_task(self._give_up())
        if self._fault:
            raise Unavailable(self._fault)

    async def _give_up(self) -> None:
        """Write the acknowledged changes from the log into the file that was moved.

        The next start must not find them in the log.
        """
        try:
            await asyncio.to_thread(remove_wal, self._path, self._log_inodes)
        except OSError as error:
            log.error("%s-wal was not removed: %s; remove it before the start", self._path, error)  # noqa: TRY400
        await self._writer.close()
