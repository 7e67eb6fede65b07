"""The records in one SQLite file: one writer that commits in groups, and readers that never wait for it."""

import asyncio
import logging
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from threading import local
from typing import Self, TypeVar, cast

import apsw

from mahasiswa.record import Incoming, Mahasiswa, Write, digest
from mahasiswa.store import Merged, Query, Snapshot, Version, statements
from mahasiswa.store.errors import Changed, Unavailable, Unusable
from mahasiswa.store.sqlite.connection import connect, has_moved, log_of, remove_log
from mahasiswa.store.sqlite.schema import migrate
from mahasiswa.store.sqlite.writer import Writer

CHUNK = 2000
"""Records of a long read that are handed on at a time."""

FAR = 1000
"""Records into a sorted list from which on only the keys are sorted."""

READERS = 4

SHORT = 2000
"""Records of a list that is read on the event loop."""

LOOK_SECONDS = 0.1
"""How often the list page looks whether its file still stands under its name; every write and other read does."""

T = TypeVar("T")

log = logging.getLogger(__name__)

as_record = cast("Callable[[object], Mahasiswa]", partial(tuple.__new__, Mahasiswa))


class _Readers:
    """A few threads with a connection each."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._threads = ThreadPoolExecutor(READERS, "reader")
        self._mine = local()
        self.connections: list[apsw.Connection] = []

    async def read(self, query: Callable[[apsw.Connection], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._query, query)
        except apsw.Error as error:
            raise Unavailable(str(error)) from error

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[Callable[[Callable[[apsw.Connection], T]], Awaitable[T]]]:
        """A connection of one's own, for a read in several steps that must see one moment."""
        loop = asyncio.get_running_loop()
        try:
            db = await loop.run_in_executor(self._threads, connect, self._path)
            try:
                yield lambda query: loop.run_in_executor(self._threads, query, db)
            finally:
                await loop.run_in_executor(self._threads, db.close)
        except apsw.Error as error:
            raise Unavailable(str(error)) from error

    def close(self) -> None:
        self._threads.shutdown()
        for db in self.connections:
            db.close()

    def _query(self, query: Callable[[apsw.Connection], T]) -> T:
        if not hasattr(self._mine, "db"):
            self._mine.db = connect(self._path)
            self._mine.db.execute("PRAGMA query_only = ON")
            self.connections.append(self._mine.db)
        return query(self._mine.db)


class _File:
    """Everything that is open on one file, for as long as it stands under its name."""

    def __init__(self, path: Path) -> None:
        self.readers = _Readers(path)
        self.writer = Writer(path)
        # A connection that never writes sees every commit of every other one, in this process and in others. It is
        # asked on the event loop: that takes a few microseconds, a hop to another thread a hundred.
        self.watch = connect(path)
        self.watch.execute(statements.LONGER_THAN, (0,)).get  # noqa: B018 - from the first read on there is a log
        self.watch.set_busy_timeout(0)
        self.asked = self.watch.cursor()  # a new one for each question takes half a microsecond more
        self.log = log_of(path)

    async def close(self) -> None:
        await self.writer.close()
        await asyncio.to_thread(self.readers.close)
        self.watch.close()


