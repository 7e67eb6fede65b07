"""The functions of `store.engines` for a database in an SQLite file."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from mahasiswa.record import Incoming
from mahasiswa.settings import SQLiteURL
from mahasiswa.store.copies import copies
from mahasiswa.store.engines import Check, Merged, Restored
from mahasiswa.store.findings import Finding
from mahasiswa.store.sqlite import backup as backups
from mahasiswa.store.sqlite import commands, doctor, schema
from mahasiswa.store.sqlite import restore as restoring
from mahasiswa.store.sqlite.store import SQLiteStore
from mahasiswa.work import Slots


def migrate(url: SQLiteURL, history_days: int | None, *, create: bool) -> None:
    schema.migrate(url.path, history_days, create=create)


async def open_store(url: SQLiteURL, slots: Slots) -> SQLiteStore:
    return SQLiteStore.open(url.path, slots)


def merge(url: SQLiteURL, rows: Iterable[Incoming], *, update: bool, dry_run: bool) -> Merged:
    return commands.merge(url.path, rows, update=update, dry_run=dry_run)


def forget(url: SQLiteURL, nim: str) -> bool:
    return commands.forget(url.path, nim)


def backup(url: SQLiteURL, to: Path, check: Check) -> None:
    backups.backup(url.path, to, check)


def backup_into(url: SQLiteURL, folder: Path | None, check: Check, max_age_seconds: float) -> Path | None:
    into = folder or url.path.parent
    return backups.backup_into(url.path, into, check, max_age_seconds, expires=folder is not None)


def restore(url: SQLiteURL, file: Path, check: Check) -> Restored:
    return restoring.restore(url.path, file, check)


def examine(url: SQLiteURL, check: Check, *, quick: bool) -> Iterator[Finding]:
    return doctor.examine(url.path, check, quick=quick)


def backup_files(url: SQLiteURL, folder: Path) -> Sequence[Path]:
    return copies(folder, url.path.stem, backups.SUFFIX)


def backups_that_hold(url: SQLiteURL, folder: Path | None, nim: str) -> Sequence[Path]:
    return doctor.backups_that_hold(url.path, folder, nim)


def examine_backup(_url: SQLiteURL, file: Path, check: Check) -> Finding:
    return doctor.examine_backup(file, check)
