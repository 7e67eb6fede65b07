"""The class Engine: creates, opens, backs up, restores and checks a database."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path

from mahasiswa.record import Incoming, Mahasiswa
from mahasiswa.store import Store
from mahasiswa.store.results import Finding, Merged, Restored
from mahasiswa.work import Slots


class Engine(ABC):
    """One database. Each method makes connections of its own and closes them, except those of the store."""

    @abstractmethod
    def migrate(self, history_days: int | None = None, backups: Path | None = None) -> None:
        """Create the tables, or upgrade those of an earlier version of this program; raise Unusable.

        `history_days` is the setting HISTORY_DAYS, which is written into the database. None, as for a
        command, keeps the value of the database; a new database gets DEFAULT_HISTORY_DAYS. An SQLite file
        that does not exist is created, unless the folder `backups` has back-ups of it. Then NeedsRepair
        names the remedies.

        All handles are closed when it returns.
        """

    @abstractmethod
    async def open_store(self, slots: Slots) -> Store:
        """Open a database that `migrate` has made ready; raise Unusable."""

    @abstractmethod
    def merge(self, rows: Iterable[Incoming], *, update: bool, dry_run: bool) -> Merged:
        """Import any number of rows, each nim at most once, all or none. With `update`, existing records may change.

        The history has them as one batch of kind "import". More than ENTRIES_MAX rows make a silent batch. Raise
        Unavailable, Unusable, Refused or Uncertain.
        """

    @abstractmethod
    def forget(self, nim: str) -> tuple[bool, Sequence[str]]:
        """Remove a record and its history; return whether there was one of them, and the other nims that it has had.

        These are the nims immediately before and after this one. Raise Unavailable or Unusable.
        """

    @abstractmethod
    def rewrite(self) -> None:
        """Write the tables anew, so that their files hold no removed text; raise Unusable."""

    @abstractmethod
    def backup(
        self, folder: Path | None, file: Path | None = None, due_hours: int = 0
    ) -> Iterable[str]:
        """Write a verified copy of the whole database, and yield the lines about it; raise Unusable.

        It gets the name of `file`, which must not exist yet, or in the folder a name with the moment. Then old back-ups
        of the folder are removed (`backup_folder.expired`). With `due_hours`, there is no line and no copy if the newest
        one is younger, or if another program makes one now.
        """

    @abstractmethod
    def restore(self, file: Path) -> Restored:
        """Replace every record by those of a back-up file, in one transaction; raise Unusable.

        The history stays, and the restore is one silent batch in it. The present records are written to a back-up file
        first. A file that is missing, damaged or of a newer release is replaced by the back-up as a whole.
        """

    @abstractmethod
    def examine(self, folder: Path | None, backup_hours: int) -> Iterable[Finding]:
        """Check the database, its disk and its newest back-up in this folder."""

    @abstractmethod
    def records(self) -> Generator[Mahasiswa]:
        """All records at one moment, ordered by nim; raise Unavailable or Unusable."""

    @abstractmethod
    def count(self) -> int:
        """The number of records; raise Unusable."""
