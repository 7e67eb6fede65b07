"""The records in one SQLite file: one writer that commits in groups, and readers that never wait for it."""

import asyncio
import logging
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from threading import local
from typing import NamedTuple, TypeVar, cast

import apsw

from mahasiswa.record import Incoming, Mahasiswa, Write, digest
from mahasiswa.store import (
    Changed,
    Merged,
    Query,
    Reason,
    Refused,
    Snapshot,
    StoreError,
    Unavailable,
    Unusable,
    statements,
)

CHUNK = 2000
"""Records of a long read that are handed on at a time."""

READERS = 4
PATIENCE = 10.0
"""Seconds a change may wait for a lock that another program holds, counted from when it was queued."""

T = TypeVar("T")

log = logging.getLogger(__name__)

type_affinity_text = re.compile("CHAR|CLOB|TEXT", re.IGNORECASE)
as_record = cast("Callable[[object], Mahasiswa]", partial(tuple.__new__, Mahasiswa))


def prepare(path: Path) -> None:
    """Make the file and its table where they do not exist; raise Unusable. Leaves nothing open."""
    if not path.parent.is_dir():
        raise Unusable(f"the folder {path.parent} does not exist")
    try:
        db = apsw.Connection(str(path.absolute()))
    except apsw.Error as error:
        raise Unusable(f"{path} cannot be opened: {error}") from error
    try:
        db.set_busy_timeout(int(PATIENCE * 1000))
        if db.readonly("main"):
            raise Unusable(f"{path} cannot be written")
        _prepare_table(db, path)
        if db.execute("PRAGMA journal_mode = WAL").get != "wal":
            raise Unusable(f"{path} cannot have a write-ahead log; is it on a network drive?")
        _connect(path).close()
    except apsw.NotADBError:
        raise Unusable(f"{path} is not an SQLite database") from None
    except apsw.Error as error:
        raise Unusable(f"{path} cannot be used: {error}") from error
    finally:
        db.close()


def _prepare_table(db: apsw.Connection, path: Path) -> None:
    with db:
        db.execute(statements.CREATE_TABLE)
        kind = db.execute("SELECT type FROM sqlite_schema WHERE name = 'mahasiswa'").get
        columns = {name: declared for _, name, declared, *_ in db.execute("PRAGMA table_info(mahasiswa)")}
        if kind != "table" or columns.keys() != set(Mahasiswa._fields):
            raise Unusable(f"{path} holds a {kind} mahasiswa with other columns: {', '.join(columns)}")
        if not all(type_affinity_text.search(declared) for declared in columns.values()):
            raise Unusable(f"{path} holds a table mahasiswa whose columns are not TEXT")
        if not _is_key(db, "nim"):
            raise Unusable(f"{path} holds a table mahasiswa whose nim is not its key")


def _is_key(db: apsw.Connection, column: str) -> bool:
    """Whether a unique index stands on that column alone, and on every row."""
    indexes = [name for _, name, unique, _, partial in db.execute("PRAGMA index_list(mahasiswa)") if unique > partial]
    return any([column] == [name for _, _, name in db.execute(f'PRAGMA index_info("{index}")')] for index in indexes)


def _connect(path: Path) -> apsw.Connection:
    """Open a file that exists: one that was removed must not come back empty."""
    db = apsw.Connection(str(path.absolute()), flags=apsw.SQLITE_OPEN_READWRITE)
    db.set_busy_timeout(int(PATIENCE * 1000))
    db.execute("PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF")
    return db


Change = Callable[[apsw.Connection], None]


class _Waiting(NamedTuple):
    change: Change
    answer: asyncio.Future[None]
    deadline: float


