"""The records in one SQLite file: one writer that commits in groups, and readers that never wait for it."""

import asyncio
import json
import logging
import time
from collections import ChainMap
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Literal, Self, TypeVar, cast

import apsw

from mahasiswa.record import Field, Incoming, Mahasiswa, Write, combine, digest, digest_or_dash, near_key
from mahasiswa.store import (
    AFTER_MAX_BYTES,
    SLICE_RECORDS,
    SNAPSHOT_MAX_BYTES,
    Found,
    Merged,
    Query,
    Snapshot,
    Version,
    folding,
    nearest,
)
from mahasiswa.store.errors import Changed, EditConflict, TextsRemain, Unavailable, Unusable
from mahasiswa.store.history import UNDOABLE_ROWS_MAX, HistoryPage
from mahasiswa.store.sqlite import history, sql
from mahasiswa.store.sqlite.connection import connect, has_moved, remove_wal, savepoint, wal_identity
from mahasiswa.store.sqlite.reader_pool import ReaderPool
from mahasiswa.store.sqlite.writer import Writer
from mahasiswa.work import EXPORT, IMPORT, LIST, RECORD, SEARCH, STEP_TIMEOUT_SECONDS, Kind, Slots

T = TypeVar("T")

CHUNK_RECORDS = 2000
"""Records of a long read that are handed on at a time."""

NOT_UTF8 = "another program has stored a text that is not UTF-8"

SHORT_LIST_FILE_BYTES = 1024 * 1024
"""Maximum size of a file whose list is read on the event loop: about 4,000 records with their history, which take 2 ms.
As many of the shortest records as fit, 30,000, take 12 ms."""

log = logging.getLogger(__name__)

as_record = cast("Callable[[object], Mahasiswa]", partial(tuple.__new__, Mahasiswa))


