"""The Engine for an SQLite file. Each command has connections of its own."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import apsw

from mahasiswa.record import Incoming
from mahasiswa.store import commands
from mahasiswa.store.backup_folder import Backups, lack_of_room, read_outcome
from mahasiswa.store.engine import Engine
from mahasiswa.store.results import Finding, Merged, Restored
from mahasiswa.store.sqlite import backup, doctor, sqlite_schema
from mahasiswa.store.sqlite import sqlite_sql as sql
from mahasiswa.store.sqlite.connection import (
    connect,
    interruptible,
    real_file,
    savepoint,
    transaction,
)
from mahasiswa.store.sqlite.restore import restore
from mahasiswa.store.sqlite.sqlite_errors import refusal, usable
from mahasiswa.store.sqlite.sqlite_reader import take, take_named
from mahasiswa.store.sqlite.store import SQLiteStore
from mahasiswa.store.store_errors import TextsRemain, Unusable
from mahasiswa.system.administrator import typed
from mahasiswa.work import Slots

# Maximum wait for the readers of the write-ahead log after a record was forgotten.
CHECKPOINT_TIMEOUT_SECONDS = 10
CHECKPOINT_INTERVAL_SECONDS = 0.1


@dataclass
class SQLiteEngine(Engine):
    _path: Path

    def migrate(
        self,
        history_days: int | None = None,
        *,
        create: bool = True,
        backups: Path | None = None,
    ) -> None:
        if create:
            with usable(self._path):
                backup.refuse_if_lost(self._path, backups)
        sqlite_schema.migrate(self._path, history_days, create=create, copy_first=True)

    def begin(self) -> None:
        sqlite_schema.migrate(self._path)

    @contextmanager
    def readable(self) -> Iterator["SQLiteEngine"]:
        """See Engine. SQLite needs a write-ahead log beside the file."""
        if not (self._path.exists() and os.statvfs(self._path).f_flag & os.ST_RDONLY):
            yield self
            return
        with tempfile.TemporaryDirectory() as folder, usable(self._path):
            copy = Path(folder) / self._path.name
            for suffix in ("", "-wal"):
                with suppress(FileNotFoundError):
                    shutil.copyfile(f"{real_file(self._path)}{suffix}", f"{copy}{suffix}")
            yield SQLiteEngine(copy)

    async def open_store(self, slots: Slots) -> SQLiteStore:
        with usable(self._path):
            return SQLiteStore(self._path, slots)

    def merge(self, rows: Iterable[Incoming], *, update: bool, dry_run: bool) -> Merged:
        """See Engine. The file is locked only after all rows were read."""
        with _connected(self._path) as db:
            with savepoint(db):
                db.execute(sql.CREATE_INCOMING)
                db.executemany(sql.ADD_INCOMING, rows)
            with transaction(db):
                began = time.monotonic()
                steps = commands.merge(update=update, dry_run=dry_run)
                with interruptible(db):
                    merged = (take if dry_run else take_named)(db, steps)
            return merged._replace(seconds=time.monotonic() - began)

    def forget(self, nim: str) -> bool:
        with _connected(self._path) as db:
            with transaction(db), interruptible(db):
                was_known = take_named(db, commands.forget(nim))
            try:
                _erase_traces(db)
            except apsw.Error as error:
                remedy = (
                    "make room on the disk, up to twice the size of the file"
                    if isinstance(error, apsw.FullError)
                    else "stop every program that has the file open, such as Litestream"
                )
                raise TextsRemain(
                    f"{self._path} and {real_file(self._path)}-wal",
                    f" ({error}); {remedy}, then run the command again",
                    was_known=was_known,
                ) from error
        return was_known

    def backup(self, to: Path) -> None:
        backup.backup(self._path, to)

    def backup_into(self, folder: Path | None) -> Path | None:
        return backup.backup_into(self._path, folder)

    def restore(self, file: Path) -> Restored:
        return restore(self._path, file)

    def examine(self, folder: Path | None, *, quick: bool = False) -> Iterator[Finding]:
        return doctor.examine(self._path, folder, quick=quick)

    def count(self) -> int:
        count = backup.count_records(self._path)
        if count is None:
            raise Unusable(f"{self._path} cannot be read")
        return count

    def missing(self, folder: Path) -> int:
        return backup.lacking(self._path, folder, read_outcome(self._path))

    def outcome_of(self, folder: Path | None) -> Path:
        del folder  # the outcome stands beside the database
        return self._path

    def backup_files(self, folder: Path, *, from_future: bool = False) -> Backups:
        return backup.backup_files(self._path, folder, self.list_id(), from_future=from_future)

    def list_id(self) -> str | None:
        return backup.id_in(self._path)

    def lack_of_room(self, folder: Path) -> str:
        return lack_of_room(folder, self._path.stat().st_size if self._path.exists() else 0)

    def backup_command(self) -> str:
        return typed("backup")

    def examine_backup(self, file: Path) -> Finding:
        return doctor.examine_backup(file)


@contextmanager
def _connected(path: Path) -> Iterator[apsw.Connection]:
    """Open the file for a command; raise Refused, Unavailable or Unusable."""
    try:
        with closing(connect(path)) as db:
            yield db
    except apsw.ConstraintError as error:
        raise refusal(error) from error
    except apsw.Error:
        with usable(path):
            raise


def _erase_traces(db: apsw.Connection) -> None:
    """Rewrite the file without its free space, which may hold removed texts, and empty the log; raise apsw.Error."""
    db.execute("VACUUM")
    # Many short attempts: other writers wait for as long as one attempt takes.
    db.set_busy_timeout(int(CHECKPOINT_INTERVAL_SECONDS * 1000))
    deadline = time.monotonic() + CHECKPOINT_TIMEOUT_SECONDS
    while True:
        try:
            db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(CHECKPOINT_INTERVAL_SECONDS)
        else:
            return
