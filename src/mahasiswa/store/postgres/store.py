"""The store on PostgreSQL. Any number of processes on any number of hosts may use one database."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

from psycopg.errors import FeatureNotSupported, InsufficientPrivilege, UndefinedFunction

from mahasiswa.record import Mahasiswa
from mahasiswa.shared_task import SharedTask, retrieve_exception
from mahasiswa.store import Steps, Store, refuse_nul
from mahasiswa.store.postgres import sql
from mahasiswa.store.postgres.add_batcher import AddBatcher
from mahasiswa.store.postgres.pool import REQUEST_TIMEOUT_SECONDS, Connection, Pool
from mahasiswa.store.postgres.reader import PostgresReader, take, value
from mahasiswa.work import KINDS, LIST, Kind, Slots


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

    async def write(self, kind: Kind, steps: Callable[[], Steps[None]]) -> None:
        task = asyncio.create_task(self.pool.write(kind, lambda db: take(db, steps()), self.pool.deadline()))
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
        return cast("str | None", await value(db, sql.VERSION))
    except (UndefinedFunction, FeatureNotSupported, InsufficientPrivilege):
        return None
