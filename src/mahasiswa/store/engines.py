"""Chooses the engine of a database by the scheme of its address: creates, opens, backs up, restores and checks it.

Each engine has a module with functions of the same names and parameters. They get the address of the database in place of
its URL: the path of the SQLite file, or the text that libpq reads.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from mahasiswa.record import Incoming
from mahasiswa.settings import DatabaseURL
from mahasiswa.work import Slots

if TYPE_CHECKING:
    from mahasiswa.store import Store

StopCheck = Callable[[], bool]
"""Raises to stop the work, for example after Ctrl-C. Otherwise it returns False, as SQLite's progress handler must."""

ENGINES = {"sqlite": "mahasiswa.store.sqlite.engine", "postgresql": "mahasiswa.store.postgres.engine"}


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

    `incomplete` are the row numbers of new records that lack nama or alamat. If there are any, nothing was written.
    """

    new: int
    changed: int
    same: int
    incomplete: Sequence[int]
    seconds: float = 0.0
    """Time for which other programs could not write. Reading the rows of the import does not count."""


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
    seconds: float = 0.0
    """Time for which other programs could not write."""


def migrate(url: DatabaseURL, history_days: int | None = None, *, create: bool = True) -> None:
    """Create the tables, or upgrade those of an earlier version of this program; raise Unusable.

    `history_days` is the setting HISTORY_DAYS, which is written into the database: 0 removes the triggers and the
    history. None, as for a command, keeps the value of the database; a new database gets DEFAULT_HISTORY_DAYS.
    With `create=False`, an SQLite file that does not exist is an error.

    All handles are closed when it returns. The service calls it in a process of its own, because no handle of SQLite
    may be open when the workers are forked.
    """
    _engine(url).migrate(url.address, history_days, create=create)


async def open_store(url: DatabaseURL, slots: Slots) -> "Store":
    """Open a database that `migrate` has made ready; raise Unusable."""
    return cast("Store", await _engine(url).open_store(url.address, slots))


def merge(url: DatabaseURL, rows: Iterable[Incoming], *, update: bool, dry_run: bool) -> Merged:
    """Import any number of rows, each nim at most once, all or none. With `update`, existing records may change.

    The history has them as one batch of kind "import". More than UNDOABLE_ROWS_MAX rows make a silent batch. Raise
    Unavailable, Refused or Uncertain.
    """
    return cast("Merged", _engine(url).merge(url.address, rows, update=update, dry_run=dry_run))


def forget(url: DatabaseURL, nim: str) -> bool:
    """Remove the record with that nim and all its history. Return False if there was neither.

    Raise Unavailable, or TextsRemain if old copies of the texts could not be removed from the database's files.
    """
    return cast("bool", _engine(url).forget(url.address, nim))


def backup(url: DatabaseURL, to: Path, check: StopCheck) -> None:
    """Write a verified copy of the whole database to a file that does not exist yet; raise Unusable.

    `check` is called often, and may raise to stop the work. The same holds for `check` in the other functions.
    """
    _engine(url).backup(url.address, to, check)


def backup_into(url: DatabaseURL, folder: Path | None, check: StopCheck, max_age_seconds: float = 0.0) -> Path | None:
    """Write such a copy to a file of this folder whose name has the time, and return the file; raise Unusable.

    If the newest back-up is the same, that file gets the time now instead. With `max_age_seconds`, nothing is done if the
    newest one is younger, and the result is None. Old back-ups of the folder are removed (`backup_folder.expire`). Without a
    folder the file stands beside the database, and none is removed.
    """
    return cast("Path | None", _engine(url).backup_into(url.address, folder, check, max_age_seconds))


def restore(url: DatabaseURL, file: Path, check: StopCheck) -> Restored:
    """Replace every record by those of a back-up file, in one transaction; raise Unusable.

    The history stays, and the restore is one silent batch in it. The present records are written to a back-up file first.
    A file that is missing, damaged or of a newer release is replaced by the back-up as a whole.
    """
    return cast("Restored", _engine(url).restore(url.address, file, check))


def examine(url: DatabaseURL, check: StopCheck, *, quick: bool = False) -> Iterator[Finding]:
    """Check the database; raise Unusable if the service cannot work with it. Nothing stays written to it.

    The start of the service makes the `quick` checks. `mahasiswa doctor` makes these, and those that read every record.
    """
    yield from _engine(url).examine(url.address, check, quick=quick)


def backup_files(url: DatabaseURL, folder: Path) -> Sequence[Path]:
    """The back-ups of this database in a folder, newest first; raise OSError."""
    return cast("Sequence[Path]", _engine(url).backup_files(url.address, folder))


def backups_that_hold(url: DatabaseURL, folder: Path | None, nim: str) -> Sequence[Path]:
    """The back-ups in this folder and beside the database that hold that nim, or that cannot be read."""
    return cast("Sequence[Path]", _engine(url).backups_that_hold(url.address, folder, nim))


def examine_backup(url: DatabaseURL, file: Path, check: StopCheck) -> Finding:
    """Check that a back-up file can be restored."""
    return cast("Finding", _engine(url).examine_backup(file, check))


def _engine(url: DatabaseURL) -> Any:  # noqa: ANN401 - a module, chosen at run time
    # An engine is imported only if it is chosen: SQLite alone needs no psycopg.
    return import_module(ENGINES[url.scheme])
