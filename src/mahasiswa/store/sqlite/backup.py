"""Writes a verified copy of the SQLite file while the service runs and writes."""

import errno
import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
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
    id_of_list,
    lack_of_room,
    moment_now,
    newest_backup,
)
from mahasiswa.store.sqlite import sqlite_sql as sql
from mahasiswa.store.sqlite.connection import CHECK_STEPS, connect, real_file
from mahasiswa.store.sqlite.sqlite_errors import reason, usable
from mahasiswa.store.store_errors import NeedsRepair, Unusable
from mahasiswa.system import interrupt
from mahasiswa.system.administrator import typed
from mahasiswa.system.progress import progress
from mahasiswa.system.unfinished import unfinished

# The service looks for its newest back-up each hour, so one that is nearly due is made.
DUE_TOLERANCE = timedelta(minutes=30)


def backup(source: Path, target: Path) -> None:
    """Copy the database to a new private file; raise Unusable."""
    with closing(_open(source)) as origin, _reported(target.parent), unfinished(target) as copy:
        write_copy(origin, copy)
        if os.path.lexists(target):
            raise Unusable(f"{target} exists already; a backup never replaces another")
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
                if due_hours is not None and newest:
                    due = newest + timedelta(hours=due_hours) - DUE_TOLERANCE
                    if datetime.now(UTC) < due:
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
        old = expired(backups_of(folder, list_id), count_records) if kept_in else []
        for one in old:
            one.file.unlink(missing_ok=True)
        return [done, *(f"removed the old back-up {one.file}" for one in old)]


def own_backups(source: Path, folder: Path) -> Backups:
    """The back-ups of a list, or of all lists with its name if the file cannot tell its id; raise OSError."""
    key = _value_in(source, shared_sql.SIGNING_KEY)
    if key:
        return backups_of(folder, id_of_list(key))
    return [one for one in find_backups(folder) if one.database == source.stem]


def refuse_if_lost(path: Path, places: Iterable[Path]) -> None:
    """Raise NeedsRepair if there are back-ups of that name, because the database holds no list."""
    for place in places:
        with suppress(OSError):  # a folder that cannot be used never stops the service
            for one in find_backups(place):
                if one.database == path.stem:
                    back = f"To have its records back: {typed(f'restore {shlex.quote(str(one.file))}')}"
                    empty = f"To begin an empty list, move its back-ups away from {place}"
                    raise NeedsRepair(f"{path} holds no list, but it has back-ups. {back}. {empty}")


def holders(path: Path, folder: Path | None, nim: str) -> Iterator[str]:
    """See Engine."""
    ends = {}
    if folder:
        for one in own_backups(path, folder):
            ends[one.file] = f"It is removed in {one.last_month} at the latest"
    beside = real_file(path)
    replaced = tuple(f"{beside.name}.{kind}-" for kind in ("before", "damaged", "newer"))
    others = [file for file in beside.parent.iterdir() if file.name.startswith(replaced)]
    if folder != path.parent:
        others += [one.file for one in own_backups(path, path.parent)]
    ends |= dict.fromkeys(sorted(others), "It stays until you remove it")
    for file, end in ends.items():
        try:
            with closing(open_to_read(file)) as db:
                if db.execute(sql.STATEMENTS["is_known"], {"nim": nim}).get:
                    yield f"{file} still holds the texts. {end}."
        except apsw.Error as error:
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
    except (apsw.Error, OSError) as error:
        fault = f"no backup was written to the folder {folder.absolute()}"
        raise Unusable(f"{fault}: {reason(error)}") from error


def _open(source: Path) -> apsw.Connection:
    with usable(source):
        origin = connect(source)
        # This reads the file for the first time, so later errors are about the target.
        origin.pragma("schema_version")
    return origin


def copy_before(path: Path) -> Path:
    """Make a verified copy beside the database before it is replaced or upgraded; raise apsw.Error, OSError."""
    kept = path.with_name(f"{path.name}.before-{moment_now()}")
    with closing(connect(path)) as db, unfinished(path.with_name(f"{path.name}.before")) as copy:
        write_copy(db, copy)
        if kept.exists():  # made in the same second
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), kept)
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
