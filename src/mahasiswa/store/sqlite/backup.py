"""Writes a verified copy of the SQLite file while the service runs and writes."""

import errno
import filecmp
import logging
import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import chain
from pathlib import Path
from urllib.parse import quote

import apsw

from mahasiswa import interrupt
from mahasiswa.administrator import typed
from mahasiswa.lookout import listed
from mahasiswa.store import shared_sql
from mahasiswa.store.backup_folder import (
    age_seconds,
    expired,
    find_backups,
    free_name,
    lack_of_room,
)
from mahasiswa.store.sqlite import sqlite_sql as sql
from mahasiswa.store.sqlite.connection import CHECK_STEPS, folder_lock
from mahasiswa.store.sqlite.sqlite_errors import reason, usable
from mahasiswa.store.store_errors import Unavailable, Unusable
from mahasiswa.unfinished import unfinished

SUFFIX = ".db"  # the end of the name of a back-up that gets its name from the time

REPLACED = ("before", "damaged", "newer")
"""The kinds of files that a restore leaves beside the database: `mahasiswa.db.before-20261120T101700Z`, for example."""

log = logging.getLogger(__name__)


def backup(source: Path, target: Path) -> None:
    """Copy the database to a new private file, which gets its name when it is verified and on disk; raise Unusable."""
    with closing(_open(source)) as origin, _reported(target.parent):
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, "", target)
        if not target.parent.is_dir():
            raise Unusable(f"the folder {target.parent} does not exist")
        _write(origin, target)


def backup_files(source: Path, folder: Path, *, from_future: bool = False) -> Sequence[Path]:
    return find_backups(folder, f"{source.stem}-", SUFFIX, from_future=from_future)


def files_beside(source: Path) -> Sequence[Sequence[Path]]:
    """For each kind of REPLACED the files that restores have left beside the database, newest first; raise OSError."""
    return [find_backups(source.parent, f"{source.name}.{kind}-") for kind in REPLACED]


def backup_into(source: Path, kept_in: Path | None, max_age_seconds: float) -> Path | None:
    folder = kept_in or source.parent
    with closing(_open(source)) as origin, _reported(folder):
        try:
            listed(folder)
        except FileNotFoundError:
            with suppress(FileExistsError):
                folder.mkdir(mode=0o700)
        with folder_lock(folder):  # two services may keep one folder
            if problem := lost_records(origin, source, kept_in):
                raise Unusable(f"no back-up was made: {problem}")
            newest = next(iter(backup_files(source, folder)), None)
            if newest and age_seconds(newest) < max_age_seconds:
                # Proves that the next one could be written. Under systemd the service may have a read-only view of the disk.
                with unfinished(folder):
                    return None
            if problem := lack_of_room(
                folder, origin.pragma("page_count") * origin.pragma("page_size")
            ):
                raise Unusable(f"no back-up was made: {problem}")
            made = _write(origin, free_name(folder, f"{source.stem}-", SUFFIX), newest)
            if kept_in:
                _remove_expired([backup_files(source, folder), *files_beside(source)])
    return made


def lost_records(db: apsw.Connection, path: Path, folder: Path | None) -> str:
    """A sentence about the newest file with records, if this list and its history are empty; raise OSError."""
    # A back-up of a list that was emptied would be the first step to the loss of the others.
    if not db.execute(sql.IS_EMPTY).get:
        return ""
    kept: Sequence[Path] = ()
    with suppress(OSError):  # its other users report a folder that cannot be read
        kept = backup_files(path, folder) if folder else ()
    for file in chain(kept, backup_files(path, path.parent), *files_beside(path)):
        if number := count_records(file):
            fault = f"the list and its history are empty, but {file} holds {number} records"
            remedy = "To begin anew, move the back-ups to another folder. To have them back, run"
            return f"{fault}. {remedy}: {typed(f'restore {shlex.quote(str(file))}')}"
    return ""


def count_records(file: Path) -> int | None:
    """The number of records in a back-up, None if it cannot be read."""
    try:
        with closing(open_to_read(file)) as db:
            return int(db.execute(shared_sql.COUNT).get)
    except apsw.Error:
        return None


