"""The records in one SQLite file: one writer that commits in groups, and readers that never wait for it."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Literal, Self, TypeVar, cast

import apsw

from mahasiswa.record import Incoming, Mahasiswa, Write, combine, digest, digest_or_dash, near_key
from mahasiswa.store import (
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
from mahasiswa.store.errors import Changed, EditConflict, TextsRemain, TookTooLong, Unavailable, Unusable
from mahasiswa.store.history import UNDOABLE_ROWS_MAX, HistoryPage
from mahasiswa.store.sqlite import history, sql
from mahasiswa.store.sqlite.connection import connect, has_moved, remove_wal, wal_identity
from mahasiswa.store.sqlite.reader_pool import ReaderPool
from mahasiswa.store.sqlite.schema import migrate
from mahasiswa.store.sqlite.writer import Writer
from mahasiswa.store.threads import batches
from mahasiswa.work import EXPORT, IMPORT, LIST, RECORD, SEARCH, STEP_TIMEOUT_SECONDS, Kind, Slots

T = TypeVar("T")

CHUNK_RECORDS = 2000
"""Records of a long read that are handed on at a time."""

JOINED_RECORDS = 1000
"""Records that one statement joins to lines. If one of them is not ordinary, all are read in the slower way."""

JOINED_MAX_BYTES = 1 << 20
"""Maximum length of lines that are joined. The test of longer ones would keep other threads waiting."""

JOINS_PER_STEP = 5
"""Statements between two switches to the thread that writes the file. With one, an export takes a tenth longer."""

NOT_UTF8 = "another program has stored a text that is not UTF-8"

SHORT_LIST_FILE_BYTES = 1024 * 1024
"""Maximum size of a file whose list is read on the event loop: about 2,500 records with their history and folded texts,
which take 1 ms. As many of the shortest records as fit, 30,000, take 12 ms."""

FILE_CHECK_SECONDS = 0.1
"""Interval at which `version` checks whether the file was replaced. Every other method checks it at each call."""

log = logging.getLogger(__name__)

as_record = cast("Callable[[object], Mahasiswa]", partial(tuple.__new__, Mahasiswa))


class _OpenFile:
    """The writer of one file, and the connection that watches it. A file that takes its place gets a new _OpenFile."""

    def __init__(self, path: Path, is_limited: bool) -> None:  # noqa: FBT001 - for to_thread
        self.writer = Writer(path, is_limited=is_limited)
        # A connection that never writes, because data_version shows only the commits of other connections. It is used
        # on the event loop: its queries take a few microseconds, a switch to another thread takes a hundred.
        self.watch = connect(path)
        self.watch.execute(sql.LONGER_THAN, (0,)).get  # noqa: B018 - the first read creates the write-ahead log
        self.watch.set_busy_timeout(0)
        self.version_cursor = self.watch.cursor()  # a new cursor for each query costs another half microsecond
        self.wal_identity = wal_identity(path)
        self.history_days: int = self.watch.execute(sql.DAYS).get

    async def close(self) -> None:
        await self.writer.close()
        self.watch.close()


class SQLiteStore:
    """The Store on a file that `migrate` has made ready."""

    def __init__(self, path: Path, slots: Slots | None = None) -> None:
        self._path = path
        self._is_limited = slots is not None
        self._file: _OpenFile | None = _OpenFile(path, self._is_limited)
        self._readers = {kind: ReaderPool(path, kind, slots) for kind in (RECORD, LIST, SEARCH, EXPORT, IMPORT)}
        self._slots = slots
        self._vocabulary: tuple[Version | None, Mapping[str, str]] = None, {}  # the words of names, and their version
        self._history_days: int | None = None  # of the file that was replaced
        self._generation = 0  # tells the versions of two files apart
        self._next_file_check = 0.0
        self._turn_version: Version | None = None
        self._is_checked = False
        self._reopening: asyncio.Task[_OpenFile] | None = None

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
        return self._file.writer.waiting if self._file else 0

    async def version(self) -> Version | None:
        if self._file is None or time.monotonic() >= self._next_file_check:
            await self._current()
            self._next_file_check = time.monotonic() + FILE_CHECK_SECONDS
        return self.version_now()

    def version_now(self) -> Version | None:
        if self._turn_version is not None:
            return self._turn_version
        if self._file is None or time.monotonic() >= self._next_file_check:
            return None
        # The query takes a fifth of the time of a list page from memory. So all callers outside of tasks share one query
        # in each turn of the event loop. They run while the loop polls its sockets. Before it polls again, it runs its
        # queue, which has `_forget_turn`. So a request that was sent after the query causes a new query.
        is_kept = asyncio.current_task() is None
        if is_kept:
            asyncio.get_running_loop().call_soon(self._forget_turn)
        try:
            version = self._generation, self._file.version_cursor.execute("PRAGMA data_version").get
        except apsw.Error:  # locked, or cannot be read: the read of the records will report the reason
            return None
        if is_kept:
            self._turn_version = version
        return version

    async def snapshot(self, at_most: int) -> Snapshot:
        # Read the version before the records: then the records are of that version or of a later one.
        version = await self.version()
        await self._current()
        return await self._readers[LIST].read(lambda db: _snapshot(db, version, at_most))

    def snapshot_now(self, at_most: int) -> Snapshot | None:
        version = self.version_now()
        if version is None or self._file is None:
            return None
        self._turn_version = None  # the rest of this turn asks again, because the records take up to milliseconds
        db = self._file.watch
        try:
            if has_moved(db) or db.pragma("page_count") * db.pragma("page_size") > SHORT_LIST_FILE_BYTES:
                return None
            return _snapshot(db, version, at_most)
        except (apsw.Error, Unavailable):  # `snapshot` waits for a lock, and reports everything else
            return None

    async def after(self, nim: str | None, limit: int) -> Sequence[Mahasiswa]:
        statement, bindings = (sql.FIRST, (limit,)) if nim is None else (sql.AFTER, (nim, limit))
        return await self._read(LIST, lambda db: _records(db.execute(statement, bindings)))

    async def get(self, nim: str) -> Mahasiswa | None:
        return await self._read(RECORD, lambda db: _get(db, nim))

    async def find(self, nims: Sequence[str]) -> Mapping[str, Mahasiswa]:
        def read(db: apsw.Connection) -> Mapping[str, Mahasiswa]:
            return {record.nim: record for record in _records(db.execute(sql.FIND, (_as_json(nims),)))}

        return await self._read(IMPORT, read)

    async def near(self, nims: Sequence[str], limit: int) -> Sequence[Mahasiswa]:
        keys = json.dumps(sorted({near_key(nim) for nim in nims if "\0" not in nim} - {""}))
        return await self._read(IMPORT, lambda db: _records(db.execute(sql.NEAR, (keys, limit))))

    async def count(self, query: Query) -> int:
        where, bindings = _condition(query.cari)
        return await self._read(SEARCH, lambda db: cast("int", db.execute(sql.count(where), bindings).get))

    async def search(self, query: Query, offset: int, limit: int) -> Found:
        def read(db: apsw.Connection) -> Found:
            with db:
                rows, last = _page(db, query, offset, limit), history.last(db)
            return Found(
                cast("int", rows[0][0]), [Mahasiswa._make(row[1:]) for row in rows if row[1] is not None], last
            )

        return await self._read(SEARCH, read)

    async def nearest(self, cari: str, limit: int) -> Sequence[str]:
        def read(db: apsw.Connection) -> Sequence[str]:
            if version is None or self._vocabulary[0] != version:
                self._vocabulary = version, nearest.vocabulary(row[0] for row in _fetch(db.execute(sql.NAME_WORDS)))
            likely = nearest.corrections(words, self._vocabulary[1])
            return list(islice((text for text in likely if _exists(db, text)), limit))

        if not (words := folding.words(cari)):
            return []
        version = await self.version()
        return await self._read(SEARCH, read)

    async def chunks(self, query: Query) -> AsyncGenerator[Sequence[Mahasiswa]]:
        """See the protocol. If the file is replaced meanwhile, the old one is read to its end."""
        where, bindings = _condition(query.cari)
        statement = sql.found(where, sql.ORDERS[query.urut, query.arah])
        await self._current()
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

    def lines(
        self, query: Query, is_ordinary: Callable[[bytes, int], bool]
    ) -> AsyncGenerator[Sequence[Mahasiswa | bytes]]:
        return self._lines(is_ordinary) if query == Query() else self.chunks(query)

    async def _lines(self, is_ordinary: Callable[[bytes, int], bool]) -> AsyncGenerator[Sequence[Mahasiswa | bytes]]:
        first: bytes | None = b""

        def next_lines(db: apsw.Connection) -> Sequence[Mahasiswa | bytes]:
            nonlocal first
            found: list[bytes] = []
            while first is not None and len(found) < JOINS_PER_STEP:
                between = first, cast("bytes | None", db.execute(sql.NIM_AFTER, (first, JOINED_RECORDS)).get)
                first = between[1]
                joined, count = _joined(db, between)
                if not joined or not is_ordinary(joined, count):
                    return [*found, *_records(db.execute(sql.BETWEEN, between))]
                found.append(joined)
            return found

        await self._current()
        readers = self._readers[EXPORT]
        async with readers.connection() as db:
            try:
                await readers.step(db, lambda db: db.execute("BEGIN"), _deadline())
                while found := await readers.step(db, next_lines, _deadline()):
                    yield found
            finally:
                if db.in_transaction:  # the connection would go on to see this moment
                    db.execute("COMMIT")

    async def add(self, nim: str | None, nama: str | None, alamat: str | None) -> None:
        await (await self._current()).writer.write(lambda db: _run(db, sql.ADD, nim, nama, alamat))

    async def update(self, nim: str, nama: str | None, alamat: str | None, versi: str | None = None) -> None:
        def change(db: apsw.Connection) -> None:
            texts = nama, alamat
            if versi and nama is not None and alamat is not None and (current := _get(db, nim)):
                edited, is_conflict = combine(current, Mahasiswa(nim, nama, alamat), versi)
                if is_conflict:
                    raise EditConflict(current, edited, history.recent(db, nim, versi))
                texts = edited.nama, edited.alamat
            _run(db, sql.UPDATE, *texts, nim)

        await (await self._current()).writer.write(change)

    async def delete(self, nim: str) -> None:
        await (await self._current()).writer.write(lambda db: _run(db, sql.DELETE, nim))

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
                    raise Changed(record.nim, current)
                (changed if current else added)[record.nim] = record
            if not (added or changed):
                return
            with history.batch(db, "import"):
                for nim, nama, alamat in changed.values():
                    _run(db, sql.UPDATE, nama, alamat, nim)
                for record in added.values():
                    _run(db, sql.ADD, *record)

        await self._write_many(change)

    async def delete_all(self, nims: Sequence[str]) -> int:
        deleted = 0

        def change(db: apsw.Connection) -> None:
            nonlocal deleted
            with history.batch(db, "delete"):
                _run(db, sql.DELETE_ALL, _as_json(nims))
                deleted = db.changes()

        await self._write_many(change)
        return deleted

    async def merge(self, rows: Iterable[Incoming], *, update: bool, dry_run: bool) -> Merged:
        merged = Merged(0, 0, 0, ())
        is_ordered = False
        began = 0.0

        def change(db: apsw.Connection) -> None:
            nonlocal began, merged
            began = time.monotonic()
            merged = _merge(db, is_ordered=is_ordered, update=update, dry_run=dry_run)

        def stage(db: apsw.Connection) -> None:
            nonlocal is_ordered
            is_ordered = _stage(db, batches(rows))

        writer = (await self._current()).writer
        await writer.run_exclusive(stage)
        try:
            await writer.write(change)
            return merged._replace(seconds=time.monotonic() - began)
        finally:
            await writer.run_exclusive(lambda db: _run(db, sql.DROP_INCOMING))

    async def history(self, cari: str, batch: int | None, offset: int, limit: int) -> HistoryPage:
        found, bindings = _found(cari, sql.FOLDED_ENTRY)
        bindings |= {"limit": limit, "offset": offset}
        if batch is None:
            return await self._read(SEARCH, lambda db: history.items(db, found, bindings))
        bindings["batch"] = batch
        return await self._read(SEARCH, lambda db: history.entries(db, found, bindings))

    async def undo(self, entry: int, versi: str | None = None) -> None:
        def change(db: apsw.Connection) -> None:
            nim = history.nim_of(db, entry)
            is_seen = versi is not None and versi == digest_or_dash(_get(db, nim))
            history.undo(db, sql.ENTRY_WHERE, entry, is_seen=is_seen)

        await (await self._current()).writer.write(change)

    async def undo_batch(self, batch: int) -> None:
        def change(db: apsw.Connection) -> None:
            history.check_batch(db, batch)
            history.undo(db, sql.BATCH_WHERE, batch)

        await self._write_many(change)

    async def purge(self) -> None:
        await (await self._current()).writer.write(lambda db: _run(db, sql.BEGIN_PURGE))

    async def forget(self, nim: str) -> bool:
        was_known = False

        def change(db: apsw.Connection) -> None:
            nonlocal was_known
            was_known = history.forget(db, nim)

        writer = (await self._current()).writer
        await writer.write(change)
        try:
            await writer.run_exclusive(history.erase_traces)
        except Unavailable as error:
            raise TextsRemain(
                f"the record and its history are removed, but {self._path} and {self._path}-wal still hold the texts"
                f" ({error}); stop every program that has the file open, such as Litestream, then run the command again"
            ) from error
        return was_known

    async def close(self) -> None:
        if self._reopening:
            await asyncio.wait([self._reopening])
        for readers in self._readers.values():
            await asyncio.to_thread(readers.close)
        if self._file:
            await self._file.close()

    async def _write_many(self, change: Callable[[apsw.Connection], None]) -> None:
        async with self._slots.slot(IMPORT) if self._slots else nullcontext():
            await (await self._current()).writer.write(change)

    async def _read(self, kind: Kind, query: Callable[[apsw.Connection], T]) -> T:
        await self._current()
        return await self._readers[kind].read(query)

    async def _current(self) -> _OpenFile:
        """The open file. If another one has taken its place, open that; raise Unavailable if there is none.

        The check is a system call, so it is made once for all callers of one turn of the event loop. `_forget_turn` is
        queued before any later caller, so it forgets the answer in time. The writer checks again for each group.
        """
        file = self._file
        if file is not None and self._is_checked:
            return file
        asyncio.get_running_loop().call_soon(self._forget_turn)
        if file is None or has_moved(file.watch):
            file = await self._reopened()
        else:
            self._is_checked = True
        return file

    def _forget_turn(self) -> None:
        self._is_checked, self._turn_version = False, None

    async def _reopened(self) -> _OpenFile:
        """Wait until the file is opened again. All callers wait for one task, which goes on if they are cancelled."""
        if self._reopening is None:
            self._reopening = asyncio.create_task(self._reopen())
            self._reopening.add_done_callback(self._forget_reopening)
        reopening = self._reopening
        await asyncio.wait([reopening], timeout=STEP_TIMEOUT_SECONDS if self._slots else None)
        if not reopening.done():
            raise TookTooLong(f"{self._path} is being opened again")
        return reopening.result()

    def _forget_reopening(self, reopening: "asyncio.Task[_OpenFile]") -> None:
        self._reopening = None
        if not reopening.cancelled():
            reopening.exception()  # asyncio logs an exception that is never retrieved

    async def _reopen(self) -> _OpenFile:
        if gone := self._file:
            log.warning("%s was replaced or removed", self._path)
            self._history_days = gone.history_days
            self._next_file_check, self._turn_version = 0.0, None  # `version_now` answers no more for the old file
            await asyncio.to_thread(remove_wal, self._path, gone.wal_identity)
            self._file = None
            for readers in self._readers.values():
                readers.forget_file()
            await gone.close()
        if not self._path.exists():  # an empty list in its place would look as if every record were lost
            raise Unavailable(f"{self._path} was removed")
        try:
            await asyncio.to_thread(migrate, self._path, self._history_days)
            self._file = await asyncio.to_thread(_OpenFile, self._path, self._is_limited)
        except (Unusable, apsw.Error) as error:
            raise Unavailable(str(error)) from error
        self._generation += 1
        return self._file


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


def _joined(db: apsw.Connection, between: tuple[bytes, bytes | None]) -> tuple[bytes | None, int]:
    """The records of this range of nims as lines, and their number. None if there are none or if they are too long."""
    length_limit = db.limit(apsw.SQLITE_LIMIT_LENGTH, JOINED_MAX_BYTES)
    try:
        return cast("tuple[bytes | None, int]", next(db.execute(sql.JOINED, between)))
    except apsw.TooBigError:
        return None, 0
    finally:
        db.limit(apsw.SQLITE_LIMIT_LENGTH, length_limit)


def _page(db: apsw.Connection, query: Query, offset: int, limit: int) -> Sequence[tuple[str, str, str]]:
    """The rows of `sql.search`. A page of the second half of a list is read from its end, so fewer keys are sorted."""
    where, bindings = _condition(query.cari)
    if not where and offset:
        total = db.execute(sql.count("")).get
        rest = total - offset
        if 0 < rest < offset:
            turned: Literal["naik", "turun"] = "naik" if query.arah == "turun" else "turun"
            size = min(limit, rest)
            statement = sql.search("", query.urut, turned)
            return _fetch(db.execute(statement, {"limit": size, "offset": rest - size}))[::-1]
    statement = sql.search(where, query.urut, query.arah)
    return _fetch(db.execute(statement, {**bindings, "limit": limit, "offset": offset}))


def _get(db: apsw.Connection, nim: str) -> Mahasiswa | None:
    return next(iter(_records(db.execute(sql.GET, (nim,)))), None)


def _exists(db: apsw.Connection, cari: str) -> bool:
    where, bindings = _condition(cari)
    return bool(db.execute(sql.exists(where), bindings).get)


def _run(db: apsw.Connection, statement: str, *bindings: str | None) -> None:
    db.execute(statement, bindings)


def _as_json(nims: Sequence[str]) -> str:
    # JSON would end a text at a NUL, which no record contains.
    return json.dumps([nim for nim in nims if "\0" not in nim])


def _condition(cari: str) -> tuple[str, dict[str, str | int]]:
    """The WHERE clause that finds every word of a search in a record, and its parameters; none for an empty search."""
    found, parameters = _found(cari, "teks")
    return found and f"WHERE {found}", parameters


def _found(cari: str, text: str) -> tuple[str, dict[str, str | int]]:
    """The condition that finds every word of a search in a folded text, and its parameters."""
    words = folding.words(cari)
    return sql.contains(len(words), text) if cari else "", {f"w{number}": word for number, word in enumerate(words)}


def _deadline() -> float:
    return time.monotonic() + STEP_TIMEOUT_SECONDS


def _stage(db: apsw.Connection, incoming: Iterable[Sequence[Incoming]]) -> bool:
    """Write the rows to a temporary table. Return whether they are in the order of their nims."""
    is_ordered = True
    last = ""
    with db:
        db.execute(sql.CREATE_INCOMING)
        for batch in incoming:
            numbers, nims, namas, alamats = zip(*batch, strict=True)
            is_ordered = is_ordered and last <= nims[0] and list(nims) == sorted(nims)
            last = nims[-1]
            texts: Iterable[str | None]
            if None in namas or None in alamats:
                texts = (None if None in row else folding.fold("\n".join(map(str, row[1:]))) for row in batch)
            else:
                texts = folding.fold_all(
                    list(map("\n".join, cast("Iterable[Sequence[str]]", zip(nims, namas, alamats, strict=True))))
                )
            columns = (numbers, nims, namas, alamats, texts)
            values: list[int | str | None] = [None] * (len(columns) * len(batch))
            for place, column in enumerate(columns):
                values[place :: len(columns)] = column
            for at in range(0, len(batch), sql.STAGED_ROWS):
                rows = min(sql.STAGED_ROWS, len(batch) - at)
                db.execute(sql.add_incoming(rows), values[at * len(columns) : (at + rows) * len(columns)])
    return is_ordered


def _merge(db: apsw.Connection, *, is_ordered: bool, update: bool, dry_run: bool) -> Merged:
    is_empty = db.execute(sql.IS_EMPTY).get
    total, existing, changed = (
        (db.execute(sql.COUNT_INCOMING).get, 0, 0) if is_empty else db.execute(sql.COMPARE_INCOMING).get
    )
    incomplete = [number for (number,) in db.execute(sql.INCOMPLETE)]
    rows = total - existing + (changed if update else 0)
    if not rows or incomplete or dry_run:
        return Merged(total - existing, changed, existing - changed, incomplete)
    is_silent = total > UNDOABLE_ROWS_MAX
    with db, history.silent_batch(db, "import", rows) if is_silent else history.batch(db, "import"):
        if is_silent:
            db.execute(sql.DROP_SEARCH_TRIGGERS)
        if update and not is_empty:
            db.execute(sql.UPDATE_INCOMING)
        order = "" if is_ordered else sql.IN_ORDER
        db.execute(sql.INSERT_ALL_INCOMING + order if is_empty else sql.INSERT_INCOMING)
        if is_silent:
            db.execute(sql.FOLD_ALL_INCOMING + order if is_empty else sql.FOLD_INCOMING)
            db.execute(sql.CREATE_SEARCH_TRIGGERS)
    return Merged(total - existing, changed, existing - changed, incomplete)
