"""The class Store: the changes of records, which each engine makes in transactions of its own. An engine opens a Store."""

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TypeVar

from mahasiswa.record import Mahasiswa, Write, combine, digest, groups
from mahasiswa.store.history_items import NAMES_CHANGE, PURGE_ENTRIES, UNDO_ROWS_MAX, BatchKind
from mahasiswa.store.queries import Query, Suspicion
from mahasiswa.store.reader import (
    Begin,
    Database,
    Hits,
    Reader,
    Rows,
    Snapshot,
    Steps,
    Version,
    by_nim,
    item_with,
    step,
)
from mahasiswa.store.shared_sql import SIGNING_KEY, as_json, named
from mahasiswa.store.store_errors import (
    Changed,
    EditConflict,
    NothingToUndo,
    NotInHistory,
)
from mahasiswa.work import RECORD, Kind, slices

__all__ = ["Hits", "Query", "Reader", "Snapshot", "Store", "Suspicion", "Version"]

# Maximum records and length of texts that one call handles, because a call of C holds the interpreter's lock.
PART_RECORDS = 500
PART_CHARACTERS = 256 * 1024

T = TypeVar("T")


class Store(Database):
    """A collection of records keyed by nim. When a write returns, it is on disk.

    Writes raise Unavailable, Refused, Uncertain and Busy, and the errors that each method names. A text that is None is
    missing, and the table's constraint refuses it. With NAMES_CHANGE they return the key of the item of the history
    that they have written, or None without one.

    Triggers of the database keep a history of each change of any program.
    """

    def reader(self, kind: Kind) -> Reader:
        """The reads of one kind of work."""
        return Reader(self, kind)

    @abstractmethod
    async def export(self, query: Query, work: Callable[[Iterator[Mahasiswa]], T]) -> T:
        """Call `work` in a thread with all records that a query finds at one moment, in its order; raise Busy.

        A transaction is open meanwhile. If the caller is cancelled, `work` gets an error instead of its next record,
        and its thread has ended on return.
        """

    @abstractmethod
    async def version(self) -> Version | None:
        """The version of the data now, or None if the database cannot tell it."""

    def version_now(self) -> Version | None:
        """The same without waiting; None if the caller must wait for the database, as on PostgreSQL."""
        return None

    @abstractmethod
    async def snapshot(self, at_most: int) -> Snapshot:
        """Every record, if there are at most `at_most`, read as work of the kind LIST."""

    def snapshot_now(self, at_most: int) -> Snapshot | None:  # noqa: ARG002 - the engine's
        """The same without waiting; None if the list is long, or if the caller must wait for the database."""
        return None

    @abstractmethod
    async def run(self, steps: Begin[T]) -> T:
        """Do all of these steps or none, in one transaction; return their result.

        After a failure that may pass, the steps are done again from their beginning.
        """

    @abstractmethod
    async def close(self) -> None:
        """Wait for running work, then close every connection."""

    async def signing_key(self) -> str:
        """The random key that every worker and instance of this database has; raise Unavailable, Busy."""
        ((key,),) = await self.reader(RECORD).rows(SIGNING_KEY, {})
        return str(key)

    async def add(self, nim: str | None, nama: str | None, alamat: str | None) -> str | None:
        """Insert a record without changing its texts (specification 4.4.1)."""
        record = {"nim": nim, "nama": nama, "alamat": alamat}
        return await self._make(lambda: step("add", record))

    async def update(
        self, nim: str, nama: str | None, alamat: str | None, expected: str | None = None
    ) -> str | None:
        """Set nama and alamat of the record with that nim, if it exists (specification 4.5).

        With `expected`, the digest of the record that the form showed, only the fields that the form changed are set.
        If someone else has changed one of these since, to another text, raise EditConflict (see `record.combine`); also
        if the record does not exist.
        """
        texts = {"nama": nama, "alamat": alamat}

        def steps() -> Steps[Rows]:
            new = texts
            if expected and nama is not None and alamat is not None:
                edited = yield from _merged(Mahasiswa(nim, nama, alamat), expected)
                new = edited._asdict()
            return (yield "update", {**new, **named([nim])})

        return await self._make(steps)

    async def rename(self, old: str, nim: str | None) -> str | None:
        """Put a record with another nim and the same texts in the place of `old`, as one batch; raise Changed."""
        if nim == old:
            return None

        def steps() -> Steps[None]:
            nims = named([old])
            yield "begin_batch", {"kind": "nim"}
            if not (yield "add_renamed", {"nim": nim, **nims}):
                raise Changed(old)
            yield "delete", nims
            yield "end_batch", {}

        return await self._make(steps)

    async def delete(self, nim: str) -> str | None:
        """Remove the record with that nim, if it exists (specification 4.6)."""
        return await self._make(lambda: step("delete", named([nim])))

    async def write_all(
        self, batch: BatchKind, writes: Sequence[Write] = (), removals: Collection[str] = ()
    ) -> str | None:
        """Make all of these changes or none, as one batch of that kind.

        `removals` are the nims of records to remove. A record that needs no change is left alone.

        Raise Changed if a stored record does not match its digest, or if a nim would be changed twice.
        """
        expected = dict(writes)
        if len({record.nim for record in expected}) < len(expected):
            raise Changed("a nim is to have two records")

        def steps() -> Steps[None]:
            yield "begin_batch", {"kind": batch}
            for nims in slices(sorted(removals), PART_RECORDS):
                yield "delete", named(nims)
            # Ordered, so that two transactions which lock the same records cannot deadlock.
            for part in slices(sorted(expected), PART_RECORDS):
                for records in groups(part, PART_CHARACTERS):
                    yield from _written(records, expected)
            yield "end_batch", {}

        return await self._make(steps)

    async def undo(self, key: str) -> tuple[str | None, int]:
        """Restore the records of an item that still are as the change left them, as one batch.

        Return the key of that batch, and how many records are not as they were before the change. A
        change of nim is undone whole or not at all. If all records are restored already, as after a
        double click, there is no key. Raise NothingToUndo if no record is as it was before the change,
        NotInHistory, or Refused if a record breaks a rule of the table.
        """
        return await self.run(lambda: _undo(key))

    async def purge(self) -> None:
        """Remove the expired entries, PURGE_ENTRIES in each transaction. Without any, the version does not change."""
        entries = {"entries": PURGE_ENTRIES}
        while len(await self.run(lambda: step("purge", entries))) == PURGE_ENTRIES:
            pass

    async def _make(self, steps: Begin[object]) -> str | None:
        """Run the steps of a change. Without NAMES_CHANGE the result is None, so a plain addition costs nothing more."""
        if NAMES_CHANGE.get():
            return await self.run(lambda: _with_item(steps()))
        await self.run(steps)
        return None


