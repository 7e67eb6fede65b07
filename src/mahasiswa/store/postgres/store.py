"""The store on PostgreSQL. Any number of processes on any number of hosts may use one database."""

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any, Literal, Self, TypeVar, cast

import psycopg
from psycopg.errors import FeatureNotSupported, InsufficientPrivilege, UndefinedFunction

from mahasiswa.record import Field, Incoming, Mahasiswa, Write, combine, digest, near_key
from mahasiswa.store import (
    AFTER_MAX_BYTES,
    SLICE_RECORDS,
    SNAPSHOT_MAX_BYTES,
    Found,
    Merged,
    Query,
    Snapshot,
    folding,
    nearest,
)
from mahasiswa.store.errors import Changed, EditConflict, Refused
from mahasiswa.store.history import UNDOABLE_ROWS_MAX, HistoryPage
from mahasiswa.store.postgres import history, sql
from mahasiswa.store.postgres.add_batcher import AddBatcher, add_all, as_json
from mahasiswa.store.postgres.coalesced import Coalesced, retrieve_exception
from mahasiswa.store.postgres.pool import (
    REQUEST_TIMEOUT_SECONDS,
    Connection,
    Pool,
    begin,
    run,
    time_limit,
    translate,
)
from mahasiswa.work import EXPORT, IMPORT, LIST, RECORD, SEARCH, Kind, Slots

SNAPSHOT_ROWS = 5000
"""Records of a snapshot that one statement reads. Other requests get the event loop after them, 5 ms later."""

COPIED_ROWS = 1000
"""Rows of an import that a thread reads at a time. Other requests get the event loop between them."""

T = TypeVar("T")


