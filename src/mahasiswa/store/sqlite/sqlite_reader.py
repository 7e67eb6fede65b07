"""Reads of one kind of work, on its own threads and connections. With a write-ahead log no writer blocks them."""

import time
from codecs import iterdecode
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import apsw

from mahasiswa.record import Mahasiswa, near_key
from mahasiswa.store import Query, Snapshot, T, Version, folding
from mahasiswa.store.reader import (
    READ_ROWS,
    SNAPSHOT_MAX_BYTES,
    Begin,
    Reader,
    Rows,
    Steps,
    done,
    keys_of,
    shown,
    shown_item,
    size_with,
)
from mahasiswa.store.shared_sql import ALL, CONSTANTS, Parameters
from mahasiswa.store.sqlite import sqlite_sql as sql
from mahasiswa.store.sqlite.connection import connect, savepoint
from mahasiswa.store.store_errors import TookTooLong, Unavailable
from mahasiswa.system.administrator import command_name
from mahasiswa.work import STEP_TIMEOUT_SECONDS, Kind, Slots, ended, slices

# Records of a long read that are handed on at a time: the texts of 2,000 could take 480 MB.
CHUNK_RECORDS = 100

CHECKED_BYTES = 1024 * 1024  # bytes of a snapshot whose UTF-8 is checked at a time

INTERRUPT_INTERVAL_SECONDS = 0.05
"""Time between two interrupts of a query. SQLite forgets an interrupt that comes before the query has begun."""

NOT_UTF8 = "another program has stored a text that is not UTF-8; mahasiswa doctor names the record"


@dataclass
class SQLiteReader(Reader):
    """See Reader. The deadline of a query includes the time in the queue. `check` raises Unavailable for a bad file."""

    _path: Path
    _kind: Kind
    _slots: Slots
    _check: Callable[[], object]
    _report_damage: Callable[[apsw.Error], None]
    _idle: list[apsw.Connection] = field(default_factory=list)

    async def run(self, steps: Begin[T]) -> T:
        def read(db: apsw.Connection) -> T:
            with savepoint(db):
                return take(db, steps())

        return await self.query(read)

    async def chunks(self, query: Query) -> AsyncGenerator[Sequence[Mahasiswa]]:
        name, parameters = keys_of(query)
        keys = sql.STATEMENTS[name], {**CONSTANTS, **parameters}
        async with self._connection() as db:
            with savepoint(db):
                cursor = await self._step(db, lambda db: db.execute(*keys))
                with closing(cursor):
                    while records := await self._step(db, partial(_next_records, cursor)):
                        yield records

    def close(self) -> None:
        """Close every connection."""
        while self._idle:
            self._idle.pop().close()

    async def query(self, query: Callable[[apsw.Connection], T]) -> T:
        """Run one query; raise Busy, TookTooLong or Unavailable. The deadline includes the time in the queue."""
        began = time.monotonic()
        async with self._connection() as db:
            return await self._step(db, query, time.monotonic() - began)

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[apsw.Connection]:
        self._check()
        async with self._slots.slot(self._kind):
            try:
                if self._idle:
                    db = self._idle.pop()
                else:
                    db = await self._slots.in_thread(partial(connect_to_read, self._path))
                try:
                    yield db
                finally:
                    self._idle.append(db)
            except apsw.InterruptError as error:
                raise TookTooLong(f"{self._kind.name}: interrupted") from error
            except apsw.Error as error:
                if isinstance(error, (apsw.CorruptError, apsw.NotADBError)):
                    self._report_damage(error)
                raise Unavailable(str(error)) from error

    async def _step(
        self, db: apsw.Connection, query: Callable[[apsw.Connection], T], waited: float = 0
    ) -> T:
        """Run a query in a thread. At the deadline, or if the caller is cancelled, it is interrupted."""
        return await ended(
            self._slots.in_thread(partial(query, db)),
            db.interrupt,
            timeout_seconds=STEP_TIMEOUT_SECONDS - waited,
            interval_seconds=INTERRUPT_INTERVAL_SECONDS,
        )


def connect_to_read(path: Path) -> apsw.Connection:
    db = connect(path)
    db.execute("PRAGMA query_only = ON")
    for function in (folding.fold, folding.sound, near_key):
        # apsw gives each text as bytes, because it may be no UTF-8
        db.create_scalar_function(function.__name__, _of_bytes(function), 1, deterministic=True)
    return db


def _next_records(cursor: Iterator[Any], db: apsw.Connection) -> Sequence[Mahasiswa]:
    """The next records of a cursor, which has their nims in its last column."""
    return take(db, shown(fetch(islice(cursor, CHUNK_RECORDS)), ALL))


def _of_bytes(function: Callable[[str], str]) -> Any:  # noqa: ANN401 - declared with any number
    return lambda text: function(text.decode(errors="replace"))


def take(db: apsw.Connection, steps: Steps[T]) -> T:
    """Do the steps on a connection. Bytes that are not UTF-8 are replaced in texts."""

    def do(name: str, parameters: Parameters) -> Rows:
        statement = sql.STATEMENTS.get(name, name)
        # A traceback would keep an open cursor, and with it this connection's view of the database.
        with closing(db.execute(statement, {**CONSTANTS, **parameters})) as cursor:
            return [list(map(_decoded, row)) for row in fetch(cursor)]

    return done(steps, do)


def _decoded(cell: object) -> object:
    return cell.decode(errors="replace") if isinstance(cell, bytes) else cell


def take_named(db: apsw.Connection, steps: Steps[T]) -> T:
    """Do the steps in the name of the command."""
    db.execute(sql.SET_OLEH, {"oleh": command_name()})
    result = take(db, steps)
    db.execute(sql.SET_OLEH, {"oleh": None})
    return result


def read_snapshot(db: apsw.Connection, version: Version | None, at_most: int) -> Snapshot:
    with savepoint(db):
        last = take(db, shown_item())
        longest = db.limit(apsw.SQLITE_LIMIT_LENGTH, SNAPSHOT_MAX_BYTES)
        try:
            packed, total = db.execute(sql.PACKED, {"records": at_most + 1, "nul": "\0"}).get
        except apsw.TooBigError:
            packed, total = b"", at_most + 1
        finally:
            db.limit(apsw.SQLITE_LIMIT_LENGTH, longest)
    if total > at_most:
        return Snapshot(version, 0, None, last)
    try:
        # The check of a piece holds the interpreter's lock, so each piece is short.
        for _ in iterdecode(slices(packed, CHECKED_BYTES), "utf-8"):
            pass
    except UnicodeDecodeError as error:
        raise Unavailable(NOT_UTF8) from error
    return Snapshot(version, total, packed, last)


def fetch(cursor: Iterator[Any]) -> list[Any]:
    """The rows of a cursor. Raise Unavailable if a text is not UTF-8, or if their texts would fill the memory."""
    rows: list[Any] = []
    size = 0
    try:
        while step := list(islice(cursor, READ_ROWS)):
            size = size_with(size, step)
            rows += step
    except UnicodeDecodeError as error:
        raise Unavailable(NOT_UTF8) from error
    return rows
