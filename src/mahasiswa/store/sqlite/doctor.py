"""Checks an SQLite file, its disk and the age of its newest back-up for `mahasiswa doctor`."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from mahasiswa.store import shared_sql
from mahasiswa.store.backup_folder import lack_of_room
from mahasiswa.store.results import Finding, good, wrong
from mahasiswa.store.sqlite import backup, sqlite_schema
from mahasiswa.store.sqlite import sqlite_sql as sql
from mahasiswa.store.sqlite.connection import opened, real_file
from mahasiswa.store.sqlite.sqlite_errors import access_problem
from mahasiswa.store.store_errors import Unusable
from mahasiswa.system.administrator import process_user, typed

# Maximum time for a back-up after the newest one has the age of BACKUP_HOURS.
BACKUP_DELAY = timedelta(hours=2)


def examine(path: Path, folder: Path | None, backup_hours: int) -> Iterator[Finding]:
    """See Engine."""
    yield _database(path)
    yield _place(real_file(path))
    if folder:
        yield _newest_backup(path, folder, timedelta(hours=backup_hours))
    else:
        yield wrong("No back-ups are made. Set BACKUP_DIR to a folder.")


def _database(path: Path) -> Finding:
    nim = ""
    try:
        with opened(path) as db:
            backup.check_integrity(db)
            version = sqlite_schema.known_version(db, path)
            if not version:
                restore = typed("restore FILE")
                return wrong(f"{path} holds no list. Correct DATABASE_URL, or run: {restore}")
            if version < len(sqlite_schema.UPGRADES):
                return wrong(f"{path} is of an older version. To upgrade it, restart the service.")
            for nim, *_ in db.execute(sql.ALL_RECORDS):  # noqa: B007 - the last one is named
                pass
            return good(f"{path} is whole and holds {db.execute(shared_sql.COUNT).get} records.")
    except UnicodeDecodeError:
        return wrong(f"A text of the record after {nim!r} is not UTF-8. Correct it with sqlite3.")
    except Unusable as error:
        return wrong(str(error))


def _place(path: Path) -> Finding:
    if problem := access_problem(path):
        return wrong(f"{problem}.")
    if lack := lack_of_room(path.parent, path.stat().st_size if path.exists() else 0):
        return wrong(f"A back-up or a restore may fail: {lack}. Make room on that disk.")
    return good(f"{path.parent} can be written, and its disk has three times the size of the list.")


def _newest_backup(path: Path, folder: Path, period: timedelta) -> Finding:
    try:
        newest = next(iter(backup.own_backups(path, folder)), None)
    except OSError as error:
        remedy = f"Give the user {process_user()} the rights on it, or connect its disk"
        return wrong(f"The back-ups in {folder} cannot be read: {error.strerror}. {remedy}.")
    again = f"Make one now: {typed('backup')}"
    if not newest:
        return wrong(f"{folder} holds no back-up. {again}")
    age = datetime.now(UTC) - newest.made
    text = f"The newest back-up, {newest.file}, is {age / timedelta(hours=1):.1f} hours old"
    return wrong(f"{text}. {again}") if age > period + BACKUP_DELAY else good(f"{text}.")
