"""The class Store: the changes of records, which each engine makes in transactions of its own. An Engine opens a Store."""

import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from mahasiswa.record import Mahasiswa, Write, combine, digest, digest_or_dash
from mahasiswa.store.history_items import (
    NAMES_CHANGE,
    UNDO_CONFLICTS_MAX,
    UNDO_ROWS_MAX,
    BatchKind,
    ItemKey,
    conflict_of,
    key_of,
)
from mahasiswa.store.queries import Query, Suspicion
from mahasiswa.store.reader import Begin, Hits, Reader, Snapshot, Steps, Version, by_nim, one
from mahasiswa.store.store_errors import (
    BatchTooLong,
    Changed,
    EditConflict,
    NotInHistory,
    Refused,
    UndoConflict,
)
from mahasiswa.work import EDIT, IMPORT, RECORD, Kind, groups, slices

LEAPT = (
    "the clock has leapt to %s, or the service was off for days:"
    " no expired entry of the history is removed until a day later"
)

log = logging.getLogger(__name__)

__all__ = ["Hits", "Query", "Reader", "Snapshot", "Store", "Suspicion", "Version"]

# Maximum records and length of texts that one call handles, because a call of C holds the interpreter's lock.
PART_RECORDS = 500
PART_CHARACTERS = 256 * 1024


P = ParamSpec("P")
T = TypeVar("T")


def change(
    steps: Callable[Concatenate["Store", P], Steps[None]],
) -> Callable[Concatenate["Store", P], Coroutine[Any, Any, ItemKey | None]]:
    """Let a method that yields steps make them as a change, by Store.make."""

    @wraps(steps)
    async def make(store: "Store", /, *args: P.args, **kwargs: P.kwargs) -> ItemKey | None:
        return await store.make(lambda: steps(store, *args, **kwargs))

    return make


