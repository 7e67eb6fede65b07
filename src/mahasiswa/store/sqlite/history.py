"""Makes batches of changes in the history, on a connection."""

from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from mahasiswa.store.history import BatchKind, command_name
from mahasiswa.store.sqlite import sql
from mahasiswa.store.sqlite.connection import savepoint


@contextmanager
def batch(db: apsw.Connection, kind: BatchKind) -> Iterator[None]:
    """Make one batch of all changes of the block. If it raises, the changes are rolled back."""
    with savepoint(db):
        db.execute(sql.BEGIN_BATCH, (kind,))
        yield
        db.execute(sql.END_BATCH)


@contextmanager
def by_command(db: apsw.Connection) -> Iterator[None]:
    """Let the history have the command's name at all changes of the block. If it raises, the caller must roll back."""
    db.execute(sql.SET_OLEH, (command_name(),))
    yield
    db.execute(sql.SET_OLEH, (None,))


@contextmanager
def silent_batch(db: apsw.Connection, kind: BatchKind, rows: int) -> Iterator[None]:
    """Write one line about all changes of the block to the history. Entries for each row would double the time.

    If it raises, the caller must roll back.
    """
    days = db.execute(sql.DAYS).get
    db.execute(sql.DROP_TRIGGERS)
    yield
    if days:
        db.execute(sql.CREATE_TRIGGERS)
        db.execute(sql.ADD_SILENT_BATCH, (kind, rows))
