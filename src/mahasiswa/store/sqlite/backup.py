"""Writes a verified copy of the SQLite file while the service runs and writes."""

import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from glob import escape
from pathlib import Path
from typing import Any
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
from mahasiswa.store.sqlite.connection import CHECK_STEPS, connect, opened, real_file
from mahasiswa.store.sqlite.sqlite_errors import explained
from mahasiswa.store.store_errors import NeedsRepair, Unusable
from mahasiswa.system import interrupt
from mahasiswa.system.administrator import typed
from mahasiswa.system.progress import progress
from mahasiswa.system.unfinished import unfinished

# The service looks for its newest back-up each hour, so one that is nearly due is made.
DUE_TOLERANCE = timedelta(minutes=30)


def backup(source: Path, target: Path) -> str:
    """See Engine."""
    with _source(source, target.parent) as db, unfinished(target) as copy:
        return complete(db, copy, target)


def back_up(source: Path, kept_in: Path | None, due_hours: int = 0) -> Sequence[str]:
    """See Engine."""
    folder = kept_in or source.parent
    with _source(source, folder) as db:
        list_id = id_of_list(db.execute(shared_sql.SIGNING_KEY).get)
        name = f"{source.stem}-{list_id}"
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        try:
            with unfinished(folder / f"{name}{source.suffix}") as copy:
                newest = newest_backup(folder, list_id)
                age = timedelta(hours=due_hours) - DUE_TOLERANCE
                if newest and datetime.now(UTC) < newest + age:
                    return []
                if problem := lack_of_room(folder, source.stat().st_size):
                    raise Unusable(f"no back-up was made: {problem}")
                target = folder / f"{name}-{moment_now()}.db"
                done = complete(db, copy, target, may_replace=True)
        except BlockingIOError:  # by another instance, or by a command
            if due_hours:
                return []
            raise
        old = expired(backups_of(folder, list_id), count_records) if kept_in else []
        for one in old:
            one.file.unlink(missing_ok=True)
        return [done, *(f"removed the old back-up {one.file}" for one in old)]


@contextmanager
def _source(source: Path, folder: Path) -> Iterator[apsw.Connection]:
    with opened(source) as db:
        db.pragma("schema_version")  # reads the file, so a later error is about the copy
        with explained(f"no backup was written to the folder {folder.absolute()}"):
            yield db


def copy_before(file: Path) -> Path:
    """Copy a database to a file beside it, before it is replaced or upgraded; raise apsw.Error, OSError, Unusable."""
    before = file.with_name(f"{file.name}.before")
    kept = file.with_name(f"{before.name}-{moment_now()}")
    with closing(connect(file)) as db, unfinished(before) as copy:
        complete(db, copy, kept)
    return kept


def complete(db: apsw.Connection, copy: Path, target: Path, *, may_replace: bool = False) -> str:
    """Write an open database to an unfinished file, and give it its name, on the disk too, when it is verified.

    Return the line about it. Raise apsw.Error, OSError, or Unusable if a file has that name.
    """
    copy_verified(db, copy, "backup")
    if os.path.lexists(target) and not may_replace:
        raise Unusable(f"{target} exists already; a backup never replaces another")
    copy.replace(target)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return f"{target}: {target.stat().st_size} bytes, verified"


def copy_verified(db: apsw.Connection, copy: Path, label: str) -> None:
    """Write an open database as it is at one moment to a file, and read all of that; raise apsw.Error.

    The progress bar has the label.
    """
    with closing(apsw.Connection(str(copy.absolute()))) as target:
        # With an exclusive lock SQLite needs no shared memory, which some file systems lack.
        target.execute("PRAGMA locking_mode = EXCLUSIVE")
        # The transaction keeps the file as it is at one moment. With a write-ahead log it blocks no
        # writer.
        with db, target.backup("main", db, "main") as work:
            for _ in progress(range(db.pragma("page_count")), label):
                work.step(1)
        target.execute("PRAGMA synchronous = FULL; PRAGMA journal_mode = DELETE")
    with closing(open_to_read(copy)) as written:
        check_integrity(written)
        written.execute(shared_sql.COUNT).get  # noqa: B018 - fails if the table is missing


def check_integrity(db: apsw.Connection) -> None:
    """Read the whole file; raise apsw.CorruptError, apsw.NotADBError, or Interrupted."""
    result = db.execute("PRAGMA integrity_check(1)").get
    if result != "ok":
        raise apsw.CorruptError(f"the file is damaged: {' '.join(result.split())}")


def open_to_read(file: Path) -> apsw.Connection:
    """Open a back-up without writing to it or to its folder; raise apsw.Error."""
    # To read a file in WAL mode, SQLite must create files in its folder, unless the file is opened as immutable. That is
    # safe if the file has no log, because then no other program has it open.
    file = real_file(file)
    has_log = any(Path(f"{file}-{suffix}").exists() for suffix in ("wal", "journal"))
    name = f"file:{quote(str(file))}?mode=ro{'' if has_log else '&immutable=1'}"
    db = apsw.Connection(name, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    db.set_progress_handler(interrupt.check, CHECK_STEPS)
    return db


def count_records(file: Path) -> int | None:
    """The number of records in a file, None if it cannot be read."""
    return _value_in(file, shared_sql.COUNT)  # type: ignore[no-any-return]


def _value_in(file: Path, statement: str) -> Any:  # noqa: ANN401 - of a column
    try:
        with closing(open_to_read(file)) as db:
            return db.execute(statement).get
    except apsw.Error:
        return None


def own_backups(source: Path, folder: Path) -> Backups:
    """The back-ups of a list, or of all lists with its name if the file cannot tell its id; raise OSError."""
    if key := _value_in(source, shared_sql.SIGNING_KEY):
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


def holders(path: Path, folder: Path | None) -> Iterator[str]:
    """See Engine."""
    for one in own_backups(path, folder) if folder else []:
        end = f"It is removed in {one.last_month} at the latest"
        yield f"{one.file} may hold the texts. {end}."
    file = real_file(path)
    others = [*file.parent.glob(f"{escape(file.name)}.*-*Z")]  # made by a restore or an upgrade
    if folder != path.parent:
        others += [one.file for one in own_backups(path, path.parent)]
    for other in sorted(others):
        yield f"{other} may hold the texts. It stays until you remove it."
