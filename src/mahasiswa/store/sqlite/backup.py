"""Writes a verified copy of the SQLite file while the service runs and writes."""

import errno
import os
import sys
import tempfile
from contextlib import closing
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import apsw

from mahasiswa.store.engines import Check
from mahasiswa.store.errors import Unusable
from mahasiswa.store.sqlite import sql

INTERRUPT_CHECK_STEPS = 100_000
"""Steps of SQLite between two checks for Ctrl-C: about a millisecond."""


def backup(source: Path, target: Path, check: Check) -> None:
    """Copy the database as it is at one moment to a new file that only its owner can read; raise Unusable.

    The target gets its name only when the copy is verified and on disk. An existing file is never replaced.
    """
    origin = _open(source)
    try:
        if os.path.lexists(target):
            raise _exists(target)
        if not target.parent.is_dir():
            raise Unusable(f"the folder {target.parent} does not exist")
        _write(origin, target, check)
    except FileExistsError as error:  # another program has created it meanwhile
        raise _exists(target) from error
    except (apsw.Error, OSError) as error:
        raise Unusable(f"no backup was written to the folder {target.absolute().parent}: {reason(error)}") from error
    finally:
        origin.close()


def backup_beside(source: Path, check: Check) -> Path:
    """Write a back-up file beside the database before its records are replaced, and return its path; raise Unusable."""
    saved = free_name(source, "before")
    backup(source, saved, check)
    return saved


def free_name(path: Path, why: str) -> Path:
    """A name beside the database that no file has, with the time now and a counter if two come within a second."""
    for number in count(1):
        name = f"{path.name}.{why}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}{f'-{number}' if number > 1 else ''}"
        if not os.path.lexists(path.with_name(name)):
            break
    return path.with_name(name)


def _open(source: Path) -> apsw.Connection:
    try:
        if not source.exists():
            raise Unusable(f"{source} does not exist")
        origin = apsw.Connection(str(source.absolute()), flags=apsw.SQLITE_OPEN_READWRITE)
        origin.pragma("schema_version")  # the first read of the file: later errors are about the target
    except (apsw.Error, OSError) as error:
        raise Unusable(f"{source} cannot be used: {reason(error)}") from error
    return origin


def _write(origin: apsw.Connection, target: Path, check: Check) -> None:
    # A random name that did not exist, so that no other program can have put a symbolic link there.
    descriptor, name = tempfile.mkstemp(prefix=".mahasiswa-", dir=target.parent)
    os.close(descriptor)
    unfinished = Path(name)
    try:
        copy_database(origin, unfinished)
        verify(unfinished, check)
        _rename(unfinished, target)
        _sync_folder(target.parent)
    finally:
        for leftover in target.parent.glob(f"{unfinished.name}*"):  # also SQLite's own files beside it
            leftover.unlink()


def copy_database(origin: apsw.Connection, target: Path) -> None:
    """Copy an open database to a file as it is at one moment; raise apsw.Error."""
    copy = apsw.Connection(str(target.absolute()))
    try:
        copy.execute("PRAGMA locking_mode = EXCLUSIVE")  # needs no shared memory, which some file systems lack
        # In a single step the copy is of one moment. With a write-ahead log it blocks no writer.
        with copy.backup("main", origin, "main") as work:
            work.step(-1)
        copy.execute("PRAGMA synchronous = FULL; PRAGMA journal_mode = DELETE")
    finally:
        copy.close()


def verify(path: Path, check: Check) -> None:
    """Raise apsw.Error if a copy is damaged or has no table mahasiswa."""
    with closing(apsw.Connection(str(path.absolute()), flags=apsw.SQLITE_OPEN_READONLY)) as db:
        check_integrity(db, check)
        db.execute(sql.COUNT).get  # noqa: B018 - fails if the table is missing


def check_integrity(db: apsw.Connection, check: Check) -> None:
    """Read the whole file; raise apsw.CorruptError, apsw.NotADBError, or what `check` raises."""
    db.set_progress_handler(check, INTERRUPT_CHECK_STEPS)
    result = db.execute("PRAGMA integrity_check(1)").get
    if result != "ok":
        raise apsw.CorruptError(f"the file is damaged: {' '.join(result.split())}")


def _rename(unfinished: Path, target: Path) -> None:
    """Rename a file; raise FileExistsError if the new name exists, even if it was created a moment ago."""
    try:
        os.link(unfinished, target)  # a rename would replace an existing file
    except FileExistsError:
        raise
    except OSError:  # FAT and exFAT have no hard links, so create the name first: O_EXCL replaces nothing either
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        unfinished.replace(target)


def _sync_folder(folder: Path) -> None:
    if sys.platform != "win32":  # it cannot open a folder
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _exists(target: Path) -> Unusable:
    return Unusable(f"{target} exists already; a backup never replaces another")


def reason(error: apsw.Error | OSError) -> str:
    """The reason why a copy could not be written."""
    # SQLite's own texts say "database or disk is full" for the disk of the copy, and sometimes "not an error".
    match error:
        case apsw.CorruptError() if str(error) == "not an error":
            return "the file is damaged"
        case apsw.FullError():
            return os.strerror(errno.ENOSPC)
        case apsw.IOError():
            return os.strerror(errno.EIO)
        case OSError():
            return error.strerror or str(error)
    return str(error)
