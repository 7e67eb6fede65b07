"""The reads of a store. Both engines do most of them in the same steps, with their own SQL."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import (
    AsyncGenerator,
    Callable,
    Coroutine,
    Generator,
    Hashable,
    Mapping,
    Sequence,
)
from functools import wraps
from itertools import chain
from sys import getsizeof
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar, cast

from mahasiswa.record import Mahasiswa
from mahasiswa.store import folding
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
from mahasiswa.store.shared_sql import (
    Parameters,
    as_json,
    moment_text,
    named,
    ordered,
    without_nul,
    words,
)
from mahasiswa.store.spelling import SEARCHES_OFFERED, corrections, slips
from mahasiswa.store.store_errors import Unavailable
from mahasiswa.work import PAGE_MAX_BYTES, slices

Version = Hashable
"""A value that changes with every commit of any program. It means nothing outside the store that returned it."""

# Maximum bytes of all texts of a snapshot, because a page of longer texts is not kept.
SNAPSHOT_MAX_BYTES = PAGE_MAX_BYTES
AFTER_MAX_BYTES = 64 * 1024  # bytes of texts after which `after` reads no further record
# Maximum memory of the rows that one read returns, because 10,000 records could take 2.4 GB.
READ_MAX_BYTES = 32 * 1024 * 1024
# Maximum nims whose records one statement reads, because psycopg holds the whole answer in memory:
# up to 32 MB.
FIND_NIMS = 500
# Names and addresses whose words correct a search that has found nothing, half of them from each end of the list.
CORRECTING_TEXTS = {"names": 20_000, "addresses": 10_000}
READ_ROWS = 20  # rows that are read and counted at a time


class Snapshot(NamedTuple):
    """All records at one moment, ordered by the code points of nim.

    `packed` is UTF-8: nim, nama and alamat of each record, with NUL between all of them. It is None if there are more
    records than the caller asked for, or if they are longer than SNAPSHOT_MAX_BYTES; then `total` is 0.

    The records are at least as new as `version`, which is None if the database cannot tell its version. `last` is the
    newest item of the history at that moment, or None if there is none.
    """

    version: Version | None
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


P = ParamSpec("P")
T = TypeVar("T")

Rows = Sequence[Sequence[Any]]
Steps = Generator[tuple[str, Parameters], Rows, T]
"""Work on the database. Each step is the name of a statement, or other SQL, with its parameters. It gets its rows."""

Begin = Callable[[], Steps[T]]
"""Begins the steps, and begins them again if a transaction must be repeated."""

Counted = Sequence[tuple[str, int]]
"""Searches, each with the number of records that it finds."""


def in_transaction(
    steps: Callable[Concatenate["Reader", P], Steps[T]],
) -> Callable[Concatenate["Reader", P], Coroutine[Any, Any, T]]:
    """Let a method that yields the steps of a read do them by Reader.run."""

    @wraps(steps)
    async def read(reader: "Reader", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await reader.run(lambda: steps(reader, *args, **kwargs))

    return read


class Reader(ABC):
    """Reads of one kind of work, which has its own connections and its own queue.

    Each read raises Unavailable, Busy, and TookTooLong if a step takes longer than STEP_TIMEOUT_SECONDS. If the task
    that waits for a read is cancelled, the read stops within a second.
    """

    @abstractmethod
    async def run(self, steps: Begin[T]) -> T:
        """Do the steps in one transaction that only reads. They may be done again if the connection breaks."""

    @abstractmethod
    def chunks(
        self, query: Query, *, may_pause: bool = False
    ) -> AsyncGenerator[Sequence[Mahasiswa]]:
        """All records that a query finds at one moment.

        A transaction is open between chunks. Only a caller with `may_pause` may wait there for its reader.
        """

    @in_transaction
    def find(self, nims: Sequence[str]) -> Steps[Mapping[str, Mahasiswa]]:
        """The records that exist among these nims, by nim."""
        return (yield from by_nim("find", nims))

    async def get(self, nim: str) -> Mahasiswa | None:
        return (await self.find([nim])).get(nim)

    async def after(self, nim: str | None, limit: int) -> Sequence[Mahasiswa]:
        """At most `limit` records after `nim`, in the order of a snapshot.

        After AFTER_MAX_BYTES of texts no further record is read.
        """
        parameters = {"after": nim, "limit": limit, "bytes": AFTER_MAX_BYTES}
        return await self._records("within_bytes", parameters)

    async def near(self, keys: Sequence[str], limit: int) -> Sequence[str]:
        """At most `limit` nims that have one of these `near_key`s."""
        return await self._column("near", {**named(keys), "limit": limit})

    @in_transaction
    def search(
        self, query: Query, offset: int, limit: int, change: str | None = None
    ) -> Steps[Hits]:
        """At most `limit` of the records that a query finds, from `offset` on; none if `offset` is past the end.

        With `limit` 0 the records are only counted. That is quick if there is no `cari`.
        Texts are ordered without regard to the case of ASCII letters; equal texts are ordered by nim.
        With `change`, the key of an item, `last` is that item (see `shown_item`).
        """
        page, search = ordered("search" if query.cari else "page", query)
        rows = yield page, {**search, "limit": limit, "offset": offset}
        last = yield from shown_item(change)
        return _hits(rows, last)

    async def spellings(self, query: Query) -> Counted:
        """At most SEARCHES_OFFERED searches that resemble one without a hit, with the number of records that each finds.

        For a search without letters these are nims. Otherwise they have other words of the list.
        """
        if not any(map(str.isalpha, query.cari)):
            typed = "".join(query.cari.split())
            likely = list(await self.find(slips(typed)))[:SEARCHES_OFFERED]
        elif query.di == "nim":
            likely = []
        else:
            spellings = await self._column("vocabulary", CORRECTING_TEXTS)
            typed_words = folding.words(query.cari)
            likely = list(await asyncio.to_thread(corrections, typed_words, spellings))
        rows = await self.rows("count_found", words(query.di, *likely)) if likely else []
        return [(likely[number], count) for number, count in rows]

    async def suspects(self, suspicion: Suspicion, limit: int) -> Hits:
        """At most `limit` records that may be wrong, similar ones together, and the number of all of them."""
        rows = await self.rows("suspicious", {"suspicion": suspicion, "limit": limit})
        return _hits(rows)

    async def untidy(self, limit: int) -> Sequence[Mahasiswa]:
        """At most `limit` records whose name or address `tidy` changes."""
        return await self._records("untidy", {"limit": limit})

    @in_transaction
    def history(
        self,
        cari: str,
        offset: int,
        limit: int,
        *,
        batch: str | None = None,
        kind: ItemKind | None = None,
        days: Days | None = None,
        change: str | None = None,
    ) -> Steps[HistoryPage]:
        """At most `limit` items, newest first, from `offset` on: the entries that belong to no batch, and the batches.

        `cari` finds an entry as it finds a record, in the texts before and after, and a batch by any of its entries. If
        it is a nim, the entry of that nim stands for the batch. With `batch`, the key of a batch, the items are its
        entries, by nim. With `change`, `last` is that item.
        """
        first, end = map(moment_text, days) if days else (None, None)
        filters = {"batch": batch and id_of(batch), "kind": kind, "first": first, "end": end}
        search = {**filters, **words("", cari), "cari": without_nul(cari)}
        found = yield "find_items", {**search, "offset": offset, "limit": limit}
        total = found[0][0]
        ids = [number for _, number in found if number is not None]
        read = yield from items(ids, UNDO_ROWS_MAX, cari)
        head = None if batch is None else (yield from item_with(batch))
        last = yield from shown_item(change)
        return HistoryPage(total, read, head, last and last.item)

    @in_transaction
    def renamed(self, nim: str) -> Steps[Mahasiswa | None]:
        """The record that had this nim until its nim was replaced, perhaps several times; None if it had none."""
        while rows := (yield "new_nim", named([nim])):
            ((nim,),) = rows
            if record := (yield from one("find", nim)):
                return record
        return None

    @in_transaction
    def last(self, change: str | None = None) -> Steps[News | None]:
        """The newest item of the history, or with `change` that item, as in Hits."""
        return (yield from shown_item(change))

    async def _column(self, statement: str, parameters: Parameters) -> Sequence[str]:
        """The only column of the rows of a read."""
        return [value for (value,) in await self.rows(statement, parameters)]

    async def _records(self, statement: str, parameters: Parameters) -> Sequence[Mahasiswa]:
        rows = await self.rows(statement, parameters)
        return list(map(Mahasiswa._make, rows))

    @in_transaction
    def rows(self, statement: str, parameters: Parameters) -> Steps[Rows]:
        """The rows of a read that needs one statement only."""
        return (yield statement, parameters)


def done(steps: Steps[T], do: Callable[[str, Parameters], Rows]) -> T:
    """Do the steps one after the other; return their result."""
    rows: Any = None
    try:
        while True:
            rows = do(*steps.send(rows))
    except StopIteration as end:
        return cast("T", end.value)


def shown_item(change: str | None) -> Steps[News | None]:
    """The newest item of the history, or with `change` the item with that key, unless it is unknown or undone."""
    if change is None:
        return (yield from last_item())
    item = yield from item_with(change)
    if item is None or (yield from is_restored(item)):
        return None
    return (yield from _with_warning(item))


def last_item() -> Steps[News | None]:
    """The newest item of the history, or None if there is none."""
    ids = yield "newest_item", {}
    # To count the records of a long batch would delay each page of the list.
    read = yield from items([number for (number,) in ids], counted=1)
    return (yield from _with_warning(read[0])) if read else None


def items(ids: Sequence[int], counted: int, nim: str = "") -> Steps[Sequence[Item]]:
    """The items with these ids, in this order. A batch that has an entry of `nim` has it as its only one.

    The records of a batch of more than `counted` rows are not compared with the list.
    """
    rows = yield "items", {"ids": as_json(ids), "counted": counted, "nim": without_nul(nim)}
    read = {id_of(row[0]): item_of(row) for row in rows}
    return [read[number] for number in ids if number in read]


def item_with(key: str) -> Steps[Item | None]:
    """The item with this key, or None."""
    read = yield from items([id_of(key)], UNDO_ROWS_MAX)
    return next((item for item in read if item.key == key), None)


def is_restored(item: Item) -> Steps[bool]:
    """Whether an undo has restored the records of an item already."""
    if item.left is None or item.left >= item.least:
        return False
    ((count,),) = yield "count_restored", {"item": item.id, "kind": item.undo_kind}
    return bool(count >= item.least)


def _with_warning(item: Item) -> Steps[News]:
    """The item, with a similar record if it added a record that is still in the list."""
    record = item.after
    if item.kind != "add" or not (record and item.left):
        return News(item)
    rows = yield "alike", {"nim": record.nim}
    if not rows:
        return News(item)
    is_near, *texts = rows[0]
    found = Mahasiswa(*texts)
    return News(item, near=found) if is_near else News(item, twin=found)


def _hits(rows: Rows, last: News | None = None) -> Hits:
    """The records of a page. Each row has the number of all of them, and a record or NULLs."""
    total = rows[0][0] if rows else 0
    return Hits(total, [Mahasiswa(*row[1:]) for row in rows if row[1] is not None], last)


def one(statement: str, nim: str) -> Steps[Mahasiswa | None]:
    """The stored record with this nim. `statement` is the name of the SELECT, whose parameter is nims."""
    records = yield from by_nim(statement, [nim])
    return records.get(nim)


def by_nim(statement: str, nims: Sequence[str]) -> Steps[Mapping[str, Mahasiswa]]:
    """The stored records with these nims, by nim."""
    records: dict[str, Mahasiswa] = {}
    size = 0
    for asked in slices(nims, FIND_NIMS):
        rows = yield statement, named(asked)
        size = size_with(size, rows)
        records |= {row[0]: Mahasiswa._make(row) for row in rows}
    return records


def size_with(size: int, rows: Sequence[Sequence[Any]]) -> int:
    """Add the memory of further rows to `size`; raise Unavailable beyond READ_MAX_BYTES."""
    size += sum(map(getsizeof, chain.from_iterable(rows)))
    if size > READ_MAX_BYTES:
        raise Unavailable(f"the texts of these records take more than {READ_MAX_BYTES >> 20} MB")
    return size
