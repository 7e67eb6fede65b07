"""Work on the database that both engines do in the same steps. Each step is an SQL statement, and gets its rows."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from itertools import chain
from typing import Any, Literal, TypeAlias, TypeVar, cast

from mahasiswa.record import Field, Mahasiswa, digest, digest_or_dash, near_key, near_nims
from mahasiswa.store import AFTER_MAX_BYTES, Found, Query, Suspicion, Version, folding, nearest
from mahasiswa.store.errors import NotInHistory, UndoConflict
from mahasiswa.store.history import (
    UNDO_CONFLICTS_MAX,
    Batch,
    Days,
    Entry,
    HistoryPage,
    ItemKind,
    conflict_of,
    entry_of,
    item_of,
)

T = TypeVar("T")

Steps: TypeAlias = Generator[tuple[str, Sequence[object]], Sequence[Sequence[Any]], T]


class Work:
    """The work of one engine, whose module `sql` has its statements."""

    def __init__(self, sql: Any) -> None:  # noqa: ANN401 - a module, the same names in each engine
        self._sql = sql
        self._history = sql.HISTORY

    def after(self, nim: str | None, limit: int) -> Steps[Sequence[Mahasiswa]]:
        """See `Reader.after`."""
        records, start = (self._sql.FIRST, ()) if nim is None else (self._sql.AFTER, (nim,))
        rows = yield self._sql.WITHIN_BYTES.format(records=records), [*start, limit, AFTER_MAX_BYTES]
        return list(map(Mahasiswa._make, rows))

    def near(self, nims: Sequence[str], limit: int) -> Steps[Sequence[Mahasiswa]]:
        """See `Reader.near`."""
        keys = sorted({near_key(nim) for nim in nims} - {""})
        rows = yield self._sql.NEAR, (self._sql.array(keys), limit)
        return list(map(Mahasiswa._make, rows))

    def search(self, query: Query, offset: int, limit: int) -> Steps[Found]:
        """See `Reader.search`."""
        where, parameters = self.where(query)
        rows = yield self._sql.search(where, query), [*parameters, limit, offset]
        last = yield from self.last_item()
        return Found(rows[0][0], [Mahasiswa._make(row[1:]) for row in rows if row[1] is not None], last)

    def prefixes(self, length: int, limit: int) -> Steps[Sequence[tuple[str, int]]]:
        """See `Reader.prefixes`."""
        rows = yield self._sql.PREFIXES, (length, limit)
        return [(prefix, count) for prefix, count in rows]

    def suspects(self, suspicion: Suspicion, limit: int) -> Steps[Found]:
        """See `Reader.suspects`."""
        rows = yield self._sql.SUSPECTS[suspicion], (limit,)
        return Found(rows[0][0] if rows else 0, [Mahasiswa._make(row[1:]) for row in rows])

    def words(self) -> Steps[Sequence[str]]:
        """The words of names and addresses, the most frequent first."""
        rows = yield self._sql.WORDS, ()
        return [word for (word,) in rows]

    def counted(self, searches: Sequence[str], di: Field | Literal[""]) -> Steps[Sequence[tuple[str, int]]]:
        """Each search with the number of records that it finds, without those that find none."""
        if not searches:
            return []
        conditions = [self._sql.condition(cari, di) for cari in searches]
        statement = self._sql.count_found([found for found, _ in conditions], di)
        rows = yield statement, list(chain.from_iterable(parameters for _, parameters in conditions))
        return [(cari, count) for cari, count in zip(searches, rows[0], strict=True) if count]

    def last_item(self) -> Steps[Entry | Batch | None]:
        """The newest item of the history, or None if there is none. If it added a record, it has the record's twin."""
        rows = yield self._history.last_item, (1, 0)
        item = item_of(rows[0]) if rows else None
        if isinstance(item, Entry) and item.before is None and item.after and (nims := near_nims(item.after.nim)):
            twins = yield self._sql.FIND_BYTES, [self._sql.array(nims)]
            return item._replace(twin=next(map(Mahasiswa._make, twins), None))
        return item

    def items(self, cari: str, offset: int, limit: int, kind: ItemKind | None, days: Days | None) -> Steps[HistoryPage]:
        """A page of the entries without a batch, and of the batches. See `Reader.history`."""
        found, words = self.where(Query(cari))
        where = self._sql.where_item_has(found) if found else ""
        where += self._history.is_of_kind * bool(kind) + self._history.is_of_days * bool(days)
        parameters = [*words, *([kind] if kind else ()), *map(self._sql.moment, days or ())]
        ((total,),) = yield self._history.count_items.format(where=where), parameters
        rows = yield self._history.items.format(where=where), [*parameters, limit, offset]
        last = yield from self.last_item()
        return HistoryPage(total, list(map(item_of, rows)), None, last)

    def entries(self, cari: str, batch: int, offset: int, limit: int) -> Steps[HistoryPage]:
        """A page of the entries of a batch. See `Reader.history`."""
        found, words = self.where(Query(cari))
        where = self._sql.where_entry_has(found) if found else ""
        parameters = [batch, batch, *words] if found else [batch]
        ((total,),) = yield self._history.count_entries.format(where=where), parameters
        rows = yield self._history.entries.format(where=where), [*parameters, limit, offset]
        heads = yield self._history.head, (batch, 1, 0)
        last = yield from self.last_item()
        head = cast("Batch", item_of(heads[0])) if heads else None
        return HistoryPage(total, list(map(entry_of, rows)), head, last)

    def entries_of(self, nim: str) -> Steps[Sequence[Entry]]:
        """See `Reader.entries_of`."""
        rows = yield self._history.entries_of, (nim,)
        return list(map(entry_of, rows))

    def recent(self, nim: str, versi: str) -> Steps[Mahasiswa | None]:
        """The record with that digest, if a recent change has replaced it."""
        rows = yield self._sql.RECENT_BEFORE, (nim,)
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
            rows = yield self._history.conflicts.format(where=where), (item, UNDO_CONFLICTS_MAX)
            conflicts = [conflict_of(row) for _, *row in rows]
            overwrite = bool(conflicts) and not is_batch and versi == digest_or_dash(conflicts[0].current)
            if conflicts and not overwrite:
                ((unchanged,),) = (yield self._history.count_unchanged, (item,)) if is_divisible else [(0,)]
                raise UndoConflict(conflicts, rows[0][0], unchanged)
        yield self._sql.BEGIN_BATCH, ("undo" if is_divisible else "nim",)
        for statement in self._history.restore(where, overwrite=overwrite):
            yield statement, (item,)
        if self._sql.END_BATCH:
            yield self._sql.END_BATCH, ()

    def where(self, query: Query) -> tuple[str, Sequence[str]]:
        """The WHERE clause of a search, and its parameters; both are empty if nothing is searched."""
        if not query.cari:
            return "", ()
        found, parameters = self._sql.condition(query.cari, query.di)
        return f"WHERE {found}", parameters