class _Writer:
    """One connection on one thread. All changes that wait are made in one transaction, then answered together."""

    def __init__(self, path: Path) -> None:
        self._db = _connect(path)
        self._db.execute(statements.REFUSE_INSERT)
        self._db.execute(statements.REFUSE_UPDATE)
        self._thread = ThreadPoolExecutor(1, "writer")
        self._queue: list[_Waiting] = []
        self._running: asyncio.Task[None] | None = None

    async def write(self, change: Change) -> None:
        """Make a change and wait until it is on disk; raise what `change` raised, or Unavailable."""
        answer = asyncio.get_running_loop().create_future()
        self._queue.append(_Waiting(change, answer, time.monotonic() + PATIENCE))
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        await answer

    async def apart(self, work: Change) -> None:
        """Do something on the writer's connection that is no part of any group."""
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, work, self._db)
        except apsw.Error as error:
            raise Unavailable(str(error)) from error

    async def close(self) -> None:
        if self._running:
            await self._running
        self._thread.shutdown()
        self._db.close()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while group := self._queue:
            self._queue = []
            try:
                outcomes = await loop.run_in_executor(self._thread, self._commit, group)
            except apsw.BusyError as error:
                now = time.monotonic()
                self._queue[:0] = [waiting for waiting in group if waiting.deadline > now]
                group = [waiting for waiting in group if waiting.deadline <= now]
                outcomes = [Unavailable(str(error))] * len(group)
            except Exception as error:
                log.exception("%d changes were not stored", len(group))
                outcomes = [Unavailable(str(error))] * len(group)
            for waiting, outcome in zip(group, outcomes, strict=True):
                if waiting.answer.done():  # its client went away
                    continue
                if outcome:
                    waiting.answer.set_exception(outcome)
                else:
                    waiting.answer.set_result(None)
        self._running = None

    def _commit(self, group: Sequence[_Waiting]) -> Sequence[StoreError | None]:
        """Make the group's changes in one transaction. Whatever is raised, nothing was done."""
        db = self._db
        patience = min(waiting.deadline for waiting in group) - time.monotonic()
        db.set_busy_timeout(max(0, int(patience * 1000)))
        db.execute("BEGIN IMMEDIATE")
        try:
            outcomes = [self._attempt(waiting.change) for waiting in group]
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
        return outcomes

    def _attempt(self, change: Change) -> StoreError | None:
        """Make one change. A refused statement rolls back alone and leaves its neighbours in the transaction."""
        try:
            change(self._db)
        except StoreError as error:
            return error
        except apsw.ConstraintError as error:
            if not self._db.in_transaction:
                raise
            return _refusal(error)
        return None


def _refusal(error: apsw.ConstraintError) -> Refused:
    text = str(error)
    if ours := re.fullmatch(r"(nim|nama|alamat) (missing|unaddressable|too_long|nul)", text):
        return Refused(ours[1], cast("Reason", ours[2]))
    column = re.search(r"mahasiswa\.(nim|nama|alamat)$", text)
    if column and text.startswith("NOT NULL"):
        return Refused(column[1], "missing")
    if text.endswith("mahasiswa.nim"):
        return Refused("nim", "duplicate")
    return Refused("", "rule")