class PostgresStore:
    """The Store on a database that `migrate` has made ready. Nothing depends on a session, so a pooler may be used."""

    def __init__(self, conninfo: str, slots: Slots | None) -> None:
        self._pool = Pool(conninfo, slots)
        self._versions = Coalesced(partial(self._pool.read, LIST, _version), REQUEST_TIMEOUT_SECONDS)
        self._additions = AddBatcher(self._pool)
        self._vocabulary: tuple[str | None, Mapping[str, str]] = None, {}  # the words of names, and their version
        self._running: set[asyncio.Task[Any]] = set()

    @classmethod
    async def open(cls, conninfo: str, slots: Slots | None) -> Self:
        """Open the store. The database need not be reachable."""
        store = cls(conninfo, slots)
        await store._pool.open()
        return store

    @property
    def changes_waiting(self) -> int:
        return self._additions.waiting

    async def version(self) -> str | None:
        return await self._versions.get()

    def version_now(self) -> None:
        """Return None, because PostgreSQL can tell its version only by a query."""

    def snapshot_now(self, at_most: int) -> None:
        """Return None, because the records come from another process."""

    async def snapshot(self, at_most: int) -> Snapshot:
        async def read(db: Connection) -> Snapshot:
            await db.execute(begin(sql.BEGIN_READING, deadline))
            version = cast("str | None", await _value(db, sql.VERSION)) if is_known else None
            last = await history.last_item(db)
            if await _value(db, sql.IS_LONGER_THAN, at_most, SNAPSHOT_MAX_BYTES, at_most + 1):
                return Snapshot(version, 0, None, last)
            return Snapshot(version, *await _slices(db), last)

        # Ask before the transaction, because a server that cannot tell its version would abort it.
        is_known = await self.version() is not None
        deadline = self._pool.deadline()
        return await self._pool.read(LIST, read, deadline)

    async def after(self, nim: str | None, limit: int) -> Sequence[Mahasiswa]:
        statement, parameters = (sql.FIRST, (limit,)) if nim is None else (sql.AFTER, (nim, limit))
        statement = sql.WITHIN_BYTES.format(records=statement)
        return _as_records(await self._pool.fetch(LIST, statement, *parameters, AFTER_MAX_BYTES))

    async def get(self, nim: str) -> Mahasiswa | None:
        if "\0" in nim:
            return None
        return next(iter(_as_records(await self._pool.fetch(RECORD, sql.GET, nim))), None)

    async def find(self, nims: Sequence[str]) -> Mapping[str, Mahasiswa]:
        return _by_nim(await self._pool.fetch(IMPORT, sql.FIND, _storable(nims)))

    async def near(self, nims: Sequence[str], limit: int) -> Sequence[Mahasiswa]:
        keys = sorted({near_key(nim) for nim in _storable(nims)} - {""})
        return _as_records(await self._pool.fetch(IMPORT, sql.NEAR, keys, limit))

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
        return await self._pool.read(SEARCH, read, deadline)

    async def spellings(self, query: Query, limit: int, *, is_found: bool) -> Sequence[tuple[str, int]]:
        async def read(db: Connection) -> Sequence[tuple[str, int]]:
            await db.execute(begin(sql.BEGIN_READING, deadline))
            if version is None or self._vocabulary[0] != version:
                rows = await (await db.execute(sql.WORDS)).fetchall()
                self._vocabulary = version, nearest.vocabulary(word for (word,) in rows)
            # In a thread of the loop. There are never more of them than slots for searches.
            correct = partial(nearest.corrections, words, self._vocabulary[1], is_found=is_found)
            likely = await asyncio.to_thread(correct)
            return [(text, count) for text, count in await _counted(db, likely, query.di) if count][:limit]

        if query.di == "nim" or not (words := folding.words(query.cari)):
            return []
        version = await self.version()
        deadline = self._pool.deadline()
        return await self._pool.read(SEARCH, read, deadline)

    async def chunks(self, query: Query) -> AsyncGenerator[Sequence[Mahasiswa]]:
        where, parameters = sql.where_has(query.cari, query.di)
        order = sql.ORDERS[query.urut, query.arah]
        statement = sql.DECLARE_CHUNKS.format(source=sql.source(where, query.di), where=where, order=order)
        try:
            deadline = self._pool.deadline()
            async with self._pool.connection(EXPORT, deadline) as db:
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

    async def add(self, nim: str | None, nama: str | None, alamat: str | None) -> None:
        _refuse_nul(nim, nama, alamat)
        # A text may be None: the constraints refuse it.
        await self._additions.add(Mahasiswa(cast("str", nim), cast("str", nama), cast("str", alamat)))

    async def update(self, nim: str, nama: str | None, alamat: str | None, versi: str | None = None) -> None:
        async def change(db: Connection) -> None:
            current, texts = await _get(db, sql.GET_LOCKED, nim), (nama, alamat)
            if versi and nama is not None and alamat is not None:
                edited = Mahasiswa(nim, nama, alamat)
                edited, is_conflict = combine(current, edited, versi) if current else (edited, True)
                if is_conflict:
                    raise EditConflict(current, edited, await history.recent(db, nim, versi))
                texts = edited.nama, edited.alamat
            if current:
                _refuse_nul(nim, *texts)
                await db.execute(sql.UPDATE, (*texts, nim))

        if "\0" not in nim:
            await self._write(RECORD, change)

    async def rename(self, old: str, nim: str | None) -> None:
        async def change(db: Connection) -> None:
            _refuse_nul(nim)
            await history.start_batch(db, "nim")
            if not (await db.execute(sql.RENAME, (nim, old))).rowcount:
                raise Changed(old)

        if "\0" in old:
            raise Changed(old)
        await self._write(RECORD, change)

    async def delete(self, nim: str) -> None:
        async def remove(db: Connection) -> None:
            await db.execute(sql.DELETE, (nim,))

        if "\0" not in nim:
            await self._write(RECORD, remove)

    async def write_all(self, writes: Sequence[Write]) -> None:
        async def change(db: Connection) -> None:
            await history.start_batch(db, "import")
            nims = _storable([record.nim for record, _ in writes])
            current = _by_nim(await _records(db, sql.FIND_LOCKED, nims))
            added: dict[str, Mahasiswa] = {}
            changed: dict[str, Mahasiswa] = {}
            for record, versi in writes:
                now = current.get(record.nim)
                if now == record:  # a double click sends the same confirmation twice
                    continue
                if versi != (digest(now) if now else None) or record.nim in added or record.nim in changed:
                    raise Changed(record.nim)
                _refuse_nul(*record)
                (changed if now else added)[record.nim] = current[record.nim] = record
            for nim in added.keys() - await add_all(db, added.values()):  # someone else has added it meanwhile
                if (now := await _get(db, sql.GET, nim)) != added[nim]:
                    raise Changed(nim)
            await db.execute(sql.UPDATE_ALL, (as_json(changed.values()),))

        await self._write(IMPORT, change)

    async def merge(self, rows: Iterable[Incoming], *, update: bool, dry_run: bool) -> Merged:
        """See the protocol. A dry run refuses a text with NUL too, because it cannot be copied to the server."""

        async def copy_and_merge() -> Merged:
            try:
                async with self._pool.transaction(IMPORT, math.inf) as db:
                    await _copy_incoming(db, rows)
                    if not dry_run:
                        await db.execute(sql.LOCK_TABLE)
                    locked = time.monotonic()
                    merged = await _merge(db, update=update, dry_run=dry_run)
            except psycopg.Error as error:
                raise translate(error) from error
            return merged if dry_run else merged._replace(seconds=time.monotonic() - locked)

        return await self._finish(copy_and_merge())

    async def delete_all(self, nims: Sequence[str]) -> None:
        async def remove(db: Connection) -> None:
            await history.start_batch(db, "delete")
            await db.execute(sql.DELETE_ALL, (_storable(nims),))

        await self._write(IMPORT, remove)

    async def history(self, cari: str, batch: int | None, offset: int, limit: int) -> HistoryPage:
        async def read(db: Connection) -> HistoryPage:
            await db.execute(begin(sql.BEGIN_READING, deadline))
            return await history.page(db, cari, batch, offset, limit)

        deadline = self._pool.deadline()
        return await self._pool.read(SEARCH, read, deadline)

    async def undo(self, item: int, *, is_batch: bool, versi: str | None = None) -> None:
        if is_batch:
            await self._write(IMPORT, lambda db: history.undo_batch(db, item))
        else:
            await self._write(RECORD, lambda db: history.undo(db, item, versi))

    async def purge(self) -> None:
        async def purge(db: Connection) -> None:
            await db.execute(sql.PURGE)

        if await self._pool.fetch(RECORD, sql.FIND_PURGE):
            await self._write(RECORD, purge)

    async def forget(self, nim: str) -> bool:
        """See the protocol. For an unknown nim too, rewrite the tables, because the command is repeated if that failed."""
        if "\0" in nim:
            return False
        was_known, transaction = await self._write(RECORD, lambda db: history.forget(db, nim))
        async with self._pool.connection(RECORD, math.inf) as db:
            await history.rewrite(db, transaction)
        return was_known

    async def close(self) -> None:
        """Wait for running work, then close every connection."""
        await self._additions.close()
        while self._running:
            await asyncio.wait(self._running)
        await self._versions.close()
        await self._pool.close()

    async def _write(self, kind: Kind, change: Callable[[Connection], Awaitable[T]]) -> T:
        return await self._finish(self._pool.write(kind, change, self._pool.deadline()))

    async def _finish(self, work: Coroutine[Any, Any, T]) -> T:
        """Run to the end even if the caller is cancelled, as it is when its client disconnects."""
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(retrieve_exception)
        return await asyncio.shield(task)


