"""Reads on one connection. With a write-ahead log no writer blocks them."""

from codecs import iterdecode
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import apsw

from mahasiswa.record import Mahasiswa, near_key
from mahasiswa.store import Query, Snapshot, T, Version, folding
from mahasiswa.store.reader import (
    READ_ROWS,
    SNAPSHOT_MAX_BYTES,
    Rows,
    Steps,
    done,
    export_of,
    exported,
    shown_item,
    size_with,
)
from mahasiswa.store.shared_sql import CONSTANTS, Parameters
from mahasiswa.store.sqlite import sqlite_sql as sql
from mahasiswa.store.sqlite.connection import connect, savepoint
from mahasiswa.store.store_errors import Unavailable
from mahasiswa.system.administrator import command_name
from mahasiswa.work import slices

# Records of a long read that are handed on at a time: the texts of 2,000 could take 480 MB.
CHUNK_RECORDS = 100

CHECKED_BYTES = 1024 * 1024  # bytes of a snapshot whose UTF-8 is checked at a time

NOT_UTF8 = "another program has stored a text that is not UTF-8; mahasiswa doctor names the record"


def connect_to_read(path: Path) -> apsw.Connection:
    db = connect(path)
    db.execute("PRAGMA query_only = ON")
    for function in (folding.fold, folding.sound, near_key):
        # apsw gives each text as bytes, because it may be no UTF-8
        db.create_scalar_function(function.__name__, _of_bytes(function), 1, deterministic=True)
    return db


def records(db: apsw.Connection, query: Query) -> Generator[Mahasiswa]:
    """All records that a query finds at one moment, in its order. A transaction is open until the end."""
    name, parameters = export_of(query)
    with (
        savepoint(db),
        closing(db.execute(sql.STATEMENTS[name], {**CONSTANTS, **parameters})) as cursor,
    ):
        while rows := fetch(islice(cursor, CHUNK_RECORDS)):
            yield from take(db, exported(rows))


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