def _with_item(steps: Steps[object]) -> Steps[str | None]:
    """Do the steps of a change; return the key of the item that they have written, or None."""
    ((before,),) = yield "newest_id", {}
    yield from steps
    written = yield "own_item", {"id": before}
    return written[0][0] if written else None


def _merged(edited: Mahasiswa, expected: str) -> Steps[Mahasiswa]:
    """The edited record, combined with the stored one; raise EditConflict. See Store.update."""
    current = (yield from by_nim("find_locked", [edited.nim])).get(edited.nim)
    edited, is_conflict = combine(current, edited, expected) if current else (edited, True)
    if is_conflict:
        recent = yield "recent_before", named([edited.nim])
        older = map(Mahasiswa._make, recent)
        shown = next((record for record in older if digest(record) == expected), None)
        raise EditConflict(current, edited, shown)
    return edited


def _written(records: Sequence[Mahasiswa], expected: Mapping[Mahasiswa, str | None]) -> Steps[None]:
    """Write these records. Raise Changed if a stored record does not match its expected digest."""
    added: list[Mahasiswa] = []
    changed: list[Mahasiswa] = []
    stored = yield from by_nim("find_locked", [record.nim for record in records])
    for record in records:
        current = stored.get(record.nim)
        if current == record:  # as after a double click
            continue
        if expected[record] != (current and digest(current)):
            raise Changed(record.nim)
        (changed if current else added).append(record)

    if len((yield "add_all", {"records": as_json(added)})) < len(added):
        raise Changed("another transaction has added some meanwhile")
    yield "update_all", {"records": as_json(changed)}


def _undo(key: str) -> Steps[tuple[str | None, int]]:
    item = yield from item_with(key)
    if item is None or item.left is None or item.rows > UNDO_ROWS_MAX:
        raise NotInHistory(key)
    # A change of nim is undone whole.
    kind, least = ("nim", item.rows) if item.kind == "nim" else ("undo", 1)
    made = None
    if item.left >= least:
        made = yield from _with_item(_restore(item.id, kind))
    ((restored,),) = yield "count_restored", {"item": item.id}
    if restored < least:
        raise NothingToUndo(item.nim)
    return made, item.rows - restored


def _restore(item: int, kind: str) -> Steps[None]:
    """Restore the records of an item. The statements leave a record alone that has changed since."""
    yield "begin_batch", {"kind": kind}
    for statement in ("delete_added", "restore_changed", "restore_deleted"):
        yield statement, {"item": item}
    yield "end_batch", {}
