"""Writes a verified copy of the SQLite file while the service runs and writes."""

import os
import shlex
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path

import apsw

from mahasiswa.store import shared_sql
from mahasiswa.store.backup_folder import (
    ANY_LIST,
    age,
    expired,
    find_backups,
    id_of_list,
    moment_now,
)
from mahasiswa.store.sqlite import sqlite_sql as sql
from mahasiswa.store.sqlite.connection import connect
from mahasiswa.store.store_errors import NeedsRepair, Unusable
from mahasiswa.system.administrator import typed
from mahasiswa.system.unfinished import unfinished


def back_up_in_folder(
    db: apsw.Connection, path: Path, folder: Path, due_hours: int
) -> Iterator[str]:
    list_id = list_id_of(db)
    name = f"{path.stem}-{list_id}"
    folder.mkdir(mode=0o700, exist_ok=True)
    try:
        with unfinished(folder / f"{name}.db") as copy:
            backups = find_backups(folder, list_id)
            if backups and age(backups[0]) < timedelta(hours=due_hours):
                return
            target = folder / f"{name}-{moment_now()}.db"
            yield complete(db, copy, target, may_replace=True)
    except BlockingIOError:  # by another worker, or by a command
        if not due_hours:
            raise
        return
    if backups and _is_sound(db, backups[0]):
        for old in expired([target, *backups]):
            old.unlink(missing_ok=True)
            yield f"removed the old back-up {old}"


def list_id_of(db: apsw.Connection) -> str:
    """The id in the names of the back-ups of an open list."""
    return id_of_list(db.execute(shared_sql.SIGNING_KEY).get)


def _is_sound(db: apsw.Connection, before: Path) -> bool:
    """Whether a list has half of the records of its last back-up. Otherwise records may be lost."""
    with suppress(apsw.Error):
        db.execute(sql.ATTACH_BACKUP, (str(before),))
        return bool(db.execute(sql.HAS_HALF_OF_BACKUP).get)
    return False


def copy_before(path: Path) -> Path:
    """Copy a database to a file beside it, before it is replaced or upgraded; raise apsw.Error, OSError, Unusable."""
    kept = name_before(path)
    with closing(connect(path)) as db, unfinished(path.with_name(f"{path.name}.before")) as copy:
        complete(db, copy, kept)
    return kept


def name_before(path: Path) -> Path:
    """The name of the file that keeps a database as it is now."""
    return path.with_name(f"{path.name}.before-{moment_now()}")


def complete(db: apsw.Connection, copy: Path, target: Path, *, may_replace: bool = False) -> str:
    """Write an open database to an unfinished file, and give it its name, on the disk too, when it is verified.

    Return the line about it. Raise apsw.Error, OSError, or Unusable if a file has that name.
    """
    # It writes the database as it is at one moment, and blocks no writer.
    db.execute("VACUUM INTO ?", (str(copy.absolute()),))
    with closing(connect(copy)) as written:
        check_integrity(written)
    if os.path.lexists(target) and not may_replace:
        raise Unusable(f"{target} exists already; a backup never replaces another")
    copy.replace(target)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return f"{target}: {target.stat().st_size} bytes, verified"


def check_integrity(db: apsw.Connection) -> None:
    """Read the whole file; raise apsw.CorruptError or apsw.NotADBError."""
    result = db.execute("PRAGMA integrity_check(1)").get
    if result != "ok":
        raise apsw.CorruptError(f"the file is damaged: {' '.join(result.split())}")


def refuse_if_lost(path: Path, folder: Path | None) -> None:
    """Raise NeedsRepair if the folder has back-ups of that name, because the database holds no list."""
    for file in find_backups(folder, ANY_LIST) if folder else []:
        if file.name.rsplit("-", 2)[0] == path.stem:
            back = typed(f"restore {shlex.quote(str(file))}")
            raise NeedsRepair(
                f"{path} holds no list, but it has back-ups. To have its records back: {back}. "
                f"To begin an empty list, move its back-ups away from {folder}"
            )
