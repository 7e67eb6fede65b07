"""The records in one SQLite file: one writer that commits in groups, and readers that never wait for it."""

import asyncio
import logging
import re
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Self, cast

import apsw

from mahasiswa.record import Incoming, Mahasiswa, Write, digest
from mahasiswa.store import Merged, Query, Snapshot, Version
from mahasiswa.store.errors import Changed, Unavailable, Unusable
from mahasiswa.store.sqlite import sql
from mahasiswa.store.sqlite.connection import connect, has_moved, remove_wal, wal_identity
from mahasiswa.store.sqlite.reader_pool import ReaderPool, long_read
from mahasiswa.store.sqlite.schema import migrate
from mahasiswa.store.sqlite.writer import Writer

CHUNK_RECORDS = 2000
"""Records of a long read that are handed on at a time."""

SHORT_LIST_RECORDS = 2000
"""Maximum length of a list that is read on the event loop, because that takes no longer than a switch of threads."""

FILE_CHECK_SECONDS = 0.1
"""Interval at which `version` checks whether the file was replaced. Every other method checks it at each call."""

log = logging.getLogger(__name__)

as_record = cast("Callable[[object], Mahasiswa]", partial(tuple.__new__, Mahasiswa))


class _OpenFile:
    """All connections to one file. A file that takes its place gets a new _OpenFile."""

    def __init__(self, path: Path) -> None:
        self.readers = ReaderPool(path)
        self.writer = Writer(path)
        # A connection that never writes, because data_version shows only the commits of other connections. It is used
        # on the event loop: its queries take a few microseconds, a switch to another thread takes a hundred.
        self.watch = connect(path)
        self.watch.execute(sql.LONGER_THAN, (0,)).get  # noqa: B018 - the first read creates the write-ahead log
        self.watch.set_busy_timeout(0)
        self.version_cursor = self.watch.cursor()  # a new cursor for each query costs another half microsecond
        self.wal_identity = wal_identity(path)

    async def close(self) -> None:
        await self.writer.close()
        await asyncio.to_thread(self.readers.close)
        self.watch.close()