def _remove_expired(kinds: Sequence[Sequence[Path]]) -> None:
    for files in kinds:
        for file in expired(files, count_records):
            for suffix in ("", "-wal", "-shm"):
                Path(f"{file}{suffix}").unlink(missing_ok=True)
            log.info("removed the old back-up %s", file)


def open_to_read(file: Path) -> apsw.Connection:
    """Open a back-up without writing to it or to its folder; raise apsw.Error."""
    # To read a file in WAL mode, SQLite must create files in its folder, unless the file is opened as immutable. That is
    # safe if the file has no log, because then no other program has it open.
    has_log = any(Path(f"{file}-{suffix}").exists() for suffix in ("wal", "journal"))
    name = f"file:{quote(str(file.absolute()))}?mode=ro{'' if has_log else '&immutable=1'}"
    return apsw.Connection(name, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)


@contextmanager
def _reported(folder: Path) -> Iterator[None]:
    try:
        yield
    except FileExistsError as error:
        name = error.filename2 or error.filename
        raise Unusable(f"{name} exists already; a backup never replaces another") from error
    except Unavailable as error:
        raise Unusable(f"no back-up was made: {error}") from error
    except (apsw.Error, OSError) as error:
        raise Unusable(
            f"no backup was written to the folder {folder.absolute()}: {reason(error)}"
        ) from error


def _open(source: Path) -> apsw.Connection:
    with usable(source):
        if not source.exists():
            raise Unusable(f"{source} does not exist")
        origin = apsw.Connection(str(source.absolute()), flags=apsw.SQLITE_OPEN_READWRITE)
        # The first read of the file: later errors are about the target.
        origin.pragma("schema_version")
    return origin


def _write(origin: apsw.Connection, target: Path, newest: Path | None = None) -> Path:
    with unfinished(target.parent) as private:
        copy = private / target.name
        copy.touch(mode=0o600)
        copy_database(origin, copy)
        if newest and _is_renewed(newest, copy):
            return newest
        verify(copy)
        _rename(copy, target)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return target


def _is_renewed(newest: Path, copy: Path) -> bool:
    """Give the newest back-up the time of now if it is the same as a copy. If it cannot be read, nobody knows."""
    try:
        if filecmp.cmp(copy, newest, shallow=False):
            os.utime(newest)
            return True
    except OSError as error:
        log.warning("%s cannot be used: %s", newest, reason(error))
    return False


def copy_database(origin: apsw.Connection, target: Path) -> None:
    """Copy an open database to a file as it is at one moment; raise apsw.Error."""
    with closing(apsw.Connection(str(target.absolute()))) as copy:
        # Needs no shared memory, which some file systems lack.
        copy.execute("PRAGMA locking_mode = EXCLUSIVE")
        # In a single step the copy is of one moment. With a write-ahead log it blocks no writer.
        with copy.backup("main", origin, "main") as work:
            work.step(-1)
        copy.execute("PRAGMA synchronous = FULL; PRAGMA journal_mode = DELETE")


def verify(path: Path) -> None:
    """Raise apsw.Error if a copy is damaged or has no table mahasiswa."""
    with closing(apsw.Connection(str(path.absolute()), flags=apsw.SQLITE_OPEN_READONLY)) as db:
        db.set_progress_handler(interrupt.check, CHECK_STEPS)
        check_integrity(db)
        db.execute(shared_sql.COUNT).get  # noqa: B018 - fails if the table is missing


def check_integrity(db: apsw.Connection) -> None:
    """Read the whole file; raise apsw.CorruptError, apsw.NotADBError, or the error of the progress handler."""
    result = db.execute("PRAGMA integrity_check(1)").get
    if result != "ok":
        raise apsw.CorruptError(f"the file is damaged: {' '.join(result.split())}")


def _rename(copy: Path, target: Path) -> None:
    """Rename a file; raise FileExistsError if the new name exists, even if it was created a moment ago."""
    try:
        os.link(copy, target)  # a rename would replace an existing file
    except FileExistsError:
        raise
    except (
        OSError
    ):  # FAT and exFAT have no hard links, so create the name first: O_EXCL replaces nothing either
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        copy.replace(target)
