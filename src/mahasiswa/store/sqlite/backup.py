"""Writes a verified copy of the SQLite file while the service runs and writes."""

import errno
import filecmp
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import apsw

from mahasiswa.store import shared_sql
from mahasiswa.store.backup_folder import age_seconds, expire, find_backups, free_name
from mahasiswa.store.engines import StopCheck
from mahasiswa.store.sqlite.connection import folder_lock
from mahasiswa.store.store_errors import Unavailable, Unusable

CHECK_STEPS = 100_000  # steps of SQLite between two checks for Ctrl-C: about a millisecond

FREE_SPACE_FACTOR = 3
"""Minimum free space for a back-up with a name of its own, a restore or an upgrade, as a multiple of the database."""

SUFFIX = ".db"  # the end of the name of a back-up that gets its name from the time


def backup(source: Path, target: Path, check: StopCheck) -> None:
    """Copy the database as it is at one moment to a new file that only its owner can read; raise Unusable.

    The target gets its name only when the copy is verified and on disk. An existing file is never replaced.
    """
    with closing(_open(source)) as origin, _reported(target):
        if os.path.lexists(target):
            raise FileExistsError
        if not target.parent.is_dir():
            raise Unusable(f"the folder {target.parent} does not exist")
        _write(origin, target, check, ".mahasiswa-")


def backup_files(source: Path, folder: Path) -> Sequence[Path]:
    return find_backups(folder, source.stem, SUFFIX)


def backup_into(source: Path, kept_in: Path | None, check: StopCheck, max_age_seconds: float) -> Path | None:
    folder = kept_in or source.parent
    target = free_name(folder, f"{source.stem}-", SUFFIX)
    with closing(_open(source)) as origin, _reported(target):
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        with folder_lock(folder):  # two services may keep one folder
            newest = next(iter(backup_files(source, folder)), None)
            if newest and age_seconds(newest) < max_age_seconds:
                return None
            for leftover in folder.glob(f".{source.stem}-*Z*{SUFFIX}.*"):  # of a back-up that was killed
                leftover.unlink()
            needed = FREE_SPACE_FACTOR * origin.pragma("page_count") * origin.pragma("page_size")
            if (free := shutil.disk_usage(folder).free) < needed:
                raise Unusable(
                    f"no back-up was made: only {free >> 20} MB are free for {folder}, not {needed >> 20} MB"
                )
            made = _write(origin, target, check, f".{target.name}.", newest)
            if kept_in:
                expire(backup_files(source, folder))
    return made


@contextmanager
def _reported(target: Path) -> Iterator[None]:
    try:
        yield
    except FileExistsError as error:
        raise Unusable(f"{target} exists already; a backup never replaces another") from error
    except Unavailable as error:
        raise Unusable(f"no back-up was made: {error}") from error
    except (apsw.Error, OSError) as error:
        raise Unusable(f"no backup was written to the folder {target.absolute().parent}: {reason(error)}") from error


def _open(source: Path) -> apsw.Connection:
    try:
        if not source.exists():
            raise Unusable(f"{source} does not exist")
        origin = apsw.Connection(str(source.absolute()), flags=apsw.SQLITE_OPEN_READWRITE)
        origin.pragma("schema_version")  # the first read of the file: later errors are about the target
    except (apsw.Error, OSError) as error:
        raise Unusable(f"{source} cannot be used: {reason(error)}") from error
    return origin


def _write(origin: apsw.Connection, target: Path, check: StopCheck, prefix: str, newest: Path | None = None) -> Path:
    # A random name that did not exist, so that no other program can have put a symbolic link there.
    descriptor, name = tempfile.mkstemp(prefix=prefix, dir=target.parent)
    os.close(descriptor)
    unfinished = Path(name)
    try:
        copy_database(origin, unfinished)
        if newest and filecmp.cmp(unfinished, newest, shallow=False):
            os.utime(newest)
            return newest
        verify(unfinished, check)
        _rename(unfinished, target)
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return target
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


def verify(path: Path, check: StopCheck) -> None:
    """Raise apsw.Error if a copy is damaged or has no table mahasiswa."""
    with closing(apsw.Connection(str(path.absolute()), flags=apsw.SQLITE_OPEN_READONLY)) as db:
        db.set_progress_handler(check, CHECK_STEPS)
        check_integrity(db)
        db.execute(shared_sql.COUNT).get  # noqa: B018 - fails if the table is missing


def check_integrity(db: apsw.Connection) -> None:
    """Read the whole file; raise apsw.CorruptError, apsw.NotADBError, or the error of the progress handler."""
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
