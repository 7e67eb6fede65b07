"""The records in one SQLite file: one writer that commits in groups, and readers that never wait for it."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import cast

import apsw

from mahasiswa.record import Mahasiswa
from mahasiswa.store import PART_RECORDS, Query, Snapshot, Store, T, Version
from mahasiswa.store.history_items import OLEH
from mahasiswa.store.reader import Begin
from mahasiswa.store.sqlite.connection import (
    connect,
    has_moved,
    log_inodes,
    remove_wal,
    savepoint,
)
from mahasiswa.store.sqlite.sqlite_errors import DAMAGE, translate
from mahasiswa.store.sqlite.sqlite_reader import connect_to_read, read_snapshot, records, take
from mahasiswa.store.sqlite.writer import QueuedChange, commit
from mahasiswa.store.store_errors import StoreError, Unavailable
from mahasiswa.system.administrator import typed
from mahasiswa.work import CHANGE, EXPORT, LIST, STEP_TIMEOUT_SECONDS, Busy, Kind, Slots, ended

# Maximum pages of a file whose list is read, and made, on the event loop: 512 KB, about 2,000 records with their history.
SHORT_LIST_PAGES = 128

EXPORT_TIMEOUT_SECONDS = 3600.0  # maximum time of a whole export, also to a slow disk
FINAL_CHECKPOINT_TIMEOUT_MILLISECONDS = 1000

log = logging.getLogger(__name__)


class SQLiteStore(Store):
    """The Store on a file that `migrate` has made ready."""

    def __init__(self, path: Path, slots: Slots) -> None:
        self._path = path
        self._slots = slots
        self._idle: list[apsw.Connection] = []  # connections for reads
        self._db = connect(path)  # the connection that writes, in a thread of its own
        self._thread = ThreadPoolExecutor(1, "writer")
        # The thread starts now. A change that finds no thread would be refused, but it would stay
        # in the queue of the executor, and a later change would carry it out.
        self._thread.submit(int).result()
        self._queue: list[QueuedChange] = []  # the next group
        self._committing: asyncio.Task[None] | None = None
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
        self._check_file()
        return self.version_now()

    def version_now(self) -> Version | None:
        # locked, or cannot be read: the read of the records will report the reason
        with suppress(apsw.Error):
            if not (self._fault or has_moved(self._watch)):
                return cast("int", self._pragmas.execute("PRAGMA data_version").get)
        return None

    async def snapshot(self, at_most: int) -> Snapshot:
        return await self.query(lambda db: read_snapshot(db, at_most), LIST)

    def snapshot_now(self, at_most: int) -> Snapshot | None:
        # After an error here, the read is repeated in a thread. It waits for a lock, and reports
        # any other fault.
        with suppress(apsw.Error):
            if self._pragmas.execute("PRAGMA page_count").get <= SHORT_LIST_PAGES:
                return read_snapshot(self._watch, at_most)
        return None

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
                if isinstance(error, DAMAGE) and not self._fault:
                    self._fault = f"{self._path} is damaged"
                    log.error("%s (%s). Run: %s", self._fault, error, typed("restore FILE"))  # noqa: TRY400
                raise translate(error) from error

    async def run(self, steps: Begin[T]) -> T:
        if len(self._queue) >= CHANGE.waiting:
            raise Busy(CHANGE.name)
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        deadline = time.monotonic() + STEP_TIMEOUT_SECONDS
        self._queue.append(QueuedChange(steps, OLEH.get(), answer, deadline))
        if self._committing is None:
            self._committing = asyncio.create_task(self._commit_groups())
        try:
            return await answer
        finally:
            del answer  # for the same reason as in work.ended

    async def _commit_groups(self) -> None:
        """Commit all changes that wait. Those that come meanwhile are the next group."""
        while self._queue:
            group = self._queue[:PART_RECORDS]
            del self._queue[:PART_RECORDS]
            try:
                self._check_file()
                outcomes = await asyncio.wrap_future(self._thread.submit(commit, self._db, group))
            except Exception as error:  # noqa: BLE001 - translate logs those that it does not know
                outcomes = [translate(error)] * len(group)
            for queued, outcome in zip(group, outcomes, strict=True):
                if queued.answer.done():  # cancelled: its client has disconnected
                    continue
                if isinstance(outcome, StoreError):
                    # Its traceback refers to the frames that hold this group.
                    queued.answer.set_exception(outcome.with_traceback(None))
                else:
                    queued.answer.set_result(outcome)
        self._committing = None

    async def close(self) -> None:
        for db in self._idle:
            db.close()
        await (self._giving_up or self._close_writer())
        self._watch.close()

    async def _close_writer(self) -> None:
        """Make all changes that wait, and close the connection that writes."""
        if self._committing:
            await self._committing
        self._thread.shutdown()
        # SQLite makes a checkpoint at the last close, but not if the file was moved. A kill would
        # lose a log that was removed.
        with suppress(apsw.Error):
            self._db.set_busy_timeout(FINAL_CHECKPOINT_TIMEOUT_MILLISECONDS)
            self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_FULL)
        self._db.close()

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
        await self._close_writer()
