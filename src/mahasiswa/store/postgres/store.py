"""The store on PostgreSQL. Any number of processes on any number of hosts may use one database."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import psycopg
from psycopg import errors

from mahasiswa.record import Mahasiswa
from mahasiswa.shared_task import SharedTask, retrieve_exception
from mahasiswa.store import Store
from mahasiswa.store.history_items import OLEH
from mahasiswa.store.postgres import postgres_sql as sql
from mahasiswa.store.postgres.pool import (
    AsyncConnection,
    Pool,
    execute,
    new_deadline,
    time_limit,
    translate,
)
from mahasiswa.store.queries import Query
from mahasiswa.store.reader import (
    SNAPSHOT_MAX_BYTES,
    Begin,
    Reader,
    Rows,
    Snapshot,
    Steps,
    last_item,
)
from mahasiswa.store.shared_sql import Parameters
from mahasiswa.work import EDIT, KINDS, LIST, Kind, Slots

T = TypeVar("T")


class PostgresStore(Store):
    """The Store on a database that `migrate` has made ready. Nothing depends on a session, so a pooler may be used."""

    def __init__(self, conninfo: str, slots: Slots) -> None:
        self.pool = Pool(conninfo, slots)
        self._readers = {kind: PostgresReader(self.pool, kind) for kind in KINDS}
        self._versions = SharedTask(lambda: self.pool.run(LIST, _version, commits=False))
        self._running: set[asyncio.Task[Any]] = set()

    async def version(self) -> str | None:
        return await self._versions.result()

    def version_now(self) -> None:
        """Return None, because PostgreSQL can tell its version only by a query."""

    async def snapshot(self, at_most: int) -> Snapshot:
        # Read the version before the records: then the records are of that version or of a later one.
        version = await self.version()

        async def read(db: AsyncConnection) -> Snapshot:
            last = await _do_steps(db, last_item(), sql.BEGIN_READING)
            limits = {"records": at_most, "bytes": SNAPSHOT_MAX_BYTES}
            # The binary form needs no decoding, which would hold the event loop.
            cursor = await db.execute(sql.PACKED, limits, binary=True)
            total, packed = await cursor.fetchone() or (0, None)
            return Snapshot(version, total, packed, last)

        return await self.pool.run(LIST, read, commits=False)

    async def run(self, steps: Begin[T], kind: Kind = EDIT) -> T:
        name = {"oleh": OLEH.get()}

        def work(db: AsyncConnection) -> Awaitable[T]:
            first = f"{sql.BEGIN}{sql.NAME}; "
            return _do_steps(db, steps(), first, name)

        task = asyncio.create_task(self.pool.run(kind, work))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(retrieve_exception)
        try:
            return await asyncio.shield(task)
        finally:
            del task  # for the same reason as in work.ended

    async def close(self) -> None:
        while self._running:
            await asyncio.wait(self._running)
        await self._versions.close()
        await self.pool.connections.close()


async def _version(db: AsyncConnection) -> str | None:
    """Return the version, or None if this server cannot tell it. It takes no lock, so it needs no statement timeout."""
    try:
        ((version,),) = await execute(db, sql.VERSION)
        return cast("str | None", version)
    except (errors.UndefinedFunction, errors.FeatureNotSupported, errors.InsufficientPrivilege):
        return None


@dataclass
class PostgresReader(Reader):
    """Reads of one kind of work, with its own share of the connections."""

    _pool: Pool
    _kind: Kind

    async def run(self, steps: Begin[T]) -> T:
        def work(db: AsyncConnection) -> Awaitable[T]:
            return _do_steps(db, steps(), sql.BEGIN_READING)

        return await self._pool.run(self._kind, work, commits=False)

    async def rows(self, name: str, parameters: Parameters) -> Rows:
        read, parameters = sql.SHARED.step(name, parameters)

        def work(db: AsyncConnection) -> Awaitable[Rows]:
            # The COMMIT goes in the same round trip. A read in steps needs another round trip for it.
            alone = f"{sql.BEGIN_READING}{read}; {sql.COMMIT}"
            return execute(db, alone, parameters)

        return await self._pool.run(self._kind, work, commits=False)

    async def chunks(
        self, query: Query, *, may_pause: bool = False
    ) -> AsyncGenerator[Sequence[Mahasiswa]]:
        found, parameters = sql.SHARED.step("all_found" if query.cari else "all", {"query": query})
        statement = sql.DECLARE_CHUNKS.format(found=found)
        try:
            deadline = new_deadline()
            async with self._pool.connection(self._kind, deadline) as db:
                with time_limit(db, deadline):
                    pause = sql.NO_IDLE_TIMEOUT if may_pause else ""
                    await execute(db, f"{sql.BEGIN_READING}{pause}{statement}", parameters)
                while True:
                    with time_limit(db, new_deadline()):
                        rows = await execute(db, sql.FETCH_CHUNK)
                    if not rows:
                        return
                    yield list(map(Mahasiswa._make, rows))
        except psycopg.Error as error:
            raise translate(error) from error


async def _do_steps(
    db: AsyncConnection, steps: Steps[T], first: str, name: Parameters | None = None
) -> T:
    """Do the steps on a connection. `first` are statements with the parameter `name`, in the first round trip."""
    rows: Any = None
    try:
        while True:
            statement, parameters = sql.SHARED.step(*steps.send(rows))
            rows = await execute(db, first + statement, {**(name or {}), **parameters})
            first = ""
    except StopIteration as end:
        return cast("T", end.value)
