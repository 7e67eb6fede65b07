"""The records in one SQLite file: one writer that commits in groups, and readers that never wait for it."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import cast

import apsw

from mahasiswa.record import Mahasiswa, Write, combine
from mahasiswa.store import NO_REMOVALS, Snapshot, Version
from mahasiswa.store.changes import planned
from mahasiswa.store.errors import Changed, EditConflict, Unavailable, Unusable
from mahasiswa.store.history import BatchKind
from mahasiswa.store.sqlite import history, sql
from mahasiswa.store.sqlite.connection import connect, has_moved, remove_wal, savepoint, wal_identity
from mahasiswa.store.sqlite.reader import WORK, SQLiteReader, by_nim, read_snapshot, take
from mahasiswa.store.sqlite.writer import Writer
from mahasiswa.work import IMPORT, KINDS, Kind, Slots

SHORT_LIST_FILE_BYTES = 1024 * 1024
"""Maximum size of a file whose list is read on the event loop: about 4,000 records with their history, which take 2 ms.
As many of the shortest records as fit, 30,000, take 12 ms."""

log = logging.getLogger(__name__)


class SQLiteStore:
    """The Store on a file that `migrate` has made ready."""

    def __init__(self, path: Path, slots: Slots) -> None:
        self._path = path
        self._slots = slots
        self._writer = Writer(path, slots)
        # A connection that never writes, because data_version shows only the commits of other connections. It is used
        # on the event loop: its queries take a few microseconds, a switch to another thread takes a hundred.
        self._watch = connect(path)
        self._watch.execute(sql.LONGER_THAN, (0,)).get  # noqa: B018 - the first read creates the write-ahead log
        self._watch.set_busy_timeout(0)
        self._version_cursor = self._watch.cursor()  # a new cursor for each query costs another half microsecond
        self._wal_identity = wal_identity(path)
        self._giving_up: asyncio.Task[None] | None = None  # of a file that was replaced, moved or removed
        self._is_damaged = False
        self._readers = {kind: SQLiteReader(path, kind, slots, self.version, self._report_damage) for kind in KINDS}

    def reader(self, kind: Kind) -> SQLiteReader:
        return self._readers[kind]

    async def version(self) -> Version | None:
        self._check_file()
        return self.version_now()

    def version_now(self) -> Version | None:
        if self._giving_up or self._is_damaged or has_moved(self._watch):
            return None
        try:
            return cast("int", self._version_cursor.execute("PRAGMA data_version").get)
        except apsw.Error:  # locked, or cannot be read: the read of the records will report the reason
            return None

    def snapshot_now(self, at_most: int) -> Snapshot | None:
        version = self.version_now()
        if version is None:
            return None
        db = self._watch
        try:
            if db.pragma("page_count") * db.pragma("page_size") > SHORT_LIST_FILE_BYTES:
                return None
            return read_snapshot(db, version, at_most)
        except (apsw.Error, Unavailable):  # `snapshot` waits for a lock, and reports everything else
            return None

    async def add(self, nim: str | None, nama: str | None, alamat: str | None) -> None:
        await self._write(lambda db: _run(db, sql.ADD, nim, nama, alamat))

    async def update(self, nim: str, nama: str | None, alamat: str | None, versi: str | None = None) -> None:
        def change(db: apsw.Connection) -> None:
            texts = nama, alamat
            if versi and nama is not None and alamat is not None:
                current, edited = by_nim(db, [nim]).get(nim), Mahasiswa(nim, nama, alamat)
                edited, is_conflict = combine(current, edited, versi) if current else (edited, True)
                if is_conflict:
                    raise EditConflict(current, edited, take(db, WORK.recent(nim, versi)))
                texts = edited.nama, edited.alamat
            _run(db, sql.UPDATE, *texts, nim)

        await self._write(change)

    async def rename(self, old: str, nim: str | None) -> None:
        def change(db: apsw.Connection) -> None:
            with history.batch(db, "nim"):
                _run(db, sql.RENAME, nim, old)
                if not db.changes():
                    raise Changed(old)

        await self._write(change)

    async def delete(self, nim: str) -> None:
        await self._write(lambda db: _run(db, sql.DELETE, nim))

    async def write_all(
        self, batch: BatchKind, writes: Sequence[Write] = (), removals: Mapping[str, str | None] = NO_REMOVALS
    ) -> None:
        nims = [*(record.nim for record, _ in writes), *removals]

        def change(db: apsw.Connection) -> None:
            if changes := planned(by_nim(db, nims), writes, removals):
                with history.batch(db, batch):
                    _run(db, sql.DELETE_ALL, sql.array(changes.removed))
                    for nim, nama, alamat in changes.changed.values():
                        _run(db, sql.UPDATE, nama, alamat, nim)
                    for record in changes.added.values():
                        _run(db, sql.ADD, *record)

        await self._write_many(change)

    async def undo(self, item: int, *, is_batch: bool, versi: str | None = None, only_unchanged: bool = False) -> None:
        def change(db: apsw.Connection) -> None:
            with savepoint(db):
                take(db, WORK.undo(item, is_batch=is_batch, versi=versi, only_unchanged=only_unchanged))

        await (self._write_many(change) if is_batch else self._write(change))

    async def purge(self) -> None:
        await self._write(lambda db: _run(db, sql.BEGIN_PURGE))

    async def close(self) -> None:
        for readers in self._readers.values():
            await asyncio.to_thread(readers.close)
        if self._giving_up:
            await self._giving_up
        else:
            await self._writer.close()
        self._watch.close()

    async def _write(self, change: Callable[[apsw.Connection], None]) -> None:
        self._check_file()
        await self._writer.write(change)

    async def _write_many(self, change: Callable[[apsw.Connection], None]) -> None:
        async with self._slots.slot(IMPORT):
            await self._write(change)

    def _check_file(self) -> None:
        """Raise Unavailable if the file was replaced, moved or removed, also if another file is in its place by now.

        It also raises if a read has found damage, because a change could make the damage worse.
        """
        if self._giving_up is None:
            if not has_moved(self._watch):
                if self._is_damaged:
                    raise Unavailable(f"{self._path} is damaged")
                return
            log.error("%s was replaced, moved or removed: stop the service, put the file right, start it", self._path)
            self._giving_up = asyncio.create_task(self._give_up())
        raise Unavailable(f"{self._path} was replaced, moved or removed")

    def _report_damage(self, error: apsw.Error) -> None:
        if not self._is_damaged:
            log.error("%s is damaged (%s): run mahasiswa restore FILE, then restart the service", self._path, error)
        self._is_damaged = True

    async def _give_up(self) -> None:
        """Move the acknowledged changes into the file that was moved. The next start must not find them in the log."""
        try:
            await asyncio.to_thread(remove_wal, self._path, self._wal_identity)
        except (OSError, Unavailable) as error:
            log.error("%s-wal was not removed: %s; remove it before the start", self._path, error)  # noqa: TRY400
        await self._writer.close()


async def open_store(path: Path, slots: Slots) -> SQLiteStore:
    """Open a file that exists; raise Unusable."""
    try:
        return SQLiteStore(path, slots)
    except Unavailable as error:
        raise Unusable(str(error)) from error
    except apsw.Error as error:
        raise Unusable(f"{path} cannot be opened: {error}") from error


def _run(db: apsw.Connection, statement: str, *bindings: str | None) -> None:
    db.execute(statement, bindings)
