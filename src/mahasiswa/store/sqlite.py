"""The records in one SQLite file: one writer that commits in groups, and readers that never wait for it."""

import asyncio
import logging
import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import local
from typing import NamedTuple, TypeVar, cast

import apsw

from mahasiswa.record import Mahasiswa
from mahasiswa.store import Reason, Refused, Snapshot, StoreError, Unavailable, Unusable, statements

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
        return await self._readers.read(lambda db: next(map(as_record, db.execute(statements.GET, (nim,))), None))

    async def add(self, nim: str | None, nama: str | None, alamat: str | None) -> None:
        await self._writer.write(lambda db: _run(db, statements.ADD, nim, nama, alamat))

    async def update(self, nim: str, nama: str | None, alamat: str | None) -> None:
        await self._writer.write(lambda db: _run(db, statements.UPDATE, nama, alamat, nim))

    async def delete(self, nim: str) -> None:
        await self._writer.write(lambda db: _run(db, statements.DELETE, nim))

    async def close(self) -> None:
        await self._writer.close()
        self._readers.close()
        self._watch.close()


def _run(db: apsw.Connection, statement: str, *parameters: str | None) -> None:
    db.execute(statement, parameters)