class SQLiteStore:
    """The Store on a file that `migrate` has made ready."""

    def __init__(self, path: Path, slots: Slots | None = None) -> None:
        self._path = path
        self._writer = Writer(path, is_limited=slots is not None)
        # A connection that never writes, because data_version shows only the commits of other connections. It is used
        # on the event loop: its queries take a few microseconds, a switch to another thread takes a hundred.
        self._watch = connect(path)
        self._watch.execute(sql.LONGER_THAN, (0,)).get  # noqa: B018 - the first read creates the write-ahead log
        self._watch.set_busy_timeout(0)
        self._version_cursor = self._watch.cursor()  # a new cursor for each query costs another half microsecond
        self._wal_identity = wal_identity(path)
        self._giving_up: asyncio.Task[None] | None = None  # of a file that was replaced, moved or removed
        self._readers = {kind: ReaderPool(path, kind, slots) for kind in (RECORD, LIST, SEARCH, EXPORT, IMPORT)}
        self._slots = slots
        self._vocabulary: tuple[Version | None, Mapping[str, str]] = None, {}  # the words of names, and their version

    @classmethod
    def open(cls, path: Path, slots: Slots | None = None) -> Self:
        """Open a file that exists; raise Unusable."""
        try:
            return cls(path, slots)
        except Unavailable as error:
            raise Unusable(str(error)) from error
        except apsw.Error as error:
            raise Unusable(f"{path} cannot be opened: {error}") from error

    @property
    def changes_waiting(self) -> int:
        return self._writer.waiting

    async def version(self) -> Version | None:
        self._check_file()
        return self.version_now()

    def version_now(self) -> Version | None:
        if self._giving_up or has_moved(self._watch):
            return None
        try:
            return cast("int", self._version_cursor.execute("PRAGMA data_version").get)
        except apsw.Error:  # locked, or cannot be read: the read of the records will report the reason
            return None

    async def snapshot(self, at_most: int) -> Snapshot:
        # Read the version before the records: then the records are of that version or of a later one.
        version = await self.version()
        return await self._read(LIST, lambda db: _snapshot(db, version, at_most))

    def snapshot_now(self, at_most: int) -> Snapshot | None:
        version = self.version_now()
        if version is None:
            return None
        db = self._watch
        try:
            if db.pragma("page_count") * db.pragma("page_size") > SHORT_LIST_FILE_BYTES:
                return None
            return _snapshot(db, version, at_most)
        except (apsw.Error, Unavailable):  # `snapshot` waits for a lock, and reports everything else
            return None

    async def after(self, nim: str | None, limit: int) -> Sequence[Mahasiswa]:
        statement, bindings = (sql.FIRST, (limit,)) if nim is None else (sql.AFTER, (nim, limit))
        statement = sql.WITHIN_BYTES.format(records=statement)
        return await self._read(LIST, lambda db: _records(db.execute(statement, (*bindings, AFTER_MAX_BYTES))))

    async def get(self, nim: str) -> Mahasiswa | None:
        return await self._read(RECORD, lambda db: _get(db, nim))

    async def find(self, nims: Sequence[str]) -> Mapping[str, Mahasiswa]:
        def read(db: apsw.Connection) -> Mapping[str, Mahasiswa]:
            return {record.nim: record for record in _records(db.execute(sql.FIND, (_as_json(nims),)))}

        return await self._read(IMPORT, read)

    async def near(self, nims: Sequence[str], limit: int) -> Sequence[Mahasiswa]:
        keys = json.dumps(sorted({near_key(nim) for nim in nims if "\0" not in nim} - {""}))
        return await self._read(IMPORT, lambda db: _records(db.execute(sql.NEAR, (keys, limit))))

    async def search(self, query: Query, offset: int, limit: int) -> Found:
        def read(db: apsw.Connection) -> Found:
            with db:
                rows, last = _fetch(db.execute(statement, bindings)), history.last(db)
            return Found(
                cast("int", rows[0][0]), [Mahasiswa._make(row[1:]) for row in rows if row[1] is not None], last
            )

        where, bindings = sql.where_found(query.cari, query.di)
        bindings |= {"limit": limit, "offset": offset}
        statement = sql.search(where, query)

        return await self._read(SEARCH, read)

    async def spellings(self, query: Query, limit: int, *, is_found: bool) -> Sequence[tuple[str, int]]:
        def read(db: apsw.Connection) -> Sequence[tuple[str, int]]:
            if version is None or self._vocabulary[0] != version:
                self._vocabulary = version, nearest.vocabulary(row[0] for row in _fetch(db.execute(sql.WORDS)))
            likely = nearest.corrections(words, self._vocabulary[1], is_found=is_found)
            return [(text, count) for text, count in _counted(db, likely, query.di) if count][:limit]

        if query.di == "nim" or not (words := folding.words(query.cari)):
            return []
        version = await self.version()
        return await self._read(SEARCH, read)

    async def chunks(self, query: Query) -> AsyncGenerator[Sequence[Mahasiswa]]:
        where, bindings = sql.where_found(query.cari, query.di)
        statement = sql.found(where, query)
        self._check_file()
        readers = self._readers[EXPORT]
        async with readers.connection() as db:
            cursor = db.cursor()

            def next_chunk(_: apsw.Connection) -> Sequence[Mahasiswa]:
                return _records(cursor, CHUNK_RECORDS)

            try:
                await readers.step(db, lambda _: cursor.execute(statement, bindings), _deadline())
                while chunk := await readers.step(db, next_chunk, _deadline()):
                    yield chunk
            finally:
                cursor.close()  # the connection would go on to see this moment

    async def add(self, nim: str | None, nama: str | None, alamat: str | None) -> None:
        await self._write(lambda db: _run(db, sql.ADD, nim, nama, alamat))

    async def update(self, nim: str, nama: str | None, alamat: str | None, versi: str | None = None) -> None:
        def change(db: apsw.Connection) -> None:
            texts = nama, alamat
            if versi and nama is not None and alamat is not None:
                current, edited = _get(db, nim), Mahasiswa(nim, nama, alamat)
                edited, is_conflict = combine(current, edited, versi) if current else (edited, True)
                if is_conflict:
                    raise EditConflict(current, edited, history.recent(db, nim, versi))
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

    async def write_all(self, writes: Sequence[Write]) -> None:
        def change(db: apsw.Connection) -> None:
            added: dict[str, Mahasiswa] = {}
            changed: dict[str, Mahasiswa] = {}
            for record, versi in writes:
                written = added.get(record.nim) or changed.get(record.nim)
                current = written or _get(db, record.nim)
                if current == record:  # sent twice, as by a double click
                    continue
                if written or versi != (digest(current) if current else None):
                    raise Changed(record.nim)
                (changed if current else added)[record.nim] = record
            if not (added or changed):
                return
            with history.batch(db, "import"):
                for nim, nama, alamat in changed.values():
                    _run(db, sql.UPDATE, nama, alamat, nim)
                for record in added.values():
                    _run(db, sql.ADD, *record)

        await self._write_many(change)

    async def delete_all(self, nims: Sequence[str]) -> None:
        def change(db: apsw.Connection) -> None:
            with history.batch(db, "delete"):
                _run(db, sql.DELETE_ALL, _as_json(nims))

        await self._write_many(change)

    async def merge(self, rows: Iterable[Incoming], *, update: bool, dry_run: bool) -> Merged:
        merged = Merged(0, 0, 0, ())
        began = 0.0

        def change(db: apsw.Connection) -> None:
            nonlocal began, merged
            began = time.monotonic()
            merged = _merge(db, update=update, dry_run=dry_run)

        try:
            await self._writer.run_exclusive(lambda db: _stage(db, rows))
            await self._write(change)
            return merged._replace(seconds=time.monotonic() - began)
        finally:
            await self._writer.run_exclusive(lambda db: _run(db, sql.DROP_INCOMING))

    async def history(self, cari: str, batch: int | None, offset: int, limit: int) -> HistoryPage:
        where, bindings = sql.where_found(cari)
        bindings |= {"limit": limit, "offset": offset}
        if batch is None:
            return await self._read(SEARCH, lambda db: history.items(db, where, bindings))
        bindings["batch"] = batch
        return await self._read(SEARCH, lambda db: history.entries(db, where, bindings))

    async def undo(self, item: int, *, is_batch: bool, versi: str | None = None) -> None:
        def undo_batch(db: apsw.Connection) -> None:
            history.check_batch(db, item)
            history.undo(db, sql.BATCH_WHERE, item)

        def undo_entry(db: apsw.Connection) -> None:
            nim = history.nim_of(db, item)
            is_seen = versi is not None and versi == digest_or_dash(_get(db, nim))
            history.undo(db, sql.ENTRY_WHERE, item, is_seen=is_seen)

        await (self._write_many(undo_batch) if is_batch else self._write(undo_entry))

    async def purge(self) -> None:
        await self._write(lambda db: _run(db, sql.BEGIN_PURGE))

    async def forget(self, nim: str) -> bool:
        was_known = False

        def change(db: apsw.Connection) -> None:
            nonlocal was_known
            was_known = history.forget(db, nim)

        await self._write(change)
        try:
            await self._writer.run_exclusive(history.erase_traces)
        except Unavailable as error:
            raise TextsRemain(
                f"the record and its history are removed, but {self._path} and {self._path}-wal still hold the texts"
                f" ({error}); stop every program that has the file open, such as Litestream, then run the command again"
            ) from error
        return was_known

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
        async with self._slots.slot(IMPORT) if self._slots else nullcontext():
            await self._write(change)

    async def _read(self, kind: Kind, query: Callable[[apsw.Connection], T]) -> T:
        self._check_file()
        return await self._readers[kind].read(query)

    def _check_file(self) -> None:
        """Raise Unavailable if the file was replaced, moved or removed, also if another file is in its place by now."""
        if self._giving_up is None:
            if not has_moved(self._watch):
                return
            log.error("%s was replaced, moved or removed: stop the service, put the file right, start it", self._path)
            self._giving_up = asyncio.create_task(self._give_up())
        raise Unavailable(f"{self._path} was replaced, moved or removed")

    async def _give_up(self) -> None:
        """Move the acknowledged changes into the file that was moved. The next start must not find them in the log."""
        try:
            await asyncio.to_thread(remove_wal, self._path, self._wal_identity)
        except (OSError, Unavailable) as error:
            log.error("%s-wal was not removed: %s; remove it before the start", self._path, error)  # noqa: TRY400
        await self._writer.close()


