"""The store on PostgreSQL. Any number of processes on any number of hosts may use one database."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

import psycopg
from psycopg import errors

from mahasiswa.record import Mahasiswa
from mahasiswa.shared_task import SharedTask, retrieve_exception
from mahasiswa.store import Store, as_json, characters, refuse_nul
from mahasiswa.store.group_commit import GroupCommit, QueuedChange
from mahasiswa.store.history_items import NAMES_CHANGE, OLEH, ItemKey, key_of
from mahasiswa.store.postgres import postgres_sql as sql
from mahasiswa.store.postgres.pool import (
    REQUEST_TIMEOUT_SECONDS,
    AsyncConnection,
    Pool,
    begin,
    execute,
    first_line,
    new_deadline,
    time_limit,
    translate,
)
from mahasiswa.store.queries import Query
from mahasiswa.store.reader import (
    SNAPSHOT_MAX_BYTES,
    Begin,
    Reader,
    Rows,
    Snapshot,
    Steps,
    last_item,
)
from mahasiswa.store.shared_sql import Parameters
from mahasiswa.store.store_errors import Locked, Refused, StoreError, TookTooLong
from mahasiswa.work import CHANGE, EDIT, IMPORT, KINDS, LIST, Busy, Kind, Slots

T = TypeVar("T")
Outcome = StoreError | ItemKey | None


class Addition(NamedTuple):
    """The texts of a record to add, the name of the person who adds it, and whether the key of its entry is asked for.

    A text may be None: the constraints refuse it.
    """

    nim: str | None
    nama: str | None
    alamat: str | None
    oleh: str | None
    is_named: bool


class PostgresStore(Store):
    """The Store on a database that `migrate` has made ready. Nothing depends on a session, so a pooler may be used."""

    def __init__(self, conninfo: str, slots: Slots) -> None:
        self.pool = Pool(conninfo, slots)
        self._readers = {kind: PostgresReader(self.pool, kind) for kind in KINDS}
        self._versions = SharedTask(
            lambda asked: self.pool.run(
                LIST, _version, asked + REQUEST_TIMEOUT_SECONDS, commits=False
            )
        )
        self._additions = GroupCommit(
            slots, self._commit_additions, lambda addition: characters(addition[:3])
        )
        self._running: set[asyncio.Task[Any]] = set()

    async def version(self) -> str | None:
        return await self._versions.result()

    def version_now(self) -> None:
        """Return None, because PostgreSQL can tell its version only by a query."""

    async def snapshot(self, at_most: int) -> Snapshot:
        deadline = new_deadline()
        # Read the version before the records: then the records are of that version or of a later one.
        version = await self.version()

        async def read(db: AsyncConnection) -> Snapshot:
            start = begin(sql.BEGIN_READING, deadline)
            last = await _do_steps(db, last_item(), start)
            limits = {"records": at_most, "bytes": SNAPSHOT_MAX_BYTES}
            # The binary form needs no decoding, which would hold the event loop.
            cursor = await db.execute(sql.PACKED, limits, binary=True)
            total, packed = await cursor.fetchone() or (0, None)
            return Snapshot(version, total, packed, last)

        return await self.pool.run(LIST, read, deadline, commits=False)

    async def add(self, nim: str | None, nama: str | None, alamat: str | None) -> ItemKey | None:
        refuse_nul(nim, nama, alamat)
        # Additions that wait share a transaction. With a transaction for each, ten connections
        # would store an eighth as many per second.
        addition = Addition(nim, nama, alamat, OLEH.get(), NAMES_CHANGE.get())
        return await self._additions.write(addition, REQUEST_TIMEOUT_SECONDS)

    async def run(self, steps: Begin[T], kind: Kind = EDIT) -> T:
        deadline = new_deadline()
        name = {"oleh": json.dumps(OLEH.get())}

        def work(db: AsyncConnection) -> Awaitable[T]:
            first = f"{begin(sql.BEGIN, deadline)}{sql.NAME}; "
            return _do_steps(db, steps(), first, name, in_thread=kind is IMPORT)

        task = asyncio.create_task(self.pool.run(kind, work, deadline))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(retrieve_exception)
        try:
            return await asyncio.shield(task)
        finally:
            del task  # for the same reason as in work.ended

    async def close(self) -> None:
        await self._additions.close()
        while self._running:
            await asyncio.wait(self._running)
        await self._versions.close()
        await self.pool.connections.close()

    async def _commit_additions(self, group: Sequence[QueuedChange[Addition]]) -> Sequence[Outcome]:
        additions = [queued.change for queued in group]
        deadline = min(queued.deadline for queued in group)
        try:
            add = partial(_add_each, additions=additions, deadline=deadline)
            return await self.pool.run(CHANGE, add, deadline)
        except (Busy, TookTooLong) as error:
            # The earliest deadline ended the group. The other additions use the time that they have left.
            raise Locked(str(error)) from error


async def _version(db: AsyncConnection) -> str | None:
    """Return the version, or None if this server cannot tell it. It takes no lock, so it needs no statement timeout."""
    try:
        ((version,),) = await execute(db, sql.VERSION)
        return cast("str | None", version)
    except (errors.UndefinedFunction, errors.FeatureNotSupported, errors.InsufficientPrivilege):
        return None


async def _add_each(
    db: AsyncConnection, additions: Sequence[Addition], deadline: float
) -> Sequence[Outcome]:
    """Add the records in a new transaction. If the table refuses some, isolate them in savepoints."""
    start = begin(sql.BEGIN, deadline)
    try:
        return await _add(db, additions, first=start)
    except errors.IntegrityError:
        await db.rollback()
    # A record that another program has locked is queued again, so that it does not delay its neighbours.
    await execute(db, start + sql.SHORTEN_LOCK_TIMEOUT)
    return await _add_part(db, additions)


async def _add_part(db: AsyncConnection, additions: Sequence[Addition]) -> Sequence[Outcome]:
    """Add the records, or both halves: a savepoint for each would take much longer (docs/decisions.md, Measured)."""
    try:
        async with db.transaction():  # a savepoint, because a transaction has begun
            return await _add(db, additions)
    except errors.LockNotAvailable as error:
        return [Locked(first_line(error))] * len(additions)
    except errors.IntegrityError as error:
        if len(additions) == 1:
            return [translate(error)]
    half = len(additions) // 2
    first = await _add_part(db, additions[:half])
    second = await _add_part(db, additions[half:])
    return [*first, *second]


async def _add(
    db: AsyncConnection, additions: Sequence[Addition], *, first: str = ""
) -> Sequence[Outcome]:
    """Add the records. Of several with the same nim, only the first is added.

    `first` are statements for the same round trip.
    """
    names = {one.nim: one.oleh for one in reversed(additions) if one.nim is not None}
    records = as_json(addition[:3] for addition in additions)
    statements = f"{first}{sql.NAME}; {sql.ADD_ALL}"
    parameters = {"oleh": json.dumps(names), "records": records}
    rows = await execute(db, statements, parameters)
    added: dict[str | None, Outcome] = {nim: None for (nim,) in rows}
    named = [one.nim for one in additions if one.is_named and one.nim in added]
    entries = await execute(db, sql.NEWEST_ENTRIES, {"nims": named}) if named else ()
    added |= {nim: key_of(number, moment) for nim, number, moment in entries}
    return [added.pop(one.nim, Refused("nim", "duplicate")) for one in additions]


@dataclass
class PostgresReader(Reader):
    """Reads of one kind of work, with its own share of the connections."""

    _pool: Pool
    _kind: Kind

    async def run(self, steps: Begin[T]) -> T:
        deadline = new_deadline()

        def work(db: AsyncConnection) -> Awaitable[T]:
            return _do_steps(db, steps(), begin(sql.BEGIN_READING, deadline))

        return await self._pool.run(self._kind, work, deadline, commits=False)

    async def _rows(self, name: str, parameters: Parameters) -> Rows:
        deadline = new_deadline()
        read, parameters = sql.SHARED.step(name, parameters)

        def work(db: AsyncConnection) -> Awaitable[Rows]:
            # The COMMIT goes in the same round trip. A read in steps needs another round trip for it.
            alone = f"{begin(sql.BEGIN_READING, deadline)}{read}; {sql.COMMIT}"
            return execute(db, alone, parameters)

        return await self._pool.run(self._kind, work, deadline, commits=False)

    async def chunks(
        self, query: Query, *, may_pause: bool = False
    ) -> AsyncGenerator[Sequence[Mahasiswa]]:
        found, parameters = sql.SHARED.step("found" if query.cari else "all", {"query": query})
        statement = sql.DECLARE_CHUNKS.format(found=found)
        try:
            deadline = new_deadline()
            async with self._pool.connection(self._kind, deadline) as db:
                with time_limit(db, deadline):
                    start = begin(sql.BEGIN_READING, deadline)
                    pause = sql.NO_IDLE_TIMEOUT if may_pause else ""
                    await execute(db, start + pause + statement, parameters)
                while True:
                    with time_limit(db, new_deadline()):
                        rows = await execute(db, sql.FETCH_CHUNK)
                    if not rows:
                        return
                    yield list(map(Mahasiswa._make, rows))
        except psycopg.Error as error:
            raise translate(error) from error


async def _do_steps(
    db: AsyncConnection,
    steps: Steps[T],
    first: str,
    name: Parameters | None = None,
    *,
    in_thread: bool = False,
) -> T:
    """Do the steps on a connection. `first` are statements with the parameter `name`, in the first round trip.

    Steps that compute over many records do so in a thread.
    """
    rows: Any = None
    while True:
        step = await asyncio.to_thread(_next, steps, rows) if in_thread else _next(steps, rows)
        if isinstance(step, StopIteration):
            return cast("T", step.value)
        statement, parameters = sql.SHARED.step(*step)
        rows = await execute(db, first + statement, {**(name or {}), **parameters})
        first = ""


def _next(steps: Steps[object], rows: Rows) -> tuple[str, Parameters] | StopIteration:
    """The next step, or the end of the steps, because a future cannot hold StopIteration."""
    try:
        return steps.send(rows)
    except StopIteration as end:
        return end.with_traceback(None)  # which refers to the frame that gets it