async def _slices(db: Connection) -> tuple[int, Sequence[bytes]]:
    """The number of all records and their slices, as a snapshot has them."""
    slices: list[bytes] = []
    total = 0
    records = await _records(db, sql.FIRST, SNAPSHOT_ROWS)
    while records:
        total += len(records)
        slices += [
            "\0".join(chain.from_iterable(records[at : at + SLICE_RECORDS])).encode()
            for at in range(0, len(records), SLICE_RECORDS)
        ]
        records = await _records(db, sql.AFTER, records[-1].nim, SNAPSHOT_ROWS) if len(records) == SNAPSHOT_ROWS else []
    return total, slices


async def _records(db: Connection, statement: str, *parameters: object) -> list[Mahasiswa]:
    cursor = await db.execute(statement, parameters)
    return _as_records(await cursor.fetchall())


def _as_records(rows: Iterable[Sequence[str]]) -> list[Mahasiswa]:
    return list(map(Mahasiswa._make, rows))


def _by_nim(rows: Iterable[Sequence[str]]) -> dict[str, Mahasiswa]:
    return {record.nim: record for record in _as_records(rows)}


def _storable(nims: Sequence[str]) -> list[str]:
    return [nim for nim in nims if "\0" not in nim]


async def _get(db: Connection, statement: str, nim: str) -> Mahasiswa | None:
    return next(iter(await _records(db, statement, nim)), None)


async def _value(db: Connection, statement: str, *parameters: object) -> object:
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


async def _version(db: Connection) -> str | None:
    """Return the version, or None if this server cannot tell it. It takes no lock, so it needs no statement timeout."""
    try:
        return cast("str | None", await _value(db, sql.VERSION))
    except (UndefinedFunction, FeatureNotSupported, InsufficientPrivilege):
        return None


def _refuse_nul(nim: str | None, nama: str | None = "", alamat: str | None = "") -> None:
    """Raise Refused for a NUL. No text of PostgreSQL can hold one, so no constraint can refuse it."""
    for field, text in (("nim", nim), ("nama", nama), ("alamat", alamat)):
        if text and "\0" in text:
            raise Refused(field, "nul")


async def _copy_incoming(db: Connection, rows: Iterable[Incoming]) -> None:
    """Copy the rows into a table of this transaction. They are read in a thread, because that may block."""
    remaining = iter(rows)
    await db.execute(sql.CREATE_INCOMING)
    async with db.cursor().copy(sql.COPY_INCOMING) as copy:
        while some := await asyncio.to_thread(list, islice(remaining, COPIED_ROWS)):
            for row in some:
                _refuse_nul(*row[1:])
                await copy.write_row(row)


async def _merge(db: Connection, *, update: bool, dry_run: bool) -> Merged:
    total, existing, changed = (await (await db.execute(sql.COMPARE_INCOMING)).fetchall())[0]
    incomplete = [number for (number,) in await (await db.execute(sql.FIND_INCOMPLETE)).fetchall()]
    if not incomplete and not dry_run:
        await history.start_batch(db, "import", is_silent=total > UNDOABLE_ROWS_MAX)
        if update:
            await db.execute(sql.UPDATE_INCOMING)
        await db.execute(sql.INSERT_INCOMING)
    return Merged(total - existing, changed, existing - changed, incomplete)
