"""Reads and writes the history on a connection: its items, batches and undoing."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, cast

import apsw

from mahasiswa.record import Mahasiswa, digest, near_nims
from mahasiswa.store.errors import NotInHistory, UndoConflict
from mahasiswa.store.history import UNDO_CONFLICTS_MAX, Batch, BatchKind, Conflict, Days, Entry, HistoryPage, ItemKind
from mahasiswa.store.sqlite import sql
from mahasiswa.store.sqlite.connection import savepoint


def last(db: apsw.Connection) -> Entry | Batch | None:
    """The newest item, or None if there is no history. If it added a record, it has the record's twin."""
    item = next(map(_item, db.execute(sql.LAST_ITEM)), None)
    if isinstance(item, Entry) and item.before is None and item.after and (nims := near_nims(item.after.nim)):
        twins = db.execute(sql.FIND_BYTES, (json.dumps(nims),))
        return item._replace(twin=next((_record(nim, texts) for nim, *texts in twins), None))
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
        page, newest = list(map(_item, db.execute(sql.items(where), bindings))), last(db)
    return HistoryPage(total, page, None, newest)


def entries(db: apsw.Connection, batch: int, found: str, bindings: Mapping[str, str | int]) -> HistoryPage:
    """A page of the entries of one batch."""
    bindings = {**bindings, "batch": batch}
    with db:
        total = db.execute(sql.count_batch_entries(found), bindings).get
        page = list(map(_entry, db.execute(sql.batch_entries(found), bindings)))
        head, newest = next(map(_item, db.execute(sql.HEAD, bindings)), None), last(db)
    return HistoryPage(total, page, cast("Batch | None", head), newest)


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


def kind_of(db: apsw.Connection, batch: int) -> BatchKind:
    """The kind of a batch; raise NotInHistory unless every entry of it is there."""
    if kind := db.execute(sql.WHOLE_BATCH_KIND, (batch,)).get:
        return cast("BatchKind", kind)
    raise NotInHistory(f"batch {batch}")


def recent(db: apsw.Connection, nim: str, versi: str) -> Mahasiswa | None:
    """The record with that digest, if a recent change has replaced it."""
    records = (_record(nim, texts) for nim, *texts in db.execute(sql.RECENT_BEFORE, (nim,)))
    return next((record for record in records if record and digest(record) == versi), None)


def undo_entry(db: apsw.Connection, number: int, *, is_seen: bool) -> None:
    """Restore the record of an entry. If it has changed since and not `is_seen`, raise UndoConflict."""
    if not is_seen and (rows := _conflicts(db, sql.ENTRY_WHERE, number)):
        raise UndoConflict([_conflict(row) for _, *row in rows], 1)
    _restore(db, sql.ENTRY_WHERE, number, "undo", overwrite=is_seen)


def undo_batch(db: apsw.Connection, number: int, *, only_unchanged: bool) -> None:
    """Restore the records of a batch. If some have changed since, raise UndoConflict, or leave them as they are."""
    kind = kind_of(db, number)
    is_divisible = kind != "nim"
    if not (only_unchanged and is_divisible) and (rows := _conflicts(db, sql.BATCH_WHERE, number)):
        unchanged = db.execute(sql.count_unchanged(sql.BATCH_WHERE), (number,)).get if is_divisible else 0
        raise UndoConflict([_conflict(row) for _, *row in rows], rows[0][0], unchanged)
    _restore(db, sql.BATCH_WHERE, number, "undo" if is_divisible else "nim", overwrite=False)


def _conflicts(db: apsw.Connection, where: str, number: int) -> Sequence[tuple[Any, ...]]:
    return list(db.execute(sql.conflicts(where), (number, UNDO_CONFLICTS_MAX)))


def _restore(db: apsw.Connection, where: str, number: int, kind: BatchKind, *, overwrite: bool) -> None:
    with batch(db, kind):
        for statement in sql.restore(where, overwrite=overwrite):
            db.execute(statement, (number,))


def _item(row: Sequence[object]) -> Entry | Batch:
    number, moment, kind, rows, is_silent, old_nim, *entry = row
    only = _entry(entry) if entry[0] is not None else None
    if kind == "nim" and only and only.after:
        only = only._replace(before=only.after._replace(nim=_text(old_nim))) if old_nim is not None else None
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


def _text_of(moment: datetime) -> str:
    """The beginning of the text of a moment in the table: before it are only earlier moments."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _moment(text: object) -> datetime:
    return datetime.fromisoformat(cast("str", text))
