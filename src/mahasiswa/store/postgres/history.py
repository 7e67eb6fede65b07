"""Reads the history in PostgreSQL, and undoes changes. The triggers of the table write it."""

from collections.abc import Sequence
from typing import Any, cast

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
    conflict_of,
    entry_of,
    item_of,
)
from mahasiswa.store.postgres import sql
from mahasiswa.store.postgres.pool import Connection


async def last_item(db: Connection) -> Entry | Batch | None:
    """Return the newest item of the history, or None if there is none. If it added a record, it has the record's twin."""
    rows = await _rows(db, sql.LAST_ITEM, 1, 0)
    item = item_of(rows[0]) if rows else None
    if isinstance(item, Entry) and item.before is None and item.after and (nims := near_nims(item.after.nim)):
        return item._replace(twin=await _record_of(db, sql.FIND, nims))
    return item


async def items(
    db: Connection, cari: str, offset: int, limit: int, *, kind: ItemKind | None, days: Days | None
) -> HistoryPage:
    """Return a page of the entries without a batch, and of the batches. See the Store protocol."""
    found, words = sql.where_has(cari)
    where = (sql.where_item_has(found) if found else "") + sql.IS_OF_KIND * bool(kind) + sql.IS_OF_DAYS * bool(days)
    parameters = [*words, *([kind] if kind else ()), *(days or ())]
    ((total,),) = await _rows(db, sql.COUNT_ITEMS.format(where=where), *parameters)
    rows = await _rows(db, sql.ITEMS.format(where=where), *parameters, limit, offset)
    return HistoryPage(total, list(map(item_of, rows)), None, await last_item(db))


async def entries(db: Connection, cari: str, batch: int, offset: int, limit: int) -> HistoryPage:
    """Return a page of the entries of a batch. See the Store protocol."""
    found, words = sql.where_has(cari)
    where = sql.where_entry_has(found) if found else ""
    parameters = [batch, batch, *words] if found else [batch]
    ((total,),) = await _rows(db, sql.COUNT_ENTRIES.format(where=where), *parameters)
    rows = await _rows(db, sql.ENTRIES.format(where=where), *parameters, limit, offset)
    heads = await _rows(db, sql.HEAD, batch, 1, 0)
    head = cast("Batch", item_of(heads[0])) if heads else None
    return HistoryPage(total, list(map(entry_of, rows)), head, await last_item(db))


async def start_batch(db: Connection, kind: BatchKind) -> None:
    """Let the triggers write all further changes of this transaction as one batch."""
    await db.execute(sql.BATCH, (kind,))


async def recent(db: Connection, nim: str, versi: str) -> Mahasiswa | None:
    """Return the record with that digest, if a recent change has replaced it."""
    records = [Mahasiswa(*row) for row in await _rows(db, sql.RECENT_BEFORE, nim)]
    return next((record for record in records if digest(record) == versi), None)


async def undo(db: Connection, item: int, *, is_batch: bool, versi: str | None, only_unchanged: bool) -> None:
    """Restore the record of an entry, or the records of a batch. See the Store protocol."""
    await db.execute(sql.LOCK_TABLE_AND_HISTORY)
    kinds = await _rows(db, sql.UNDOABLE_KIND, item)
    if not kinds or bool(kinds[0][0]) != is_batch:
        raise NotInHistory(str(item))
    where = sql.BATCH_WHERE if is_batch else sql.ENTRY_WHERE
    is_divisible = kinds[0][0] != "nim"
    overwrite = False
    if not (only_unchanged and is_divisible):
        rows = await _rows(db, sql.CONFLICTS.format(where=where), item, UNDO_CONFLICTS_MAX)
        conflicts = [conflict_of(row) for _, *row in rows]
        overwrite = bool(conflicts) and not is_batch and versi == digest_or_dash(conflicts[0].current)
        if conflicts and not overwrite:
            ((unchanged,),) = await _rows(db, sql.COUNT_UNCHANGED, item) if is_divisible else [(0,)]
            raise UndoConflict(conflicts, rows[0][0], unchanged)
    await start_batch(db, "undo" if is_divisible else "nim")
    for statement in sql.restore(where, overwrite=overwrite):
        await db.execute(statement, (item,))


async def _record_of(db: Connection, statement: str, nim: str | Sequence[str]) -> Mahasiswa | None:
    rows = await _rows(db, statement, nim)
    return Mahasiswa._make(rows[0]) if rows else None


async def _rows(db: Connection, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
    return await (await db.execute(statement, parameters)).fetchall()
