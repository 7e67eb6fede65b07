"""The types of the history: entries, batches, and conflicts of an undo."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple

from mahasiswa.record import Mahasiswa

UNDOABLE_ROWS_MAX = 100_000
"""Maximum rows of an import that the history keeps one by one. A longer one, by command, is a silent batch."""

UNDO_CONFLICTS_MAX = 50
"""Maximum conflicts that an undo names."""

PURGE_ENTRIES = 100
"""Maximum expired entries that one transaction removes. With 500, other changes wait up to 19 ms longer."""

PURGE_SECONDS = 60
"""Minimum time between two purges that no other change has caused, because each is a new version of the list."""

BatchKind = Literal["import", "delete", "undo", "restore", "nim", "tidy"]
ItemKind = Literal["add", "edit"] | BatchKind
"""The kind of an entry ("add", "edit", "delete") or of a batch."""


Days = tuple[datetime, datetime]
"""The first moment of some days, and the first one after them."""


class Entry(NamedTuple):
    """The change of one record. `before` is None for an addition, `after` is None for a deletion. `moment` is in UTC.

    `twin` is another record with the same `near_key`. Only the newest item has it, if it is an addition.
    """

    id: int
    moment: datetime
    before: Mahasiswa | None
    after: Mahasiswa | None
    twin: Mahasiswa | None = None

    @property
    def kind(self) -> ItemKind:
        return "add" if self.before is None else "delete" if self.after is None else "edit"

    @property
    def is_blank(self) -> bool:
        """Whether it added a record without a nim or a nama."""
        return (
            self.before is None and self.after is not None and not (self.after.nim.strip() and self.after.nama.strip())
        )


class Batch(NamedTuple):
    """Changes that were made, and can be undone, together. `moment` is in UTC.

    `rows` is the number of changed records. `only` is the entry of a batch of one record; for the kind "nim", its record
    before and after. A silent batch keeps no entries, so it cannot be undone.
    """

    id: int
    moment: datetime
    kind: BatchKind
    rows: int
    is_silent: bool = False
    only: Entry | None = None


class HistoryPage(NamedTuple):
    """One page of the history, newest first, and the number of all its items. All are of one moment.

    `head` is the batch of a query that names one, if it exists. `last` is the newest item of the history.
    """

    total: int
    items: Sequence[Entry | Batch]
    head: Batch | None = None
    last: Entry | Batch | None = None


class Conflict(NamedTuple):
    """An entry that cannot be undone, because the record has changed since. `current` is None if it was deleted."""

    entry: Entry
    current: Mahasiswa | None
