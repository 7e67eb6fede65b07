"""Replaces the records of the SQLite file by those of a back-up, in one transaction, also while the service runs."""

from contextlib import closing
from pathlib import Path

import apsw

from mahasiswa.store.backup_folder import moment_now
from mahasiswa.store.commands import recorded
from mahasiswa.store.results import Restored
from mahasiswa.store.sqlite import sqlite_sql as sql
from mahasiswa.store.sqlite.backup import (
    check_integrity,
    copy_before,
    copy_database,
    count_records,
    open_to_read,
    verify,
)
from mahasiswa.store.sqlite.connection import (
    connect,
    folder_lock,
    interruptible,
    real_file,
    transaction,
)
from mahasiswa.store.sqlite.sqlite_errors import access_problem, reason
from mahasiswa.store.sqlite.sqlite_reader import take_named
from mahasiswa.store.sqlite.sqlite_schema import is_newer, migrate
from mahasiswa.store.store_errors import Unavailable, Unusable
from mahasiswa.system.unfinished import unfinished


def restore(path: Path, file: Path) -> Restored:
    """See `Engine.restore`. Nothing is changed if it raises, and the tables of other programs stay.

    An empty database also gets the history of the back-up. The back-up itself is only read: a copy of it is verified and
    upgraded beside the database.
    """
    path = real_file(path)
    try:
        # The folder for temporary files may be small, and may be on another disk, so do not use it.
        with unfinished(path) as copy:
            _copy_verified(file, copy)
            if why := _why_replaced(path):
                return _replace_file(path, copy, why)
            migrate(path)
            return _replace_records(path, copy)
    except (Unavailable, apsw.Error, OSError) as error:
        fault = access_problem(path) or f"{reason(error)} ({path})"
        raise Unusable(f"nothing was restored: {fault}") from error


def _copy_verified(file: Path, copy: Path) -> None:
    try:
        with closing(open_to_read(file)) as origin:
            copy_database(origin, copy, "restore")
        verify(copy)
        migrate(copy)
    except apsw.Error as error:
        fault = f"{file} cannot be restored in {copy.parent}"
        raise Unusable(f"{fault}: {reason(error)}") from error
    except Unusable as error:
        raise Unusable(str(error).replace(str(copy), str(file))) from error


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
        for suffix in ("", "-wal", "-shm"):  # SQLite would apply an old log to the new file
            file = Path(f"{path}{suffix}")
            if file.exists():
                file.rename(f"{kept}{suffix}")
        copy.replace(path)
    migrate(path)
    records = count_records(path) or 0
    return Restored(
        records, records, 0, 0, None if why == "missing" else Path(kept), must_start=True
    )


def _replace_records(path: Path, copy: Path) -> Restored:
    before: Path | None = None
    try:
        with closing(connect(path)) as db:
            db.execute(sql.ATTACH_BACKUP, (str(copy),))
            with transaction(db), interruptible(db):
                added, changed, removed, records = db.execute(sql.COMPARE_BACKUP).get
                if rows := added + changed + removed:
                    # Under the lock of this transaction, so that the copy has every earlier change.
                    before = copy_before(path)
                    statements = [sql.RESTORE_BACKUP]
                    if db.execute(sql.IS_EMPTY).get:
                        statements.append(sql.RESTORE_HISTORY)
                    take_named(db, recorded("restore", statements, {}, rows))
                return Restored(records, added, changed, removed, before)
    except apsw.IOError as error:
        if not before:  # nothing was written yet
            raise
        # If only its sync failed, the transaction may be in the write-ahead log. So the cause does
        # not tell whether nothing was restored.
        kept = f"look at the list; the records before are in {before}"
        raise Unusable(f"{path} could not be written: {reason(error)}; {kept}") from None
    except BaseException:
        if before:
            before.unlink()  # nothing was changed
        raise
