"""Work on the database that both engines do in the same steps. Each step is an SQL statement, and gets its rows."""

from collections.abc import Generator, Sequence
from itertools import chain
from sys import getsizeof
from typing import Any, TypeAlias, TypeVar

from mahasiswa.record import Mahasiswa, digest, digest_or_dash, near_nims
from mahasiswa.store.errors import NotInHistory, Unavailable, UndoConflict
from mahasiswa.store.history import UNDO_CONFLICTS_MAX, Batch, Entry, conflict_of, item_of

T = TypeVar("T")

READ_MAX_BYTES = 32 * 1024 * 1024
"""Maximum memory of the rows that one read returns. A record has up to 240 KB, so 10,000 could take 2.4 GB."""

READ_ROWS = 20
"""Rows of a read whose memory is counted at a time."""

Steps: TypeAlias = Generator[tuple[str, Sequence[object]], Sequence[Sequence[Any]], T]


def size_with(size: int, rows: Sequence[Sequence[Any]]) -> int:
    """The memory of rows that a read has so far, with further ones. Raise Unavailable beyond READ_MAX_BYTES."""
    size += sum(map(getsizeof, chain.from_iterable(rows)))
    if size > READ_MAX_BYTES:
        raise Unavailable(f"the texts of these records take more than {READ_MAX_BYTES >> 20} MB")
    return size


class Work:
    """The work of one engine, whose module `sql` has its statements."""

    def __init__(self, sql: Any) -> None:  # noqa: ANN401 - a module, the same names in each engine
        self.sql = sql
        self._history = sql.HISTORY

    def last_item(self) -> Steps[Entry | Batch | None]:
        """The newest item of the history, or None if there is none. If it added a record, it has the record's twin."""
        rows = yield self._history.last_item, (1, 0)
        item = item_of(rows[0]) if rows else None
        if isinstance(item, Entry) and item.before is None and item.after and (nims := near_nims(item.after.nim)):
            twins = yield self.sql.FIND_BYTES, [self.sql.array(nims)]
            return item._replace(twin=next(map(Mahasiswa._make, twins), None))
        return item

    def recent(self, nim: str, versi: str) -> Steps[Mahasiswa | None]:
        """The record with that digest, if a recent change has replaced it."""
        rows = yield self.sql.RECENT_BEFORE, (nim,)
        return next((record for record in map(Mahasiswa._make, rows) if digest(record) == versi), None)

    def undo(self, item: int, *, is_batch: bool, versi: str | None, only_unchanged: bool) -> Steps[None]:
        """Restore the record of an entry, or the records of a batch. See `Store.undo`."""
        kinds = yield self._history.undoable_kind, (item,)
        if not kinds or bool(kinds[0][0]) != is_batch:
            raise NotInHistory(str(item))
        where = self._history.of_batch if is_batch else self._history.of_entry
        is_divisible = kinds[0][0] != "nim"
        overwrite = False
        if not (only_unchanged and is_divisible):
            # Both records of a changed nim must be as the change left them. Otherwise two records would remain, or none.
            half_undone = "" if is_divisible else self._history.half_undone
            rows = yield (
                self._history.conflicts.format(where=where, half_undone=half_undone),
                (item, UNDO_CONFLICTS_MAX),
            )
            conflicts = [conflict_of(row) for _, *row in rows]
            overwrite = bool(conflicts) and not is_batch and versi == digest_or_dash(conflicts[0].current)
            if conflicts and not overwrite:
                ((unchanged,),) = (yield self._history.count_unchanged, (item,)) if is_divisible else [(0,)]
                raise UndoConflict(conflicts, rows[0][0], unchanged)
        yield self.sql.BEGIN_BATCH, ("undo" if is_divisible else "nim",)
        for statement in self._history.restore(where, overwrite=overwrite):
            yield statement, (item,)
        if self.sql.END_BATCH:
            yield self.sql.END_BATCH, ()
