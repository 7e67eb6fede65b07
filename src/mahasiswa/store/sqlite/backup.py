"""Writes verified copies of the SQLite file, and puts the records of a copy back, also while the service runs."""

import os
import shlex
import shutil
import signal
from collections.abc import Iterator
from contextlib import closing, suppress
from glob import escape
from pathlib import Path

import apsw

from mahasiswa.store import shared_sql
from mahasiswa.store.backup_folder import (
    ANY_LIST,
    age_seconds,
    expired,
    find_backups,
    id_of_list,
    moment_now,
)
from mahasiswa.store.commands import recorded
from mahasiswa.store.results import Restored
from mahasiswa.store.sqlite import sqlite_sql as sql
from mahasiswa.store.sqlite.connection import (
    LOG_SUFFIXES,
    connect,
    obey_ctrl_c,
    opened,
    transaction,
)
from mahasiswa.store.sqlite.sqlite_errors import DAMAGE
from mahasiswa.store.sqlite.sqlite_reader import take_named
from mahasiswa.store.sqlite.sqlite_schema import Newer, known_version, upgrade
from mahasiswa.store.store_errors import NeedsRepair, Unusable
from mahasiswa.system.administrator import typed
from mahasiswa.system.folder_lock import folder_lock
from mahasiswa.system.unfinished import publish, unfinished


def back_up_in_folder(
    db: apsw.Connection, path: Path, folder: Path, due_hours: int
) -> Iterator[str]:
    list_id = id_of_list(db.execute(shared_sql.SIGNING_KEY).get)
    name = f"{path.stem}-{list_id}"
    folder.mkdir(mode=0o700, exist_ok=True)
    try:
        with unfinished(folder / f"{name}.db") as copy:
            backups = find_backups(folder, list_id)
            if backups and age_seconds(backups[0]) < due_hours * 3600:
                return
            target = folder / f"{name}-{moment_now()}.db"
            yield complete(db, copy, target, may_replace=True)
            if backups and _is_sound(db, backups[0]):
                for old in expired([target, *backups]):
                    old.unlink(missing_ok=True)
                    yield f"removed the old back-up {old}"
    except BlockingIOError:  # by another worker, or by a command
        if not due_hours:
            raise


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
    publish(copy, target)
    return f"{target}: {target.stat().st_size} bytes, verified"


def check_integrity(db: apsw.Connection) -> None:
    """Read the whole file; raise apsw.CorruptError or apsw.NotADBError."""
    result = db.execute("PRAGMA integrity_check(1)").get
    if result != "ok":
        raise apsw.CorruptError(f"the file is damaged: {' '.join(result.split())}")


def refuse_if_lost(path: Path, folder: Path | None) -> None:
    """Raise NeedsRepair if the folder has back-ups of that name, because the database holds no list."""
    for file in find_backups(folder, ANY_LIST, escape(path.stem)) if folder else []:
        back = typed(f"restore {shlex.quote(str(file))}")
        raise NeedsRepair(
            f"{path} holds no list, but it has back-ups. To have its records back: {back}. "
            f"To begin an empty list, move its back-ups away from {folder}"
        )


def copy_upgraded(file: Path, copy: Path) -> int:
    """Copy a back-up, verify it and upgrade it; return the number of its records."""
    if Path(f"{file}-wal").exists():
        remedy = f"Copy it first: DATABASE_URL=sqlite:///{file} {typed('backup FILE')}"
        raise Unusable(f"{file} is in use, or was not closed. {remedy}")
    shutil.copyfile(file, copy)
    with closing(connect(copy)) as db:
        obey_ctrl_c(db)
        check_integrity(db)
        version = known_version(db, file)
        if not version:
            raise Unusable(f"{file} holds no list")
        upgrade(db, version)
        return int(db.execute(shared_sql.COUNT).get)


def is_lost(path: Path) -> bool:
    """Whether a file is missing, empty, damaged or of a newer release, so that SQL cannot put the records into it."""
    with suppress(*DAMAGE, Newer):
        if path.exists():
            with closing(connect(path)) as db:
                check_integrity(db)
                return not known_version(db, path)
    return True


def replace_file(path: Path, copy: Path) -> Path | None:
    """Give the files of the database other names, then let the copy take its place. A running service notices it.

    Return the new name of the database, or None if there was none.
    """
    kept = name_before(path)
    # Ctrl-C must not leave the database without a file.
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with folder_lock(path.parent):  # the service removes the log of a replaced file under it
            for suffix in ("", *LOG_SUFFIXES):  # SQLite would apply an old log to the new file
                with suppress(FileNotFoundError):
                    Path(f"{path}{suffix}").rename(f"{kept}{suffix}")
            copy.replace(path)
    finally:
        signal.signal(signal.SIGINT, handler)
    return kept if kept.exists() else None


def replace_records(path: Path, copy: Path, count: int) -> Restored:
    """Replace the records by those of the copy, in one transaction."""
    before: Path | None = None
    with opened(path) as db:
        db.execute(sql.ATTACH_BACKUP, (str(copy),))
        try:
            with transaction(db):
                added, changed, removed = db.execute(sql.COMPARE_BACKUP).get
                if rows := added + changed + removed:
                    # Under the lock of this transaction, so that the copy has every earlier change.
                    before = copy_before(path)
                    take_named(db, recorded("restore", [sql.RESTORE_BACKUP], {}, rows))
                return Restored(count, added, changed, removed, before)
        except Exception as error:
            # If only its sync failed, the transaction may be in the write-ahead log.
            if before and not isinstance(error, apsw.IOError):
                before.unlink()
            raise