class SQLiteStore:
    """The Store on a file that `prepare` made ready."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: _File | None = _File(path)
        self._generation = 0
        self._is_short = True
        self._looked = 0.0
        self._opening = asyncio.Lock()

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a file that is there; raise Unusable."""
        try:
            return cls(path)
        except apsw.Error as error:
            raise Unusable(f"{path} cannot be opened: {error}") from error

    async def version(self) -> Version | None:
        file = self._file
        # Asked many thousand times a second: that the file was replaced may be noticed a little late.
        if (now := time.monotonic()) >= self._looked + LOOK_SECONDS or file is None:
            self._looked = now
            file = await self._current()
        try:
            return self._generation, file.asked.execute("PRAGMA data_version").get
        except apsw.BusyError:
            return None
        except apsw.Error as error:
            raise Unavailable(str(error)) from error

    def version_now(self) -> Version | None:
        file = self._file
        if file is None or time.monotonic() >= self._looked + LOOK_SECONDS:
            return None
        try:
            return self._generation, file.asked.execute("PRAGMA data_version").get
        except apsw.Error:
            return None

    async def snapshot(self, at_most: int) -> Snapshot:
        # The version first: what is read after it is of that version or a later one.
        version = await self.version()
        records = self._read_short(await self._current()) if self._is_short and at_most >= SHORT else None
        if records is None:

            def read(db: apsw.Connection) -> Sequence[tuple[str, str, str]] | None:
                return None if db.execute(statements.LONGER_THAN, (at_most,)).get else _rows(db, statements.ALL)

            records = await (await self._current()).readers.read(read)
            self._is_short = records is not None and len(records) <= SHORT
        return Snapshot(version, records)

    @staticmethod
    def _read_short(file: _File) -> Sequence[tuple[str, str, str]] | None:
        """A list that is read on the event loop, for it takes no longer than a hop to another thread; else None."""
        try:
            records = cast("list[tuple[str, str, str]]", file.watch.execute(statements.SOME, (SHORT + 1,)).fetchall())
        except (apsw.Error, UnicodeDecodeError):
            return None
        return records if len(records) <= SHORT else None

    async def after(self, nim: str | None, limit: int) -> Sequence[Mahasiswa]:
        statement, parameters = (statements.FIRST, (limit,)) if nim is None else (statements.AFTER, (nim, limit))
        return await (await self._current()).readers.read(lambda db: _records(db, statement, parameters))

    async def get(self, nim: str) -> Mahasiswa | None:
        return await (await self._current()).readers.read(lambda db: _get(db, nim))

    async def find(self, nims: Sequence[str]) -> Mapping[str, Mahasiswa]:
        def read(db: apsw.Connection) -> Mapping[str, Mahasiswa]:
            found = (_get(db, nim) for nim in nims)
            return {record.nim: record for record in found if record}

        return await (await self._current()).readers.read(read)

    async def count(self, query: Query) -> int:
        match, parameters = _match(query.cari)
        return await (await self._current()).readers.read(
            lambda db: cast("int", db.execute(statements.COUNT + match, parameters).get)
        )

    async def page(self, query: Query, offset: int, limit: int) -> Sequence[Mahasiswa]:
        match, parameters = _match(query.cari)
        order = statements.ORDERS[query.urut, query.arah]

        def read(db: apsw.Connection) -> Sequence[Mahasiswa]:
            if query.urut != "nim" and offset > FAR:
                # Under a LIMIT, SQLite sorts whole rows, and by a slower way than it sorts keys alone.
                keys = db.execute(statements.KEYS + match + statements.lowered(order), parameters)
                with suppress(UnicodeDecodeError):
                    nims = [nim for (nim,) in islice(keys, offset, offset + limit)]
                    # Another program's table may hold what finds no record: NULL, or no text.
                    if all(isinstance(nim, str) for nim in nims):
                        return [record for nim in nims if (record := _get(db, cast("str", nim)))]
            return _records(db, statements.PAGE + match + order + statements.LIMIT, (*parameters, limit, offset))

        return await (await self._current()).readers.read(read)

    async def chunks(self, query: Query) -> AsyncGenerator[Sequence[Mahasiswa]]:
        match, parameters = _match(query.cari)
        statement = statements.PAGE + match + statements.ORDERS[query.urut, query.arah]
        async with (await self._current()).readers.alone() as run:
            rows = await run(lambda db: map(as_record, db.execute(statement, parameters)))
            try:
                while chunk := await run(lambda _: list(islice(rows, CHUNK))):
                    yield chunk
            except UnicodeDecodeError as error:
                raise Unavailable("another program stored a text that is not UTF-8") from error

    async def add(self, nim: str | None, nama: str | None, alamat: str | None) -> None:
        await (await self._current()).writer.write(lambda db: _run(db, statements.ADD, nim, nama, alamat))

    async def update(self, nim: str, nama: str | None, alamat: str | None, versi: str | None = None) -> None:
        def change(db: apsw.Connection) -> None:
            current = _get(db, nim) if versi else None
            # The same form sent twice, as by a double click, finds what it wrote.
            if current and digest(current) != versi and current != (nim, nama, alamat):
                raise Changed(nim, current)
            _run(db, statements.UPDATE, nama, alamat, nim)

        await (await self._current()).writer.write(change)

    async def delete(self, nim: str) -> None:
        await (await self._current()).writer.write(lambda db: _run(db, statements.DELETE, nim))

    async def write_all(self, writes: Sequence[Write]) -> None:
        def change(db: apsw.Connection) -> None:
            with db:  # a savepoint: all or none, and the neighbours in the group untouched
                for record, versi in writes:
                    current = _get(db, record.nim)
                    if current == record:  # the same confirmation sent twice, as by a double click
                        continue
                    if versi != (digest(current) if current else None):
                        raise Changed(record.nim, current)
                    if current:
                        _run(db, statements.UPDATE, record.nama, record.alamat, record.nim)
                    else:
                        _run(db, statements.ADD, *record)

        await (await self._current()).writer.write(change)

    async def merge(self, batches: Iterable[Sequence[Incoming]], *, update: bool, dry_run: bool) -> Merged:
        merged = Merged(0, 0, 0, ())

        def change(db: apsw.Connection) -> None:
            nonlocal merged
            merged = _merge(db, update=update, dry_run=dry_run)

        writer = (await self._current()).writer
        await writer.run_exclusive(lambda db: _lay_out(db, batches))
        try:
            await writer.write(change)
        finally:
            await writer.run_exclusive(lambda db: _run(db, statements.DROP_INCOMING))
        return merged

    async def close(self) -> None:
        if self._file:
            await self._file.close()

    async def _current(self) -> _File:
        """The open file; another one under its name is opened instead. Raise Unavailable where there is none."""
        file = self._file
        if file is None or has_moved(file.watch):
            file = await self._open_anew()
        return file

    async def _open_anew(self) -> _File:
        async with self._opening:
            if self._file and not has_moved(self._file.watch):
                return self._file
            if self._file:
                log.warning("%s was replaced or removed", self._path)
                gone, self._file = self._file, None
                # SQLite would take the log of the file that is gone for the new one's.
                remove_log(self._path, gone.log)
                await gone.close()
            if not self._path.exists():  # an empty list in its place would look as if all were lost
                raise Unavailable(f"{self._path} was removed")
            try:
                await asyncio.to_thread(migrate, self._path)
                self._file = _File(self._path)
            except (Unusable, apsw.Error) as error:
                raise Unavailable(str(error)) from error
            self._generation += 1
            return self._file


