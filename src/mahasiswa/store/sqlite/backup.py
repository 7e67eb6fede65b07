"""Writes a verified copy of the SQLite file while the service runs and writes."""

import errno
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import apsw

from mahasiswa.store import shared_sql
from mahasiswa.store.backup_folder import (
    Backups,
    backups_of,
    expired,
    find_backups,
    free_name,
    id_of_list,
    lack_of_room,
    last_month,
    moment_now,
    newest_backup,
)
from mahasiswa.store.sqlite import sqlite_sql as sql
from mahasiswa.store.sqlite.connection import CHECK_STEPS, connect, real_file
from mahasiswa.store.sqlite.sqlite_errors import reason, usable
from mahasiswa.store.store_errors import NeedsRepair, Unavailable, Unusable
from mahasiswa.system import interrupt
from mahasiswa.system.administrator import typed
from mahasiswa.system.progress import progress
from mahasiswa.system.unfinished import unfinished

# The service looks for its newest back-up each hour, so one that is nearly due is made.
DUE_TOLERANCE = timedelta(minutes=30)

# The files that a restore leaves beside the database: `mahasiswa.db.before-20261120T101700Z`.
REPLACED = r"{}\.(before|damaged|newer)-\d{{8}}T\d{{6}}Z(-\d+)?"


def backup(source: Path, target: Path) -> None:
    """Copy the database to a new private file; raise Unusable."""
    with closing(_open(source)) as origin, _reported(target.parent):
        if not target.parent.is_dir():
            raise Unusable(f"the folder {target.parent} does not exist")
        _refuse_existing(target)
        with unfinished(target) as copy:
            write_copy(origin, copy)
            _refuse_existing(target)  # another program may have created it meanwhile
            give_name(copy, target)


def back_up(source: Path, kept_in: Path | None, due_hours: int | None = None) -> Sequence[str]:
    """See Engine."""
    folder = kept_in or source.parent
    with closing(_open(source)) as origin, _reported(folder):
        list_id = id_of_list(origin.execute(shared_sql.SIGNING_KEY).get)
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        try:
            with unfinished(folder / f"{source.stem}-{list_id}{source.suffix}") as copy:
                newest = newest_backup(folder, list_id)
                if due_hours is not None and newest and not _is_due(newest, due_hours):
                    return []
                if problem := lack_of_room(folder, source.stat().st_size):
                    raise Unusable(f"no back-up was made: {problem}")
                write_copy(origin, copy)
                target = folder / f"{source.stem}-{list_id}-{moment_now()}.db"
                give_name(copy, target)
        except BlockingIOError:  # by another instance, or by a command
            if due_hours is None:
                raise
            return []
        done = f"{target}: {target.stat().st_size} bytes, verified"
        return [done, *_remove_expired(backups_of(folder, list_id) if kept_in else [])]


def _is_due(newest: datetime, hours: int) -> bool:
    return datetime.now(UTC) - newest >= timedelta(hours=hours) - DUE_TOLERANCE


def _remove_expired(own: Backups) -> Iterator[str]:
    for one in expired(own, count_records):
        one.file.unlink(missing_ok=True)
        yield f"removed the old back-up {one.file}"


def own_backups(source: Path, folder: Path) -> Backups:
    """The back-ups of a list, or of all lists with its name if the file cannot tell its id; raise OSError."""
    key = _value_in(source, shared_sql.SIGNING_KEY)
    if key:
        return backups_of(folder, id_of_list(key))
    return [one for one in find_backups(folder) if one.database == source.stem]


def refuse_if_lost(path: Path, folder: Path | None) -> None:
    """Raise NeedsRepair if the database is missing or has no tables, and there are back-ups of that name."""
    if not _has_no_tables(path):
        return
    for place in filter(None, (folder, path.parent)):
        with suppress(OSError):  # a folder that cannot be used never stops the service
            for one in find_backups(place):
                if one.database == path.stem:
                    back = f"To have its records back: {typed(f'restore {shlex.quote(str(one.file))}')}"
                    empty = f"To begin an empty list, move its back-ups away from {place}"
                    raise NeedsRepair(f"{path} holds no list, but it has back-ups. {back}. {empty}")


def _has_no_tables(path: Path) -> bool:
    # SQLite removes the log of an empty file.
    if not path.exists() or path.stat().st_size == 0:
        return True
    if Path(f"{real_file(path)}-wal").exists():  # left by a kill; the tables may be in it
        return False
    with suppress(apsw.Error), closing(open_to_read(path)) as db:
        return not db.execute(sql.STORED_TABLES).get
    return False


def holders(path: Path, folder: Path | None, backup_hours: int, nim: str) -> Iterator[str]:
    """See Engine."""
    found = own_backups(path, folder) if folder else []
    for one in found:
        month = last_month(one, found, backup_hours)
        yield from _if_it_holds(one.file, nim, f"It may be removed after {month}")
    beside = real_file(path)
    replaced = re.compile(REPLACED.format(re.escape(beside.name)))
    others = [file for file in beside.parent.iterdir() if replaced.fullmatch(file.name)]
    if folder != path.parent:
        others += [one.file for one in own_backups(path, path.parent)]
    for file in sorted(others):
        yield from _if_it_holds(file, nim, "It stays until you remove it")


def _if_it_holds(file: Path, nim: str, end: str) -> Iterator[str]:
    try:
        with closing(open_to_read(file)) as db:
            if db.execute(*sql.SHARED.step("is_known", {"nims": [nim]})).get:
                yield f"{file} still holds the texts. {end}."
    except apsw.Error as error:
        if file.exists():  # the service may have just removed it
            yield f"{file} cannot be read ({reason(error)}), so it may hold the texts. {end}."


def count_records(file: Path) -> int | None:
    """The number of records in a file, None if it cannot be read."""
    return cast("int | None", _value_in(file, shared_sql.COUNT))


def _value_in(file: Path, statement: str) -> Any:  # noqa: ANN401 - of a column
    try:
        with closing(open_to_read(file)) as db:
            return db.execute(statement).get
    except apsw.Error:
        return None


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


def copy_before(path: Path) -> Path:
    """Make a verified copy beside the database before it is replaced or upgraded; raise apsw.Error, OSError, Unavailable."""
    kept = free_name(path, "before")
    with closing(connect(path)) as db, unfinished(path.with_name(f"{path.name}.before")) as copy:
        write_copy(db, copy)
        give_name(copy, kept)
    return kept


def write_copy(origin: apsw.Connection, copy: Path) -> None:
    """Write an open database to an unfinished file, and verify it; raise apsw.Error."""
    copy_database(origin, copy)
    verify(copy)


def give_name(copy: Path, target: Path) -> None:
    """Give a verified copy its name, on the disk too; raise OSError."""
    copy.replace(target)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _refuse_existing(target: Path) -> None:
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, "", target)


def copy_database(origin: apsw.Connection, target: Path, label: str = "backup") -> None:
    """Copy an open database to a file as it is at one moment; raise apsw.Error. The progress bar has the label."""
    with closing(apsw.Connection(str(target.absolute()))) as copy:
        # With an exclusive lock SQLite needs no shared memory, which some file systems lack.
        copy.execute("PRAGMA locking_mode = EXCLUSIVE")
        # The transaction keeps the file as it is at one moment. With a write-ahead log it blocks no
        # writer.
        with origin, copy.backup("main", origin, "main") as work:
            for _ in progress(range(origin.pragma("page_count")), label):
                work.step(1)
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