class Store(ABC):
    """A collection of records keyed by nim. When a write returns, it is on disk.

    Writes raise Unavailable, Refused, Uncertain and Busy, and the errors that each method names. A text that is None is
    missing, and the table's constraint refuses it. With NAMES_CHANGE they return the key of the item of the history
    that they have written, or None without one.

    Triggers of the database keep a history of each change of any program, unless HISTORY_DAYS is 0.
    """

    _readers: Mapping[Kind, Reader]
    _leapt: object = None  # the leap of the clock that the log already reports

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

    async def make(self, steps: Begin[object], kind: Kind = EDIT) -> ItemKey | None:
        """Run the steps of a change. Without NAMES_CHANGE the result is None, so a plain addition costs nothing more."""
        if not NAMES_CHANGE.get():
            await self.run(steps, kind)
            return None
        return await self.run(lambda: self._named(steps()), kind)

    def _named(self, steps: Steps[object]) -> Steps[ItemKey | None]:
        ((before,),) = yield "newest_id", {}
        yield from steps
        written = yield "own_item", {"id": before}
        return key_of(*written[0]) if written else None

    async def signing_key(self) -> bytes:
        """The key of 32 random bytes that every worker and instance of this database has; raise Unavailable, Busy."""
        return await self._readers[RECORD].signing_key()

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
        texts = nama, alamat
        # Without `expected` the stored texts are not needed, so they need not be UTF-8.
        statement = "find_locked" if expected else "find_raw"
        current = yield from one(statement, nim)
        if expected and nama is not None and alamat is not None:
            edited = Mahasiswa(nim, nama, alamat)
            edited, is_conflict = combine(current, edited, expected) if current else (edited, True)
            if is_conflict:
                rows = yield "recent_before", {"nims": [nim]}
                recent = map(Mahasiswa._make, rows)
                shown = next((old for old in recent if digest(old) == expected), None)
                raise EditConflict(current, edited, shown)
            texts = edited.nama, edited.alamat
        if current:
            refuse_nul(nim, *texts)
            yield "update", {"nim": nim, "nama": texts[0], "alamat": texts[1]}

    @change
    def rename(self, old: str, nim: str | None) -> Steps[None]:
        """Put a record with another nim and the same texts in the place of `old`, as one batch; raise Changed."""
        refuse_nul(nim)
        if nim == old:
            return
        nims = {"nims": [old]}
        yield "begin_batch", {"kind": "nim"}
        if not (yield "add_renamed", {"nim": nim, **nims}):
            raise Changed(old)
        yield "delete", nims
        yield "end_batch", {}

    @change
    def delete(self, nim: str) -> Steps[None]:
        """Remove the record with that nim, if it exists (specification 4.6)."""
        yield "delete", {"nims": [nim]}

    async def write_all(
        self, batch: BatchKind, writes: Sequence[Write] = (), removals: Collection[str] = ()
    ) -> ItemKey | None:
        """Make all of these changes or none, as one batch of that kind.

        `removals` are the nims of records to remove. A record that needs no change is left alone.

        Raise Changed if a stored record does not match its digest, or if a nim would be changed twice.
        """
        return await self.make(lambda: self._write_all(batch, writes, removals), IMPORT)

    def _write_all(
        self, batch: BatchKind, writes: Sequence[Write], removals: Collection[str]
    ) -> Steps[None]:
        added: list[Mahasiswa] = []
        changed: list[Mahasiswa] = []

        expected = dict(writes)
        if len({record.nim for record in expected}) < len(expected):
            raise Changed("a nim is to have two records")
        # Ordered, so that two transactions which lock the same records cannot deadlock.
        for records in parts(sorted(expected), characters):
            nims = [record.nim for record in records]
            stored = yield from by_nim("find_locked", nims)
            for record in records:
                current = stored.get(record.nim)
                if current == record:  # as after a double click
                    continue
                if expected[record] != (digest(current) if current else None):
                    raise Changed(record.nim)
                refuse_nul(*record)
                (changed if current else added).append(record)
        if added or changed or removals:
            yield from self._change_all(batch, added, changed, sorted(removals))

    def _change_all(
        self,
        batch: BatchKind,
        added: Sequence[Mahasiswa],
        changed: Sequence[Mahasiswa],
        removed: Sequence[str],
    ) -> Steps[None]:
        yield "begin_batch", {"kind": batch}
        for nims in slices(removed, PART_RECORDS):
            yield "delete", {"nims": nims}
        for records in parts(added, characters):
            rows = yield "add_all", {"records": as_json(records)}
            if len(rows) < len(records):  # another transaction added some meanwhile
                nims = [record.nim for record in records]
                stored = yield from by_nim("find", nims)
                for record in records:
                    if stored.get(record.nim) != record:
                        raise Changed(record.nim)
        for records in parts(changed, characters):
            yield "update_all", {"records": as_json(records)}
        yield "end_batch", {}

    async def undo(
        self,
        item: int,
        *,
        is_batch: bool,
        key: ItemKey | None = None,
        expected: str | None = None,
        only_unchanged: bool = False,
    ) -> ItemKey | None:
        """Restore the record of an entry, or all records of a batch, as a batch of kind "undo".

        All records are restored, or none. A record counts as restored if it already is as it was
        before the change. Raise UndoConflict if a record has changed since. Raise NotInHistory if
        there is no such item, if it has another key than `key`, if the batch is silent, or if some
        of its entries have expired. Raise BatchTooLong if it has more than UNDO_ROWS_MAX rows.
        Raise Refused if a record breaks a rule of the table.

        With `only_unchanged`, the records of a batch that have changed since are left alone. A batch of kind "nim" is
        restored as a whole only, as a batch of the same kind; its entries alone are not in the history.

        With `expected`, the record of an entry may be overwritten if it has this digest, or if it does not exist and
        `expected` is "-". The person has seen that state.
        """
        steps = partial(
            undo,
            item,
            expected,
            key=key,
            is_batch=is_batch,
            only_unchanged=only_unchanged,
        )
        kind = IMPORT if is_batch else EDIT
        try:
            return await self.make(steps, kind)
        except Refused:  # someone has added the nim meanwhile, so now it is a conflict
            return await self.make(steps, kind)

    async def purge(self) -> None:
        """Remove some expired entries, once in PURGE_SECONDS. Without any, the version does not change.

        The clock is noted once a day. After a leap nothing is removed, and the log says so at the next call.
        """
        noted, has_leapt, is_due = await self._readers[RECORD].clock()
        if has_leapt and noted != self._leapt:
            log.warning(LEAPT, noted)
            self._leapt = noted
        if is_due:
            await self.run(self._purge)

    def _purge(self) -> Steps[None]:
        yield "purge", {}


