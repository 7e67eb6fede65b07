"""The version of the data in PostgreSQL, asked once for all who come while it was last asked."""

import asyncio
import time

from psycopg.errors import FeatureNotSupported, InsufficientPrivilege, UndefinedFunction

from mahasiswa.store import statements
from mahasiswa.store.postgres.pool import PATIENCE, Connection, Pool


class Versions:
    """Asks for the version, one question at a time. Nobody gets an answer to a question put before they came."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._now: asyncio.Task[str | None] | None = None
        self._next: asyncio.Task[str | None] | None = None

    async def ask(self) -> str | None:
        """Return the version, None where this server cannot tell it; raise Unavailable."""
        if self._next is None:
            self._next = asyncio.create_task(self._ask_after(self._now, time.monotonic() + PATIENCE))
        return await asyncio.shield(self._next)

    async def close(self) -> None:
        """Let what was asked be answered."""
        if asked := [task for task in (self._now, self._next) if task]:
            await asyncio.wait(asked)

    async def _ask_after(self, before: asyncio.Task[str | None] | None, deadline: float) -> str | None:
        if before:
            await asyncio.wait([before])
        self._now, self._next = self._next, None  # whoever comes from here on has another one asked
        return await self._pool.read(_version, deadline=deadline)


async def _version(db: Connection) -> str | None:
    try:
        row = await (await db.execute(statements.postgres(statements.VERSION))).fetchone()
    except (UndefinedFunction, FeatureNotSupported, InsufficientPrivilege):
        return None
    return row[0] if row else None
