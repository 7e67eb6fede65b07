"""The connection pool for PostgreSQL: timeouts, retries, and the translation of database errors."""

import asyncio
import logging
import re
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from itertools import count
from random import random
from typing import Any, TypeVar, cast, get_args

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import (
    DeadlockDetected,
    Diagnostic,
    NotNullViolation,
    ReadOnlySqlTransaction,
    SerializationFailure,
)
from psycopg.pq import TransactionStatus
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from mahasiswa.store.errors import Reason, Refused, StoreError, Unavailable, Uncertain, Unusable
from mahasiswa.store.postgres import sql

POOL_MAX_CONNECTIONS = 10

REQUEST_TIMEOUT_SECONDS = 4.5
"""Maximum time for a request to get a connection and its answer. Clients are promised a page within 5 seconds."""

FULL_READ_TIMEOUT_SECONDS = 30.0
"""Maximum time for a statement that reads or writes every record."""

MAX_ATTEMPTS = 5
"""Maximum attempts to make a transaction that fails with a serialization failure or a deadlock."""

# Defaults for what the address does not set. They detect a host that disappeared, so that the next one is tried.
CONNECTION_DEFAULTS = {
    "connect_timeout": "2",
    "keepalives_idle": "30",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "5000",
}

Connection = psycopg.AsyncConnection[tuple[Any, ...]]
T = TypeVar("T")

log = logging.getLogger(__name__)
# The pool warns at every attempt to connect, several times a second while the database is down. We log each change.
logging.getLogger("psycopg.pool").setLevel(logging.ERROR)


def parameters(conninfo: str) -> Mapping[str, Any]:
    """Return psycopg's connection parameters; raise Unusable, which never shows the password."""
    # If the password holds such a character, libpq takes the text after it for a host and shows it in its messages.
    if re.match("[^/@]*@[^/?]*@|[^@?]*/[^?]*@", conninfo.partition("://")[2]):
        raise Unusable("DATABASE_URL: in a name or a password, write %40 for @ and %2F for /")
    try:
        given = conninfo_to_dict(conninfo)
    except psycopg.ProgrammingError:
        raise Unusable("DATABASE_URL is no address of PostgreSQL; is each % in the password written as %25?") from None
    # No prepared statements: they belong to a connection, and a pooler may give it to another client.
    return {**CONNECTION_DEFAULTS, **given, "client_encoding": "utf8", "autocommit": True, "prepare_threshold": None}


def first_line(error: BaseException) -> str:
    """Return the first line of a message; libpq's have several."""
    return (str(error).splitlines() or [type(error).__name__])[0]


class Pool:
    """A connection pool that replaces broken connections.

    `read` and `write` raise Unavailable; `write` also raises Uncertain, and Refused if a constraint refuses a record.
    A deadline is in seconds of time.monotonic().
    """

    def __init__(self, conninfo: str) -> None:
        self._pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
            kwargs=dict(parameters(conninfo)),
            min_size=0,
            max_size=POOL_MAX_CONNECTIONS,
            open=False,
            reconnect_timeout=0,
            reconnect_failed=self._reconnect,
        )
        self._is_reachable = True

    async def open(self) -> None:
        """Open the pool. The database need not be reachable."""
        await self._pool.open()

    async def close(self) -> None:
        """Close every connection."""
        await self._pool.close()

    async def read(
        self, work: Callable[[Connection], Awaitable[T]], *, deadline: float | None = None, full: bool = False
    ) -> T:
        """Call `work`, which only reads; call it again if the connection breaks, until the deadline.

        With `full`, it may take FULL_READ_TIMEOUT_SECONDS once it has a connection.
        """
        deadline = deadline or time.monotonic() + REQUEST_TIMEOUT_SECONDS
        while True:
            try:
                async with self.connection(deadline) as db:
                    with time_limit(db, FULL_READ_TIMEOUT_SECONDS if full else _seconds_left(deadline)):
                        return await work(db)
            except psycopg.Error as error:
                await _pause_or_raise(error, deadline)

    async def write(
        self, work: Callable[[Connection], Awaitable[T]], *, deadline: float | None = None, begins: bool = False
    ) -> T:
        """Call `work` in a transaction; call it again if nothing was done because of the connection or a deadlock.

        With `begins`, `work` begins the transaction itself, which saves a round trip.
        """
        deadline = deadline or time.monotonic() + REQUEST_TIMEOUT_SECONDS
        for attempt in count(1):
            try:
                async with self.transaction(deadline, begins=begins) as db:
                    with time_limit(db, _seconds_left(deadline)):
                        return await work(db)
            except (SerializationFailure, DeadlockDetected) as error:
                if attempt == MAX_ATTEMPTS:
                    raise Unavailable(first_line(error)) from error
                await asyncio.sleep(random() * 0.1)  # noqa: S311 - so that two transactions do not collide repeatedly
            except psycopg.Error as error:
                await _pause_or_raise(error, deadline)
        raise AssertionError

    @asynccontextmanager
    async def transaction(
        self, deadline: float, *, begins: bool = False, full: bool = False
    ) -> AsyncIterator[Connection]:
        """Give a connection in a transaction, and commit at the end."""
        async with self.connection(deadline) as db:
            if not begins:
                with time_limit(db, _seconds_left(deadline)):
                    await db.execute(sql.BEGIN)
            yield db
            with time_limit(db, FULL_READ_TIMEOUT_SECONDS if full else _seconds_left(deadline)):
                await _commit(db)

    @asynccontextmanager
    async def connection(self, deadline: float) -> AsyncIterator[Connection]:
        """Give a connection, which may have broken since its last use. At the end, roll back, or close it if broken."""
        db = await self._take(deadline)
        try:
            yield db
        except psycopg.Error as error:
            if is_lost(error):
                await db.close()
            raise
        finally:
            await self._give_back(db)

    async def _take(self, deadline: float) -> Connection:
        try:
            db = await self._pool.getconn(_seconds_left(deadline))
        except (PoolTimeout, PoolClosed) as error:
            self._log_change(is_reachable=False)
            raise Unavailable("no connection to the database") from error
        self._log_change(is_reachable=True)
        return db

    async def _give_back(self, db: Connection) -> None:
        try:
            if db.pgconn.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
                with time_limit(db, REQUEST_TIMEOUT_SECONDS), suppress(psycopg.Error):
                    await db.rollback()
            if db.pgconn.transaction_status != TransactionStatus.IDLE:
                await db.close()
        finally:
            await self._pool.putconn(db)

    async def _reconnect(self, pool: AsyncConnectionPool[Connection]) -> None:
        """Keep trying while a request waits. The pool's own retries would double their pause each time."""
        await asyncio.sleep(0.1)
        if pool.get_stats()["requests_waiting"]:
            await pool.check()

    def _log_change(self, *, is_reachable: bool) -> None:
        if is_reachable != self._is_reachable:
            self._is_reachable = is_reachable
            log.warning("the database %s", "is reachable again" if is_reachable else "cannot be reached")


