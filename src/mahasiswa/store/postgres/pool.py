"""The connection pool for PostgreSQL: slots, deadlines, retries, and the translation of database errors."""

import asyncio
import logging
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from random import random
from typing import Any, Self, TypeVar, cast

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from mahasiswa.store.postgres import postgres_sql as sql
from mahasiswa.store.reader import READ_ROWS, Rows, Steps, size_with
from mahasiswa.store.shared_sql import Parameters
from mahasiswa.store.store_errors import (
    REASONS,
    Locked,
    Refused,
    StoreError,
    TookTooLong,
    Unavailable,
    Uncertain,
)
from mahasiswa.system import interrupt
from mahasiswa.work import DATABASE_CONNECTIONS, Kind, Slots

# Time after a deadline for the server to report that it has interrupted the statement.
SERVER_DELAY_SECONDS = 0.1
# Maximum attempts to make a transaction that fails with a serialization failure or a deadlock.
MAX_ATTEMPTS = 5

# Defaults for parameters that the address does not set. With them libpq notices that a host has
# disappeared, and tries the next host of the address.
DEFAULTS = "connect_timeout=2 keepalives_idle=30 keepalives_interval=5 keepalives_count=3 tcp_user_timeout=5000"

LOCKED = "another program has locked the table; nothing was changed; try again when it has ended"
STANDBY = "the server is a standby, which takes no changes; nothing was changed; correct DATABASE_URL, or promote the server"

# The connection of the service, on its event loop, and that of a command.
AsyncConnection = psycopg.AsyncConnection[tuple[Any, ...]]
SyncConnection = psycopg.Connection[tuple[Any, ...]]
T = TypeVar("T")
Work = Callable[[AsyncConnection], Awaitable[T]]

log = logging.getLogger(__name__)
# psycopg warns at every attempt to connect, several times a second while the database is down. Pool logs when the
# database is lost, and when it is back.
logging.getLogger("psycopg.pool").setLevel(logging.ERROR)


def connection_parameters(conninfo: str) -> Mapping[str, Any]:
    """Return psycopg's connection parameters for an address that `settings` has accepted."""
    # No prepared statements: they belong to a connection, and a pooler may give it to another client.
    fixed = {"client_encoding": "utf8", "autocommit": True, "prepare_threshold": None}
    return conninfo_to_dict(DEFAULTS) | conninfo_to_dict(conninfo) | fixed


def connect(conninfo: str) -> SyncConnection:
    """Open a connection for a command.

    Its transactions can write even if the role defaults to read only.
    """
    db = psycopg.connect(**connection_parameters(conninfo))
    db.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    db.read_only = False
    return db


def first_line(error: psycopg.Error) -> str:
    """Return the first line of a message; libpq's have several."""
    return str(error).partition("\n")[0]


class _PooledConnection(AsyncConnection):
    """A connection of the pool. The class keeps the reason of the last failure to connect, which the pool only logs."""

    failure = "all connections are in use"

    @classmethod
    async def connect(cls, conninfo: str = "", **kwargs: Any) -> Self:  # noqa: ANN401 - psycopg's own parameters
        try:
            return await super().connect(conninfo, **kwargs)
        except psycopg.Error as error:
            cls.failure = first_line(error)
            raise


class Pool:
    """The connections of the service.

    Work of each kind has its share of them, and each statement has a deadline, in seconds of
    time.monotonic(). `run` raises Busy, TookTooLong and Unavailable. If it commits, it also raises
    Uncertain, and Refused if a constraint refuses a record.
    """

    def __init__(self, conninfo: str, slots: Slots) -> None:
        self._slots = slots
        self.connections = AsyncConnectionPool(
            kwargs=dict(connection_parameters(conninfo)),
            connection_class=_PooledConnection,
            min_size=0,
            max_size=DATABASE_CONNECTIONS,
            open=False,
            reconnect_timeout=0,
            reconnect_failed=self._reconnect,
        )
        self._is_reachable = True

    async def run(self, kind: Kind, work: Work[T], *, commits: bool = True) -> T:
        """Call `work`, which begins a transaction, then commit unless it only reads. Try again if nothing was done."""
        deadline = new_deadline()
        attempts = 0
        while True:
            attempts += 1
            try:
                async with self.connection(kind, deadline) as db:
                    with time_limit(db, deadline):
                        result = await work(db)
                    if commits:
                        with time_limit(db, deadline), commit_checked(db):
                            await db.commit()
                    return result
            except psycopg.Error as error:
                if isinstance(error, (errors.SerializationFailure, errors.DeadlockDetected)):
                    may_pass = attempts < MAX_ATTEMPTS
                else:
                    may_pass = is_lost(error)
                if not may_pass:
                    raise translate(error) from error
                if time.monotonic() > deadline:  # time_limit has broken the connection
                    raise TookTooLong(first_line(error)) from error
            # A random pause, so that two transactions do not collide again.
            await asyncio.sleep(random() * 0.1)  # noqa: S311

    @asynccontextmanager
    async def connection(self, kind: Kind, deadline: float) -> AsyncIterator[AsyncConnection]:
        """Give a connection, which may have broken since its last use. At the end, roll back, or close it if broken."""
        async with self._slots.slot(kind, _seconds_left(deadline)):
            try:
                db = await self.connections.getconn(_seconds_left(deadline))
            except (PoolTimeout, PoolClosed) as error:
                self._note(is_reachable=False)
                reason = f"no connection to the database: {_PooledConnection.failure}"
                raise Unavailable(reason) from error
            self._note(is_reachable=True)
            try:
                yield db
            except psycopg.Error as error:
                if is_lost(error):
                    await db.close()
                raise
            finally:
                try:
                    with time_limit(db, new_deadline()), suppress(psycopg.Error):
                        await db.rollback()  # does nothing if no transaction is open
                finally:
                    await self.connections.putconn(db)  # closes a connection that is not idle

    def _note(self, *, is_reachable: bool) -> None:
        """Log that the database is lost, or is back."""
        if is_reachable != self._is_reachable:
            fault = f"cannot be reached: {_PooledConnection.failure}"
            log.warning("the database %s", "is reachable again" if is_reachable else fault)
        self._is_reachable = is_reachable

    async def _reconnect(self, pool: AsyncConnectionPool["_PooledConnection"]) -> None:
        """Keep trying while a request waits. The pool's own retries would double their pause each time."""
        await asyncio.sleep(0.1)
        if pool.get_stats()["requests_waiting"]:
            await pool.check()