class SQLiteStore:
    """The Store on a file that `migrate` has made ready."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: _OpenFile | None = _OpenFile(path)
        self._generation = 0  # tells the versions of two files apart
        self._is_short = True
        self._next_file_check = 0.0
        self._is_checked = False
        self._reopening = asyncio.Lock()

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a file that exists; raise Unusable."""
        try:
            return cls(path)
        except apsw.Error as error:
            raise Unusable(f"{path} cannot be opened: {error}") from error

    async def version(self) -> Version | None:
        if self._file is None or time.monotonic() >= self._next_file_check:
            await self._current()
            self._next_file_check = time.monotonic() + FILE_CHECK_SECONDS
        return self.version_now()

    def version_now(self) -> Version | None:
        if self._file is None or time.monotonic() >= self._next_file_check:
            return None
        try:
            return self._generation, self._file.version_cursor.execute("PRAGMA data_version").get
        except apsw.Error:  # locked, or cannot be read: then the read of the records says why
            return None

    async def snapshot(self, at_most: int) -> Snapshot:
        # Read the version before the records: then the records are of that version or of a later one.
        version = await self.version()
        file = await self._current()
        if self._is_short and at_most >= SHORT_LIST_RECORDS and (records := _read_short_list(file.watch)) is not None:
            return Snapshot(version, records)

        def read(db: apsw.Connection) -> Sequence[tuple[str, str, str]] | None:
            return None if db.execute(sql.LONGER_THAN, (at_most,)).get else _fetch(db.execute(sql.ALL))

        records = await file.readers.read(read)
        self._is_short = records is not None and len(records) <= SHORT_LIST_RECORDS
        return Snapshot(version, records)

    async def after(self, nim: str | None, limit: int) -> Sequence[Mahasiswa]:
        statement, bindings = (sql.FIRST, (limit,)) if nim is None else (sql.AFTER, (nim, limit))
        return await (await self._current()).readers.read(lambda db: _records(db.execute(statement, bindings)))

    async def get(self, nim: str) -> Mahasiswa | None:
        return await (await self._current()).readers.read(lambda db: _get(db, nim))

    async def find(self, nims: Sequence[str]) -> Mapping[str, Mahasiswa]:
        def read(db: apsw.Connection) -> Mapping[str, Mahasiswa]:
            found = (_get(db, nim) for nim in nims)
            return {record.nim: record for record in found if record}

        return await (await self._current()).readers.read(read)

    async def count(self, query: Query) -> int:
        where, pattern = _condition(query.cari)
        statement, bindings = sql.count(where), {"pattern": pattern}
        return await (await self._current()).readers.read(lambda db: cast("int", db.execute(statement, bindings).get))

    async def page(self, query: Query, offset: int, limit: int) -> Sequence[Mahasiswa]:
        where, pattern = _condition(query.cari)
        statement = sql.page(where, sql.ORDERS[query.urut, query.arah])
        bindings = {"pattern": pattern, "limit": limit, "offset": offset}
        return await (await self._current()).readers.read(lambda db: _records(db.execute(statement, bindings)))

    async def chunks(self, query: Query) -> AsyncGenerator[Sequence[Mahasiswa]]:
        where, pattern = _condition(query.cari)
        statement = sql.found(where, sql.ORDERS[query.urut, query.arah])
        await self._current()
        async with long_read(self._path) as run:
            cursor = await run(lambda db: db.execute(statement, {"pattern": pattern}))
            while chunk := await run(lambda _: _records(cursor, CHUNK_RECORDS)):
                yield chunk

    async def add(self, nim: str | None, nama: str | None, alamat: str | None) -> None:
        await (await self._current()).writer.write(lambda db: _run(db, sql.ADD, nim, nama, alamat))

    async def update(self, nim: str, nama: str | None, alamat: str | None, versi: str | None = None) -> None:
        def change(db: apsw.Connection) -> None:
            current = _get(db, nim) if versi else None
            # A form that is sent twice, as by a double click, finds its own texts the second time.
            if current and digest(current) != versi and current != (nim, nama, alamat):
                raise Changed(nim, current)
            _run(db, sql.UPDATE, nama, alamat, nim)

        await (await self._current()).writer.write(change)

    async def delete(self, nim: str) -> None:
        await (await self._current()).writer.write(lambda db: _run(db, sql.DELETE, nim))

    async def write_all(self, writes: Sequence[Write]) -> None:
        def change(db: apsw.Connection) -> None:
            with db:  # a savepoint: if one write is refused, all of these are taken back, and nothing else
                for record, versi in writes:
                    current = _get(db, record.nim)
                    if current == record:  # sent twice, as by a double click
                        continue
                    if versi != (digest(current) if current else None):
                        raise Changed(record.nim, current)
                    if current:
                        _run(db, sql.UPDATE, record.nama, record.alamat, record.nim)
                    else:
                        _run(db, sql.ADD, *record)

        await (await self._current()).writer.write(change)

    async def merge(self, batches: Iterable[Sequence[Incoming]], *, update: bool, dry_run: bool) -> Merged:
        merged = Merged(0, 0, 0, ())

        def change(db: apsw.Connection) -> None:
            nonlocal merged
            merged = _merge(db, update=update, dry_run=dry_run)

        writer = (await self._current()).writer
        await writer.run_exclusive(lambda db: _stage(db, batches))
        try:
            await writer.write(change)
        finally:
            await writer.run_exclusive(lambda db: _run(db, sql.DROP_INCOMING))
        return merged

    async def close(self) -> None:
        if self._file:
            await self._file.close()

    async def _current(self) -> _OpenFile:
        """The open file. If another one has taken its place, open that; raise Unavailable if there is none.

        The check is a system call, so it is made once for all callers of one turn of the event loop. The answer is
        forgotten before any later caller runs, because that was queued first. The writer checks again for each group.
        """
        file = self._file
        if file is not None and self._is_checked:
            return file
        asyncio.get_running_loop().call_soon(self._forget_check)
        if file is None or has_moved(file.watch):
            file = await self._reopen()
        else:
            self._is_checked = True
        return file

    def _forget_check(self) -> None:
        self._is_checked = False

    async def _reopen(self) -> _OpenFile:
        async with self._reopening:
            if self._file and not has_moved(self._file.watch):
                return self._file
            if self._file:
                log.warning("%s was replaced or removed", self._path)
                gone, self._file = self._file, None
                remove_wal(self._path, gone.wal_identity)
                await gone.close()
            if not self._path.exists():  # an empty list in its place would look as if every record were lost
                raise Unavailable(f"{self._path} was removed")
            try:
                await asyncio.to_thread(migrate, self._path)
                self._file = _OpenFile(self._path)
            except (Unusable, apsw.Error) as error:
                raise Unavailable(str(error)) from error
            self._generation += 1
            return self._file


