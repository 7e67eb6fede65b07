"""The store on PostgreSQL. Any number of processes on any number of hosts may use one database."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from itertools import chain
from typing import Any, TypeVar, cast

import psycopg
from psycopg.errors import FeatureNotSupported, InsufficientPrivilege, UndefinedFunction

from mahasiswa.record import Mahasiswa
from mahasiswa.shared_task import SharedTask, retrieve_exception
from mahasiswa.store import Store, refuse_nul
from mahasiswa.store.postgres import sql
from mahasiswa.store.postgres.add_batcher import AddBatcher
from mahasiswa.store.postgres.pool import REQUEST_TIMEOUT_SECONDS, Connection, Pool, begin, run, time_limit, translate
from mahasiswa.store.reader import SLICE_RECORDS, SNAPSHOT_MAX_BYTES, Query, Reader, Snapshot, Steps, last_item
from mahasiswa.work import KINDS, LIST, RECORD, Kind, Slots

# Records of a snapshot that one statement reads. Other requests get the event loop after them, 5 ms later.
SNAPSHOT_ROWS = 5000

T = TypeVar("T")


class PostgresStore(Store):
    """The Store on a database that `migrate` has made ready. Nothing depends on a session, so a pooler may be used."""

    def __init__(self, conninfo: str, slots: Slots) -> None:
        self.pool = Pool(conninfo, slots)
        super().__init__(sql.SHARED, {kind: PostgresReader(self.pool, kind, self.version) for kind in KINDS})
        self._versions = SharedTask(lambda asked: self.pool.read(LIST, _version, asked + REQUEST_TIMEOUT_SECONDS))
        self._additions = AddBatcher(self.pool, slots)
        self._running: set[asyncio.Task[Any]] = set()

    async def version(self) -> str | None:
        return await self._versions.result()

    def version_now(self) -> None:
        """Return None, because PostgreSQL can tell its version only by a query."""

    def snapshot_now(self, at_most: int) -> None:
        """Return None, because the records come from another process."""

    async def add(self, nim: str | None, nama: str | None, alamat: str | None) -> None:
        refuse_nul(nim, nama, alamat)
        # A text may be None: the constraints refuse it.
        await self._additions.add(Mahasiswa(cast("str", nim), cast("str", nama), cast("str", alamat)))

    async def run(self, steps: Callable[[], Steps[None]], kind: Kind = RECORD) -> None:
        task = asyncio.create_task(self.pool.write(kind, lambda db: _take(db, steps()), self.pool.deadline()))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(retrieve_exception)
        await asyncio.shield(task)

    async def close(self) -> None:
        await self._additions.close()
        while self._running:
            await asyncio.wait(self._running)
        await self._versions.close()
        await self.pool.close()


async def open_store(conninfo: str, slots: Slots) -> PostgresStore:
    """Open the store. The database need not be reachable."""
    store = PostgresStore(conninfo, slots)
    await store.pool.open()
    return store


async def _version(db: Connection) -> str | None:
    """Return the version, or None if this server cannot tell it. It takes no lock, so it needs no statement timeout."""
    try:
        return cast("str | None", await _value(db, sql.VERSION))
    except (UndefinedFunction, FeatureNotSupported, InsufficientPrivilege):
        return None


class PostgresReader(Reader):
    """Reads of one kind of work, with its own share of the connections. `version` is the store's method."""

    def __init__(self, pool: Pool, kind: Kind, version: Callable[[], Awaitable[str | None]]) -> None:
        super().__init__(sql.SHARED, version)
        self._pool, self._kind = pool, kind

    async def run(self, steps: Callable[[], Steps[T]]) -> T:
        deadline = self._pool.deadline()
        begun = f"{begin(sql.BEGIN_READING, deadline)}; "
        return await self._pool.read(self._kind, lambda db: _take(db, steps(), first=begun), deadline)

    async def snapshot(self, at_most: int) -> Snapshot:
        async def read(db: Connection) -> Snapshot:
            await db.execute(begin(sql.BEGIN_READING, deadline))
            version = cast("str | None", await _value(db, sql.VERSION)) if is_known else None
            last = await _take(db, last_item(sql.SHARED))
            if await _value(db, sql.IS_LONGER_THAN, at_most, SNAPSHOT_MAX_BYTES, at_most + 1):
                return Snapshot(version, 0, None, last)
            return Snapshot(version, *await _slices(db), last)

        # Ask before the transaction, because a server that cannot tell its version would abort it.
        is_known = await self._version() is not None
        deadline = self._pool.deadline()
        return await self._pool.read(self._kind, read, deadline)

    async def chunks(self, query: Query) -> AsyncGenerator[Sequence[Mahasiswa]]:
        where, parameters = self._where(query)
        statement = sql.DECLARE_CHUNKS.format(found=self.sql.found(where, query))
        try:
            deadline = self._pool.deadline()
            async with self._pool.connection(self._kind, deadline) as db:
                with time_limit(db, deadline):
                    await run(db, f"{begin(sql.BEGIN_READING, deadline)}; {statement}", *parameters)
                while True:
                    with time_limit(db, self._pool.deadline()):
                        chunk = await _records(db, sql.FETCH_CHUNK)
                    if not chunk:
                        return
                    yield chunk
        except psycopg.Error as error:
            raise translate(error) from error


async def _take(db: Connection, steps: Steps[T], *, first: str = "") -> T:
    """Do the steps on a connection. `first` are statements to run before, in the same round trip."""
    try:
        statement, parameters = next(steps)
        while True:
            rows = await run(db, first + statement, *parameters)
            first = ""
            statement, parameters = steps.send(rows)
    except StopIteration as end:
        return cast("T", end.value)


async def _slices(db: Connection) -> tuple[int, Sequence[bytes]]:
    """The number of all records and their slices, as a snapshot has them."""
    slices: list[bytes] = []
    total = 0
    read = await _records(db, sql.SHARED.first, SNAPSHOT_ROWS)
    while read:
        total += len(read)
        slices += [
            "\0".join(chain.from_iterable(read[at : at + SLICE_RECORDS])).encode()
            for at in range(0, len(read), SLICE_RECORDS)
        ]
        read = await _records(db, sql.SHARED.after, read[-1].nim, SNAPSHOT_ROWS) if len(read) == SNAPSHOT_ROWS else []
    return total, slices


async def _records(db: Connection, statement: str, *parameters: object) -> list[Mahasiswa]:
    cursor = await db.execute(statement, parameters)
    return list(map(Mahasiswa._make, await cursor.fetchall()))


async def _value(db: Connection, statement: str, *parameters: object) -> object:
    row = await (await db.execute(statement, parameters)).fetchone()
    return row[0] if row else None
