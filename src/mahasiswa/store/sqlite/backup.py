"""Writes a verified copy of the SQLite file while the service runs and writes."""

import errno
import filecmp
import logging
import os
import shlex
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import apsw

from mahasiswa.store import shared_sql
from mahasiswa.store.backup_folder import (
    Backups,
    Outcome,
    expired,
    find_backups,
    free_name,
    id_of_list,
    lack_of_room,
    missing_records,
    own_backups,
)
from mahasiswa.store.sqlite import sqlite_sql as sql
from mahasiswa.store.sqlite.connection import CHECK_STEPS, connect, folder_lock, real_file
from mahasiswa.store.sqlite.sqlite_errors import forbidden, reason, usable
from mahasiswa.store.store_errors import NeedsRepair, Unavailable, Unusable
from mahasiswa.system import interrupt
from mahasiswa.system.administrator import typed
from mahasiswa.system.lookout import listed
from mahasiswa.system.unfinished import unfinished

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


def backup_files(
    source: Path, folder: Path, list_id: str | None = None, *, from_future: bool = False
) -> Backups:
    """The back-ups of the list with that id, or of all lists with that name, newest first; raise OSError."""
    found = find_backups(folder, f"{source.stem}-", SUFFIX, from_future=from_future)
    return own_backups(found, list_id, id_in)


def files_beside(source: Path) -> Sequence[Backups]:
    """For each kind of REPLACED the files that restores have left beside the database, newest first; raise OSError."""
    file = real_file(source)
    return [find_backups(file.parent, f"{file.name}.{kind}-") for kind in REPLACED]


def id_in(file: Path) -> str | None:
    """The id of the list in a file, None if it cannot be read or is of a version that had no ids."""
    key = _value_in(file, shared_sql.SIGNING_KEY)
    return id_of_list(key) if key else None


def count_records(file: Path) -> int | None:
    """The number of records in a file, None if it cannot be read."""
    return cast("int | None", _value_in(file, shared_sql.COUNT))


def _value_in(file: Path, statement: str) -> Any:  # noqa: ANN401 - of a column
    try:
        with closing(open_to_read(file)) as db:
            return db.execute(statement).get
    except apsw.Error:
        return None


def backup_into(source: Path, kept_in: Path | None, max_age_seconds: float = 0.0) -> Path | None:
    """See Engine. If the newest back-up is younger than `max_age_seconds`, only return None."""
    folder = kept_in or source.parent
    with closing(_open(source)) as origin, _reported(folder):
        with suppress(FileNotFoundError):
            listed(folder)  # a folder that hangs is an error
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        with folder_lock(folder):  # two services may keep one folder
            list_id = id_in(source)
            newest = next(iter(backup_files(source, folder, list_id)), None)
            if newest and time.time() - newest.found_at() < max_age_seconds:
                # Prove that the next back-up can be written. Under systemd the service may see the
                # disk as read-only.
                with unfinished(folder):
                    return None
            if problem := lack_of_room(folder, source.stat().st_size):
                raise Unusable(f"no back-up was made: {problem}")
            target = free_name(folder, f"{source.stem}-{f'{list_id}-' if list_id else ''}", SUFFIX)
            made = _write(origin, target, newest.file if newest else None)
            if kept_in and list_id:
                _remove_expired([backup_files(source, folder, list_id), *files_beside(source)])
    return made


def refuse_if_lost(path: Path, folder: Path | None) -> None:
    """Raise NeedsRepair if the database is missing or has no tables, and a copy of that name has or may have records.

    Only in this case the start waits for a folder that hangs, at most LOOK_SECONDS.
    """
    if not _has_no_tables(path):
        return
    for file in _all_copies(path, folder):
        number = count_records(file)
        if number == 0:
            continue
        if number:
            found = f"{file} holds {number} records"
        else:  # the records may be in it
            found = f"{file} cannot be read" if os.access(file, os.R_OK) else forbidden(file)
        empty = f"To begin an empty list: {typed('begin')}"
        back = f"To have the records back: {typed(f'restore {shlex.quote(str(file))}')}"
        raise NeedsRepair(f"{path} holds no list, but {found}. {empty}. {back}")