def _read_short_list(db: apsw.Connection) -> Sequence[tuple[str, str, str]] | None:
    """Every record, or None if there are too many for the event loop or another program holds a lock."""
    try:
        records = _fetch(db.execute(sql.FIRST, (SHORT_LIST_RECORDS + 1,)))
    except apsw.Error:
        return None
    return records if len(records) <= SHORT_LIST_RECORDS else None


def _fetch(cursor: apsw.Cursor, limit: int | None = None) -> list[tuple[str, str, str]]:
    try:
        return cast("list[tuple[str, str, str]]", list(islice(cursor, limit)))
    except UnicodeDecodeError as error:
        cursor.close()  # the traceback would keep it, and with it this connection's view of the database
        raise Unavailable("another program has stored a text that is not UTF-8") from error


def _records(cursor: apsw.Cursor, limit: int | None = None) -> Sequence[Mahasiswa]:
    return list(map(as_record, _fetch(cursor, limit)))


def _get(db: apsw.Connection, nim: str) -> Mahasiswa | None:
    return next(iter(_records(db.execute(sql.GET, (nim,)))), None)


def _run(db: apsw.Connection, statement: str, *bindings: str | None) -> None:
    db.execute(statement, bindings)


def _condition(cari: str) -> tuple[str, str]:
    """The WHERE clause that finds a text in any field, ignoring the case of letters; and its pattern."""
    if not cari:
        return "", ""
    if "\0" in cari:  # SQLite ends a pattern at a NUL, which no record contains
        return sql.NOTHING, ""
    if all(letter.isascii() or letter.lower() == letter.upper() for letter in cari):
        return sql.LIKE, "%" + re.sub(r"([%_\\])", r"\\\1", cari) + "%"
    return sql.GLOB, "*" + "".join(map(_glob, cari)) + "*"


def _glob(letter: str) -> str:
    """A GLOB pattern for both cases of a letter, or for a character that has a meaning in GLOB."""
    cases = {case for case in (letter, letter.lower(), letter.upper()) if len(case) == 1}
    return f"[{''.join(sorted(cases))}]" if len(cases) > 1 or letter in "*?[" else letter


def _stage(db: apsw.Connection, batches: Iterable[Sequence[Incoming]]) -> None:
    with db:
        db.execute(sql.CREATE_INCOMING)
        for batch in batches:
            db.executemany(sql.ADD_INCOMING, batch)


def _merge(db: apsw.Connection, *, update: bool, dry_run: bool) -> Merged:
    total, existing, changed = db.execute(sql.COMPARE_INCOMING).get
    incomplete = [number for (number,) in db.execute(sql.INCOMPLETE)]
    if not incomplete and not dry_run:
        with db:
            if update:
                db.execute(sql.UPDATE_INCOMING)
            db.execute(sql.INSERT_INCOMING)
    return Merged(total - existing, changed, existing - changed, incomplete)
