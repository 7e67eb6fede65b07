"""The store on PostgreSQL. Any number of processes on any number of hosts may use one database."""

from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import closing
from typing import Any, cast

import psycopg
from psycopg import errors

from mahasiswa.record import Mahasiswa
from mahasiswa.store import Store, T
from mahasiswa.store.history_items import OLEH
from mahasiswa.store.postgres import postgres_sql as sql
from mahasiswa.store.postgres.pool import (
    AsyncConnection,
    Pool,
    SyncConnection,
    break_connection,
    connected,
    do_steps,
    execute,
)
from mahasiswa.store.queries import Query
from mahasiswa.store.reader import (
    SNAPSHOT_MAX_BYTES,
    Begin,
    Snapshot,
    Steps,
    export_of,
    exported,
    shown_item,
)
from mahasiswa.work import CHANGE, EXPORT, LIST, POOLED_KINDS, Kind, Slots, ended


class PostgresStore(Store):
    """The Store on a database that `migrate` has made ready. Nothing depends on a session, so a pooler may be used."""

    def __init__(self, conninfo: str, slots: Slots) -> None:
        self._conninfo = conninfo
        self._slots = slots
        self.pools = {kind: Pool(conninfo, kind) for kind in POOLED_KINDS}

    async def version(self) -> str | None:
        return await self.pools[LIST].run(_version)

    async def snapshot(self, at_most: int) -> Snapshot:
        async def read(db: AsyncConnection) -> Snapshot:
            last = await _do_steps(db, sql.BEGIN_READING, shown_item())
            limits = {"records": at_most, "bytes": SNAPSHOT_MAX_BYTES}
            # The binary form needs no decoding, which would hold the event loop.
            cursor = await db.execute(sql.PACKED, limits, binary=True)
            total, packed = await cursor.fetchone() or (0, None)
            return Snapshot(total, packed, last)

        return await self.pools[LIST].run(read)

    async def read(self, steps: Begin[T], kind: Kind) -> T:
        return await self.pools[kind].run(lambda db: _do_steps(db, sql.BEGIN_READING, steps()))

    async def export(self, query: Query, work: Callable[[Iterator[Mahasiswa]], T]) -> T:
        opened: list[SyncConnection] = []

        def read() -> T:
            with connected(self._conninfo) as db, closing(records(db, query)) as found:
                opened.append(db)
                return work(found)

        async with self._slots.slot(EXPORT):
            return await ended(
                self._slots.in_thread(read),
                lambda: list(map(break_connection, opened)),
            )

    async def run(self, steps: Begin[T]) -> T:
        def work(db: AsyncConnection) -> Awaitable[T]:
            return _do_steps(db, sql.BEGIN_CHANGE, steps())

        return await self.pools[CHANGE].run(work, commits=True)

    async def close(self) -> None:
        for pool in self.pools.values():
            await pool.connections.close()


async def _version(db: AsyncConnection) -> str | None:
    """Return the version, or None if the role may not read it. It takes no lock, so it needs no statement timeout."""
    try:
        ((version,),) = await execute(db, sql.VERSION)
    except errors.InsufficientPrivilege:
        return None
    return cast("str | None", version)


def records(db: SyncConnection, query: Query) -> Generator[Mahasiswa]:
    """All records that a query finds at one moment, in its order. A transaction is open until the end."""
    name, parameters = export_of(query)
    declare = sql.BEGIN_READING + sql.DECLARE_CHUNKS.format(found=sql.STATEMENTS[name])
    # Its caller may wait for a slow disk between the chunks.
    psycopg.ClientCursor(db).execute(declare, {**sql.REQUEST, **parameters, "idle_timeout": "0"})
    while rows := db.execute(sql.FETCH_CHUNK).fetchall():
        yield from do_steps(db, exported(rows))


async def _do_steps(db: AsyncConnection, begin: str, steps: Steps[T]) -> T:
    """Do the steps on a connection. `begin` goes with the first of them in one round trip."""
    settings = {**sql.REQUEST, "oleh": OLEH.get()}
    rows: Any = None
    try:
        while True:
            name, parameters = steps.send(rows)
            statement = begin + sql.STATEMENTS.get(name, name)
            rows = await execute(db, statement, {**settings, **parameters})
            begin = ""
    except StopIteration as end:
        return cast("T", end.value)
