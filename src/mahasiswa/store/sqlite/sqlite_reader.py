"""Reads on one connection. With a write-ahead log no writer blocks them."""

from collections.abc import Callable, Generator
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from typing import Any

import apsw

from mahasiswa.record import Mahasiswa, near_key
from mahasiswa.store import Query, Snapshot, T, folding
from mahasiswa.store.reader import (
    SNAPSHOT_MAX_BYTES,
    Rows,
    Steps,
    bounded,
    done,
    export_of,
    exported,
    shown_item,
)
from mahasiswa.store.shared_sql import CONSTANTS, Parameters
from mahasiswa.store.sqlite import sqlite_sql as sql
from mahasiswa.store.sqlite.connection import connect, savepoint
from mahasiswa.system.administrator import command_name

# Records of a long read that are handed on at a time: the texts of 2,000 could take 480 MB.
CHUNK_RECORDS = 100


def connect_to_read(path: Path) -> apsw.Connection:
    db = connect(path)
    db.execute("PRAGMA query_only = ON")
    db.limit(apsw.SQLITE_LIMIT_LENGTH, SNAPSHOT_MAX_BYTES)  # ends PACKED if the list is too long
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
        while rows := bounded(islice(cursor, CHUNK_RECORDS)):
            yield from take(db, exported(rows))


def _of_bytes(function: Callable[[str], str]) -> Any:  # noqa: ANN401 - declared with any number
    return lambda text: function(text.decode(errors="replace"))


def take(db: apsw.Connection, steps: Steps[T]) -> T:
    """Do the steps on a connection. Bytes that are not UTF-8 are replaced in texts."""

    def do(name: str, parameters: Parameters) -> Rows:
        statement = sql.STATEMENTS.get(name, name)
        # A traceback would keep an open cursor, and with it this connection's view of the database.
        with closing(db.execute(statement, {**CONSTANTS, **parameters})) as cursor:
            return [list(map(_decoded, row)) for row in bounded(cursor)]

    return done(steps, do)


def _decoded(cell: object) -> object:
    return cell.decode(errors="replace") if isinstance(cell, bytes) else cell


def take_named(db: apsw.Connection, steps: Steps[T]) -> T:
    """Do the steps in the name of the command."""
    db.execute(sql.SET_OLEH, {"oleh": command_name()})
    result = take(db, steps)
    db.execute(sql.SET_OLEH, {"oleh": None})
    return result


def read_snapshot(db: apsw.Connection, at_most: int) -> Snapshot:
    with savepoint(db):
        last = take(db, shown_item())
        with suppress(apsw.TooBigError):
            packed, total = db.execute(sql.PACKED, {"records": at_most + 1, "nul": "\0"}).get
            if total <= at_most:
                return Snapshot(total, packed, last)
        return Snapshot(0, None, last)