def _snapshot(db: apsw.Connection, version: Version | None, at_most: int) -> Snapshot:
    with db:
        last = history.last(db)
        none = Snapshot(version, 0, None, last)
        if db.execute(sql.LONGER_THAN, (at_most,)).get:
            return none
        slices: list[bytes] = []
        size = records = 0
        packed, end, count = next(db.execute(sql.FIRST_SLICE))
        while count:
            slices.append(_utf8(packed))
            records += count
            size += len(packed)
            if size > SNAPSHOT_MAX_BYTES:
                return none
            packed, end, count = next(db.execute(sql.NEXT_SLICE, (end,))) if count == SLICE_RECORDS else (b"", b"", 0)
    return Snapshot(version, records, slices, last)


def _utf8(packed: bytes) -> bytes:
    try:
        packed.decode()
    except UnicodeDecodeError as error:
        raise Unavailable(NOT_UTF8) from error
    return packed


def _fetch(cursor: apsw.Cursor, limit: int | None = None) -> list[tuple[str, str, str]]:
    try:
        return cast("list[tuple[str, str, str]]", list(islice(cursor, limit)))
    except UnicodeDecodeError as error:
        cursor.close()  # the traceback would keep it, and with it this connection's view of the database
        raise Unavailable(NOT_UTF8) from error


