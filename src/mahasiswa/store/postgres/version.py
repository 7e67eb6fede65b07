"""Reads the version of the data, with one query for all callers that wait."""

import asyncio
import time

from psycopg.errors import FeatureNotSupported, InsufficientPrivilege, UndefinedFunction

from mahasiswa.store.postgres import sql
from mahasiswa.store.postgres.pool import REQUEST_TIMEOUT_SECONDS, Connection, Pool


class VersionReader:
    """Reads the version, one query at a time. A caller never receives a version that was read before its call."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._running: asyncio.Task[str | None] | None = None
        self._next: asyncio.Task[str | None] | None = None

    async def read(self) -> str | None:
        """Return the version, or None if this server cannot tell it; raise Unavailable."""
        if self._next is None:
            self._next = asyncio.create_task(
                self._read_after(self._running, time.monotonic() + REQUEST_TIMEOUT_SECONDS)
            )
        return await asyncio.shield(self._next)

    async def close(self) -> None:
        """Wait for the queries that are running or planned."""
        if tasks := [task for task in (self._running, self._next) if task]:
            await asyncio.wait(tasks)

    async def _read_after(self, previous: asyncio.Task[str | None] | None, deadline: float) -> str | None:
        if previous:
            await asyncio.wait([previous])
        self._running, self._next = self._next, None  # a later caller needs another query
        return await self._pool.read(_read_version, deadline=deadline)


async def _read_version(db: Connection) -> str | None:
    try:
        row = await (await db.execute(sql.VERSION)).fetchone()
    except (UndefinedFunction, FeatureNotSupported, InsufficientPrivilege):
        return None
    return row[0] if row else None
