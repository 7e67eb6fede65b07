"""The class Store: the changes of records, which each engine makes in transactions of its own. An Engine opens a Store."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from mahasiswa.record import Mahasiswa, Write, combine, digest
from mahasiswa.store.history_items import NAMES_CHANGE, UNDO_ROWS_MAX, BatchKind, Item
from mahasiswa.store.queries import Query, Suspicion
from mahasiswa.store.reader import (
    Begin,
    Hits,
    Reader,
    Snapshot,
    Steps,
    Version,
    by_nim,
    is_restored,
    item_with,
    one,
)
from mahasiswa.store.shared_sql import SIGNING_KEY, as_json, named
from mahasiswa.store.store_errors import (
    Changed,
    EditConflict,
    NothingToUndo,
    NotInHistory,
    Refused,
)
from mahasiswa.work import EDIT, IMPORT, RECORD, Kind, groups, slices

__all__ = ["Hits", "Query", "Reader", "Snapshot", "Store", "Suspicion", "Version"]

# Maximum records and length of texts that one call handles, because a call of C holds the interpreter's lock.
PART_RECORDS = 500
PART_CHARACTERS = 256 * 1024


P = ParamSpec("P")
T = TypeVar("T")


def change(
    steps: Callable[Concatenate["Store", P], Steps[None]],
) -> Callable[Concatenate["Store", P], Coroutine[Any, Any, str | None]]:
    """Let a method that yields steps make them as a change, by Store.make."""

    @wraps(steps)
    async def make(store: "Store", /, *args: P.args, **kwargs: P.kwargs) -> str | None:
        return await store.make(lambda: steps(store, *args, **kwargs))

    return make


class Store(ABC):
    """A collection of records keyed by nim. When a write returns, it is on disk.

    Writes raise Unavailable, Refused, Uncertain and Busy, and the errors that each method names. A text that is None is
    missing, and the table's constraint refuses it. With NAMES_CHANGE they return the key of the item of the history
    that they have written, or None without one.

    Triggers of the database keep a history of each change of any program.
    """

    _readers: Mapping[Kind, Reader]

    def reader(self, kind: Kind) -> Reader:
        return self._readers[kind]

    @abstractmethod
    async def version(self) -> Version | None:
        """The version of the data now, or None if the database cannot tell it."""

    @abstractmethod
    def version_now(self) -> Version | None:
        """The same without waiting; None if the caller must wait for the database."""

    @abstractmethod
    async def snapshot(self, at_most: int) -> Snapshot:
        """Every record, if there are at most `at_most`, read as work of the kind LIST."""

    @abstractmethod
    async def run(self, steps: Begin[T], kind: Kind = EDIT) -> T:
        """Do all of these steps or none, in one transaction; return their result. A cancelled caller does not stop them.

        After a failure that may pass, the steps are done again from their beginning.
        """

    async def make(self, steps: Begin[object], kind: Kind = EDIT) -> str | None:
        """Run the steps of a change. Without NAMES_CHANGE the result is None, so a plain addition costs nothing more."""
        if not NAMES_CHANGE.get():
            await self.run(steps, kind)
            return None
        key, _ = await self.run(lambda: _with_item(steps()), kind)
        return key

    async def signing_key(self) -> bytes:
        """The key of 32 random bytes that every worker and instance of this database has; raise Unavailable, Busy."""
        ((key,),) = await self._readers[RECORD].rows(SIGNING_KEY, {})
        return bytes.fromhex(key)

    @abstractmethod
    async def close(self) -> None:
        """Wait for running work, then close every connection."""

    @change
    def add(self, nim: str | None, nama: str | None, alamat: str | None) -> Steps[None]:
        """Insert a record without changing its texts (specification 4.4.1)."""
        refuse_nul(nim, nama, alamat)
        yield "add", {"nim": nim, "nama": nama, "alamat": alamat}

    @change
    def update(
        self, nim: str, nama: str | None, alamat: str | None, expected: str | None = None
    ) -> Steps[None]:
        """Set nama and alamat of the record with that nim, if it exists (specification 4.5).

        With `expected`, the digest of the record that the form showed, only the fields that the form changed are set.
        If someone else has changed one of these since, to another text, raise EditConflict (see `record.combine`); also
        if the record does not exist.
        """
        if expected and nama is not None and alamat is not None:
            current = yield from one("find_locked", nim)
            edited = Mahasiswa(nim, nama, alamat)
            edited, is_conflict = combine(current, edited, expected) if current else (edited, True)
            if is_conflict:
                rows = yield "recent_before", named([nim])
                recent = map(Mahasiswa._make, rows)
                shown = next((old for old in recent if digest(old) == expected), None)
                raise EditConflict(current, edited, shown)
            nama, alamat = edited.nama, edited.alamat
        elif not (yield "find_raw", named([nim])):
            return
        refuse_nul(nim, nama, alamat)
        yield "update", {"nim": nim, "nama": nama, "alamat": alamat}

    @change
    def rename(self, old: str, nim: str | None) -> Steps[None]:
        """Put a record with another nim and the same texts in the place of `old`, as one batch; raise Changed."""
        refuse_nul(nim)
        if nim == old:
            return
        nims = named([old])
        yield "begin_batch", {"kind": "nim"}
        if not (yield "add_renamed", {"nim": nim, **nims}):
            raise Changed(old)
        yield "delete", nims
        yield "end_batch", {}

    @change
    def delete(self, nim: str) -> Steps[None]:
        """Remove the record with that nim, if it exists (specification 4.6)."""
        yield "delete", named([nim])

    async def write_all(
        self, batch: BatchKind, writes: Sequence[Write] = (), removals: Collection[str] = ()
    ) -> str | None:
        """Make all of these changes or none, as one batch of that kind.

        `removals` are the nims of records to remove. A record that needs no change is left alone.

        Raise Changed if a stored record does not match its digest, or if a nim would be changed twice.
        """
        return await self.make(lambda: self._write_all(batch, writes, removals), IMPORT)

    def _write_all(
        self, batch: BatchKind, writes: Sequence[Write], removals: Collection[str]
    ) -> Steps[None]:
        added, changed = yield from _compared(writes)
        if not (added or changed or removals):
            return

        yield "begin_batch", {"kind": batch}
        for nims in slices(sorted(removals), PART_RECORDS):
            yield "delete", named(nims)
        for records in parts(added):
            rows = yield "add_all", {"records": as_json(records)}
            if len(rows) < len(records):
                raise Changed("another transaction has added some meanwhile")
        for records in parts(changed):
            yield "update_all", {"records": as_json(records)}
        yield "end_batch", {}

    async def undo(self, key: str) -> tuple[str | None, int]:
        """Restore the records of an item that still are as the change left them, as one batch.

        Return the key of that batch, and how many records were left alone because they have changed
        since. A change of nim is undone whole or not at all. If an undo has restored the records
        already, as after a double click, nothing is done and there is no key. Raise NothingToUndo,
        NotInHistory, or Refused if a record breaks a rule of the table.
        """
        return await self.run(lambda: _undo(key), IMPORT)

    async def purge(self) -> None:
        """Remove the expired entries, PURGE_ENTRIES in each transaction. Without any, the version does not change."""
        reader = self._readers[RECORD]
        while (await reader.rows("has_expired", {}))[0][0]:
            if not await self.run(_purge):  # another process is removing them
                return


def _compared(writes: Sequence[Write]) -> Steps[tuple[Sequence[Mahasiswa], Sequence[Mahasiswa]]]:
    """The records to add and those to change. Raise Changed if a stored record does not match its digest."""
    added: list[Mahasiswa] = []
    changed: list[Mahasiswa] = []

    expected = dict(writes)
    if len({record.nim for record in expected}) < len(expected):
        raise Changed("a nim is to have two records")
    # Ordered, so that two transactions which lock the same records cannot deadlock.
    for records in parts(sorted(expected)):
        stored = yield from by_nim("find_locked", [record.nim for record in records])
        for record in records:
            current = stored.get(record.nim)
            if current == record:  # as after a double click
                continue
            if expected[record] != (current and digest(current)):
                raise Changed(record.nim)
            refuse_nul(*record)
            (changed if current else added).append(record)
    return added, changed


def _with_item(steps: Steps[object]) -> Steps[tuple[str | None, int]]:
    """Do the steps of a change; return the key of the item that they have written and its rows, or None and 0."""
    ((before,),) = yield "newest_id", {}
    yield from steps
    written = yield "own_item", {"id": before}
    key, rows = written[0] if written else (None, 0)
    return key, rows


def _undo(key: str) -> Steps[tuple[str | None, int]]:
    item = yield from item_with(key)
    if item is None or item.left is None or item.rows > UNDO_ROWS_MAX:
        raise NotInHistory(key)
    if (yield from is_restored(item)):
        return None, 0
    made, restored = yield from _with_item(_restore(item))
    if restored < item.least:
        raise NothingToUndo(item.record and item.record.nim)
    return made, item.rows - restored


def _restore(item: Item) -> Steps[None]:
    """Restore the records of an item. The statements leave a record alone that has changed since."""
    yield "begin_batch", {"kind": item.undo_kind}
    for statement in ("delete_added", "restore_changed", "restore_deleted"):
        yield statement, {"item": item.id}
    yield "end_batch", {}


def _purge() -> Steps[int]:
    return len((yield "purge", {}))


def parts(records: Sequence[Mahasiswa]) -> Iterator[Sequence[Mahasiswa]]:
    """Parts of at most PART_RECORDS records. A part ends with the record that makes it longer than PART_CHARACTERS."""
    for few in slices(records, PART_RECORDS):
        yield from groups(few, characters, PART_CHARACTERS)


def characters(texts: Iterable[str | None]) -> int:
    """The length of the texts of a record."""
    return sum(map(len, filter(None, texts)))


def refuse_nul(*texts: str | None) -> None:
    """Raise Refused for a NUL. No text of PostgreSQL can hold one, so no constraint can refuse it."""
    for field, text in zip(Mahasiswa._fields, texts, strict=False):
        if text and "\0" in text:
            raise Refused(field, "nul")
