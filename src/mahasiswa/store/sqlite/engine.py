"""The functions of `store.engines` for a database in an SQLite file."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from mahasiswa.settings import SQLiteURL
from mahasiswa.store.engines import Restored
from mahasiswa.store.findings import Finding
from mahasiswa.store.sqlite import backup as backups
from mahasiswa.store.sqlite import doctor, schema
from mahasiswa.store.sqlite import restore as restoring
from mahasiswa.store.sqlite.store import SQLiteStore
from mahasiswa.work import Slots


def migrate(url: SQLiteURL, history_days: int | None, *, create: bool) -> None:
    schema.migrate(url.path, history_days, create=create)


async def open_store(url: SQLiteURL, slots: Slots | None) -> SQLiteStore:
    return SQLiteStore.open(url.path, slots)


def backup(url: SQLiteURL, to: Path) -> None:
    backups.backup(url.path, to)


def restore(url: SQLiteURL, file: Path) -> Restored:
    return restoring.restore(url.path, file)


def examine(url: SQLiteURL) -> Iterator[Finding]:
    return doctor.examine(url.path)


def backup_files(url: SQLiteURL, folder: Path) -> Sequence[Path]:
    return doctor.backup_files(url.path, folder)


def examine_backup(_url: SQLiteURL, file: Path) -> Finding:
    return doctor.examine_backup(file)