def _has_no_tables(path: Path) -> bool:
    # SQLite removes the log of an empty file.
    if not path.exists() or path.stat().st_size == 0:
        return True
    if Path(f"{real_file(path)}-wal").exists():  # left by a kill; the tables may be in it
        return False
    with suppress(apsw.Error), closing(open_to_read(path)) as db:
        return not db.execute(sql.STORED_TABLES).get
    return False


def _all_copies(path: Path, folder: Path | None) -> Iterator[Path]:
    """The copies of that name in the folder and beside the database, those with a wrong time last."""
    for place in (folder, path.parent):
        with suppress(OSError):  # a folder that cannot be used never stops the service
            for from_future in (False, True):
                found = backup_files(path, place, from_future=from_future) if place else ()
                yield from (one.file for one in found)
    yield from (one.file for kind in files_beside(path) for one in kind)


def lacking(path: Path, folder: Path, outcome: Outcome) -> int:
    """How many records the list lacks, compared with its back-ups of the last 30 days.

    Raise OSError. See `missing_records`.
    """
    own = backup_files(path, folder, id_in(path))
    return missing_records(count_records(path) or 0, own, count_records, outcome)


def _remove_expired(kinds: Sequence[Backups]) -> None:
    for files in kinds:
        for file in expired(files, count_records):
            for suffix in ("", "-wal", "-shm"):
                Path(f"{file}{suffix}").unlink(missing_ok=True)
            log.info("removed the old back-up %s", file)


def open_to_read(file: Path) -> apsw.Connection:
    """Open a back-up without writing to it or to its folder; raise apsw.Error."""
    # To read a file in WAL mode, SQLite must create files in its folder, unless the file is opened as immutable. That is
    # safe if the file has no log, because then no other program has it open.
    file = real_file(file)
    has_log = any(Path(f"{file}-{suffix}").exists() for suffix in ("wal", "journal"))
    name = f"file:{quote(str(file))}?mode=ro{'' if has_log else '&immutable=1'}"
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
        origin = connect(source)
        # This reads the file for the first time, so later errors are about the target.
        origin.pragma("schema_version")
    return origin


def _write(origin: apsw.Connection, target: Path, newest: Path | None = None) -> Path:
    with unfinished(target.parent) as private:
        copy = private / target.name
        copy.touch(mode=0o600)
        copy_database(origin, copy)
        # A database that no release made, or a newer one, may have no noted clock.
        with closing(apsw.Connection(str(copy.absolute()))) as db, suppress(apsw.SQLError):
            db.execute(sql.REMOVE_NOTED_CLOCK)
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
    """Whether the newest back-up is the same as a copy; if it is, set its time to now.

    A back-up that cannot be read counts as different.
    """
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
        # With an exclusive lock SQLite needs no shared memory, which some file systems lack.
        copy.execute("PRAGMA locking_mode = EXCLUSIVE")
        # A single step copies the file as it is at one moment. With a write-ahead log it blocks no
        # writer.
        with copy.backup("main", origin, "main") as work:
            work.step(-1)
        copy.execute("PRAGMA synchronous = FULL; PRAGMA journal_mode = DELETE")


def verify(path: Path) -> None:
    """Raise apsw.Error if a copy is damaged or has no table mahasiswa."""
    with closing(apsw.Connection(str(path.absolute()), flags=apsw.SQLITE_OPEN_READONLY)) as db:
        check_integrity(db)
        db.execute(shared_sql.COUNT).get  # noqa: B018 - fails if the table is missing


def check_integrity(db: apsw.Connection) -> None:
    """Read the whole file; raise apsw.CorruptError, apsw.NotADBError, or Interrupted."""
    db.set_progress_handler(interrupt.check, CHECK_STEPS)
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