def _run(db: apsw.Connection, statement: str, *parameters: str | None) -> None:
    db.execute(statement, parameters)


def _rows(db: apsw.Connection, statement: str, parameters: Sequence[str | int] = ()) -> Sequence[tuple[str, str, str]]:
    try:
        return cast("list[tuple[str, str, str]]", db.execute(statement, parameters).fetchall())
    except UnicodeDecodeError:  # another program stored a text that is none
        rows = db.execute(statement.replace(statements.COLUMNS, statements.BYTES), parameters)
        return [Mahasiswa(*(cell.decode(errors="replace") for cell in cast("Sequence[bytes]", row))) for row in rows]


def _records(db: apsw.Connection, statement: str, parameters: Sequence[str | int] = ()) -> Sequence[Mahasiswa]:
    return list(map(as_record, _rows(db, statement, parameters)))


def _get(db: apsw.Connection, nim: str) -> Mahasiswa | None:
    return next(iter(_records(db, statements.GET, (nim,))), None)


def _match(cari: str) -> tuple[str, Sequence[str]]:
    """The condition and its parameters that find a text anywhere, ignoring the case of Latin letters.

    LIKE ignores the case of ASCII letters alone, and is four times as fast as GLOB, which can name both cases of any.
    """
    if not cari:
        return "", ()
    if "\0" in cari:  # where a pattern would end; no record of ours has one
        return " WHERE false", ()
    if all(letter.isascii() or letter.lower() == letter.upper() for letter in cari):
        condition = "LIKE ? ESCAPE '\\'"
        pattern = "%" + re.sub(r"([%_\\])", r"\\\1", cari) + "%"
    else:
        condition = "GLOB ?"
        pattern = "*" + "".join(map(_either_case, cari)) + "*"
    return statements.MATCH.format(match=condition), (pattern,) * 3


def _either_case(letter: str) -> str:
    """A GLOB pattern for a letter in upper and lower case, and for a character that means something to GLOB."""
    return statements.cases(letter) or (f"[{letter}]" if letter in "*?[" else letter)


def _lay_out(db: apsw.Connection, batches: Iterable[Sequence[Incoming]]) -> None:
    with db:
        db.execute(statements.CREATE_INCOMING)
        for batch in batches:
            db.executemany(statements.ADD_INCOMING, batch)


def _merge(db: apsw.Connection, *, update: bool, dry_run: bool) -> Merged:
    total, existing, changed = db.execute(statements.COMPARE_INCOMING).get
    incomplete = [number for (number,) in db.execute(statements.INCOMPLETE)]
    if not incomplete and not dry_run:
        with db:
            if update:
                db.execute(statements.UPDATE_INCOMING)
            db.execute(statements.INSERT_INCOMING)
    return Merged(total - existing, changed, existing - changed, incomplete)
