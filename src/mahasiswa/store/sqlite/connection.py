"""The SQLite file itself: made where it does not exist, opened, and watched for being taken away."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

PATIENCE = 10.0
"""Seconds to wait for a lock that another program holds; a change counts them from when it was queued."""

MAX_LOG = 64 * 1024 * 1024
"""Bytes of write-ahead log that are kept once they are in the file; a long reader may let it grow beyond that."""


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
    with folder_lock(path.parent):
        if log is not None and log == log_of(path):
            for suffix in ("-wal", "-shm"):
                Path(f"{path}{suffix}").unlink(missing_ok=True)


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
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
