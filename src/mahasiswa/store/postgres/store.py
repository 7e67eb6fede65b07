"""The store on PostgreSQL. Any number of processes on any number of hosts may use one database."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Self, TypeVar, cast

import psycopg

from mahasiswa.record import Incoming, Mahasiswa, Write, digest
from mahasiswa.store import Merged, Query, Snapshot
from mahasiswa.store.errors import Changed, Refused
from mahasiswa.store.postgres import sql
from mahasiswa.store.postgres.add_batcher import AddBatcher, add_all, as_json
from mahasiswa.store.postgres.pool import (
    FULL_READ_TIMEOUT_SECONDS,
    REQUEST_TIMEOUT_SECONDS,
    Connection,
    Pool,
    time_limit,
    translate,
)
from mahasiswa.store.postgres.version import VersionReader

T = TypeVar("T")


class PostgresStore:
    """The Store on a database that `migrate` has made ready. Nothing depends on a session, so a pooler may be used."""

    def __init__(self, conninfo: str) -> None:
        self._pool = Pool(conninfo)
        self._versions = VersionReader(self._pool)
        self._additions = AddBatcher(self._pool)
        self._running: set[asyncio.Task[Any]] = set()

    @classmethod
    async def open(cls, conninfo: str) -> Self:
        """Open the store. The database need not be reachable."""
        store = cls(conninfo)
        await store._pool.open()
        return store

    async def version(self) -> str | None:
        return await self._versions.read()

    def version_now(self) -> None:
        """Return None, because PostgreSQL can tell its version only by a query."""

    async def snapshot(self, at_most: int) -> Snapshot:
        async def read(db: Connection) -> Snapshot:
            await db.execute(sql.BEGIN_READING)
            version = cast("str | None", await _value(db, sql.VERSION)) if is_known else None
            if await _value(db, sql.HAS_MORE_THAN, at_most):
                return Snapshot(version, None)
            return Snapshot(version, await _records(db, sql.ALL))

        # Asked before, because a server that cannot tell its version would abort the transaction.
        is_known = await self.version() is not None
        return await self._pool.read(read, full=True)

    async def after(self, nim: str | None, limit: int) -> Sequence[Mahasiswa]:
        statement, parameters = (sql.FIRST, (limit,)) if nim is None else (sql.AFTER, (nim, limit))
        return await self._pool.read(lambda db: _records(db, statement, *parameters), full=True)

    async def get(self, nim: str) -> Mahasiswa | None:
        if "\0" in nim:
            return None
        return await self._pool.read(lambda db: _get(db, sql.GET, nim))

    async def find(self, nims: Sequence[str]) -> Mapping[str, Mahasiswa]:
        return await self._pool.read(lambda db: _find(db, sql.FIND, nims), full=True)

    async def count(self, query: Query) -> int:
        if "\0" in query.cari:
            return 0
        where, parameters = _where(query.cari)
        statement = sql.COUNT.format(where=where)
        return cast("int", await self._pool.read(lambda db: _value(db, statement, *parameters), full=True))

    async def page(self, query: Query, offset: int, limit: int) -> Sequence[Mahasiswa]:
        if "\0" in query.cari:
            return []
        where, parameters = _where(query.cari)
        statement = sql.PAGE.format(where=where, order=sql.ORDERS[query.urut, query.arah])
        return await self._pool.read(lambda db: _records(db, statement, *parameters, limit, offset), full=True)

    async def chunks(self, query: Query) -> AsyncGenerator[Sequence[Mahasiswa]]:
        if "\0" in query.cari:
            return
        where, parameters = _where(query.cari)
        statement = sql.DECLARE_CHUNKS.format(where=where, order=sql.ORDERS[query.urut, query.arah])
        try:
            async with self._pool.connection(time.monotonic() + REQUEST_TIMEOUT_SECONDS) as db:
                with time_limit(db, FULL_READ_TIMEOUT_SECONDS):
                    await db.execute(sql.BEGIN_READING)
                    await db.execute(statement, parameters)
                while True:
                    with time_limit(db, FULL_READ_TIMEOUT_SECONDS):
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
            if current := await _get(db, sql.GET_LOCKED, nim):
                # A double click sends the same form twice; the second one finds what the first wrote.
                if versi and digest(current) != versi and current != (nim, nama, alamat):
                    raise Changed(nim, current)
                _refuse_nul(nim, nama, alamat)
                await db.execute(sql.UPDATE, (nama, alamat, nim))

        if "\0" not in nim:
            await self._write(change)

    async def delete(self, nim: str) -> None:
        async def remove(db: Connection) -> None:
            await db.execute(sql.DELETE, (nim,))

        if "\0" not in nim:
            await self._write(remove)

    async def write_all(self, writes: Sequence[Write]) -> None:
        async def change(db: Connection) -> None:
            current = await _find(db, sql.FIND_LOCKED, [record.nim for record, _ in writes])
            added: dict[str, Mahasiswa] = {}
            changed: dict[str, Mahasiswa] = {}
            for record, versi in writes:
                now = current.get(record.nim)
                if now == record:  # a double click sends the same confirmation twice
                    continue
                if versi != (digest(now) if now else None):
                    raise Changed(record.nim, now)
                _refuse_nul(*record)
                (changed if now and record.nim not in added else added)[record.nim] = current[record.nim] = record
            for nim in added.keys() - await add_all(db, added.values()):  # someone else has added it meanwhile
                if (now := await _get(db, sql.GET, nim)) != added[nim]:
                    raise Changed(nim, now)
            await db.execute(sql.UPDATE_ALL, (as_json(changed.values()),))

        await self._write(change)

    async def merge(self, batches: Iterable[Sequence[Incoming]], *, update: bool, dry_run: bool) -> Merged:
        """See the protocol. A dry run refuses a text with NUL too, because it cannot be copied to the server."""

        async def run() -> Merged:
            try:
                async with self._pool.transaction(time.monotonic() + REQUEST_TIMEOUT_SECONDS, full=True) as db:
                    await _copy_incoming(db, batches)
                    return await _merge(db, update=update, dry_run=dry_run)
            except psycopg.Error as error:
                raise translate(error) from error

        return await self._finish(run())

    async def close(self) -> None:
        """Wait for running work, then close every connection."""
        await self._additions.close()
        while self._running:
            await asyncio.wait(self._running)
        await self._versions.close()
        await self._pool.close()

    async def _write(self, change: Callable[[Connection], Awaitable[None]]) -> None:
        await self._finish(self._pool.write(change))

    async def _finish(self, work: Coroutine[Any, Any, T]) -> T:
        """Run to the end even if the caller is cancelled, as it is when its client disconnects."""
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)


async def _records(db: Connection, statement: str, *parameters: object) -> list[Mahasiswa]:
    cursor = await db.execute(statement, parameters)
    return list(map(Mahasiswa._make, await cursor.fetchall()))


async def _find(db: Connection, statement: str, nims: Sequence[str]) -> dict[str, Mahasiswa]:
    storable = [nim for nim in nims if "\0" not in nim]
    return {record.nim: record for record in await _records(db, statement, storable)}


async def _get(db: Connection, statement: str, nim: str) -> Mahasiswa | None:
    return next(iter(await _records(db, statement, nim)), None)


async def _value(db: Connection, statement: str, *parameters: object) -> object:
    row = await (await db.execute(statement, parameters)).fetchone()
    return row[0] if row else None


def _refuse_nul(nim: str | None, nama: str | None, alamat: str | None) -> None:
    """Raise Refused for a NUL. No text of PostgreSQL can hold one, so no constraint can refuse it."""
    for field, text in (("nim", nim), ("nama", nama), ("alamat", alamat)):
        if text and "\0" in text:
            raise Refused(field, "nul")


def _where(cari: str) -> tuple[str, Sequence[str]]:
    """Return the condition and its parameters that find a text anywhere, ignoring the case of Latin letters.

    ILIKE takes twice the time of LIKE. A regular expression takes four times, but can name both cases of any letter.
    """
    if not cari:
        return "", ()
    if any(not letter.isascii() and letter.lower() != letter.upper() for letter in cari):
        return sql.WHERE_REGEX, ("".join(map(_either_case, cari)),) * 3
    has_case = cari.lower() != cari.upper()
    return sql.WHERE_ILIKE if has_case else sql.WHERE_LIKE, ("%" + re.sub(r"([%_\\])", r"\\\1", cari) + "%",) * 3


def _either_case(letter: str) -> str:
    """Return a regular expression that matches a letter in both cases, or any other character literally."""
    cases = {case for case in (letter, letter.lower(), letter.upper()) if len(case) == 1}
    if len(cases) > 1:
        return f"[{''.join(sorted(cases))}]"
    return re.sub(r"([][\\^$.|?*+(){}])", r"\\\1", letter)


async def _copy_incoming(db: Connection, batches: Iterable[Sequence[Incoming]]) -> None:
    """Copy the rows into a table of this transaction. They are read in a thread, because that may block."""
    remaining = iter(batches)
    await db.execute(sql.CREATE_INCOMING)
    async with db.cursor().copy(sql.COPY_INCOMING) as copy:
        while batch := await asyncio.to_thread(next, remaining, ()):
            with time_limit(db, FULL_READ_TIMEOUT_SECONDS):
                for row in batch:
                    _refuse_nul(*row[1:])
                    await copy.write_row(row)


async def _merge(db: Connection, *, update: bool, dry_run: bool) -> Merged:
    if not dry_run:
        await db.execute(sql.LOCK_TABLE)
    total, existing, changed = (await (await db.execute(sql.COMPARE_INCOMING)).fetchall())[0]
    incomplete = [number for (number,) in await (await db.execute(sql.FIND_INCOMPLETE)).fetchall()]
    if not incomplete and not dry_run:
        if update:
            await db.execute(sql.UPDATE_INCOMING)
        await db.execute(sql.INSERT_INCOMING)
    return Merged(total - existing, changed, existing - changed, incomplete)