def new_deadline() -> float:
    """The deadline of a request that begins now, in seconds of time.monotonic()."""
    return time.monotonic() + sql.REQUEST_TIMEOUT_SECONDS


async def execute(
    db: AsyncConnection, statements: str, parameters: Parameters | None = None
) -> Rows:
    """Run several statements in one round trip. Raise Unavailable.

    The result is the rows of the last statement that has rows.
    """
    # The server accepts parameters for a single statement only, so the client puts them into the
    # text.
    cursor = psycopg.AsyncClientCursor(db)
    await cursor.execute(statements, parameters)
    rows: list[Any] = []
    while True:
        if cursor.description:
            rows = []
            size = 0
            while step := await cursor.fetchmany(READ_ROWS):
                size = size_with(size, step)
                rows += step
                if len(step) == READ_ROWS:
                    await asyncio.sleep(0)  # other requests get the event loop
        if not cursor.nextset():
            return rows


def do_steps(db: SyncConnection, steps: Steps[T]) -> T:
    """Do the steps on the connection of a command."""
    rows: Any = None
    try:
        while True:
            statement, parameters = sql.SHARED.step(*steps.send(rows))
            interrupt.check()
            cursor = psycopg.ClientCursor(db)
            cursor.execute(statement, parameters)
            rows = cursor.fetchall() if cursor.description else []
    except StopIteration as end:
        return cast("T", end.value)


@contextmanager
def commit_checked(db: AsyncConnection | SyncConnection) -> Iterator[None]:
    """Raise Uncertain if the answer to COMMIT is lost, or does not promise a lasting commit."""
    warnings = []

    # A notice can only be read during the call.
    def keep_warning(notice: errors.Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            warnings.append(str(notice.message_primary))

    db.add_notice_handler(keep_warning)
    try:
        yield
    except psycopg.Error as error:
        if is_lost(error):
            raise Uncertain(first_line(error)) from error
        raise
    finally:
        db.remove_notice_handler(keep_warning)
    # Someone cancelled the wait for the standby. The commit is on this server only, and would be
    # lost with it.
    if warnings:
        raise Uncertain(warnings[0])


def is_lost(error: psycopg.Error) -> bool:
    """Return whether the connection is useless: it broke, or leads to a standby, which cannot write."""
    if isinstance(error, errors.FeatureNotSupported):
        return True
    if error.diag.severity_nonlocalized:
        return error.diag.severity_nonlocalized in ("FATAL", "PANIC")
    return isinstance(error, psycopg.OperationalError)


def translate(error: psycopg.Error) -> StoreError:
    """Return Refused if a constraint refuses a record; otherwise Locked, TookTooLong or Unavailable.

    The name of the constraint gives the field and the reason.
    """
    if isinstance(error, errors.NotNullViolation):
        return Refused(error.diag.column_name or "nim", "missing")
    if isinstance(error, errors.QueryCanceled):
        return TookTooLong(first_line(error))
    if isinstance(error, errors.LockNotAvailable):
        return Locked(LOCKED)
    if isinstance(error, errors.FeatureNotSupported):  # "during recovery"
        return Unavailable(STANDBY)
    field, _, reason = (error.diag.constraint_name or "").partition("_")
    if reason in REASONS:
        return Refused(field, reason)
    return Unavailable(first_line(error))


def _seconds_left(deadline: float) -> float:
    """Return the seconds until the deadline, but at least 0.2: a late statement may still be quick."""
    return max(deadline - time.monotonic(), 0.2)


@contextmanager
def time_limit(db: AsyncConnection, deadline: float) -> Iterator[None]:
    """Break the connection if the block still runs soon after the deadline, as with a dead server."""
    timer = asyncio.get_running_loop().call_later(
        _seconds_left(deadline) + SERVER_DELAY_SECONDS, _break, db
    )
    try:
        yield
    finally:
        timer.cancel()


def _break(db: AsyncConnection) -> None:
    """Shut the socket down, so that the waiting call fails.

    It sends nothing, because the server may hang.
    """
    if not db.closed:
        with suppress(OSError), socket.socket(fileno=socket.dup(db.fileno())) as shared:
            shared.shutdown(socket.SHUT_RDWR)
