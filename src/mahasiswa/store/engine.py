"""The class Engine: creates, opens, backs up, restores and checks a database."""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mahasiswa.record import Incoming
from mahasiswa.store import Store
from mahasiswa.store.backup_folder import Backups, read_outcome, write_outcome
from mahasiswa.store.results import Finding, Merged, Restored
from mahasiswa.store.store_errors import Unusable
from mahasiswa.work import Slots


class Engine(ABC):
    """One database. Each method makes connections of its own and closes them, except those of the store."""

    @abstractmethod
    def migrate(
        self,
        history_days: int | None = None,
        *,
        create: bool = True,
        backups: Path | None = None,
    ) -> None:
        """Create the tables, or upgrade those of an earlier version of this program; raise Unusable.

        `history_days` is the setting HISTORY_DAYS, which is written into the database: 0 removes
        the triggers and the history. None, as for a command, keeps the value of the database; a new
        database gets DEFAULT_HISTORY_DAYS. With `create=False`, an SQLite file that does not exist
        is an error. Otherwise it is created, but only if no copy of it has records, beside it or in
        the folder `backups`. If a copy has records, NeedsRepair says how to restore it, or how to
        `begin`.

        All handles are closed when it returns. The service calls it in a process of its own, because no handle of SQLite
        may be open when the workers are forked.
        """

    @contextmanager
    def readable(self) -> Iterator["Engine"]:
        """A database for a command that only reads: this one, or a copy if its disk is read-only."""
        yield self

    def begin(self) -> None:
        """Create the tables if there are none, also beside copies of a lost database; raise Unusable."""
        self.migrate()

    @abstractmethod
    async def open_store(self, slots: Slots) -> Store:
        """Open a database that `migrate` has made ready; raise Unusable."""

    @abstractmethod
    def merge(self, rows: Iterable[Incoming], *, update: bool, dry_run: bool) -> Merged:
        """Import any number of rows, each nim at most once, all or none. With `update`, existing records may change.

        The history has them as one batch of kind "import". More than UNDOABLE_ROWS_MAX rows make a silent batch. Raise
        Unavailable, Unusable, Refused or Uncertain.
        """

    @abstractmethod
    def forget(self, nim: str) -> bool:
        """Remove a record and its history; return False if there was neither. Raise Unavailable, Unusable or TextsRemain."""

    @abstractmethod
    def backup(self, to: Path) -> None:
        """Write a verified copy of the whole database to a file that does not exist yet; raise Unusable."""

    @abstractmethod
    def backup_into(self, folder: Path | None) -> Path | None:
        """Write such a copy to a file of this folder whose name has the time, and return the file; raise Unusable.

        If the newest back-up is the same, that file gets the time now instead. Old back-ups of the folder are removed
        (`backup_folder.expired`). Without a folder the file stands beside the database, and none is removed.
        """

    @abstractmethod
    def restore(self, file: Path) -> Restored:
        """Replace every record by those of a back-up file, in one transaction; raise Unusable.

        The history stays, and the restore is one silent batch in it. The present records are written to a back-up file
        first. A file that is missing, damaged or of a newer release is replaced by the back-up as a whole.
        """

    @abstractmethod
    def examine(self, folder: Path | None, *, quick: bool = False) -> Iterator[Finding]:
        """Check the database; raise Unusable if the service cannot work with it. It leaves no change in the database.

        `folder` is that of the back-ups. The start of the service makes the `quick` checks. `mahasiswa doctor` also makes the slow ones, which read every record.
        """

    @abstractmethod
    def count(self) -> int:
        """The number of records; raise Unusable."""

    @abstractmethod
    def missing(self, folder: Path) -> int:
        """How many records the list lacks, compared with its back-ups of the last 30 days.

        See `missing_records`. Raise OSError.
        """

    @abstractmethod
    def outcome_of(self, folder: Path | None) -> Path:
        """The path for `read_outcome`: the database, or a name in the folder; raise Unusable."""

    def accept(self, folder: Path | None) -> int:
        """Accept the present number of records, so that an earlier loss is no alarm any more.

        Return the number. Raise Unusable.
        """
        place = self.outcome_of(folder)
        count = self.count()
        try:
            last = read_outcome(place)
            accepted = last._replace(missing=0, accepted=time.time(), accepted_records=count)
            write_outcome(place, accepted)
        except OSError as error:
            fault = f"{error.filename or place.parent}: {error.strerror}"
            raise Unusable(f"nothing was accepted: {fault}") from error
        return count

    def doubt(self, folder: Path) -> str:
        """A sentence about an alarming loss of records, or nothing; raise OSError."""
        missing = self.missing(folder)
        return (
            f"the list has {missing} records fewer than within the last 30 days" if missing else ""
        )

    def check_removal(self, folder: Path | None) -> None:
        """Raise Unusable if the list may have lost records, so that its copies are still needed; raise OSError."""
        doubt = "" if self.count() else "the list is empty"
        if folder and not doubt:
            doubt = self.doubt(folder)
        if doubt:
            raise Unusable(f"no copy is removed, because {doubt}")

    @abstractmethod
    def backup_files(self, folder: Path, *, from_future: bool = False) -> Backups:
        """The back-ups of this list in a folder, newest first; raise OSError.

        With `from_future` they are only those that a wrong clock has dated in the future. If the
        database cannot tell which list it is, they are those of all lists with its name.
        """

    @abstractmethod
    def list_id(self) -> str | None:
        """See `id_of_list`; None if the database cannot tell it."""

    @abstractmethod
    def lack_of_room(self, folder: Path) -> str:
        """Why a folder has no room for the next back-up, or nothing; raise OSError."""

    @abstractmethod
    def backup_command(self) -> str:
        """The command that makes a back-up, as the administrator types it."""

    @abstractmethod
    def examine_backup(self, file: Path) -> Finding:
        """Check that a back-up file can be restored."""
