"""Checks an SQLite file, its disk and the age of its newest back-up for `mahasiswa doctor`."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from mahasiswa.store import shared_sql
from mahasiswa.store.backup_folder import ANY_LIST, age, find_backups, lack_of_room
from mahasiswa.store.results import Finding, good, wrong
from mahasiswa.store.sqlite import sqlite_sql as sql
from mahasiswa.store.sqlite.backup import check_integrity, list_id_of
from mahasiswa.store.sqlite.connection import opened
from mahasiswa.store.sqlite.sqlite_errors import explained
from mahasiswa.store.sqlite.sqlite_schema import known_version
from mahasiswa.store.store_errors import Unusable
from mahasiswa.system.administrator import typed

# Maximum time for a back-up, in hours, after the newest one has the age of BACKUP_HOURS.
BACKUP_DELAY_HOURS = 2


def examine(path: Path, folder: Path | None, backup_hours: int) -> Iterator[Finding]:
    """See SQLiteEngine."""
    list_id = ANY_LIST
    nim = ""
    try:
        with opened(path) as db:
            check_integrity(db)
            known_version(db, path)
            list_id = list_id_of(db)
            for nim, *_ in db.execute(sql.STATEMENTS["whole"]):  # noqa: B007 - the last one is named
                pass
            records = db.execute(shared_sql.COUNT).get
            yield good(f"{path} is whole and holds {records} records.")
    except UnicodeDecodeError:
        yield wrong(f"A text of the record after {nim!r} is not UTF-8. Correct it with sqlite3.")
    except Unusable as error:
        yield wrong(str(error))

    if path.exists():
        lack = lack_of_room(path.parent, path.stat().st_size)
        room = f"The disk of {path.parent} has three times the size of the list."
        remedy = f"A back-up or a restore may fail: {lack}. Make room on that disk."
        yield wrong(remedy) if lack else good(room)

    again = f"Make one now: {typed('backup')}"
    if not folder:
        yield wrong("No back-ups are made. Set BACKUP_DIR to a folder.")
        return
    with explained(f"the back-ups in {folder} cannot be read"):
        backups = find_backups(folder, list_id)
    if not backups:
        yield wrong(f"{folder} holds no back-up. {again}")
        return
    hours = age(backups[0]) / timedelta(hours=1)
    text = f"The newest back-up, {backups[0]}, is {hours:.1f} hours old."
    yield wrong(f"{text} {again}") if hours > backup_hours + BACKUP_DELAY_HOURS else good(text)
