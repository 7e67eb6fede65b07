"""The engine for an SQLite file. Each command has connections of its own."""

import logging
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import apsw

from mahasiswa.record import Incoming, Mahasiswa
from mahasiswa.store import Query, commands, shared_sql
from mahasiswa.store.backup_folder import ANY_LIST, id_of_list
from mahasiswa.store.results import Finding, Merged, Restored, good, wrong
from mahasiswa.store.sqlite import sqlite_schema
from mahasiswa.store.sqlite import sqlite_sql as sql
from mahasiswa.store.sqlite.backup import (
    back_up_in_folder,
    check_integrity,
    complete,
    copy_before,
    copy_upgraded,
    is_lost,
    refuse_if_lost,
    replace_file,
    replace_records,
)
from mahasiswa.store.sqlite.connection import connect, opened, savepoint, transaction
from mahasiswa.store.sqlite.sqlite_errors import explained, usable
from mahasiswa.store.sqlite.sqlite_reader import records, take, take_named
from mahasiswa.store.sqlite.store import SQLiteStore
from mahasiswa.store.store_errors import Unusable
from mahasiswa.system.folder_lock import folder_lock
from mahasiswa.system.unfinished import unfinished
from mahasiswa.work import Slots

log = logging.getLogger(__name__)

# Maximum wait for the readers of the write-ahead log after a record was forgotten.
CHECKPOINT_TIMEOUT_MILLISECONDS = 2000


@dataclass
class SQLiteEngine:
    """One database. Each method makes connections of its own and closes them, except those of the store."""

    _path: Path

    def migrate(self, history_days: int | None = None, backups: Path | None = None) -> None:
        """Create the tables, or upgrade those of an earlier version of this program; raise Unusable.

        `history_days` is the setting HISTORY_DAYS, which is written into the database. None, as for a
        command, keeps the value of the database; a new database gets DEFAULT_HISTORY_DAYS. A file
        that does not exist is created, unless the folder `backups` has back-ups of it. Then NeedsRepair
        names the remedies.

        An older file is copied before it is upgraded. All handles are closed when it returns.
        """
        path = self._path
        # Switching to a write-ahead log needs the file alone, and SQLite's busy timeout does not cover it. A restore and the
        # service lock the folder too.
        with usable(path), folder_lock(path.parent):
            if not path.exists():
                refuse_if_lost(path, backups)
                path.touch(mode=0o600)  # SQLite gives the mode of the file to the write-ahead log
            with opened(path) as db:
                version = sqlite_schema.known_version(db, path)
                if not version:
                    refuse_if_lost(path, backups)
                elif version < len(sqlite_schema.UPGRADES):
                    fault = (
                        f"{path} is of an older version, and could not be copied before its upgrade"
                    )
                    with explained(fault):
                        copy = copy_before(path)
                    log.info(
                        "%s is the list before the upgrade; an older release can restore it", copy
                    )
                sqlite_schema.upgrade(db, version, history_days)
                if db.execute("PRAGMA journal_mode = WAL").get != "wal":
                    raise Unusable(f"{path} cannot have a write-ahead log. It needs a local disk")

    async def open_store(self, slots: Slots) -> SQLiteStore:
        """Open a database that `migrate` has made ready; raise Unusable."""
        with usable(self._path):
            return SQLiteStore(self._path, slots)

    def merge(self, rows: Iterable[Incoming], *, update: bool, dry_run: bool) -> Merged:
        """Import any number of rows, each nim at most once, all or none. With `update`, existing records may change.

        The history has them as one batch of kind "import". More than ENTRIES_MAX rows make a silent batch. The file is
        locked only after all rows were read. Raise Unavailable, Unusable, Refused or Uncertain.
        """
        with opened(self._path) as db:
            with savepoint(db):
                db.execute(sql.CREATE_INCOMING)
                db.executemany(sql.ADD_INCOMING, rows)
            steps = commands.merge(update=update, dry_run=dry_run)
            with transaction(db):
                return (take if dry_run else take_named)(db, steps)

    def forget(self, nim: str) -> tuple[bool, Sequence[str]]:
        """Remove a record and its history; return whether there was one of them, and the other nims that it has had.

        These are the nims immediately before and after this one. Raise Unavailable or Unusable.
        """
        with opened(self._path) as db, transaction(db):
            return take_named(db, commands.forget(nim))

    def rewrite(self) -> None:
        """Write the tables anew, so that the file and its log hold no removed text; raise Unusable."""
        fault = (
            f"{self._path} and its log may still hold the texts. Stop every program that reads it, "
            "make room for twice its size, and run this again"
        )
        with explained(fault), closing(connect(self._path)) as db:
            db.execute("VACUUM")
            # Other writers wait for as long as the attempt takes.
            db.set_busy_timeout(CHECKPOINT_TIMEOUT_MILLISECONDS)
            db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)

    def backup(
        self, folder: Path | None, file: Path | None = None, due_hours: int = 0
    ) -> Iterator[str]:
        """Write a verified copy of the whole database, and yield the lines about it; raise Unusable.

        It gets the name of `file`, which must not exist yet, or in the folder a name with the moment. Then old back-ups
        of the folder are removed (`backup_folder.expired`). With `due_hours`, there is no line and no copy if the newest
        one is younger, or if another program makes one now.
        """
        with opened(self._path) as db, explained(f"no backup was written to {file or folder}"):
            if file:
                with unfinished(file) as copy:
                    yield complete(db, copy, file)
            elif folder:
                yield from back_up_in_folder(db, self._path, folder, due_hours)
            else:
                raise Unusable("name a file for the back-up, or set BACKUP_DIR to a folder")

    def restore(self, file: Path) -> Restored:
        """Replace every record by those of a back-up file, in one transaction; raise Unusable.

        The history stays, and the restore is one silent batch in it. The present records are written to a back-up file
        first. A file that is missing, damaged or of a newer release is replaced by the back-up as a whole.

        An empty database also gets the history of the back-up. The tables of other programs stay. The back-up itself is
        only read: a copy of it is verified and upgraded beside the database.
        """
        path = self._path
        # The folder for temporary files may be small, and may be on another disk, so do not use it.
        with explained(f"{file} cannot be restored in {path.parent}"), unfinished(path) as copy:
            count = copy_upgraded(file, copy)
            if is_lost(path):
                return Restored(count, count, 0, 0, replace_file(path, copy), must_start=True)
            self.migrate()
            return replace_records(path, copy, count)

    def examine(self) -> tuple[Finding, str]:
        """Check the whole database; return also the id of its list, which the names of its back-ups have.

        A damaged database cannot tell the id, so it gets the pattern of any list.
        """
        try:
            with opened(self._path) as db:
                check_integrity(db)
                sqlite_schema.known_version(db, self._path)
                found = good(f"{self._path} is whole and holds {self.count()} records.")
                return found, id_of_list(db.execute(shared_sql.SIGNING_KEY).get)
        except Unusable as error:
            return wrong(str(error)), ANY_LIST

    def records(self) -> Generator[Mahasiswa]:
        """All records at one moment, ordered by nim; raise Unavailable or Unusable."""
        with opened(self._path) as db:
            yield from records(db, Query())

    def count(self) -> int:
        """The number of records; raise Unusable."""
        with opened(self._path) as db:
            return int(db.execute(shared_sql.COUNT).get)
