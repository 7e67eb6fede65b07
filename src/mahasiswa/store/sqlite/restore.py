"""Replaces the records of the SQLite file by those of a back-up, in one transaction, also while the service runs."""

import shutil
import signal
from contextlib import closing, suppress
from pathlib import Path

import apsw

from mahasiswa.store import shared_sql
from mahasiswa.store.commands import recorded
from mahasiswa.store.results import Restored
from mahasiswa.store.sqlite import sqlite_sql as sql
from mahasiswa.store.sqlite.backup import check_integrity, copy_before, name_before
from mahasiswa.store.sqlite.connection import (
    LOG_SUFFIXES,
    connect,
    obey_ctrl_c,
    opened,
    transaction,
)
from mahasiswa.store.sqlite.sqlite_reader import take_named
from mahasiswa.store.sqlite.sqlite_schema import Newer, known_version, upgrade
from mahasiswa.store.store_errors import Unusable
from mahasiswa.system.administrator import typed
from mahasiswa.system.folder_lock import folder_lock


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
    if not path.exists():
        return True
    try:
        with closing(connect(path)) as db:
            check_integrity(db)
            return not known_version(db, path)
    except (apsw.CorruptError, apsw.NotADBError, Newer):
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


def replace_records(path: Path, copy: Path) -> Restored:
    before: Path | None = None
    with opened(path) as db:
        db.execute(sql.ATTACH_BACKUP, (str(copy),))
        try:
            with transaction(db):
                added, changed, removed, records = db.execute(sql.COMPARE_BACKUP).get
                if rows := added + changed + removed:
                    # Under the lock of this transaction, so that the copy has every earlier change.
                    before = copy_before(path)
                    take_named(db, recorded("restore", [sql.RESTORE_BACKUP], {}, rows))
                return Restored(records, added, changed, removed, before)
        except Exception as error:
            # If only its sync failed, the transaction may be in the write-ahead log.
            if before and not isinstance(error, apsw.IOError):
                before.unlink()
            raise
