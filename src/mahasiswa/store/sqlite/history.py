"""Reads and writes the history on a connection: its items, batches and undoing."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import cast

import apsw

from mahasiswa.record import Mahasiswa, digest
from mahasiswa.store.errors import NotInHistory, UndoConflict
from mahasiswa.store.history import UNDO_CONFLICTS_MAX, Batch, BatchKind, Conflict, Entry, HistoryPage
from mahasiswa.store.sqlite import sql
from mahasiswa.store.sqlite.connection import savepoint


def last(db: apsw.Connection) -> Entry | Batch | None:
    """The newest item, or None if there is no history."""
    return next(map(_item, db.execute(sql.LAST_ITEM)), None)


def items(db: apsw.Connection, found: str, bindings: Mapping[str, str | int]) -> HistoryPage:
    """A page of the entries without a batch, and of the batches."""
    with db:
        total = db.execute(sql.count_items(found), bindings).get
        page = list(map(_item, db.execute(sql.items(found), bindings)))
    return HistoryPage(total, page)


def entries(db: apsw.Connection, found: str, bindings: Mapping[str, str | int]) -> HistoryPage:
    """A page of the entries of one batch."""
    with db:
        total = db.execute(sql.count_batch_entries(found), bindings).get
        page = list(map(_entry, db.execute(sql.batch_entries(found), bindings)))
    return HistoryPage(total, page)


@contextmanager
def batch(db: apsw.Connection, kind: BatchKind) -> Iterator[None]:
    """Make one batch of all changes of the block. If it raises, the changes are rolled back."""
    with savepoint(db):
        db.execute(sql.BEGIN_BATCH, (kind,))
        yield
        db.execute(sql.END_BATCH)


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


def nim_of(db: apsw.Connection, entry: int) -> str:
    """The nim of an entry that belongs to no batch; raise NotInHistory."""
    for (nim,) in db.execute(sql.ENTRY_NIM, (entry,)):
        return _text(nim)
    raise NotInHistory(f"entry {entry}")


def check_batch(db: apsw.Connection, batch: int) -> None:
    """Raise NotInHistory unless every entry of the batch is there."""
    if not db.execute(sql.IS_WHOLE_BATCH, (batch,)).get:
        raise NotInHistory(f"batch {batch}")


def recent(db: apsw.Connection, nim: str, versi: str) -> Mahasiswa | None:
    """The record with that digest, if a recent change has replaced it."""
    records = (_record(nim, texts) for nim, *texts in db.execute(sql.RECENT_BEFORE, (nim,)))
    return next((record for record in records if record and digest(record) == versi), None)


def undo(db: apsw.Connection, where: str, number: int, *, is_seen: bool = False) -> None:
    """Restore the records of an entry or a batch. If they have changed since and not `is_seen`, raise UndoConflict."""
    if not is_seen and (rows := list(db.execute(sql.conflicts(where), (number, UNDO_CONFLICTS_MAX)))):
        raise UndoConflict([_conflict(row) for _, *row in rows], rows[0][0])
    with batch(db, "undo"):
        for statement in sql.restore(where):
            db.execute(statement, (number,))


def _item(row: Sequence[object]) -> Entry | Batch:
    number, moment, kind, rows, is_silent, *entry = row
    only = _entry(entry) if entry[0] is not None else None
    if kind is None:
        return cast("Entry", only)
    return Batch(
        cast("int", number),
        _moment(moment),
        cast("BatchKind", kind),
        cast("int", rows),
        bool(is_silent),
        only,
    )


def _entry(row: Sequence[object]) -> Entry:
    number, moment, nim, *texts = row
    before, after = _record(nim, texts[:2]), _record(nim, texts[2:])
    return Entry(cast("int", number), _moment(moment), before, after)


def _conflict(row: Sequence[object]) -> Conflict:
    return Conflict(_entry(row[:7]), _record(row[2], row[7:]))


def _record(nim: object, texts: Sequence[object]) -> Mahasiswa | None:
    return None if texts[0] is None else Mahasiswa(_text(nim), *map(_text, texts))


def _text(value: object) -> str:
    """Decode a text. Another program may have stored bytes that are not UTF-8; these are replaced."""
    return cast("bytes", value).decode(errors="replace")


def _moment(text: object) -> datetime:
    return datetime.fromisoformat(cast("str", text))