def undo(
    item: int,
    expected: str | None = None,
    *,
    only_unchanged: bool,
    is_batch: bool | None = None,
    key: ItemKey | None = None,
) -> Steps[int]:
    """The steps of `Store.undo` for an entry, or a batch of any length. Their result is the number of records."""
    # Look before any lock, so that an impossible undo waits for no other program.
    kind, rows = yield from _undoable(item, key, is_batch=is_batch)
    if is_batch and rows > UNDO_ROWS_MAX:
        raise BatchTooLong(str(item))
    of_item = {"item": item}
    # If the person has seen that there is no record, there is none to lock.
    yield ("lock_all" if kind or expected == "-" else "lock_record"), of_item
    if not (yield "undoable_locked", of_item):  # it has expired meanwhile
        raise NotInHistory(str(item))
    is_divisible = kind != "nim"
    overwrite = False
    if not (only_unchanged and kind and is_divisible):
        overwrite = yield from _refuse_conflicts(item, kind, expected)
    else:
        ((rows,),) = yield "count_unchanged", of_item
    yield "begin_batch", {"kind": "undo" if is_divisible else "nim"}
    for statement in ("delete_added", "restore_changed", "restore_deleted"):
        yield statement, {**of_item, "overwrite": overwrite}
    yield "end_batch", {}
    return 1 if rows is None else rows


def _undoable(item: int, key: ItemKey | None, *, is_batch: bool | None) -> Steps[tuple[str, Any]]:
    """The kind of a batch, "" for an entry, and its rows; raise NotInHistory."""
    ((kind, rows, moment),) = (yield "undoable", {"item": item}) or [(None, None, None)]
    is_there = kind is not None and is_batch in (None, kind != "")
    if not is_there or key not in (None, key_of(item, moment)):
        raise NotInHistory(str(item))
    return kind, rows


def _refuse_conflicts(item: int, kind: str, expected: str | None) -> Steps[bool]:
    """Raise UndoConflict, unless there is no conflict, or a single conflict that the person has seen.

    Return whether there is a seen conflict. Its record is overwritten.
    """
    # Both records of a changed nim must be as the change left them. Otherwise two records would remain, or none.
    is_divisible = kind != "nim"
    statement = "batch_conflicts" if kind else "entry_conflicts"
    parameters = {"item": item, "is_whole": not is_divisible, "limit": UNDO_CONFLICTS_MAX}
    conflicting = yield statement, parameters
    conflicts = [conflict_of(row) for _, *row in conflicting]
    if not conflicts:
        return False
    if not kind and expected == digest_or_dash(conflicts[0].current):
        return True
    ((unchanged,),) = (yield "count_unchanged", {"item": item}) if is_divisible else [(0,)]
    raise UndoConflict(conflicts, conflicting[0][0], unchanged)


def parts(items: Sequence[T], length: Callable[[T], int]) -> Iterator[Sequence[T]]:
    """Parts of at most PART_RECORDS records. A part ends with the record that makes it longer than PART_CHARACTERS."""
    for few in slices(items, PART_RECORDS):
        yield from groups(few, length, PART_CHARACTERS)


def characters(texts: Iterable[str | None]) -> int:
    """The length of the texts of a record."""
    return sum(map(len, filter(None, texts)))


def refuse_nul(*texts: str | None) -> None:
    """Raise Refused for a NUL. No text of PostgreSQL can hold one, so no constraint can refuse it."""
    for field, text in zip(Mahasiswa._fields, texts, strict=False):
        if text and "\0" in text:
            raise Refused(field, "nul")


def as_json(records: Iterable[Sequence[str | None]]) -> str:
    """Records as one parameter: an array of arrays. On PostgreSQL, three arrays of texts would take seven times as long."""
    return json.dumps(list(records), ensure_ascii=False)
