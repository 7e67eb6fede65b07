"""Imports rows, forgets a record and tries changes, on a connection of a command, in the same steps on both engines."""

import secrets
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from mahasiswa.store import shared_sql
from mahasiswa.store.engines import Finding, Merged, good, wrong
from mahasiswa.store.history_items import UNDOABLE_ROWS_MAX, BatchKind
from mahasiswa.store.shared_sql import SharedSQL


class Recorder(Protocol):
    """Records all changes of a block as one batch, in the name of the command. If it raises, the caller must roll back."""

    def __call__(self, kind: BatchKind, rows: int, /, *, is_silent: bool) -> AbstractContextManager[None]:
        """`rows` is the number of changed records, which a silent batch shows."""


class Database(Protocol):
    """A connection of either driver."""

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> Iterable[Sequence[Any]]:
        """Run one statement; return its rows."""


def merge(db: Database, recorded: Recorder, *, update: bool, dry_run: bool) -> Merged:
    """Merge the rows of the table `incoming` into the records. See `Engine.merge`."""
    ((total, existing, changed),) = db.execute(shared_sql.COMPARE)
    incomplete = [number for (number,) in db.execute(shared_sql.INCOMPLETE)]
    written = total - existing + (changed if update else 0)
    if written and not incomplete and not dry_run:
        with recorded("import", written, is_silent=total > UNDOABLE_ROWS_MAX):
            if update:
                db.execute(shared_sql.UPDATE)
            db.execute(shared_sql.INSERT)
    return Merged(total - existing, changed, existing - changed, incomplete)


def forget(db: Database, recorded: Recorder, sql: SharedSQL, nim: str) -> bool:
    """Remove the record with that nim and its history. Return False if there was neither.

    If there was a record, the history has a silent batch for it, which names only the administrator.
    """
    nims = sql.array([nim])
    ((was_known,),) = db.execute(sql.is_known, (nims, nims))
    with recorded("delete", len(list(db.execute(sql.find_raw, (nims,)))), is_silent=True):
        db.execute(sql.delete, (nims,))
    for statement in sql.forget:
        db.execute(statement, (nims,))
    return bool(was_known)


def try_changes(db: Database, sql: SharedSQL, name: str) -> Finding:
    """Add, edit and delete a record, and count the entries of the history. The caller rolls it back."""
    nim = secrets.token_hex(16)
    for statement, parameters in (
        (sql.add, (nim, "", "")),
        (sql.update, ("a", "a", nim)),
        (sql.delete, (sql.array([nim]),)),
    ):
        db.execute(statement, parameters)
    ((entries,),) = db.execute(sql.count_recent, (nim,))
    ((days,),) = db.execute(shared_sql.DAYS)
    if days and entries != 3:
        return wrong("The triggers of the history are missing or disabled. Restart the service: it creates them again.")
    return good(f"{name} takes changes.")
