"""Checks an SQLite file and its back-ups, for the start of the service and for `mahasiswa doctor`."""

import os
import shlex
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import apsw

from mahasiswa.store import shared_sql
from mahasiswa.store.backup_folder import lack_of_room
from mahasiswa.store.commands import try_changes
from mahasiswa.store.results import Finding, good, wrong
from mahasiswa.store.sqlite import backup, sqlite_schema
from mahasiswa.store.sqlite import sqlite_sql as sql
from mahasiswa.store.sqlite.connection import CHECK_STEPS, WAL_MAX_BYTES, connect, real_file
from mahasiswa.store.sqlite.sqlite_errors import access_problem, forbidden, reason, usable
from mahasiswa.store.sqlite.sqlite_reader import take
from mahasiswa.store.sqlite.sqlite_schema import known_version
from mahasiswa.store.store_errors import StoreError, Unusable
from mahasiswa.system import interrupt
from mahasiswa.system.administrator import typed
from mahasiswa.system.unfinished import leftovers


def examine(path: Path, folder: Path | None, *, quick: bool) -> Iterator[Finding]:
    """Check the file, its folder and its disk; raise Unusable if the service cannot work with them."""
    path = real_file(path)
    if problem := access_problem(path):
        raise Unusable(problem)
    empty = f"To begin an empty list: {typed('begin')}"
    if not path.exists():
        back = f"To have the records of a back-up: {typed('restore FILE')}"
        raise Unusable(f"{path} does not exist. {empty}. {back}")
    with usable(path), closing(connect(path)) as db:
        db.set_progress_handler(interrupt.check, CHECK_STEPS)
        if 0 < known_version(db, path) < len(sqlite_schema.UPGRADES):
            yield good(f"{path} is of an older version. The service upgrades it at its start.")
            return
        if not db.execute(sql.STORED_TABLES).get:
            raise Unusable(f"{path} holds no list. Check DATABASE_URL. {empty}")
        for find in QUICK_CHECKS if quick else CHECKS:
            yield from find(db, path)
    removal = "The next start or back-up removes it after an hour."
    for place in {path.parent, folder or path.parent}:
        with suppress(
            OSError
        ):  # of the folder of the back-ups; `mahasiswa doctor` blames that itself
            for left in leftovers(place):
                yield good(f"{left} was left by a program that was killed. {removal}")


def examine_backup(file: Path) -> Finding:
    if not os.access(file, os.R_OK):
        return wrong(f"{forbidden(file)}.")
    try:
        with closing(backup.open_to_read(file)) as db:
            backup.check_integrity(db)
            known_version(db, file)
            count = db.execute(shared_sql.COUNT).get
    except (apsw.Error, StoreError) as error:
        why = (
            str(error)
            if isinstance(error, StoreError)
            else f"{file} cannot be restored: {reason(error)}"
        )
        return wrong(f"{why}. Make one now: {typed('backup')}")
    return good(f"{file} is sound and holds {count} records.")


def _free_space(_db: apsw.Connection, path: Path) -> Iterator[Finding]:
    if problem := lack_of_room(path.parent, path.stat().st_size + WAL_MAX_BYTES):
        yield wrong(f"A restore or an upgrade may fail: {problem}. Make room on that disk.")
    else:
        yield good(f"A restore and an upgrade have room in {path.parent}.")


def _modes(_db: apsw.Connection, path: Path) -> Iterator[Finding]:
    """Report a file that every user can read.

    If only a group can read it, the operator wants that.
    """
    files = [file for suffix in ("", "-wal", "-shm") if (file := Path(f"{path}{suffix}")).exists()]
    public = [str(file) for file in files if file.stat().st_mode & 0o007]
    if public and all(folder.stat().st_mode & 0o001 for folder in path.parents):
        yield wrong(
            f"Every user of this computer has rights on {', '.join(public)}. Run: chmod o= {shlex.quote(str(path))}*"
        )
    else:
        yield good(f"Only the owner and its group have rights on {path}.")


def _log_size(db: apsw.Connection, path: Path) -> Iterator[Finding]:
    """Report a long log that a reader keeps long.

    After a large import the log is long too, but only until the next change.
    """
    log = Path(f"{path}-wal")
    if log.exists() and (size := log.stat().st_size) > WAL_MAX_BYTES:
        large = f"{log} has {size >> 20} MB"
        in_log = copied = 0
        with suppress(apsw.BusyError):  # another program is copying it just now
            in_log, copied = db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        if copied < in_log:
            yield wrong(
                f"{large}, because a program reads without end. Find it and end it: fuser -v {path}"
            )
        else:
            yield good(f"{large} after a large change. The next change shortens it.")


def _soundness(db: apsw.Connection, path: Path) -> Iterator[Finding]:
    backup.check_integrity(db)
    yield good(f"{path} is sound and holds {db.execute(shared_sql.COUNT).get} records.")


def _changes(db: apsw.Connection, path: Path) -> Iterator[Finding]:
    db.execute("BEGIN IMMEDIATE")
    try:
        finding = take(db, try_changes(str(path)))
    finally:
        db.execute("ROLLBACK")
    yield finding


def _texts(db: apsw.Connection, _path: Path) -> Iterator[Finding]:
    for row in db.execute(sql.ALL_AS_BYTES):
        try:
            b"".join(row).decode()
        except UnicodeDecodeError:
            nim = row[0].decode(errors="replace")
            yield wrong(f"A text of the record {nim!r} is not UTF-8. Correct it with sqlite3.")
            return


# The checks at the start of the service.
QUICK_CHECKS = (_free_space, _modes, _log_size, _changes)
CHECKS = (*QUICK_CHECKS, _soundness, _texts)
