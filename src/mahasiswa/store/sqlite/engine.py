"""The Engine for an SQLite file. Each command has connections of its own."""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import apsw

from mahasiswa.record import Incoming, Mahasiswa
from mahasiswa.store import Query, commands, shared_sql
from mahasiswa.store.engine import Engine
from mahasiswa.store.results import Finding, Merged, Restored
from mahasiswa.store.sqlite import backup, doctor, sqlite_schema
from mahasiswa.store.sqlite import sqlite_sql as sql
from mahasiswa.store.sqlite.connection import connect, opened, savepoint, transaction
from mahasiswa.store.sqlite.restore import restore
from mahasiswa.store.sqlite.sqlite_errors import explained, usable
from mahasiswa.store.sqlite.sqlite_reader import records, take, take_named
from mahasiswa.store.sqlite.store import SQLiteStore
from mahasiswa.work import Slots

# Maximum wait for the readers of the write-ahead log after a record was forgotten.
CHECKPOINT_TIMEOUT_MILLISECONDS = 2000


@dataclass
class SQLiteEngine(Engine):
    _path: Path

    def migrate(self, history_days: int | None = None, backups: Path | None = None) -> None:
        sqlite_schema.migrate(self._path, history_days, backups)

    async def open_store(self, slots: Slots) -> SQLiteStore:
        with usable(self._path):
            return SQLiteStore(self._path, slots)

    def merge(self, rows: Iterable[Incoming], *, update: bool, dry_run: bool) -> Merged:
        """See Engine. The file is locked only after all rows were read."""
        with opened(self._path) as db:
            with savepoint(db):
                db.execute(sql.CREATE_INCOMING)
                db.executemany(sql.ADD_INCOMING, rows)
            steps = commands.merge(update=update, dry_run=dry_run)
            with transaction(db):
                return (take if dry_run else take_named)(db, steps)

    def forget(self, nim: str) -> tuple[bool, Sequence[str]]:
        with opened(self._path) as db, transaction(db):
            return take_named(db, commands.forget(nim))

    def rewrite(self) -> None:
        """See Engine. The free space of the file and its log may hold removed texts."""
        remedy = (
            "Stop every program that reads it, make room for twice its size, and run this again"
        )
        fault = f"{self._path} and its log may still hold the texts. {remedy}"
        with explained(fault), closing(connect(self._path)) as db:
            db.execute("VACUUM")
            # Other writers wait for as long as the attempt takes.
            db.set_busy_timeout(CHECKPOINT_TIMEOUT_MILLISECONDS)
            db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)

    def backup(
        self, folder: Path | None, file: Path | None = None, due_hours: int = 0
    ) -> Iterator[str]:
        return backup.back_up(self._path, folder, file, due_hours)

    def restore(self, file: Path) -> Restored:
        return restore(self._path, file)

    def examine(self, folder: Path | None, backup_hours: int) -> Iterator[Finding]:
        return doctor.examine(self._path, folder, backup_hours)

    def records(self) -> Generator[Mahasiswa]:
        with opened(self._path) as db:
            yield from records(db, Query())

    def count(self) -> int:
        with opened(self._path) as db:
            return int(db.execute(shared_sql.COUNT).get)
