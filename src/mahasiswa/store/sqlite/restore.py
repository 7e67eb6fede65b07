"""Replaces the records of the SQLite file by those of a back-up, in one transaction, also while the service runs."""

from contextlib import closing, suppress
from pathlib import Path

import apsw

from mahasiswa.store.backup_folder import moment_now
from mahasiswa.store.commands import recorded
from mahasiswa.store.results import Restored
from mahasiswa.store.sqlite import sqlite_sql as sql
from mahasiswa.store.sqlite.backup import (
    check_integrity,
    copy_before,
    copy_verified,
    count_records,
    open_to_read,
)
from mahasiswa.store.sqlite.connection import (
    LOG_SUFFIXES,
    connect,
    opened,
    real_file,
    transaction,
)
from mahasiswa.store.sqlite.sqlite_errors import explained, reason
from mahasiswa.store.sqlite.sqlite_reader import take_named
from mahasiswa.store.sqlite.sqlite_schema import is_newer, known_version, migrate
from mahasiswa.store.store_errors import Uncertain
from mahasiswa.system.folder_lock import folder_lock
from mahasiswa.system.unfinished import unfinished


def restore(path: Path, file: Path) -> Restored:
    """See `Engine.restore`. Nothing is changed if it raises, and the tables of other programs stay.

    An empty database also gets the history of the back-up. The back-up itself is only read: a copy of it is verified and
    upgraded beside the database.
    """
    path = real_file(path)
    # The folder for temporary files may be small, and may be on another disk, so do not use it.
    with explained(f"nothing was restored to {path}"), unfinished(path) as copy:
        fault = f"{file} cannot be restored in {path.parent}"
        with explained(fault), closing(open_to_read(file)) as origin:
            known_version(origin, file)
            copy_verified(origin, copy, "restore")
        migrate(copy)
        if why := _why_replaced(path):
            return _replace_file(path, copy, why)
        migrate(path)
        return _replace_records(path, copy)


def _why_replaced(path: Path) -> str:
    """The reason why SQL cannot put the records into the file: "missing", "damaged" or "newer". It is empty if SQL can."""
    if not path.exists() or path.stat().st_size == 0:
        return "missing"
    try:
        with closing(connect(path)) as db:
            check_integrity(db)
            return "newer" if is_newer(db) else ""
    except (apsw.CorruptError, apsw.NotADBError):
        return "damaged"


def _replace_file(path: Path, copy: Path, why: str) -> Restored:
    """Give the files of the database other names, then let the copy take its place. A running service notices it."""
    kept = f"{path}.{why}-{moment_now()}"
    with folder_lock(path.parent):  # the service removes the log of a replaced file under this lock
        for suffix in ("", *LOG_SUFFIXES):  # SQLite would apply an old log to the new file
            with suppress(FileNotFoundError):
                Path(f"{path}{suffix}").rename(f"{kept}{suffix}")
        copy.replace(path)
    records = count_records(path) or 0
    replaced = None if why == "missing" else Path(kept)
    return Restored(records, records, 0, 0, replaced, must_start=True)


def _replace_records(path: Path, copy: Path) -> Restored:
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
        except BaseException as error:
            if before and isinstance(error, apsw.IOError):
                # If only its sync failed, the transaction may be in the write-ahead log.
                kept = f"The records before are in {before}"
                raise Uncertain(f"{path} could not be written: {reason(error)}. {kept}") from error
            if before:
                before.unlink()  # nothing was changed
            raise
