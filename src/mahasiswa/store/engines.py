"""Chooses the engine of a database by the scheme of its address: creates, opens, backs up, restores and checks it.

Each engine has a module with functions of the same names and parameters.
"""

from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mahasiswa.settings import DatabaseURL
from mahasiswa.store.findings import Finding
from mahasiswa.work import Slots

if TYPE_CHECKING:
    from mahasiswa.store import Store

ENGINES = {"sqlite": "mahasiswa.store.sqlite.engine", "postgresql": "mahasiswa.store.postgres.engine"}


class Restored(NamedTuple):
    """The result of `restore`: the number of records now, and of those that were added, changed and removed.

    `backup` is the file with the database as it was before, or None if nothing had to be changed.
    """

    records: int
    added: int
    changed: int
    removed: int
    backup: Path | None = None
    seconds: float = 0.0
    """Time for which other programs could not write."""


def migrate(url: DatabaseURL, history_days: int | None = None, *, create: bool = True) -> str | None:
    """Create the tables, or upgrade those of an earlier version of this program; raise Unusable.

    `history_days` is the setting HISTORY_DAYS, which is written into the database: 0 removes the triggers and the
    history. None, as for a command, keeps the value of the database; a new database gets DEFAULT_HISTORY_DAYS.
    With `create=False`, an SQLite file that does not exist is an error.

    Return a warning if the server's settings can lose an acknowledged change.
    All handles are closed when it returns. The service calls it in a process of its own, because no handle of SQLite
    may be open when the workers are forked.
    """
    warning: str | None = _engine(url).migrate(url, history_days, create=create)
    return warning


async def open_store(url: DatabaseURL, slots: Slots | None = None) -> "Store":
    """Open a database that `migrate` has made ready; raise Unusable.

    The service gives the slots of its worker. Without them, as for a command, no queue is bounded and no read has a
    deadline.
    """
    store: Store = await _engine(url).open_store(url, slots)
    return store


def backup(url: DatabaseURL, to: Path) -> None:
    """Write a verified copy of the whole database to a file that does not exist yet; raise Unusable."""
    _engine(url).backup(url, to)


def restore(url: DatabaseURL, file: Path) -> Restored:
    """Replace every record by those of a back-up file, in one transaction; raise Unusable.

    The history stays, and the restore is one silent batch in it. The present records are written to a back-up file first.
    """
    restored: Restored = _engine(url).restore(url, file)
    return restored


def examine(url: DatabaseURL) -> Iterator[Finding]:
    """Check the database for `mahasiswa doctor`. Nothing is written to it."""
    yield from _engine(url).examine(url)


def backup_files(url: DatabaseURL, folder: Path) -> Sequence[Path]:
    """The files of a folder that are named as back-ups of this engine, without the database itself; raise OSError."""
    files: Sequence[Path] = _engine(url).backup_files(url, folder)
    return files


def examine_backup(url: DatabaseURL, file: Path) -> Finding:
    """Check that a back-up file can be restored."""
    finding: Finding = _engine(url).examine_backup(url, file)
    return finding


def _engine(url: DatabaseURL) -> Any:  # noqa: ANN401 - a module, chosen at run time
    # An engine is imported only if it is chosen: SQLite alone needs no psycopg.
    return import_module(ENGINES[url.scheme])
