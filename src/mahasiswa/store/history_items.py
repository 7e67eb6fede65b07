"""The types of the history: entries, batches, conflicts of an undo, and the name of the person who makes a change."""

from collections.abc import Sequence
from contextvars import ContextVar
from datetime import datetime
from typing import Any, Literal, NamedTuple, Self

from mahasiswa.digits import whole_number
from mahasiswa.record import Mahasiswa

UNDOABLE_ROWS_MAX = 100_000
"""Maximum rows of an import that the history keeps one by one. A longer one, by command, is a silent batch."""

# Maximum rows of a batch that a web request undoes: the number of rows that it imports.
UNDO_ROWS_MAX = 10_000
UNDO_CONFLICTS_MAX = 50  # maximum conflicts that an undo names
# Maximum expired entries that a transaction removes; more would delay other changes.
PURGE_ENTRIES = 100

PURGE_SECONDS = 60
"""Minimum time between two purges by the timer. Each purge is a new version of the list."""

BatchKind = Literal["import", "delete", "undo", "restore", "nim", "tidy"]
# The kind of an entry ("add", "edit", "delete") or of a batch.
ItemKind = Literal["add", "edit"] | BatchKind
Days = tuple[datetime, datetime]  # the first moment of some days, and the first one after them

OLEH: ContextVar[str | None] = ContextVar("oleh", default=None)
"""The name of the person who makes the changes of this request. The store writes it into the history."""

NAMES_CHANGE: ContextVar[bool] = ContextVar("names_change", default=False)
"""Whether the answer of this request names its change. Then each change of the store returns its ItemKey."""

ID_MAX_DIGITS = 18  # both engines count entries and batches with 64 bits


class ItemKey(NamedTuple):
    """The key of an item of the history in addresses: its id, and its moment in us since 1970.

    The id alone is not enough, because a restored or copied database gives the same ids again.
    """

    id: int
    moment: int

    @classmethod
    def of(cls, text: str) -> Self:
        """The key that str() has written. For any other text, the result is the key of no item."""
        numbers = text.partition("-")[::2]
        return cls(*(whole_number(number, ID_MAX_DIGITS) or 0 for number in numbers))

    def __str__(self) -> str:
        return f"{self.id}-{self.moment}"


def key_of(number: int, moment: datetime | str) -> ItemKey:
    """The key of an item from its columns id and moment."""
    at = moment if isinstance(moment, datetime) else datetime.fromisoformat(moment)
    return ItemKey(number, round(at.timestamp() * 1_000_000))


class Entry(NamedTuple):
    """The change of one record. `before` is None for an addition, `after` is None for a deletion. `moment` is in UTC.

    `near` and `twin` are set for an addition that is the newest item or the person's own change.
    `near` is another record with the same `near_key`, `twin` one with the same name and address.
    `oleh` is the name of the person, or None if it is not known. `stands` is False for an own
    change whose record has changed since.
    """

    id: int
    moment: datetime
    before: Mahasiswa | None
    after: Mahasiswa | None
    near: Mahasiswa | None = None
    twin: Mahasiswa | None = None
    oleh: str | None = None
    stands: bool = True

    @property
    def key(self) -> ItemKey:
        return key_of(self.id, self.moment)

    @property
    def kind(self) -> ItemKind:
        return "add" if self.before is None else "delete" if self.after is None else "edit"

    @property
    def added(self) -> Mahasiswa | None:
        """The record that it added, if it is an addition."""
        return None if self.before else self.after


class Batch(NamedTuple):
    """A batch: changes that were made together, and can be undone together. `moment` is in UTC.

    `rows` is the number of changed records. `only` is the one entry to show: that of a batch of one
    record, or that of the searched nim. For the kind "nim" it has the record before and after. A
    silent batch keeps no entries, or one of two nims, so it cannot be undone. `left` is the number of
    records that have not changed since; if it is 0, there is nothing to undo.
    """

    id: int
    moment: datetime
    kind: BatchKind
    rows: int
    is_silent: bool = False
    left: int = 0
    only: Entry | None = None
    oleh: str | None = None

    @property
    def key(self) -> ItemKey:
        return key_of(self.id, self.moment)


Item = Entry | Batch
"""An item of the history: the change of one record, or a batch of them."""


class HistoryPage(NamedTuple):
    """One page of the history, newest first, and the number of all its items. All are of one moment.

    `head` is the batch of a query that names one, if it exists. `last` is the newest item of the history.
    """

    total: int
    items: Sequence[Item]
    head: Batch | None = None
    last: Item | None = None


class Conflict(NamedTuple):
    """An entry that cannot be undone, because the record has changed since. `current` is None if it was deleted."""

    entry: Entry
    current: Mahasiswa | None


def item_of(row: Sequence[Any]) -> Item:
    """An item from the columns that both engines select: those of a batch, then those of its entry.

    If a batch has changed a nim, its entry is the addition, and the column before it is the old nim.
    """
    number, moment, kind, rows, is_silent, left, oleh, old_nim, *entry = row
    only = None if entry[0] is None else entry_of(entry)
    if kind is None and only:
        return only
    if kind == "nim" and only and only.after:
        only = None if old_nim is None else only._replace(before=only.after._replace(nim=old_nim))
    is_halved = kind == "nim" and rows < 2  # one of its two nims was forgotten
    return Batch(
        number,
        datetime.fromisoformat(moment),
        kind,
        rows,
        bool(is_silent) or is_halved,
        left,
        only,
        oleh,
    )


def entry_of(columns: Sequence[Any]) -> Entry:
    """An entry from its columns: nim, then nama and alamat before and after, stand last."""
    number, moment, oleh, nim, nama_before, alamat_before, nama_after, alamat_after = columns
    before = record_of(nim, nama_before, alamat_before)
    after = record_of(nim, nama_after, alamat_after)
    return Entry(number, datetime.fromisoformat(moment), before, after, oleh=oleh)


def conflict_of(row: Sequence[Any]) -> Conflict:
    """A conflict from the columns of an entry and of its record. Without a record they are NULL."""
    return Conflict(entry_of(row[:-3]), record_of(*row[-3:]))


def record_of(*texts: Any) -> Mahasiswa | None:  # noqa: ANN401 - columns
    """A record from its columns, or None if its texts are NULL."""
    return None if None in texts else Mahasiswa(*texts)
