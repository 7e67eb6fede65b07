"""Connections to PostgreSQL: what is asked on them ends in time, and what happened is said as it is."""

import asyncio
import logging
import re
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from itertools import count
from random import random
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import DeadlockDetected, Diagnostic, ReadOnlySqlTransaction, SerializationFailure
from psycopg.pq import TransactionStatus
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from mahasiswa.store import statements
from mahasiswa.store.errors import Refused, StoreError, Unavailable, Uncertain, Unusable

CONNECTIONS = 10

PATIENCE = 4.5
"""Seconds in which a request finds the database and has its answer; in less than 5 it is told that there is none."""

LONG = 30.0
"""Seconds for a statement that goes through all records."""

MOST_ATTEMPTS = 5
"""How often a transaction is made that others force to begin anew."""

# Unless the address says otherwise: a host that is gone without a word is noticed, and the next one is tried.
DEFAULTS = {
    "connect_timeout": "2",
    "keepalives_idle": "30",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "5000",
}

Connection = psycopg.AsyncConnection[tuple[Any, ...]]
T = TypeVar("T")

log = logging.getLogger(__name__)
# It warns of every attempt to connect, several in a second while the database is down. We say it once.
logging.getLogger("psycopg.pool").setLevel(logging.ERROR)


def parameters(url: str) -> Mapping[str, Any]:
    """What to connect with, from a `postgresql://` address; raise Unusable, which never shows the password."""
    # With such a mark in the password, libpq takes what follows for a host, and names it in its messages.
    if re.match("[^/@]*@[^/?]*@|[^@?]*/[^?]*@", url.partition("://")[2]):
        raise Unusable("DATABASE_URL: in a name or a password, write %40 for @ and %2F for /")
    try:
        given = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        raise Unusable("DATABASE_URL is no address of PostgreSQL; is each % in the password written as %25?") from None
    # Statements that are prepared belong to a connection, which a pooler may give to another client.
    return {**DEFAULTS, **given, "client_encoding": "utf8", "autocommit": True, "prepare_threshold": None}


def first_line(error: BaseException) -> str:
    """The gist of an error that libpq explains in several lines."""
    return (str(error).splitlines() or [type(error).__name__])[0]


class Pool:
    """A pool of connections, of which each that broke is replaced.

    Reads and writes raise Unavailable; writes raise Refused where a rule of the table refuses a record, and Uncertain.
    """

    def __init__(self, url: str) -> None:
        self._pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
            kwargs=dict(parameters(url)),
            min_size=0,
            max_size=CONNECTIONS,
            open=False,
            reconnect_timeout=0,
            reconnect_failed=self._try_again,
        )
        self._reachable = True

    async def open(self) -> None:
        """Get ready, whether or not the database is there."""
        await self._pool.open()

    async def close(self) -> None:
        """Close the connections."""
        await self._pool.close()

    async def read(
        self, work: Callable[[Connection], Awaitable[T]], *, deadline: float | None = None, long: bool = False
    ) -> T:
        """Do what reads only, until `deadline` or in LONG seconds; again where the connection breaks."""
        deadline = deadline or time.monotonic() + PATIENCE
        while True:
            try:
                async with self.connection(deadline) as db:
                    with limited(db, LONG if long else left(deadline)):
                        return await work(db)
            except psycopg.Error as error:
                await _again_or_raise(error, deadline)

    async def write(
        self, work: Callable[[Connection], Awaitable[T]], *, deadline: float | None = None, begins: bool = False
    ) -> T:
        """Do something in a transaction of its own; again from its beginning where nothing of it was done.

        `begins` says that the work begins the transaction itself, with its first statement.
        """
        deadline = deadline or time.monotonic() + PATIENCE
        for attempt in count(1):
            try:
                async with self.transaction(deadline, begins=begins) as db:
                    with limited(db, left(deadline)):
                        return await work(db)
            except (SerializationFailure, DeadlockDetected) as error:
                if attempt == MOST_ATTEMPTS:
                    raise Unavailable(first_line(error)) from error
                await asyncio.sleep(random() * 0.1)  # noqa: S311 - so that two do not meet again and again
            except psycopg.Error as error:
                await _again_or_raise(error, deadline)
        raise AssertionError

    @asynccontextmanager
    async def transaction(
        self, deadline: float, *, begins: bool = False, long: bool = False
    ) -> AsyncIterator[Connection]:
        """A connection in a transaction, which is committed in the end: by the deadline, or in LONG seconds."""
        async with self.connection(deadline) as db:
            if not begins:
                with limited(db, left(deadline)):
                    await db.execute(statements.postgres(statements.BEGIN))
            yield db
            with limited(db, LONG if long else left(deadline)):
                await _commit(db)

    @asynccontextmanager
    async def connection(self, deadline: float) -> AsyncIterator[Connection]:
        """A connection, which may have broken since it was last used. It is rolled back, and closed where it broke."""
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
            db = await self._pool.getconn(left(deadline))
        except (PoolTimeout, PoolClosed) as error:
            self._say(reachable=False)
            raise Unavailable("no connection to the database") from error
        self._say(reachable=True)
        return db

    async def _give_back(self, db: Connection) -> None:
        try:
            if db.pgconn.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
                with limited(db, PATIENCE), suppress(psycopg.Error):
                    await db.rollback()
            if db.pgconn.transaction_status != TransactionStatus.IDLE:
                await db.close()
        finally:
            await self._pool.putconn(db)

    async def _try_again(self, pool: AsyncConnectionPool[Connection]) -> None:
        """Go on for as long as someone waits, at a steady pace: the pool's own would double its pause each time."""
        await asyncio.sleep(0.1)
        if pool.get_stats()["requests_waiting"]:
            await pool.check()

    def _say(self, *, reachable: bool) -> None:
        if reachable != self._reachable:
            self._reachable = reachable
            log.warning("the database %s", "is there again" if reachable else "cannot be reached")


