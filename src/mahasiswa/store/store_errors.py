"""Every error that a store raises on purpose, as one tree."""

from dataclasses import dataclass

from mahasiswa.record import Mahasiswa

REASONS = ("missing", "duplicate", "unaddressable", "too_long", "nul")


class StoreError(Exception):
    """Base of all of them. Nothing was done, unless the error says otherwise."""


class Refused(StoreError):
    """A constraint of the table refuses the record: `field` is the column, `reason` the rule, one of REASONS."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class Changed(StoreError):
    """The record has changed since the change was prepared. The text is its nim."""


@dataclass(eq=False)
class EditConflict(StoreError):
    """Someone else has changed a field that an edit form changed too, to another text, or has deleted the record.

    `current` is the stored record, or None if it was deleted. `edited` is the record that the form would store: it has
    the stored text in each field that the form did not change. `before` is the record that the form showed, if the history still has it.
    """

    current: Mahasiswa | None
    edited: Mahasiswa
    before: Mahasiswa | None


class NotInHistory(StoreError):
    """The history cannot undo the change: it has expired, was forgotten, never was there, or has too many rows."""


@dataclass(eq=False)
class NothingToUndo(StoreError):
    """Each record of a change has changed since. `nim` is that of the only record, or None if there are several."""

    nim: str | None


class Unavailable(StoreError):
    """The database cannot be read or written now."""


class Locked(Unavailable):
    """Another program has held a lock until the deadline."""


class TookTooLong(Unavailable):
    """A step of a web request was interrupted at its deadline."""


class Uncertain(StoreError):
    """The commit has perhaps been made, or may not last. An addition may be repeated, because a second one is a duplicate."""


class Unusable(StoreError):
    """The database cannot be used. The text is one line for the operator, perhaps with SQL below it."""


class NeedsRepair(Unusable):
    """An operator must change the database or the program first, so a restart of the service is in vain."""