class StepReader(ABC):
    """The reads of `Reader` that both engines do in the same steps."""

    work: Work
    _version: Callable[[], Awaitable[Version | None]]
    _vocabulary: nearest.Vocabulary

    @abstractmethod
    async def run(self, steps: Callable[[], Steps[T]]) -> T:
        """Do the steps in one transaction that only reads. They may be done again if the connection breaks."""

    async def get(self, nim: str) -> Mahasiswa | None:
        return (await self.find([nim])).get(nim)

    @abstractmethod
    async def find(self, nims: Sequence[str]) -> Mapping[str, Mahasiswa]: ...

    async def after(self, nim: str | None, limit: int) -> Sequence[Mahasiswa]:
        return await self.run(lambda: self.work.after(nim, limit))

    async def near(self, nims: Sequence[str], limit: int) -> Sequence[Mahasiswa]:
        return await self.run(lambda: self.work.near(nims, limit))

    async def search(self, query: Query, offset: int, limit: int) -> Found:
        return await self.run(lambda: self.work.search(query, offset, limit))

    async def spellings(self, query: Query, limit: int, *, is_found: bool) -> Sequence[tuple[str, int]]:
        words = folding.words(query.cari)
        if query.di == "nim" or not words:
            return []
        version = await self._version()
        is_old = self._vocabulary.is_old(version, is_found=is_found)
        read = await self.run(self.work.words) if is_old else ()

        def correct() -> Sequence[str]:
            if is_old:
                self._vocabulary.keep(version, read)
            return nearest.corrections(words, self._vocabulary.words, is_found=is_found)

        likely = await asyncio.to_thread(correct)
        return (await self.run(lambda: self.work.counted(likely, query.di)))[:limit]

    async def history(
        self,
        cari: str,
        batch: int | None,
        offset: int,
        limit: int,
        *,
        kind: ItemKind | None = None,
        days: Days | None = None,
    ) -> HistoryPage:
        if batch is not None:
            return await self.run(lambda: self.work.entries(cari, batch, offset, limit))
        return await self.run(lambda: self.work.items(cari, offset, limit, kind, days))

    async def entries_of(self, nim: str) -> Sequence[Entry]:
        return [] if "\0" in nim else await self.run(lambda: self.work.entries_of(nim))

    async def prefixes(self, length: int, limit: int) -> Sequence[tuple[str, int]]:
        return await self.run(lambda: self.work.prefixes(length, limit))

    async def suspects(self, suspicion: Suspicion, limit: int) -> Found:
        return await self.run(lambda: self.work.suspects(suspicion, limit))
