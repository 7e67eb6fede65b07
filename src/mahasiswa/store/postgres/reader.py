"""Reads of one kind of work from PostgreSQL, with its own share of the connections."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from itertools import chain
from typing import TypeVar, cast

import psycopg

from mahasiswa.record import Mahasiswa
from mahasiswa.store.postgres import sql
from mahasiswa.store.postgres.pool import Connection, Pool, begin, run, time_limit, translate
from mahasiswa.store.reader import SLICE_RECORDS, SNAPSHOT_MAX_BYTES, Query, Reader, Snapshot, Steps, last_item
from mahasiswa.work import Kind

SNAPSHOT_ROWS = 5000
"""Records of a snapshot that one statement reads. Other requests get the event loop after them, 5 ms later."""


T = TypeVar("T")


class PostgresReader(Reader):
    """See Reader. `version` is the store's method."""

    def __init__(self, pool: Pool, kind: Kind, version: Callable[[], Awaitable[str | None]]) -> None:
        super().__init__(sql.SHARED, version)
        self._pool = pool
        self._kind = kind

    async def run(self, steps: Callable[[], Steps[T]]) -> T:
        deadline = self._pool.deadline()
        begun = f"{begin(sql.BEGIN_READING, deadline)}; "
        return await self._pool.read(self._kind, lambda db: take(db, steps(), first=begun), deadline)

    async def snapshot(self, at_most: int) -> Snapshot:
        async def read(db: Connection) -> Snapshot:
            await db.execute(begin(sql.BEGIN_READING, deadline))
            version = cast("str | None", await value(db, sql.VERSION)) if is_known else None
            last = await take(db, last_item(sql.SHARED))
            if await value(db, sql.IS_LONGER_THAN, at_most, SNAPSHOT_MAX_BYTES, at_most + 1):
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
                        chunk = await records(db, sql.FETCH_CHUNK)
                    if not chunk:
                        return
                    yield chunk
        except psycopg.Error as error:
            raise translate(error) from error


async def take(db: Connection, steps: Steps[T], *, first: str = "") -> T:
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
    read = await records(db, sql.SHARED.first, SNAPSHOT_ROWS)
    while read:
        total += len(read)
        slices += [
            "\0".join(chain.from_iterable(read[at : at + SLICE_RECORDS])).encode()
            for at in range(0, len(read), SLICE_RECORDS)
        ]
        read = await records(db, sql.SHARED.after, read[-1].nim, SNAPSHOT_ROWS) if len(read) == SNAPSHOT_ROWS else []
    return total, slices


async def records(db: Connection, statement: str, *parameters: object) -> list[Mahasiswa]:
    cursor = await db.execute(statement, parameters)
    return list(map(Mahasiswa._make, await cursor.fetchall()))


async def value(db: Connection, statement: str, *parameters: object) -> object:
    row = await (await db.execute(statement, parameters)).fetchone()
    return row[0] if row else None
