"""The types of the history: entries, batches, and conflicts of an undo."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple

from mahasiswa.record import Mahasiswa

BatchKind = Literal["import", "delete", "undo"]


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
