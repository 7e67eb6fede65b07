"""The records in one SQLite file: one writer that commits in groups, and readers that never wait for it."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import cast

import apsw

from mahasiswa.record import Mahasiswa
from mahasiswa.store import Query, Snapshot, Store, T, Version
from mahasiswa.store.group_commit import GroupCommit, QueuedChange
from mahasiswa.store.reader import Begin
from mahasiswa.store.sqlite import sqlite_sql as sql
from mahasiswa.store.sqlite.connection import (
    connect,
    has_moved,
    log_inodes,
    remove_wal,
    savepoint,
    transaction,
)
from mahasiswa.store.sqlite.sqlite_errors import refusal
from mahasiswa.store.sqlite.sqlite_reader import connect_to_read, read_snapshot, records, take
from mahasiswa.store.store_errors import Locked, StoreError, TookTooLong, Unavailable
from mahasiswa.system.administrator import typed
from mahasiswa.work import EDIT, EXPORT, IMPORT, LIST, STEP_TIMEOUT_SECONDS, Kind, Slots, ended

# Maximum pages of a file whose list is read on the event loop, 1 MB: about 4,000 records with their history, or 30,000 of
# the shortest records.
SHORT_LIST_PAGES = 256
FINAL_CHECKPOINT_TIMEOUT_SECONDS = 1.0

INTERRUPT_INTERVAL_SECONDS = 0.05
"""Time between two interrupts of a query. SQLite forgets an interrupt that comes before the query has begun."""

log = logging.getLogger(__name__)


class SQLiteStore(Store):
    """The Store on a file that `migrate` has made ready."""

    def __init__(self, path: Path, slots: Slots) -> None:
        self._path = path
        self._slots = slots
        self._idle: list[apsw.Connection] = []  # connections for reads
        self._writer = connect(path)  # it is used on one thread
        self._thread = ThreadPoolExecutor(1, "writer")
        # The thread starts now. A change that finds no thread would be refused, but it would stay
        # in the queue of the executor, and a later change would carry it out.
        self._thread.submit(int).result()
        self._changes = GroupCommit(self._outcomes)
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
        self._is_gone = False
        self._loop = asyncio.get_running_loop()
        self._asked_at = 0.0

    async def version(self) -> Version | None:
        return self._checked()

    def version_now(self) -> Version | None:
        if (now := self._loop.time()) != self._asked_at:  # uvloop's time changes each ms
            self._is_gone = has_moved(self._watch)
            self._asked_at = now
        if self._is_gone or self._fault:
            return None
        # locked, or cannot be read: the read of the records will report the reason
        with suppress(apsw.Error):
            return cast("int", self._pragmas.execute("PRAGMA data_version").get)
        return None

    def _checked(self) -> Version | None:
        """The version. Raise Unavailable if the file cannot be used."""
        if (version := self.version_now()) is None:
            self._check_file()
        return version

    async def snapshot(self, at_most: int) -> Snapshot:
        # Read the version before the records: then the records are of that version or of a later one.
        version = self._checked()
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

    async def query(self, query: Callable[[apsw.Connection], T], kind: Kind) -> T:
        """Run one query in a thread; raise Busy, TookTooLong or Unavailable. The deadline includes the time in the queue."""
        deadline = time.monotonic() + STEP_TIMEOUT_SECONDS
        async with self._connection(kind) as db:
            return await ended(
                self._slots.in_thread(partial(query, db)),
                db.interrupt,
                timeout_seconds=deadline - time.monotonic(),
                interval_seconds=INTERRUPT_INTERVAL_SECONDS,
            )

    async def export(self, query: Query, work: Callable[[Iterator[Mahasiswa]], T]) -> T:
        async with self._connection(EXPORT) as db:

            def read() -> T:
                with closing(records(db, query)) as found:
                    return work(found)

            reading = self._slots.in_thread(read)
            return await ended(reading, db.interrupt, interval_seconds=INTERRUPT_INTERVAL_SECONDS)

    @asynccontextmanager
    async def _connection(self, kind: Kind) -> AsyncIterator[apsw.Connection]:
        """A connection for a read. Raise Unavailable for a bad file, and for each error of SQLite."""
        self._checked()
        async with self._slots.slot(kind):
            try:
                if self._idle:
                    db = self._idle.pop()
                else:
                    db = await self._slots.in_thread(partial(connect_to_read, self._path))
                try:
                    yield db
                finally:
                    self._idle.append(db)
            except apsw.InterruptError as error:
                raise TookTooLong(f"{kind.name}: interrupted") from error
            except apsw.Error as error:
                if isinstance(error, (apsw.CorruptError, apsw.NotADBError)):
                    self._report_damage(error)
                raise Unavailable(str(error)) from error

    async def run(self, steps: Begin[T], kind: Kind = EDIT) -> T:
        async with self._slots.slot(kind) if kind is IMPORT else nullcontext():
            return await self._changes.write(steps)

    async def close(self) -> None:
        for db in self._idle:
            db.close()
        if self._giving_up:
            await self._giving_up
        else:
            await self._close_writer()
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

    def _report_damage(self, error: apsw.Error) -> None:
        if not self._fault:
            self._fault = f"{self._path} is damaged"
            log.error("%s (%s). Run: %s", self._fault, error, typed("restore FILE"))

    async def _give_up(self) -> None:
        """Write the acknowledged changes from the log into the file that was moved.

        The next start must not find them in the log.
        """
        try:
            await asyncio.to_thread(remove_wal, self._path, self._log_inodes)
        except (OSError, Unavailable) as error:
            log.error("%s-wal was not removed: %s; remove it before the start", self._path, error)  # noqa: TRY400
        await self._close_writer()

    async def _close_writer(self) -> None:
        await self._changes.close()
        await asyncio.to_thread(self._thread.shutdown)
        # SQLite makes a checkpoint at the last close, but not if the file was moved. A kill would
        # lose a log that was removed.
        if self._giving_up or has_moved(self._writer):
            with suppress(apsw.Error):
                self._writer.set_busy_timeout(int(FINAL_CHECKPOINT_TIMEOUT_SECONDS * 1000))
                self._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_FULL)
        self._writer.close()

    async def _outcomes(self, group: Sequence[QueuedChange]) -> Sequence[object]:
        """Commit a group; return the result of each change if it is stored, otherwise the error."""
        failure: StoreError
        try:
            self._check_file()
            return await self._loop.run_in_executor(self._thread, self._transact, group)
        except StoreError as error:
            failure = error
        except apsw.BusyError as error:
            failure = Locked(str(error))
        except apsw.Error as error:
            failure = Unavailable(str(error))
        except Exception as error:
            log.exception("%d changes were not stored", len(group))
            failure = Unavailable(str(error))
        return [failure] * len(group)

    def _transact(self, group: Sequence[QueuedChange]) -> Sequence[object]:
        """Make the group's changes in one transaction. If it raises, nothing was stored."""
        db = self._writer
        left = min(queued.deadline for queued in group) - time.monotonic()
        db.set_busy_timeout(max(0, int(left * 1000)))
        with transaction(db):
            outcomes = list(map(self._attempt, group))
            db.execute(sql.SET_OLEH, {"oleh": None})
        return outcomes

    def _attempt(self, queued: QueuedChange) -> object:
        """Make one change; return its result. If it is refused, it is rolled back alone; return the error."""
        self._writer.execute(sql.SET_OLEH, {"oleh": queued.oleh})
        try:
            with savepoint(self._writer):
                return take(self._writer, queued.steps())
        except apsw.ConstraintError as error:
            return refusal(error)
        except StoreError as error:
            return error
