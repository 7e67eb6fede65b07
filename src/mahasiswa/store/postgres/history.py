"""Reads the history in PostgreSQL, and undoes changes. The triggers of the table write it."""

from collections.abc import Sequence
from datetime import UTC
from typing import Any

from mahasiswa.record import Mahasiswa, digest, digest_or_dash
from mahasiswa.store.errors import NotInHistory, UndoConflict
from mahasiswa.store.history import UNDO_CONFLICTS_MAX, Batch, BatchKind, Conflict, Entry, HistoryPage
from mahasiswa.store.postgres import sql
from mahasiswa.store.postgres.add_batcher import add_all
from mahasiswa.store.postgres.pool import Connection

Row = Sequence[Any]


async def last_item(db: Connection) -> Entry | Batch | None:
    """Return the newest item of the history, or None if there is none."""
    rows = await _rows(db, sql.LAST_ITEM, 1, 0)
    return _item(rows[0]) if rows else None


async def page(db: Connection, cari: str, batch: int | None, offset: int, limit: int) -> HistoryPage:
    """Return items, or the entries of a batch. See the Store protocol."""
    where, parameters = sql.where_has(cari)
    if batch is None:
        where = sql.where_item_has(where) if where else ""
        ((total,),) = await _rows(db, sql.COUNT_ITEMS.format(where=where), *parameters)
        rows = await _rows(db, sql.ITEMS.format(where=where), *parameters, limit, offset)
        return HistoryPage(total, list(map(_item, rows)))
    where = sql.where_entry_has(where) if where else ""
    of_batch = (batch, batch, *parameters) if where else (batch,)
    ((total,),) = await _rows(db, sql.COUNT_ENTRIES.format(where=where), *of_batch)
    rows = await _rows(db, sql.ENTRIES.format(where=where), *of_batch, limit, offset)
    return HistoryPage(total, list(map(_entry, rows)))


async def start_batch(db: Connection, kind: BatchKind) -> None:
    """Let the triggers write all further changes of this transaction as one batch."""
    await db.execute(sql.BATCH, (kind,))


async def recent(db: Connection, nim: str, versi: str) -> Mahasiswa | None:
    """Return the record with that digest, if a recent change has replaced it."""
    records = [Mahasiswa(*row) for row in await _rows(db, sql.RECENT_BEFORE, nim)]
    return next((record for record in records if digest(record) == versi), None)


async def undo(db: Connection, entry_id: int, versi: str | None) -> None:
    """Restore the record of one entry. See the Store protocol."""
    rows = await _rows(db, sql.ENTRY, entry_id)
    if not rows:
        raise NotInHistory(str(entry_id))
    entry, nim = _entry(rows[0]), rows[0][2]
    current = await _record_of(db, sql.GET_LOCKED, nim)
    if current == entry.before:
        return
    if current != entry.after and versi != digest_or_dash(current):
        raise UndoConflict([Conflict(entry, current)], 1)
    await start_batch(db, "undo")
    if entry.before is None:
        await db.execute(sql.DELETE, (nim,))
    elif current:
        await db.execute(sql.UPDATE, (entry.before.nama, entry.before.alamat, nim))
    elif not await add_all(db, [entry.before]):  # another transaction has added the nim meanwhile
        current = await _record_of(db, sql.GET, nim)
        if current != entry.before:
            raise UndoConflict([Conflict(entry, current)], 1)


async def undo_batch(db: Connection, batch: int) -> None:
    """Restore all records of a batch. See the Store protocol."""
    await db.execute(sql.LOCK_TABLE_AND_HISTORY)
    if not await _rows(db, sql.IS_WHOLE_BATCH, batch):
        raise NotInHistory(str(batch))
    if rows := await _rows(db, sql.CONFLICTS, batch, UNDO_CONFLICTS_MAX):
        raise UndoConflict([Conflict(_entry(row[:7]), _record(row[7:10])) for row in rows], rows[0][10])
    await start_batch(db, "undo")
    for statement in (sql.UNDO_ADDITIONS, sql.UNDO_EDITS, sql.UNDO_DELETIONS):
        await db.execute(statement, (batch,))


async def _record_of(db: Connection, statement: str, nim: str) -> Mahasiswa | None:
    rows = await _rows(db, statement, nim)
    return _record(rows[0]) if rows else None


async def _rows(db: Connection, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
    return await (await db.execute(statement, parameters)).fetchall()


def _item(row: Row) -> Entry | Batch:
    number, moment, kind, rows, is_silent, *entry = row
    if kind is None:
        return _entry(entry)
    only = _entry(entry) if entry[0] is not None else None
    return Batch(number, moment.astimezone(UTC), kind, rows, is_silent, only)


def _entry(row: Row) -> Entry:
    number, moment, nim, nama_before, alamat_before, nama_after, alamat_after = row
    before = None if nama_before is None else Mahasiswa(nim, nama_before, alamat_before)
    after = None if nama_after is None else Mahasiswa(nim, nama_after, alamat_after)
    return Entry(number, moment.astimezone(UTC), before, after)


def _record(row: Row) -> Mahasiswa | None:
    return None if row[0] is None else Mahasiswa._make(row)
