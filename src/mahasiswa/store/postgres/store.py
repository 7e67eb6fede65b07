"""The records in PostgreSQL: any number of processes on any number of hosts, and nothing that a session must keep."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Self, TypeVar, cast

import psycopg

from mahasiswa.record import Incoming, Mahasiswa, Write, digest
from mahasiswa.store import Merged, Query, Snapshot, statements
from mahasiswa.store.errors import Changed, Reason, Refused
from mahasiswa.store.postgres.add_batcher import AddBatcher, add_all, as_json, refuse, refuse_nul, refuse_texts
from mahasiswa.store.postgres.pool import LONG, PATIENCE, Connection, Pool, explain, limited
from mahasiswa.store.postgres.version import Versions
from mahasiswa.store.statements import postgres

T = TypeVar("T")


class PostgresStore:
    """The Store on a database that `prepare` made ready."""

    def __init__(self, url: str) -> None:
        self._pool = Pool(url)
        self._versions = Versions(self._pool)
        self._adds = AddBatcher(self._pool)
        self._running: set[asyncio.Task[Any]] = set()

    @classmethod
    async def open(cls, url: str) -> Self:
        """Open the store, whether or not the database can be reached now."""
        store = cls(url)
        await store._pool.open()
        return store

    async def version(self) -> str | None:
        return await self._versions.ask()

    def version_now(self) -> None:
        """As the protocol has it: PostgreSQL must always be waited for."""

    async def snapshot(self, at_most: int) -> Snapshot:
        async def read(db: Connection) -> Snapshot:
            await db.execute(postgres(statements.BEGIN_READING))
            version = cast("str | None", await _value(db, statements.VERSION)) if known else None
            if await _value(db, statements.LONGER_THAN, at_most):
                return Snapshot(version, None)
            return Snapshot(version, await _records(db, statements.ALL))

        known = await self.version() is not None
        return await self._pool.read(read, long=True)

    async def after(self, nim: str | None, limit: int) -> Sequence[Mahasiswa]:
        statement, parameters = (statements.FIRST, (limit,)) if nim is None else (statements.AFTER, (nim, limit))
        return await self._pool.read(lambda db: _records(db, statement, *parameters), long=True)

    async def get(self, nim: str) -> Mahasiswa | None:
        if "\0" in nim:
            return None
        return await self._pool.read(lambda db: _get(db, statements.GET, nim))

    async def find(self, nims: Sequence[str]) -> Mapping[str, Mahasiswa]:
        storable = [nim for nim in nims if "\0" not in nim]
        return await self._pool.read(lambda db: _found(db, statements.FIND, storable), long=True)

    async def count(self, query: Query) -> int:
        if "\0" in query.cari:
            return 0
        match, parameters = _match(query.cari)
        return cast(
            "int", await self._pool.read(lambda db: _value(db, statements.COUNT + match, *parameters), long=True)
        )

    async def page(self, query: Query, offset: int, limit: int) -> Sequence[Mahasiswa]:
        if "\0" in query.cari:
            return []
        match, parameters = _match(query.cari)
        rest = match + statements.ORDERS[query.urut, query.arah] + statements.LIMIT

        async def read(db: Connection) -> Sequence[Mahasiswa]:
            if query.urut != "nim":  # keys alone are sorted in less time
                keys = await db.execute(postgres(statements.KEYS + rest), (*parameters, limit, offset))
                nims = [nim for (nim,) in await keys.fetchall()]
                if None not in nims:  # which another program's table may hold, and which finds no record
                    found = await _found(db, statements.FIND, nims)
                    return [found[nim] for nim in nims if nim in found]
            return await _records(db, statements.PAGE + rest, *parameters, limit, offset)

        return await self._pool.read(read, long=True)

    async def chunks(self, query: Query) -> AsyncGenerator[Sequence[Mahasiswa]]:
        if "\0" in query.cari:
            return
        match, parameters = _match(query.cari)
        statement = statements.PAGE + match + statements.ORDERS[query.urut, query.arah]
        try:
            async with self._pool.connection(time.monotonic() + PATIENCE) as db:
                with limited(db, LONG):
                    await db.execute(postgres(statements.BEGIN_READING))
                    await _run(db, statements.DECLARE + statement, *parameters)
                while True:
                    with limited(db, LONG):
                        chunk = await _records(db, statements.FETCH)
                    if not chunk:
                        return
                    yield chunk
        except psycopg.Error as error:
            raise explain(error) from error

    async def add(self, nim: str | None, nama: str | None, alamat: str | None) -> None:
        refuse(nim, nama, alamat)
        await self._adds.add(Mahasiswa(cast("str", nim), cast("str", nama), cast("str", alamat)))

    async def update(self, nim: str, nama: str | None, alamat: str | None, versi: str | None = None) -> None:
        async def change(db: Connection) -> None:
            # What is refused is refused where there is such a record, as by a constraint.
            if current := await _get(db, statements.GET_LOCKED, nim):
                # The same form sent twice, as by a double click, finds what it wrote.
                if versi and digest(current) != versi and current != (nim, nama, alamat):
                    raise Changed(nim, current)
                refuse_texts(nama, alamat)
                await _run(db, statements.UPDATE, nama, alamat, nim)

        if "\0" not in nim:
            await self._write(change)

    async def delete(self, nim: str) -> None:
        if "\0" not in nim:
            await self._write(lambda db: _run(db, statements.DELETE, nim))

    async def write_all(self, writes: Sequence[Write]) -> None:
        async def change(db: Connection) -> None:
            nims = [record.nim for record, _ in writes if "\0" not in record.nim]
            current = await _found(db, statements.FIND_LOCKED, nims)
            added: dict[str, Mahasiswa] = {}
            changed: dict[str, Mahasiswa] = {}
            for record, versi in writes:
                now = current.get(record.nim)
                if now == record:  # the same confirmation sent twice, as by a double click
                    continue
                if versi != (digest(now) if now else None):
                    raise Changed(record.nim, now)
                refuse_texts(record.nama, record.alamat) if now else refuse(*record)
                (changed if now and record.nim not in added else added)[record.nim] = current[record.nim] = record
            left = added.keys() - {record.nim for record in await add_all(db, added.values())}
            for nim in left:  # someone else added it meanwhile
                if (now := await _get(db, statements.GET, nim)) != added[nim]:
                    raise Changed(nim, now)
            await _run(db, statements.UPDATE_ALL, as_json(changed.values()))

        await self._write(change)

    async def merge(self, batches: Iterable[Sequence[Incoming]], *, update: bool, dry_run: bool) -> Merged:
        """As the protocol has it; a text with a NUL, which cannot even be laid out, is refused by a dry run too."""

        async def run() -> Merged:
            try:
                async with self._pool.transaction(time.monotonic() + PATIENCE, long=True) as db:
                    await _lay_out(db, batches)
                    return await _merge(db, update=update, dry_run=dry_run)
            except psycopg.Error as error:
                raise explain(error) from error

        return await self._finish(run())

    async def close(self) -> None:
        """Let running writes finish, then let go of the database."""
        await self._adds.close()
        while self._running:
            await asyncio.wait(self._running)
        await self._versions.close()
        await self._pool.close()

    async def _write(self, change: Callable[[Connection], Awaitable[None]]) -> None:
        await self._finish(self._pool.write(change))

    async def _finish(self, work: Coroutine[Any, Any, T]) -> T:
        """Do it to its end, also where whoever asked for it goes away."""
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)


async def _records(db: Connection, statement: str, *parameters: object) -> list[Mahasiswa]:
    cursor = await db.execute(postgres(statement), parameters)
    return list(map(Mahasiswa._make, await cursor.fetchall()))


async def _found(db: Connection, statement: str, nims: Sequence[str]) -> dict[str, Mahasiswa]:
    return {record.nim: record for record in await _records(db, statement, nims)}


async def _get(db: Connection, statement: str, nim: str) -> Mahasiswa | None:
    return next(iter(await _records(db, statement, nim)), None)


async def _value(db: Connection, statement: str, *parameters: object) -> object:
    row = await (await db.execute(postgres(statement), parameters)).fetchone()
    return row[0] if row else None


async def _run(db: Connection, statement: str, *parameters: str | None) -> None:
    await db.execute(postgres(statement), parameters)


def _match(cari: str) -> tuple[str, Sequence[str]]:
    """The condition and its parameters that find a text anywhere, ignoring the case of Latin letters.

    In "C", ILIKE ignores the case of ASCII letters alone. It takes twice the time of LIKE, and a regular expression,
    which can name both cases of any letter, four times.
    """
    if not cari:
        return "", ()
    if all(letter.isascii() or letter.lower() == letter.upper() for letter in cari):
        condition = "LIKE ?" if cari.lower() == cari.upper() else "ILIKE ?"
        pattern = "%" + re.sub(r"([%_\\])", r"\\\1", cari) + "%"
    else:
        condition = "~ ?"
        pattern = "".join(map(_either_case, cari))
    return statements.MATCH.format(match=f"COLLATE BINARY {condition}"), (pattern,) * 3


def _either_case(letter: str) -> str:
    """A regular expression for a letter in upper and lower case, and for a character that means something in one."""
    return statements.cases(letter) or re.sub(r"([][\\^$.|?*+(){}])", r"\\\1", letter)


async def _lay_out(db: Connection, batches: Iterable[Sequence[Incoming]]) -> None:
    """Bring the rows into a table of this transaction; to read them takes a thread, as it may take its time."""
    following = iter(batches)
    await db.execute(postgres(statements.CREATE_INCOMING_POSTGRES))
    async with db.cursor().copy(postgres(statements.COPY_INCOMING)) as copy:
        while batch := await asyncio.to_thread(next, following, ()):
            with limited(db, LONG):
                for row in batch:
                    refuse_nul(*row[1:])
                    await copy.write_row(row)


async def _merge(db: Connection, *, update: bool, dry_run: bool) -> Merged:
    if not dry_run:
        await db.execute(postgres(statements.LOCK))
    cursor = await db.execute(postgres(statements.COMPARE_INCOMING))
    total, existing, changed = (await cursor.fetchall())[0]
    incomplete = [number for (number,) in await (await db.execute(postgres(statements.INCOMPLETE))).fetchall()]
    if not incomplete and not dry_run:
        if reason := await _value(db, statements.REFUSED_INCOMING):
            raise Refused("nim", cast("Reason", reason))
        if update:
            await _run(db, statements.UPDATE_INCOMING)
        await _run(db, statements.INSERT_INCOMING)
    return Merged(total - existing, changed, existing - changed, incomplete)