async def _commit(db: Connection) -> None:
    """Commit; raise Uncertain if the answer is lost, or does not mean that the commit will last."""
    warnings = []

    def keep_warning(notice: Diagnostic) -> None:  # a notice can only be read during the call
        if notice.severity_nonlocalized == "WARNING":
            warnings.append(str(notice.message_primary))

    db.add_notice_handler(keep_warning)
    try:
        cursor = await db.execute("COMMIT")
    except psycopg.Error as error:
        if is_lost(error):
            raise Uncertain(first_line(error)) from error
        raise
    finally:
        db.remove_notice_handler(keep_warning)
    if cursor.statusmessage != "COMMIT":
        raise Unavailable(f"COMMIT was answered by {cursor.statusmessage}")
    # Someone cancelled the wait for the standby: the commit is on this server, and lost if the server is lost now.
    if warnings:
        raise Uncertain(warnings[0])


def is_lost(error: psycopg.Error) -> bool:
    """Return whether the connection is useless: it broke, or it leads to a server that takes no writes."""
    if isinstance(error, ReadOnlySqlTransaction):
        return True
    if error.diag.severity_nonlocalized:
        return error.diag.severity_nonlocalized in ("FATAL", "PANIC")
    return isinstance(error, psycopg.OperationalError)


def translate(error: psycopg.Error) -> StoreError:
    """Return Refused if a constraint of the table refuses a record, otherwise Unavailable.

    The name of a constraint is field and reason, such as nim_too_long.
    """
    if isinstance(error, NotNullViolation):
        return Refused(error.diag.column_name or "nim", "missing")
    field, _, reason = (error.diag.constraint_name or "").partition("_")
    if reason in get_args(Reason):
        return Refused(field, cast("Reason", reason))
    return Unavailable(first_line(error))


async def _pause_or_raise(error: psycopg.Error, deadline: float) -> None:
    if not is_lost(error) or time.monotonic() > deadline:
        raise translate(error) from error
    await asyncio.sleep(0.05)


def _seconds_left(deadline: float) -> float:
    """Return the seconds until the deadline, and at least 0.3: what has begun late may still succeed at once."""
    return max(deadline - time.monotonic(), 0.3)


@contextmanager
def time_limit(db: Connection, seconds: float) -> Iterator[None]:
    """Break the connection if the block takes longer."""
    timer = asyncio.get_running_loop().call_later(seconds, _break, db)
    try:
        yield
    finally:
        timer.cancel()


def _break(db: Connection) -> None:
    """Shut the socket down, so that the waiting call fails, without asking a server that may not answer."""
    if not db.closed:
        with suppress(OSError), socket.socket(fileno=socket.dup(db.fileno())) as shared:
            shared.shutdown(socket.SHUT_RDWR)
