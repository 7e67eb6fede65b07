"""Reads of one kind of work from PostgreSQL, with its own share of the connections."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Literal, cast

import psycopg

from mahasiswa.record import Field, Mahasiswa, near_key
from mahasiswa.store import (
    AFTER_MAX_BYTES,
    SLICE_RECORDS,
    SNAPSHOT_MAX_BYTES,
    Found,
    Query,
    Snapshot,
    Suspicion,
    folding,
    nearest,
)
from mahasiswa.store.history import Days, Entry, HistoryPage, ItemKind, entry_of
from mahasiswa.store.postgres import history, sql
from mahasiswa.store.postgres.pool import Connection, Pool, begin, run, time_limit, translate
from mahasiswa.work import Kind

SNAPSHOT_ROWS = 5000
"""Records of a snapshot that one statement reads. Other requests get the event loop after them, 5 ms later."""


class PostgresReader:
    """See the Reader protocol. `version` is the store's method."""

    def __init__(self, pool: Pool, kind: Kind, version: Callable[[], Awaitable[str | None]]) -> None:
        self._pool = pool
        self._kind = kind
        self._version = version
        self._vocabulary = nearest.Vocabulary()

    async def snapshot(self, at_most: int) -> Snapshot:
        async def read(db: Connection) -> Snapshot:
            await db.execute(begin(sql.BEGIN_READING, deadline))
            version = cast("str | None", await value(db, sql.VERSION)) if is_known else None
            last = await history.last_item(db)
            if await value(db, sql.IS_LONGER_THAN, at_most, SNAPSHOT_MAX_BYTES, at_most + 1):
                return Snapshot(version, 0, None, last)
            return Snapshot(version, *await _slices(db), last)

        # Ask before the transaction, because a server that cannot tell its version would abort it.
        is_known = await self._version() is not None
        deadline = self._pool.deadline()
        return await self._pool.read(self._kind, read, deadline)

    async def after(self, nim: str | None, limit: int) -> Sequence[Mahasiswa]:
        statement, parameters = (sql.FIRST, (limit,)) if nim is None else (sql.AFTER, (nim, limit))
        statement = sql.WITHIN_BYTES.format(records=statement)
        return _as_records(await self._pool.fetch(self._kind, statement, *parameters, AFTER_MAX_BYTES))

    async def get(self, nim: str) -> Mahasiswa | None:
        if "\0" in nim:
            return None
        return next(iter(_as_records(await self._pool.fetch(self._kind, sql.GET, nim))), None)

    async def find(self, nims: Sequence[str]) -> Mapping[str, Mahasiswa]:
        return by_nim(await self._pool.fetch(self._kind, sql.FIND, storable(nims)))

    async def near(self, nims: Sequence[str], limit: int) -> Sequence[Mahasiswa]:
        keys = sorted({near_key(nim) for nim in storable(nims)} - {""})
        return _as_records(await self._pool.fetch(self._kind, sql.NEAR, keys, limit))

    async def search(self, query: Query, offset: int, limit: int) -> Found:
        where, parameters = sql.where_has(query.cari, query.di)
        statement = sql.SEARCH.format(
            # If nothing is searched, two scans take less time: the count needs no order, and the page has an index.
            materialized="MATERIALIZED" if where else "NOT MATERIALIZED",
            keys=sql.KEYS[query.urut],
            source=sql.source(where, query.di),
            where=where,
            order=sql.ORDERS[query.urut, query.arah],
        )

        async def read(db: Connection) -> Found:
            rows = await run(db, f"{begin(sql.BEGIN_READING, deadline)}; {statement}", *parameters, limit, offset)
            records = _as_records([record for _, *record in rows if record[0] is not None])
            return Found(rows[0][0], records, await history.last_item(db))

        deadline = self._pool.deadline()
        return await self._pool.read(self._kind, read, deadline)

    async def spellings(self, query: Query, limit: int, *, is_found: bool) -> Sequence[tuple[str, int]]:
        async def read(db: Connection) -> Sequence[tuple[str, int]]:
            await db.execute(begin(sql.BEGIN_READING, deadline))
            if self._vocabulary.is_old(version, is_found=is_found):
                rows = await (await db.execute(sql.WORDS)).fetchall()
                self._vocabulary.keep(version, (word for (word,) in rows))
            # In a thread of the loop. There are never more of them than slots for searches.
            correct = partial(nearest.corrections, words, self._vocabulary.words, is_found=is_found)
            likely = await asyncio.to_thread(correct)
            return [(text, count) for text, count in await _counted(db, likely, query.di) if count][:limit]

        if query.di == "nim" or not (words := folding.words(query.cari)):
            return []
        version = await self._version()
        deadline = self._pool.deadline()
        return await self._pool.read(self._kind, read, deadline)

    async def prefixes(self, length: int, limit: int) -> Sequence[tuple[str, int]]:
        rows = await self._pool.fetch(self._kind, sql.PREFIXES, length, limit)
        return [(prefix, count) for prefix, count in rows]

    async def suspects(self, suspicion: Suspicion, limit: int) -> Found:
        rows = await self._pool.fetch(self._kind, sql.SUSPECTS[suspicion], limit)
        return Found(rows[0][0] if rows else 0, _as_records(row[1:] for row in rows))

    async def chunks(self, query: Query) -> AsyncGenerator[Sequence[Mahasiswa]]:
        where, parameters = sql.where_has(query.cari, query.di)
        order = sql.ORDERS[query.urut, query.arah]
        statement = sql.DECLARE_CHUNKS.format(source=sql.source(where, query.di), where=where, order=order)
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

    async def history(
        self,
        cari: str,
        batch: int | None,
        offset: int,
        limit: int,
        *,
        kind: ItemKind | None = None,
        days: Days | None = None,
    ) -> HistoryPage:
        async def read(db: Connection) -> HistoryPage:
            await db.execute(begin(sql.BEGIN_READING, deadline))
            if batch is not None:
                return await history.entries(db, cari, batch, offset, limit)
            return await history.items(db, cari, offset, limit, kind=kind, days=days)

        deadline = self._pool.deadline()
        return await self._pool.read(self._kind, read, deadline)

    async def entries_of(self, nim: str) -> Sequence[Entry]:
        rows = [] if "\0" in nim else await self._pool.fetch(self._kind, sql.ENTRIES_OF, nim)
        return list(map(entry_of, rows))


