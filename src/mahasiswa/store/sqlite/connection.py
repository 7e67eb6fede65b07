"""Connections to the SQLite file: how they are opened, the lock on its folder, and the meaning of their errors."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import apsw

from mahasiswa.store.errors import Reason, Refused, StoreError, Unavailable

LOCK_TIMEOUT_SECONDS = 10.0
"""Maximum wait for a lock that another program holds. For a change it includes the time in the queue."""

WAL_MAX_BYTES = 64 * 1024 * 1024
"""Maximum size of the write-ahead log after a checkpoint. A long read of another program can let it grow beyond."""


def connect(path: Path) -> apsw.Connection:
    """Open a file that exists. It is never created here: a removed file must not come back as an empty list."""
    db = apsw.Connection(str(path.absolute()), flags=apsw.SQLITE_OPEN_READWRITE)
    db.set_busy_timeout(int(LOCK_TIMEOUT_SECONDS * 1000))
    db.execute(f"PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF; PRAGMA journal_size_limit = {WAL_MAX_BYTES}")
    return db


def refusal(error: apsw.ConstraintError) -> StoreError:
    """Translate a broken constraint: its name or its column gives the field and the reason."""
    match str(error).partition(" constraint failed: "):
        case "CHECK", _, constraint:
            field, _, reason = constraint.partition("_")
            return Refused(field, cast("Reason", reason))
        case "NOT NULL", _, column:
            return Refused(column.removeprefix("mahasiswa."), "missing")
        case "UNIQUE", _, _:
            return Refused("nim", "duplicate")
    return Unavailable(str(error))  # another program's trigger


def has_moved(db: apsw.Connection) -> bool:
    """Whether the open file was removed or replaced, so that whatever is written to it would be lost."""
    moved = ctypes.c_int()
    db.file_control("main", apsw.SQLITE_FCNTL_HAS_MOVED, ctypes.addressof(moved))
    return bool(moved.value)


def wal_identity(path: Path) -> tuple[int, int] | None:
    """The device and inode of the file's write-ahead log, or None if it has none."""
    try:
        status = Path(f"{path}-wal").stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def remove_wal(path: Path, identity: tuple[int, int] | None) -> None:
    """Remove the write-ahead log of a file that was replaced. SQLite would apply it to the new file.

    Call it while that log is still open, because its inode cannot be reused until then. Of several workers the first
    removes the log; the others find no log or another one, and leave it.
    """
    with folder_lock(path.parent):
        if identity is not None and identity == wal_identity(path):
            for suffix in ("-wal", "-shm"):
                Path(f"{path}{suffix}").unlink(missing_ok=True)


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Keep this program's other processes out of a block that they all guard with the same folder."""
    if sys.platform == "win32":  # it has no flock, and an open file cannot be replaced there
        yield
        return
    import fcntl  # noqa: PLC0415 - Windows has none

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
