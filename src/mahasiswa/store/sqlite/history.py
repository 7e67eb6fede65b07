"""Reads and writes the history on a connection: its items, batches and undoing."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, cast

import apsw

from mahasiswa.record import Mahasiswa, digest, digest_or_dash, near_nims
from mahasiswa.store.errors import NotInHistory, UndoConflict
from mahasiswa.store.history import (
    UNDO_CONFLICTS_MAX,
    Batch,
    BatchKind,
    Days,
    Entry,
    HistoryPage,
    ItemKind,
    command_name,
    conflict_of,
    entry_of,
    item_of,
)
from mahasiswa.store.sqlite import sql
from mahasiswa.store.sqlite.connection import savepoint


def last(db: apsw.Connection) -> Entry | Batch | None:
    """The newest item, or None if there is no history. If it added a record, it has the record's twin."""
    item = next(map(item_of, _rows(db.execute(sql.LAST_ITEM))), None)
    if isinstance(item, Entry) and item.before is None and item.after and (nims := near_nims(item.after.nim)):
        twins = _rows(db.execute(sql.FIND_BYTES, (json.dumps(nims),)))
        return item._replace(twin=next(map(Mahasiswa._make, twins), None))
    return item


def items(
    db: apsw.Connection, kind: ItemKind | None, days: Days | None, found: str, bindings: Mapping[str, str | int]
) -> HistoryPage:
    """A page of the entries without a batch, and of the batches."""
    since, until = map(_text_of, days) if days else ("", "")
    where = sql.items_where(found, has_kind=kind is not None, has_days=days is not None)
    bindings = {**bindings, "kind": kind or "", "since": since, "until": until}
    with db:
        total = db.execute(sql.count_items(where), bindings).get
        page, newest = list(map(item_of, _rows(db.execute(sql.items(where), bindings)))), last(db)
    return HistoryPage(total, page, None, newest)


def entries(db: apsw.Connection, batch: int, found: str, bindings: Mapping[str, str | int]) -> HistoryPage:
    """A page of the entries of one batch."""
    bindings = {**bindings, "batch": batch}
    with db:
        total = db.execute(sql.count_batch_entries(found), bindings).get
        page = list(map(entry_of, _rows(db.execute(sql.batch_entries(found), bindings))))
        head, newest = next(map(item_of, _rows(db.execute(sql.HEAD, bindings))), None), last(db)
    return HistoryPage(total, page, cast("Batch | None", head), newest)


def entries_of(db: apsw.Connection, nim: str) -> Sequence[Entry]:
    """All entries with that nim, oldest first."""
    return list(map(entry_of, _rows(db.execute(sql.ENTRIES_OF, (nim,)))))


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


def recent(db: apsw.Connection, nim: str, versi: str) -> Mahasiswa | None:
    """The record with that digest, if a recent change has replaced it."""
    records = (Mahasiswa._make(row) for row in _rows(db.execute(sql.RECENT_BEFORE, (nim,))))
    return next((record for record in records if digest(record) == versi), None)


def undo(db: apsw.Connection, item: int, *, is_batch: bool, versi: str | None, only_unchanged: bool) -> None:
    """Restore the record of an entry, or the records of a batch. See the Store protocol."""
    kind = db.execute(sql.UNDOABLE_KIND, (item,)).get
    if kind is None or bool(kind) != is_batch:
        raise NotInHistory(str(item))
    where = sql.BATCH_WHERE if is_batch else sql.ENTRY_WHERE
    is_divisible = kind != "nim"
    overwrite = False
    if not (only_unchanged and is_divisible):
        rows = list(_rows(db.execute(sql.conflicts(where), (item, UNDO_CONFLICTS_MAX))))
        conflicts = [conflict_of(row) for _, *row in rows]
        overwrite = bool(conflicts) and not is_batch and versi == digest_or_dash(conflicts[0].current)
        if conflicts and not overwrite:
            unchanged = db.execute(sql.count_unchanged(where), (item,)).get if is_divisible else 0
            raise UndoConflict(conflicts, rows[0][0], unchanged)
    with batch(db, "undo" if is_divisible else "nim"):
        for statement in sql.restore(where, overwrite=overwrite):
            db.execute(statement, (item,))


def _rows(cursor: apsw.Cursor) -> Iterator[Sequence[Any]]:
    """Rows with their texts decoded. Another program may have stored bytes that are not UTF-8; these are replaced."""
    for row in cursor:
        yield [value.decode(errors="replace") if isinstance(value, bytes) else value for value in row]


def _text_of(moment: datetime) -> str:
    """The beginning of the text of a moment in the table: before it are only earlier moments."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")
