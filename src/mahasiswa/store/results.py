"""The results of an engine's work: findings of checks, and the numbers of an import and of a restore."""

from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple


class Finding(NamedTuple):
    """One sentence about the installation. If something is wrong, a second sentence gives the remedy."""

    text: str
    is_good: bool


def good(text: str) -> Finding:
    return Finding(text, is_good=True)


def wrong(text: str) -> Finding:
    return Finding(text, is_good=False)


class Merged(NamedTuple):
    """The result of an import, also of a dry run: the numbers of new, changed and unchanged records.

    `incomplete` are the nims of new records that lack nama or alamat. If there are any, nothing was written.
    """

    new: int
    changed: int
    same: int
    incomplete: Collection[str]


class Restored(NamedTuple):
    """The result of `restore`: the number of records now, and of those that were added, changed and removed.

    `backup` is the file with the database as it was before, or None if nothing was replaced. With `must_start`, the file
    itself was replaced, so the service must be started or restarted.
    """

    records: int
    added: int
    changed: int
    removed: int
    backup: Path | None = None
    must_start: bool = False