async def _commit(db: Connection) -> None:
    """Commit. Raise Uncertain where the answer is lost, or is not what it seems."""
    warnings = []

    def hear(notice: Diagnostic) -> None:  # which is only there to be read now
        if notice.severity_nonlocalized == "WARNING":
            warnings.append(str(notice.message_primary))

    db.add_notice_handler(hear)
    try:
        cursor = await db.execute("COMMIT")
    except psycopg.Error as error:
        if is_lost(error):
            raise Uncertain(first_line(error)) from error
        raise
    finally:
        db.remove_notice_handler(hear)
    if cursor.statusmessage != "COMMIT":
        raise Unavailable(f"COMMIT was answered by {cursor.statusmessage}")
    # Someone ended the wait for the standby: committed here, and gone if this server is lost now.
    if warnings:
        raise Uncertain(warnings[0])


def is_lost(error: psycopg.Error) -> bool:
    """Whether the connection is no good any more, as it broke or leads to a server that takes no writes."""
    if isinstance(error, ReadOnlySqlTransaction):
        return True
    if error.diag.severity_nonlocalized:
        return error.diag.severity_nonlocalized in ("FATAL", "PANIC")
    return isinstance(error, psycopg.OperationalError)


def is_over_data(error: BaseException | None) -> bool:
    """Whether a statement failed over what it was given, and not over a connection, a lock, the server or its state."""
    state = (isinstance(error, psycopg.Error) and error.sqlstate) or ""
    return state[:2] not in ("", "08", "25", "40", "53", "55", "57", "58", "XX")


def explain(error: psycopg.Error) -> StoreError:
    """What it means that a statement failed."""
    state = error.sqlstate or ""
    # A text or a key that does not fit, a constraint, a trigger that raises: of a table that another program made.
    refusal = state[:2] in ("22", "23", "44", "P0") or state == "54000"
    return Refused("nim", "unaddressable") if refusal else Unavailable(first_line(error))


async def _again_or_raise(error: psycopg.Error, deadline: float) -> None:
    if not is_lost(error) or time.monotonic() > deadline:
        raise explain(error) from error
    await asyncio.sleep(0.05)


def left(deadline: float) -> float:
    """Seconds until then, and a little where it is too late: what is under way may be done at once."""
    return max(deadline - time.monotonic(), 0.3)


@contextmanager
def limited(db: Connection, seconds: float) -> Iterator[None]:
    """Break a connection that has not done after some seconds what is done inside."""
    timer = asyncio.get_running_loop().call_later(seconds, _break, db)
    try:
        yield
    finally:
        timer.cancel()


def _break(db: Connection) -> None:
    """End a connection under whoever waits on it, and without a word to a server that may not answer any more."""
    if not db.closed:
        with suppress(OSError), socket.socket(fileno=socket.dup(db.fileno())) as shared:
            shared.shutdown(socket.SHUT_RDWR)
