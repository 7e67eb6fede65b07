"""Batches additions to PostgreSQL: all that wait are committed in one transaction."""

import json
import time
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from psycopg.errors import IntegrityError, LockNotAvailable

from mahasiswa.record import Mahasiswa
from mahasiswa.store import as_json
from mahasiswa.store.errors import Locked, Refused, StoreError, TookTooLong, Unavailable, Uncertain
from mahasiswa.store.group_commit import GroupCommit, QueuedChange
from mahasiswa.store.history import OLEH
from mahasiswa.store.postgres import sql
from mahasiswa.store.postgres.pool import REQUEST_TIMEOUT_SECONDS, Connection, Pool, begin, first_line, run, translate
from mahasiswa.work import CHANGE, Busy, Slots

TIMER_RESOLUTION_SECONDS = 0.002  # the event loop's timers may fire this much too early


class Addition(NamedTuple):
    """A record to add, and the name of the person who adds it."""

    record: Mahasiswa
    oleh: str | None


class AddBatcher:
    """A queue of additions. One transaction for each, on ten connections, would store an eighth as many per second."""

    def __init__(self, pool: Pool, slots: Slots) -> None:
        self._pool = pool
        self._queue = GroupCommit(slots, self._commit)

    async def add(self, record: Mahasiswa) -> None:
        await self._queue.write(Addition(record, OLEH.get()), REQUEST_TIMEOUT_SECONDS)

    async def close(self) -> None:
        await self._queue.close()

    async def _commit(self, batch: Sequence[QueuedChange[Addition]]) -> Sequence[StoreError | None]:
        additions = [queued.change for queued in batch]
        deadline = min(queued.deadline for queued in batch)
        try:
            add = partial(_add_each, additions=additions, deadline=deadline)
            return await self._pool.write(CHANGE, add, deadline, begins=True)
        except Busy as busy:
            return [TookTooLong(str(busy))] * len(batch)
        except (Refused, Uncertain) as error:
            return [error] * len(batch)
        except Unavailable as error:
            if time.monotonic() < deadline - TIMER_RESOLUTION_SECONDS:
                return [error] * len(batch)
            # The earliest deadline ended the batch. Additions with a later one use the time that they have left.
            return [Locked(str(error))] * len(batch)


async def _add_each(db: Connection, additions: Sequence[Addition], deadline: float) -> Sequence[StoreError | None]:
    """Add the records in a new transaction. If the table refuses some, isolate them in savepoints."""
    try:
        return await _add(db, additions, first=f"{begin(sql.BEGIN, deadline)}; ")
    except IntegrityError:
        if len(additions) == 1:
            raise
    await db.rollback()
    await db.execute(begin(sql.BEGIN, deadline))
    # A record that another program has locked is queued again, so that it does not delay its neighbours.
    await db.execute(sql.SHORTEN_LOCK_TIMEOUT)
    return await _add_halves(db, additions)


async def _add_halves(db: Connection, additions: Sequence[Addition]) -> Sequence[StoreError | None]:
    """Add both halves. One refused record of 64 takes 7.5 ms; a savepoint for each record would take 55 ms."""
    half = len(additions) // 2
    return [*await _add_part(db, additions[:half]), *await _add_part(db, additions[half:])]


async def _add_part(db: Connection, additions: Sequence[Addition]) -> Sequence[StoreError | None]:
    try:
        async with db.transaction():  # a savepoint, because a transaction has begun
            return await _add(db, additions)
    except LockNotAvailable as error:
        return [Locked(first_line(error))] * len(additions)
    except IntegrityError as error:
        return [translate(error)] if len(additions) == 1 else await _add_halves(db, additions)


async def _add(db: Connection, additions: Sequence[Addition], *, first: str = "") -> Sequence[StoreError | None]:
    """Add the records. Of several with the same nim, the first is added. `first` are statements for the same round trip."""
    names = {record.nim: oleh for record, oleh in reversed(additions) if record.nim is not None}
    records = as_json([record for record, _ in additions])
    added = {nim for (nim,) in await run(db, f"{first}{sql.NAME}; {sql.SHARED.add_all}", json.dumps(names), records)}
    outcomes: list[StoreError | None] = []
    for record, _ in additions:
        outcomes.append(None if record.nim in added else Refused("nim", "duplicate"))
        added.discard(record.nim)
    return outcomes