class _Readers:
    """A few threads with a connection each."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._threads = ThreadPoolExecutor(READERS, "reader")
        self._mine = local()
        self._connections: list[apsw.Connection] = []

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
            db = await loop.run_in_executor(self._threads, _connect, self._path)
            try:
                yield lambda query: loop.run_in_executor(self._threads, query, db)
            finally:
                await loop.run_in_executor(self._threads, db.close)
        except apsw.Error as error:
            raise Unavailable(str(error)) from error

    def close(self) -> None:
        self._threads.shutdown()
        for db in self._connections:
            db.close()

    def _query(self, query: Callable[[apsw.Connection], T]) -> T:
        if not hasattr(self._mine, "db"):
            self._mine.db = _connect(self._path)
            self._mine.db.execute("PRAGMA query_only = ON")
            self._connections.append(self._mine.db)
        return query(self._mine.db)


class SQLiteStore:
    """The Store on a file that `prepare` made ready."""

    def __init__(self, path: Path) -> None:
        self._readers = _Readers(path)
        self._writer = _Writer(path)
        # A connection that never writes sees every commit of every other one, in this process and in others. It is
        # asked on the event loop: that takes a few microseconds, a hop to another thread a hundred.
        self._watch = _connect(path)
        self._watch.set_busy_timeout(0)

    async def version(self) -> int | None:
        try:
            return cast("int", self._watch.execute("PRAGMA data_version").get)
        except apsw.BusyError:
            return None
        except apsw.Error as error:
            raise Unavailable(str(error)) from error

    async def snapshot(self, at_most: int) -> Snapshot:
        def read(db: apsw.Connection) -> Sequence[Mahasiswa] | None:
            if db.execute(statements.LONGER_THAN, (at_most,)).get:
                return None
            return list(map(as_record, db.execute(statements.ALL)))

        # The version first: what is read after it is of that version or a later one.
        return Snapshot(await self.version(), await self._readers.read(read))

    async def after(self, nim: str | None, limit: int) -> Sequence[Mahasiswa]:
        statement, parameters = (statements.FIRST, (limit,)) if nim is None else (statements.AFTER, (nim, limit))
        return await self._readers.read(lambda db: list(map(as_record, db.execute(statement, parameters))))

    async def get(self, nim: str) -> Mahasiswa | None:
        return await self._readers.read(lambda db: _get(db, nim))

    async def find(self, nims: Sequence[str]) -> Mapping[str, Mahasiswa]:
        def read(db: apsw.Connection) -> Mapping[str, Mahasiswa]:
            found = (_get(db, nim) for nim in nims)
            return {record.nim: record for record in found if record}

        return await self._readers.read(read)

    async def count(self, query: Query) -> int:
        match, parameters = _match(query.cari)
        return await self._readers.read(lambda db: cast("int", db.execute(statements.COUNT + match, parameters).get))

    async def page(self, query: Query, offset: int, limit: int) -> Sequence[Mahasiswa]:
        match, parameters = _match(query.cari)
        statement = statements.PAGE + match + statements.ORDERS[query.urut, query.arah] + statements.LIMIT
        return await self._readers.read(
            lambda db: list(map(as_record, db.execute(statement, (*parameters, limit, offset))))
        )

    async def chunks(self, query: Query) -> AsyncIterator[Sequence[Mahasiswa]]:
        match, parameters = _match(query.cari)
        statement = statements.PAGE + match + statements.ORDERS[query.urut, query.arah]
        async with self._readers.alone() as run:
            rows = await run(lambda db: map(as_record, db.execute(statement, parameters)))
            while chunk := await run(lambda _: list(islice(rows, CHUNK))):
                yield chunk

    async def add(self, nim: str | None, nama: str | None, alamat: str | None) -> None:
        await self._writer.write(lambda db: _run(db, statements.ADD, nim, nama, alamat))

    async def update(self, nim: str, nama: str | None, alamat: str | None, versi: str | None = None) -> None:
        def change(db: apsw.Connection) -> None:
            current = _get(db, nim) if versi else None
            if current and digest(current) != versi:
                raise Changed(nim, current)
            _run(db, statements.UPDATE, nama, alamat, nim)

        await self._writer.write(change)

    async def delete(self, nim: str) -> None:
        await self._writer.write(lambda db: _run(db, statements.DELETE, nim))

    async def write_all(self, writes: Sequence[Write]) -> None:
        def change(db: apsw.Connection) -> None:
            with db:  # a savepoint: all or none, and the neighbours in the group untouched
                for record, versi in writes:
                    current = _get(db, record.nim)
                    if versi != (digest(current) if current else None):
                        raise Changed(record.nim, current)
                    if current:
                        _run(db, statements.UPDATE, record.nama, record.alamat, record.nim)
                    else:
                        _run(db, statements.ADD, *record)

        await self._writer.write(change)

    async def merge(self, batches: Iterable[Sequence[Incoming]], *, update: bool, dry_run: bool) -> Merged:
        merged = Merged(0, 0, 0, ())

        def change(db: apsw.Connection) -> None:
            nonlocal merged
            merged = _merge(db, update=update, dry_run=dry_run)

        await self._writer.apart(lambda db: _lay_out(db, batches))
        try:
            await self._writer.write(change)
        finally:
            await self._writer.apart(lambda db: _run(db, statements.DROP_INCOMING))
        return merged

    async def close(self) -> None:
        await self._writer.close()
        self._readers.close()
        self._watch.close()


def _run(db: apsw.Connection, statement: str, *parameters: str | None) -> None:
    db.execute(statement, parameters)


def _get(db: apsw.Connection, nim: str) -> Mahasiswa | None:
    return next(map(as_record, db.execute(statements.GET, (nim,))), None)


def _match(cari: str) -> tuple[str, Sequence[str]]:
    """The condition and its parameters that find a text anywhere, ignoring the case of Latin letters.

    LIKE ignores the case of ASCII letters alone, and is four times as fast as GLOB, which can name both cases of any.
    """
    if not cari:
        return "", ()
    if all(letter.isascii() or letter.lower() == letter.upper() for letter in cari):
        condition = "LIKE ? ESCAPE '\\'"
        pattern = "%" + re.sub(r"([%_\\])", r"\\\1", cari) + "%"
    else:
        condition = "GLOB ?"
        pattern = "*" + "".join(map(_either_case, cari)) + "*"
    return statements.MATCH.format(match=condition), (pattern,) * 3


def _either_case(letter: str) -> str:
    """A GLOB pattern for a letter in upper and lower case, and for a character that means something to GLOB."""
    cases = {case for case in (letter, letter.lower(), letter.upper()) if len(case) == 1}
    return f"[{''.join(sorted(cases))}]" if len(cases) > 1 or letter in "*?[" else letter


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