async def _slices(db: Connection) -> tuple[int, Sequence[bytes]]:
    """The number of all records and their slices, as a snapshot has them."""
    slices: list[bytes] = []
    total = 0
    read = await records(db, sql.FIRST, SNAPSHOT_ROWS)
    while read:
        total += len(read)
        slices += [
            "\0".join(chain.from_iterable(read[at : at + SLICE_RECORDS])).encode()
            for at in range(0, len(read), SLICE_RECORDS)
        ]
        read = await records(db, sql.AFTER, read[-1].nim, SNAPSHOT_ROWS) if len(read) == SNAPSHOT_ROWS else []
    return total, slices


async def records(db: Connection, statement: str, *parameters: object) -> list[Mahasiswa]:
    cursor = await db.execute(statement, parameters)
    return _as_records(await cursor.fetchall())


def _as_records(rows: Iterable[Sequence[str]]) -> list[Mahasiswa]:
    return list(map(Mahasiswa._make, rows))


def by_nim(rows: Iterable[Sequence[str]]) -> dict[str, Mahasiswa]:
    return {record.nim: record for record in _as_records(rows)}


def storable(nims: Sequence[str]) -> list[str]:
    return [nim for nim in nims if "\0" not in nim]


async def get(db: Connection, statement: str, nim: str) -> Mahasiswa | None:
    return next(iter(await records(db, statement, nim)), None)


async def value(db: Connection, statement: str, *parameters: object) -> object:
    row = await (await db.execute(statement, parameters)).fetchone()
    return row[0] if row else None


async def _counted(db: Connection, searches: Sequence[str], di: Field | Literal[""]) -> Sequence[tuple[str, int]]:
    """Each search with the number of records that it finds. Each text is folded once."""
    if not searches:
        return []
    conditions = [sql.condition(cari, di) for cari in searches]
    statement = sql.count_found((found for found, _ in conditions), di)
    cursor = await db.execute(statement, list(chain.from_iterable(parameters for _, parameters in conditions)))
    return list(zip(searches, (await cursor.fetchall())[0], strict=True))
