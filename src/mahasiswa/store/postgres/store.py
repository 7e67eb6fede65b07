"""The store on PostgreSQL. Any number of processes on any number of hosts may use one database."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

from psycopg.errors import FeatureNotSupported, InsufficientPrivilege, UndefinedFunction

from mahasiswa.record import Mahasiswa, Write, combine
from mahasiswa.shared_task import SharedTask, retrieve_exception
from mahasiswa.store import NO_REMOVALS
from mahasiswa.store.changes import planned
from mahasiswa.store.errors import Changed, EditConflict
from mahasiswa.store.history import BatchKind
from mahasiswa.store.postgres import sql
from mahasiswa.store.postgres.add_batcher import AddBatcher, add_all, as_json
from mahasiswa.store.postgres.pool import REQUEST_TIMEOUT_SECONDS, Connection, Pool, refuse_nul, run
from mahasiswa.store.postgres.reader import WORK, PostgresReader, by_nim, records, take, value
from mahasiswa.work import IMPORT, KINDS, LIST, RECORD, Kind, Slots

T = TypeVar("T")


class PostgresStore:
    """The Store on a database that `migrate` has made ready. Nothing depends on a session, so a pooler may be used."""

    def __init__(self, conninfo: str, slots: Slots) -> None:
        self.pool = Pool(conninfo, slots)
        self._versions = SharedTask(lambda asked: self.pool.read(LIST, _version, asked + REQUEST_TIMEOUT_SECONDS))
        self._readers = {kind: PostgresReader(self.pool, kind, self.version) for kind in KINDS}
        self._additions = AddBatcher(self.pool, slots)
        self._running: set[asyncio.Task[Any]] = set()

    def reader(self, kind: Kind) -> PostgresReader:
        return self._readers[kind]

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

    async def update(self, nim: str, nama: str | None, alamat: str | None, versi: str | None = None) -> None:
        async def change(db: Connection) -> None:
            current, texts = by_nim(await records(db, sql.FIND_LOCKED, [nim])).get(nim), (nama, alamat)
            if versi and nama is not None and alamat is not None:
                edited = Mahasiswa(nim, nama, alamat)
                edited, is_conflict = combine(current, edited, versi) if current else (edited, True)
                if is_conflict:
                    raise EditConflict(current, edited, await take(db, WORK.recent(nim, versi)))
                texts = edited.nama, edited.alamat
            if current:
                refuse_nul(nim, *texts)
                await db.execute(sql.UPDATE, (*texts, nim))

        if "\0" not in nim:
            await self._write(RECORD, change)
        elif versi and nama is not None and alamat is not None:
            raise EditConflict(None, Mahasiswa(nim, nama, alamat))  # no record has such a nim

    async def rename(self, old: str, nim: str | None) -> None:
        async def change(db: Connection) -> None:
            refuse_nul(nim)
            await db.execute(sql.BEGIN_BATCH, ("nim",))
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

    async def write_all(
        self, batch: BatchKind, writes: Sequence[Write] = (), removals: Mapping[str, str | None] = NO_REMOVALS
    ) -> None:
        nims = sql.array([*(record.nim for record, _ in writes), *removals])

        async def change(db: Connection) -> None:
            changes = planned(by_nim(await run(db, sql.FIND_LOCKED, nims)), writes, removals)
            if not changes:
                return
            for record in (*changes.added.values(), *changes.changed.values()):
                refuse_nul(*record)
            await db.execute(sql.BEGIN_BATCH, (batch,))
            await db.execute(sql.DELETE_ALL, (changes.removed,))
            if others := changes.added.keys() - await add_all(db, changes.added.values()):  # added by someone meanwhile
                stored = by_nim(await records(db, sql.FIND, [*others]))
                for nim in others:
                    if stored.get(nim) != changes.added[nim]:
                        raise Changed(nim)
            await db.execute(sql.UPDATE_ALL, (as_json(changes.changed.values()),))

        await self._write(IMPORT, change)

    async def undo(self, item: int, *, is_batch: bool, versi: str | None = None, only_unchanged: bool = False) -> None:
        async def change(db: Connection) -> None:
            await db.execute(sql.LOCK_TABLE_AND_HISTORY)
            await take(db, WORK.undo(item, is_batch=is_batch, versi=versi, only_unchanged=only_unchanged))

        await self._write(IMPORT if is_batch else RECORD, change)

    async def purge(self) -> None:
        async def purge(db: Connection) -> None:
            await db.execute(sql.PURGE)

        if await self.pool.fetch(RECORD, sql.FIND_PURGE):
            await self._write(RECORD, purge)

    async def close(self) -> None:
        """Wait for running work, then close every connection."""
        await self._additions.close()
        while self._running:
            await asyncio.wait(self._running)
        await self._versions.close()
        await self.pool.close()

    async def _write(self, kind: Kind, change: Callable[[Connection], Awaitable[T]]) -> T:
        """Run to the end even if the caller is cancelled, as it is when its client disconnects."""
        task = asyncio.create_task(self.pool.write(kind, change, self.pool.deadline()))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(retrieve_exception)
        return await asyncio.shield(task)


async def open_store(conninfo: str, slots: Slots) -> PostgresStore:
    """Open the store. The database need not be reachable."""
    store = PostgresStore(conninfo, slots)
    await store.pool.open()
    return store


async def _version(db: Connection) -> str | None:
    """Return the version, or None if this server cannot tell it. It takes no lock, so it needs no statement timeout."""
    try:
        return cast("str | None", await value(db, sql.VERSION))
    except (UndefinedFunction, FeatureNotSupported, InsufficientPrivilege):
        return None
