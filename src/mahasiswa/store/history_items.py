"""The types of the history: its items and their keys, and the name of the person who makes a change."""

import re
from collections.abc import Sequence
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from mahasiswa.record import Mahasiswa

ENTRIES_MAX = 100_000
"""Maximum rows of an import that the history keeps one by one. A longer one, by command, is a silent batch."""

# Maximum rows of a batch that can be undone: the number of rows that a page imports.
UNDO_ROWS_MAX = 10_000
# Maximum expired entries that a transaction removes; more would delay other changes.
PURGE_ENTRIES = 100

BatchKind = Literal["import", "delete", "undo", "restore", "nim", "tidy"]
# The kind of an entry ("add", "edit", "delete") or of a batch.
ItemKind = Literal["add", "edit"] | BatchKind
Days = tuple[datetime, datetime]  # the first moment of some days, and the first one after them

OLEH: ContextVar[str | None] = ContextVar("oleh", default=None)
"""The name of the person who makes the changes of this request. The store writes it into the history."""

NAMES_CHANGE: ContextVar[bool] = ContextVar("names_change", default=False)
"""Whether the answer of this request names its change. Then each change of the store returns the key of its item."""

key_form = re.compile("[0-9]{1,18}-[0-9]{1,18}")  # both engines count with 64 bits
NO_KEY = "0-0"


def item_key(text: str) -> str:
    """A key from an address, or NO_KEY, which no item has, if the text is malformed."""
    return text if key_form.fullmatch(text) else NO_KEY


def id_of(key: str) -> int:
    return int(key.partition("-")[0])


class Item(NamedTuple):
    """A change of the history: an entry is the change of one record, and a batch has entries that were made together.

    `key` stands in addresses. It is the id, and the moment in us since 1970, because a restored or
    copied database gives the same ids again. `before` is None for an addition, `after` is None for
    a deletion. A batch of several rows has neither, unless it changed a nim. `rows` is the number
    of changed records. `left` is the number of those that are still as the change left them; it is
    None if the change cannot be undone, because the history lacks entries of it. `oleh` is the name
    of the person, or None if it is not known. If the entry was found by its nim, it stands for its
    batch: it has the kind and the rows of the batch, and `batch` is the key of the batch.
    """

    key: str
    kind: ItemKind
    rows: int
    left: int | None
    oleh: str | None
    before: Mahasiswa | None
    after: Mahasiswa | None
    batch: str | None

    @property
    def id(self) -> int:
        return id_of(self.key)

    @property
    def moment(self) -> datetime:
        """The moment in UTC."""
        return datetime.fromtimestamp(int(self.key.partition("-")[2]) / 1_000_000, UTC)

    @property
    def record(self) -> Mahasiswa | None:
        """The record after the change, or the deleted one, if the item is about one record."""
        return self.after or self.before

    @property
    def nim(self) -> str | None:
        return self.record and self.record.nim


class News(NamedTuple):
    """The item above a list. If it added a record, `nim` and `nama` are those of another record that resembles it.

    With `is_near` the nims are nearly the same, otherwise the names and the addresses are.
    """

    item: Item
    is_near: bool = False
    nim: str | None = None
    nama: str | None = None


class HistoryPage(NamedTuple):
    """One page of the history, newest first, and the number of all its items. All are of one moment.

    `head` is the batch of a query that names one, if it exists. `last` is the newest item, or the person's own change.
    """

    total: int
    items: Sequence[Item]
    head: Item | None
    last: Item | None


def item_of(row: Sequence[Any]) -> Item:
    """An item from the columns of the statement `items`.

    They are its key, kind, rows, left and oleh, the key of the entry that stands for it, and the record before and after.
    """
    key, kind, rows, left, oleh, entry, *texts = row
    before, after = (
        None if None in record else Mahasiswa(*record) for record in (texts[:3], texts[3:])
    )
    return Item(entry or key, kind, rows, left, oleh, before, after, entry and key)
