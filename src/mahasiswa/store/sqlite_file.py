"""The SQLite file itself: made where it does not exist, opened, and watched for being taken away."""

import ctypes
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from mahasiswa.record import Mahasiswa
from mahasiswa.store import Unusable, statements

PATIENCE = 10.0
"""Seconds to wait for a lock that another program holds; a change counts them from when it was queued."""

MAX_LOG = 64 * 1024 * 1024
"""Bytes of write-ahead log that are kept once they are in the file; a long reader may let it grow beyond that."""

# As SQLite itself tells: INT goes first.
type_affinity_text = re.compile("^(?!.*INT).*(CHAR|CLOB|TEXT)", re.IGNORECASE)


def prepare(path: Path) -> None:
    """Make the file and its table where they do not exist; raise Unusable. Leaves nothing open."""
    try:
        if not path.parent.is_dir():
            raise Unusable(f"the folder {path.parent} does not exist")
        # To begin a log takes the file alone, and SQLite does not wait for that.
        with _alone(path.parent):
            _prepare(path)
    except OSError as error:
        raise Unusable(f"{path} cannot be opened: {error.strerror}") from error


def _prepare(path: Path) -> None:
    try:
        db = apsw.Connection(str(path.absolute()))
    except apsw.Error as error:
        raise Unusable(f"{path} cannot be opened: {error}") from error
    try:
        db.set_busy_timeout(int(PATIENCE * 1000))
        if db.readonly("main"):
            raise Unusable(f"{path} cannot be written")
        _prepare_table(db, path)
        if db.execute("PRAGMA journal_mode = WAL").get != "wal":
            raise Unusable(f"{path} cannot have a write-ahead log; is it on a network drive?")
        connect(path).close()
    except apsw.NotADBError:
        raise Unusable(f"{path} is not an SQLite database") from None
    except apsw.Error as error:
        raise Unusable(f"{path} cannot be used: {error}") from error
    finally:
        db.close()


def _prepare_table(db: apsw.Connection, path: Path) -> None:
    with db:
        db.execute(statements.CREATE_TABLE)
        kind = db.execute("SELECT type FROM sqlite_schema WHERE lower(name) = 'mahasiswa'").get
        columns = {name.lower(): declared for _, name, declared, *_ in db.execute("PRAGMA table_info(mahasiswa)")}
        if kind != "table" or columns.keys() != set(Mahasiswa._fields):
            raise Unusable(f"{path} holds a {kind} mahasiswa with other columns: {', '.join(columns)}")
        if not all(type_affinity_text.search(declared) for declared in columns.values()):
            raise Unusable(f"{path} holds a table mahasiswa whose columns are not TEXT")
        if not _is_key(db, "nim"):
            raise Unusable(f"{path} holds a table mahasiswa whose nim is not its key")


def _is_key(db: apsw.Connection, column: str) -> bool:
    """Whether a unique index stands on that column alone, and on every row."""
    indexes = [name for _, name, unique, _, partial in db.execute("PRAGMA index_list(mahasiswa)") if unique > partial]
    return any(
        [column] == [(name or "").lower() for _, _, name in db.execute(f'PRAGMA index_info("{index}")')]
        for index in indexes
    )


def connect(path: Path) -> apsw.Connection:
    """Open a file that exists: one that was removed must not come back empty."""
    db = apsw.Connection(str(path.absolute()), flags=apsw.SQLITE_OPEN_READWRITE)
    db.set_busy_timeout(int(PATIENCE * 1000))
    db.execute(f"PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF; PRAGMA journal_size_limit = {MAX_LOG}")
    return db


def has_moved(db: apsw.Connection) -> bool:
    """Whether the file that is open no longer stands under its name: what is written to it would be lost."""
    moved = ctypes.c_int()
    db.file_control("main", apsw.SQLITE_FCNTL_HAS_MOVED, ctypes.addressof(moved))
    return bool(moved.value)


def log_of(path: Path) -> tuple[int, int] | None:
    """What tells the file's write-ahead log from any other; None where it has none."""
    try:
        status = Path(f"{path}-wal").stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def remove_log(path: Path, log: tuple[int, int] | None) -> None:
    """Remove that write-ahead log and its index, while it is open still: no other one can be taken for it.

    One worker at a time: the next one finds the log that the first has begun since, and leaves it.
    """
    with _alone(path.parent):
        if log is not None and log == log_of(path):
            for suffix in ("-wal", "-shm"):
                Path(f"{path}{suffix}").unlink(missing_ok=True)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold a folder against our other processes."""
    if sys.platform == "win32":  # where no file can be replaced that is open
        yield
        return
    import fcntl  # noqa: PLC0415 - Windows has none

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