def _records(cursor: apsw.Cursor, limit: int | None = None) -> Sequence[Mahasiswa]:
    return list(map(as_record, _fetch(cursor, limit)))


def _get(db: apsw.Connection, nim: str) -> Mahasiswa | None:
    return next(iter(_records(db.execute(sql.GET, (nim,)))), None)


def _counted(db: apsw.Connection, searches: Sequence[str], di: Field | Literal[""]) -> Sequence[tuple[str, int]]:
    """Each search with the number of records that it finds."""
    if not searches:
        return []
    conditions = [sql.condition(cari, di, f"w{number}_") for number, cari in enumerate(searches)]
    bindings = dict(ChainMap(*(bindings for _, bindings in conditions)))
    counts = next(db.execute(sql.count_found((found for found, _ in conditions), di), bindings))
    return [(cari, count or 0) for cari, count in zip(searches, counts, strict=True)]


def _run(db: apsw.Connection, statement: str, *bindings: str | None) -> None:
    db.execute(statement, bindings)


def _as_json(nims: Sequence[str]) -> str:
    # JSON would end a text at a NUL, which no record contains.
    return json.dumps([nim for nim in nims if "\0" not in nim])


def _deadline() -> float:
    return time.monotonic() + STEP_TIMEOUT_SECONDS


def _stage(db: apsw.Connection, rows: Iterable[Incoming]) -> None:
    """Write the rows to a temporary table."""
    with savepoint(db):
        db.execute(sql.CREATE_INCOMING)
        db.executemany(sql.ADD_INCOMING, rows)


def _merge(db: apsw.Connection, *, update: bool, dry_run: bool) -> Merged:
    total, existing, changed = db.execute(sql.COMPARE_INCOMING).get
    incomplete = [number for (number,) in db.execute(sql.INCOMPLETE)]
    rows = total - existing + (changed if update else 0)
    if rows and not incomplete and not dry_run:
        is_silent = total > UNDOABLE_ROWS_MAX
        with savepoint(db), history.silent_batch(db, "import", rows) if is_silent else history.batch(db, "import"):
            if update:
                db.execute(sql.UPDATE_INCOMING)
            db.execute(sql.INSERT_INCOMING)
    return Merged(total - existing, changed, existing - changed, incomplete)
