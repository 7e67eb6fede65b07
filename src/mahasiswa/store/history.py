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

BatchKind = Literal["import", "delete", "undo", "restore", "nim"]


class Entry(NamedTuple):
    """The change of one record. `before` is None for an addition, `after` is None for a deletion. `moment` is in UTC."""

    id: int
    moment: datetime
    before: Mahasiswa | None
    after: Mahasiswa | None


class Batch(NamedTuple):
    """Changes that were made, and can be undone, together. `moment` is in UTC.

    `rows` is the number of changed records. `only` is the entry of a batch of one record. A silent batch keeps no
    entries, so it cannot be undone.
    """

    id: int
    moment: datetime
    kind: BatchKind
    rows: int
    is_silent: bool = False
    only: Entry | None = None


class HistoryPage(NamedTuple):
    """One page of the history, newest first, and the number of all its items. Both are of one moment."""

    total: int
    items: Sequence[Entry | Batch]


class Conflict(NamedTuple):
    """An entry that cannot be undone, because the record has changed since. `current` is None if it was deleted."""

    entry: Entry
    current: Mahasiswa | None
