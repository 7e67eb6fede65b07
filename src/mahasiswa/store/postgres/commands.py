"""Imports rows into PostgreSQL and forgets a record, each on a connection of its own, for the command line."""

import json
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg

from mahasiswa.record import Incoming
from mahasiswa.store import commands, refuse_nul
from mahasiswa.store.engines import Merged
from mahasiswa.store.errors import TextsRemain
from mahasiswa.store.history import command_name
from mahasiswa.store.postgres import sql
from mahasiswa.store.postgres.pool import commit_checked, first_line, parameters, translate

OLDER_TRANSACTIONS_TIMEOUT_SECONDS = 10.0
"""Maximum time to wait for older transactions, because a table keeps the rows that they can still see."""

REMAIN = "the record and its history are removed, but the files of the tables still hold the texts"

Connection = psycopg.Connection[tuple[Any, ...]]


def merge(conninfo: str, rows: Iterable[Incoming], *, update: bool, dry_run: bool) -> Merged:
    """See `engines.merge`. A dry run refuses a text with NUL too, because it cannot be copied to the server."""
    with _transaction(conninfo) as db:
        db.execute(sql.CREATE_INCOMING)
        with db.cursor().copy(sql.COPY_INCOMING) as copy:
            for row in rows:
                refuse_nul(*row[1:])
                copy.write_row(row)
        if not dry_run:
            db.execute(sql.LOCK_TABLE)
        locked = time.monotonic()
        merged = commands.merge(db, partial(_batch, db), update=update, dry_run=dry_run)
    return merged if dry_run else merged._replace(seconds=time.monotonic() - locked)


def forget(conninfo: str, nim: str) -> bool:
    """See `engines.forget`. For an unknown nim too, rewrite the tables, because the command is repeated if that failed."""
    with _transaction(conninfo) as db:
        was_known = commands.forget(db, sql.SHARED, nim)
        ((transaction,),) = db.execute(sql.TRANSACTION_ID).fetchall()
    with psycopg.connect(**parameters(conninfo)) as db:
        _rewrite(db, transaction)
    return was_known


@contextmanager
def _transaction(conninfo: str) -> Iterator[Connection]:
    """Commit the changes of the block, or none; raise Refused, Unavailable or Uncertain."""
    try:
        with psycopg.connect(**parameters(conninfo)) as db:
            db.execute(sql.BEGIN.format(milliseconds=0))
            db.execute(sql.NAME, (json.dumps(command_name()),))
            yield db
            with commit_checked(db):
                db.execute(sql.COMMIT)
    except psycopg.Error as error:
        raise translate(error) from error


@contextmanager
def _batch(db: Connection, _rows: int, is_silent: bool) -> Iterator[None]:  # noqa: FBT001 - see commands.Batch
    db.execute(sql.BEGIN_BATCH, ("import",))
    if is_silent:
        db.execute(sql.SILENT)
    yield


def _rewrite(db: Connection, transaction: str) -> None:
    """Remove the rows that a committed transaction has deleted from the tables' files; raise TextsRemain."""
    deadline = time.monotonic() + OLDER_TRANSACTIONS_TIMEOUT_SECONDS
    while older := db.execute(sql.FIND_OLDER_TRANSACTIONS, (transaction,)).fetchall():
        if time.monotonic() > deadline:
            pids = ", ".join(str(pid) for (pid,) in older)
            raise TextsRemain(
                f"{REMAIN}: the server processes {pids} still see them; end these, then run: {sql.VACUUM}"
            )
        time.sleep(0.1)
    try:
        with db.transaction():
            db.execute(sql.ALTER_LOCK_TIMEOUT)
            db.execute(sql.REWRITE)
    except psycopg.Error as error:  # such as a lock that another program holds, or a missing right
        raise TextsRemain(f"{REMAIN}: {first_line(error)}; the owner of the table must run: {sql.VACUUM}") from error
