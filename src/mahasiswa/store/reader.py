"""The reads of a store. Both engines do most of them in the same steps, with their own SQL."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping, Sequence
from itertools import chain
from sys import getsizeof
from typing import Any, NamedTuple, TypeVar, cast

from mahasiswa.record import SHOWN_MAX_CHARACTERS, Mahasiswa, near_key
from mahasiswa.store.history_items import (
    UNDO_ROWS_MAX,
    Days,
    HistoryPage,
    Item,
    ItemKind,
    News,
    id_of,
    item_of,
)
from mahasiswa.store.queries import Query, Suspicion
from mahasiswa.store.shared_sql import ALL, COUNT, Parameters, as_json, moment_text, named, words
from mahasiswa.store.spelling import corrections
from mahasiswa.store.store_errors import Unavailable
from mahasiswa.work import PAGE_MAX_BYTES, Kind

Version = Hashable
"""A value that changes with every commit of any program. It means nothing outside the store that returned it."""

# Maximum bytes of all texts of a snapshot, because a page of longer texts is not kept.
SNAPSHOT_MAX_BYTES = PAGE_MAX_BYTES
AFTER_MAX_BYTES = 64 * 1024  # bytes of texts after which `after` reads no further record
# Maximum memory of the rows that one read returns, because 10,000 records could take 2.4 GB.
READ_MAX_BYTES = 32 * 1024 * 1024


class Snapshot(NamedTuple):
    """All records at one moment, ordered by the code points of nim.

    `packed` is UTF-8: nim, nama and alamat of each record, with NUL between all of them. It is None if there are more
    records than the caller asked for, or if they are longer than SNAPSHOT_MAX_BYTES; then `total` is 0.

    `last` is the newest item of the history at that moment, or None if there is none.
    """

    total: int
    packed: bytes | None
    last: News | None = None


class Hits(NamedTuple):
    """One page of the records of a query, their number, and the newest item of the history, all of one moment.

    Their texts are cut to SHOWN_MAX_CHARACTERS.
    """

    total: int
    records: Sequence[Mahasiswa]
    last: News | None = None


T = TypeVar("T")

Rows = Sequence[Sequence[Any]]
Steps = Generator[tuple[str, Parameters], Rows, T]
"""Work on the database. Each step is the name of a statement, or other SQL, with its parameters. It gets its rows."""

Begin = Callable[[], Steps[T]]
"""Begins the steps, and begins them again if a transaction must be repeated."""


class Database(ABC):
    """A database that can be read. Each engine has its own."""

    @abstractmethod
    async def read(self, steps: Begin[T], kind: Kind) -> T:
        """Do the steps in one transaction that only reads. They may be done again if the connection breaks."""


class Reader(NamedTuple):
    """Reads of one kind of work, which has its own queue.

    Each read raises Unavailable, Busy, and TookTooLong if a step takes longer than STEP_TIMEOUT_SECONDS. If the task
    that waits for a read is cancelled, the read stops within a second.
    """

    database: Database
    kind: Kind

    async def run(self, steps: Begin[T]) -> T:
        """Do the steps. See Database.read."""
        return await self.database.read(steps, self.kind)

    async def rows(self, statement: str, parameters: Parameters) -> Rows:
        """The rows of a read that needs one statement only."""
        return await self.run(lambda: step(statement, parameters))

    async def find(self, nims: Sequence[str]) -> Mapping[str, Mahasiswa]:
        """The records that exist among these nims, by nim.

        Raise Unavailable also if their texts would take more than READ_MAX_BYTES, so ask for at most 1,000.
        """
        return await self.run(lambda: by_nim("find", nims))

    async def get(self, nim: str) -> Mahasiswa | None:
        """The record with this nim, or None."""
        return (await self.find([nim])).get(nim)

    async def after(self, nim: str | None, limit: int) -> Sequence[Mahasiswa]:
        """At most `limit` records after `nim`, in the order of a snapshot.

        After AFTER_MAX_BYTES of texts no further record is read.
        """
        parameters = {"after": nim, "limit": limit, "bytes": AFTER_MAX_BYTES}
        rows = await self.rows("within_bytes", parameters)
        return list(map(Mahasiswa._make, rows))

    async def near(self, keys: Sequence[str], limit: int) -> Sequence[str]:
        """At most `limit` nims that have one of these `near_key`s."""
        rows = await self.rows("near_nims", {**named(keys), "limit": limit})
        return [nim for (nim,) in rows]

    async def search(
        self, query: Query, offset: int, limit: int, change: str | None = None
    ) -> Hits:
        """At most `limit` of the records that a query finds, from `offset` on; none if `offset` is past the end.

        With `limit` 0 the records are only counted. That is quick if there is no `cari`.
        Texts are ordered without regard to the case of ASCII letters; equal texts are ordered by nim.
        With `change`, the key of an item, `last` is that item (see `shown_item`).
        """

        def steps() -> Steps[Hits]:
            name, parameters = keys_of(query, offset, limit)
            rows = yield name, parameters
            ((total, *_), *_) = rows if query.cari else (yield COUNT, {})
            records = yield from shown(rows)
            return Hits(total, records, (yield from shown_item(change)))

        return await self.run(steps)

    async def spellings(self, query: Query) -> Sequence[tuple[str, int]]:
        """At most SEARCHES_OFFERED searches with words of the list, in place of one without a hit.

        Each has the number of records that it finds. A search without letters has none.
        """
        if query.di == "nim" or not any(map(str.isalpha, query.cari)):
            return []
        texts = await self.rows("some_texts", {})
        likely = await asyncio.to_thread(corrections, query.cari, chain.from_iterable(texts))
        found = [(cari, await self.search(query._replace(cari=cari), 0, 0)) for cari in likely]
        return [(cari, hits.total) for cari, hits in found if hits.total]

    async def suspects(self, suspicion: Suspicion, limit: int) -> Hits:
        """At most `limit` records that may be wrong, similar ones together, and the number of all of them."""

        def steps() -> Steps[Hits]:
            rows = yield suspicion, {"limit": limit}
            records = yield from shown(rows)
            return Hits(rows[0][0] if rows else 0, records)

        return await self.run(steps)

    async def history(
        self,
        cari: str,
        offset: int,
        limit: int,
        *,
        batch: str | None = None,
        kind: ItemKind | None = None,
        days: Days | None = None,
        change: str | None = None,
    ) -> HistoryPage:
        """At most `limit` items, newest first, from `offset` on: the entries that belong to no batch, and the batches.

        `cari` finds an entry as it finds a record, in the texts before and after, and a batch by any of its entries. If
        it is a nim, the entry of that nim stands for the batch. With `batch`, the key of a batch, the items are its
        entries, by nim. With `change`, `last` is that item.
        """
        first, end = map(moment_text, days) if days else (None, None)
        filters = {"batch": batch and id_of(batch), "kind": kind, "first": first, "end": end}
        page = {**filters, **words("", cari), "cari": cari, "offset": offset, "limit": limit}

        def steps() -> Steps[HistoryPage]:
            found = yield "find_items", page
            ids = [number for _, number in found if number is not None]
            read = yield from items(ids, UNDO_ROWS_MAX, cari)
            head = None if batch is None else (yield from item_with(batch))
            last = yield from shown_item(change)
            return HistoryPage(found[0][0], read, head, last and last.item)

        return await self.run(steps)

    async def renamed(self, nim: str) -> Mahasiswa | None:
        """The record that had this nim until its nim was replaced; None if it had none, or was replaced again."""

        def steps() -> Steps[Mahasiswa | None]:
            rows = yield "new_nim", named([nim])
            return (yield from by_nim("find", rows[0])).get(rows[0][0]) if rows else None

        return await self.run(steps)

    async def last(self, change: str | None = None) -> News | None:
        """The newest item of the history, or with `change` that item, as in Hits."""
        return await self.run(lambda: shown_item(change))


def done(steps: Steps[T], do: Callable[[str, Parameters], Rows]) -> T:
    """Do the steps one after the other; return their result."""
    rows: Any = None
    try:
        while True:
            rows = do(*steps.send(rows))
    except StopIteration as end:
        return cast("T", end.value)


def step(statement: str, parameters: Parameters) -> Steps[Rows]:
    """A single step."""
    return (yield statement, parameters)


def keys_of(query: Query, offset: int = 0, limit: int = ALL) -> tuple[str, Parameters]:
    """The step that finds the nims of a query in its order, in the last column.

    The first column of a search has the number of all of them. If its page is empty, one row has
    the number and no nim.
    """
    order = {"urut": query.urut, "arah": query.arah, "offset": offset, "limit": limit}
    if query.cari:
        return "found", {**words(query.di, query.cari), **order}
    return f"{query.urut} {query.arah}", order


def export_of(query: Query) -> tuple[str, Parameters]:
    """The step that finds all records of a query. For the whole list it has the records, otherwise their nims."""
    return ("whole", {}) if query == Query() else keys_of(query)


def exported(rows: Rows) -> Steps[Sequence[Mahasiswa]]:
    """The records of some rows of `export_of`."""
    if len(rows[0]) == len(Mahasiswa._fields):
        return list(map(Mahasiswa._make, rows))
    return (yield from shown(rows, ALL))


def shown_item(change: str | None = None) -> Steps[News | None]:
    """The newest item of the history, or with `change` the item with that key, or None."""
    if change is None:
        ids = yield "newest_item", {}
        # To count the records of a long batch would delay each page of the list.
        read = yield from items([number for (number,) in ids], counted=1)
        item = next(iter(read), None)
    else:
        item = yield from item_with(change)
    if item is None:
        return None
    if item.kind == "add" and item.left and item.nim is not None:
        added = {"nim": item.nim, "key": near_key(item.nim)}
        if alike := (yield "alike", added):
            return News(item, *alike[0])
    return News(item)


def items(ids: Sequence[int], counted: int, nim: str = "") -> Steps[Sequence[Item]]:
    """The items with these ids, in this order. A batch that has an entry of `nim` has it as its only one.

    The records of a batch of more than `counted` rows are not compared with the list.
    """
    asked = {"ids": as_json(ids), "counted": counted, "nim": nim}
    rows = yield "items", {**asked, "characters": SHOWN_MAX_CHARACTERS + 1}
    return list(map(item_of, rows))


def item_with(key: str) -> Steps[Item | None]:
    """The item with this key, or None."""
    read = yield from items([id_of(key)], UNDO_ROWS_MAX)
    return next((item for item in read if item.key == key), None)


def shown(rows: Rows, characters: int = SHOWN_MAX_CHARACTERS) -> Steps[Sequence[Mahasiswa]]:
    """The records whose nims are in the last column of these rows, in their order.

    Their texts are cut to so many characters. The row of an empty page has no nim.
    """
    nims = [row[-1] for row in rows if row[-1] is not None]
    records = yield from by_nim("find", nims, characters)
    return [records[nim] for nim in nims]


def by_nim(
    statement: str, nims: Sequence[str], characters: int = ALL
) -> Steps[Mapping[str, Mahasiswa]]:
    """The stored records with these nims, by nim. A text that is longer is cut, and ends with “…”."""
    rows = yield statement, {**named(nims), "characters": characters}
    return {row[0]: Mahasiswa._make(row) for row in rows}


def bounded(rows: Iterable[Sequence[Any]]) -> Rows:
    """All of these rows. Raise Unavailable if their texts take more memory than READ_MAX_BYTES."""
    size = 0
    kept = []
    for row in rows:
        size = size_with(size, row)
        kept.append(row)
    return kept


def size_with(size: int, cells: Iterable[object]) -> int:
    """The memory of some rows, in bytes, with that of further cells. Raise Unavailable above READ_MAX_BYTES."""
    size += sum(map(getsizeof, cells))
    if size > READ_MAX_BYTES:
        raise Unavailable(f"the texts of these records take more than {READ_MAX_BYTES >> 20} MB")
    return size
