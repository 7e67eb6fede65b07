"""The connection pools for PostgreSQL: deadlines, retries, and the translation of database errors."""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from itertools import chain
from random import random
from typing import Any, TypeVar

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import AsyncConnectionPool, TooManyRequests

from mahasiswa.store.postgres import postgres_sql as sql
from mahasiswa.store.reader import Rows, Steps, done, size_with
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
from mahasiswa.work import Busy, Kind

# Time after a deadline for the server to report that it has interrupted the statement.
SERVER_DELAY_SECONDS = 0.1
FETCHED_ROWS = 20  # rows that are made of an answer before other requests get the event loop
# A transaction that fails so is made again until its deadline.
COLLISIONS = (errors.SerializationFailure, errors.DeadlockDetected)

# Defaults for parameters that the address does not set. With them libpq notices that a host has
# disappeared, and tries the next host of the address.
DEFAULTS = "connect_timeout=2 keepalives_idle=30 keepalives_interval=5 keepalives_count=3 tcp_user_timeout=5000"

LOCKED = "another program has locked the table; nothing was changed; try again when it has ended"

# The connection of the service, on its event loop, and that of a command.
AsyncConnection = psycopg.AsyncConnection[tuple[Any, ...]]
SyncConnection = psycopg.Connection[tuple[Any, ...]]
T = TypeVar("T")
Work = Callable[[AsyncConnection], Awaitable[T]]


def connection_parameters(conninfo: str) -> Mapping[str, Any]:
    """Return psycopg's connection parameters for an address that `settings` has accepted."""
    # No prepared statements: they belong to a connection, and a pooler may give it to another client.
    fixed = {"client_encoding": "utf8", "autocommit": True, "prepare_threshold": None}
    return conninfo_to_dict(DEFAULTS) | conninfo_to_dict(conninfo) | fixed


@contextmanager
def connected(conninfo: str) -> Iterator[SyncConnection]:
    """Open a connection for a command; raise Refused or Unavailable."""
    try:
        with psycopg.connect(**connection_parameters(conninfo)) as db:
            yield db
    except psycopg.Error as error:
        raise translate(error) from error


def first_line(error: psycopg.Error) -> str:
    """Return the first line of a message; libpq's have several."""
    return str(error).partition("\n")[0]


class Pool:
    """The connections of the service for one kind of work, with a deadline for each transaction."""

    def __init__(self, conninfo: str, kind: Kind) -> None:
        self.connections = AsyncConnectionPool(
            kwargs=dict(connection_parameters(conninfo)),
            connection_class=AsyncConnection,
            name=kind.name,
            min_size=0,
            max_size=kind.running,
            max_waiting=kind.waiting,
            reconnect_timeout=sql.REQUEST_TIMEOUT_SECONDS,
            open=False,
        )

    async def run(self, work: Work[T], *, commits: bool = False) -> T:
        """Call `work`, which begins a transaction, and end it. Try again if nothing was done.

        Raise Busy, Unavailable and TookTooLong. With `commits`, also Uncertain, and Refused if a constraint refuses a
        record.
        """
        deadline = time.monotonic() + sql.REQUEST_TIMEOUT_SECONDS
        while True:
            try:
                # A late statement may still be quick.
                left = max(deadline - time.monotonic(), 0.2)
                async with self.connections.connection(left) as db:
                    return await self._transact(db, work, deadline, commits=commits)
            except TooManyRequests as error:
                raise Busy(str(error)) from error
            except psycopg.Error as error:
                may_repeat = is_lost(error) or isinstance(error, COLLISIONS)
                if not may_repeat or time.monotonic() > deadline:
                    raise translate(error) from error
            # A random pause, so that two transactions do not collide again.
            await asyncio.sleep(random() * 0.1)  # noqa: S311

    async def _transact(
        self, db: AsyncConnection, work: Work[T], deadline: float, *, commits: bool
    ) -> T:
        # Break the connection soon after the deadline, as with a dead server.
        late = max(deadline - time.monotonic(), 0) + SERVER_DELAY_SECONDS
        timer = asyncio.get_running_loop().call_later(late, break_connection, db)
        try:
            result = await work(db)
            with commit_checked(db) if commits else nullcontext():
                await db.commit()
        except psycopg.Error as error:
            if is_lost(error):
                await db.close()  # the next attempt connects anew
            raise
        finally:
            timer.cancel()
        return result


async def execute(
    db: AsyncConnection, statements: str, parameters: Parameters | None = None
) -> Rows:
    """Run several statements in one round trip; return the rows of the last one. Raise Unavailable if they are too long."""
    # The server accepts parameters for a single statement only, so the client puts them into the
    # text.
    cursor = psycopg.AsyncClientCursor(db)
    await cursor.execute(statements, parameters)
    while cursor.nextset():
        pass
    rows: list[Any] = []
    size = 0
    while cursor.description and (some := await cursor.fetchmany(FETCHED_ROWS)):
        size = size_with(size, chain.from_iterable(some))
        rows += some
        await asyncio.sleep(0)  # other requests get the event loop
    return rows


def do_steps(db: SyncConnection, steps: Steps[T]) -> T:
    """Do the steps on the connection of a command."""

    def do(name: str, parameters: Parameters) -> Rows:
        cursor = psycopg.ClientCursor(db)
        cursor.execute(sql.STATEMENTS.get(name, name), parameters)
        return cursor.fetchall() if cursor.description else []

    return done(steps, do)


@contextmanager
def commit_checked(db: AsyncConnection | SyncConnection) -> Iterator[None]:
    """Raise Uncertain if the answer to COMMIT is lost, or does not promise a lasting commit."""
    warnings: list[errors.Diagnostic] = []
    db.add_notice_handler(warnings.append)
    try:
        yield
    except psycopg.Error as error:
        if is_lost(error):
            raise Uncertain(first_line(error)) from error
        raise
    finally:
        db.remove_notice_handler(warnings.append)
    # Someone cancelled the wait for the standby. The commit is on this server only, and would be
    # lost with it.
    if warnings:
        raise Uncertain(str(warnings[0].message_primary))


def is_lost(error: BaseException) -> bool:
    """Return whether the connection is useless: it broke, or leads to a standby, which cannot write."""
    if isinstance(error, errors.FeatureNotSupported):
        return True
    if isinstance(error, psycopg.Error) and error.diag.severity_nonlocalized:
        return error.diag.severity_nonlocalized in ("FATAL", "PANIC")
    return isinstance(error, psycopg.OperationalError)


def translate(error: psycopg.Error) -> StoreError:
    """Return Refused if a constraint refuses a record; otherwise Locked, TookTooLong or Unavailable.

    The name of the constraint gives the field and the reason.
    """
    if isinstance(error, psycopg.DataError):  # no text of PostgreSQL can hold NUL
        return Refused("nim", "nul")
    if isinstance(error, errors.NotNullViolation):
        return Refused(error.diag.column_name or "nim", "missing")
    if isinstance(error, errors.QueryCanceled):
        return TookTooLong(first_line(error))
    if isinstance(error, errors.LockNotAvailable):
        return Locked(LOCKED)
    field, _, reason = (error.diag.constraint_name or "").partition("_")
    if reason in REASONS:
        return Refused(field, reason)
    return Unavailable(first_line(error))


def break_connection(db: AsyncConnection | SyncConnection) -> None:
    """Shut the socket down, so that the waiting call fails.

    It sends nothing, because the server may hang.
    """
    if not db.closed:
        with suppress(OSError), socket.socket(fileno=socket.dup(db.fileno())) as shared:
            shared.shutdown(socket.SHUT_RDWR)
