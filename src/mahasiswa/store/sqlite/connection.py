"""Opens connections to the SQLite file, makes transactions, and locks the file's folder."""

import ctypes
import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw

from mahasiswa.store.sqlite.sqlite_errors import access_problem
from mahasiswa.store.store_errors import Unavailable
from mahasiswa.system import interrupt
from mahasiswa.system.administrator import typed

LOCK_TIMEOUT_SECONDS = 10.0
"""Maximum wait for a lock that another program holds. A change of the service waits until its own deadline."""

WAL_MAX_BYTES = 64 * 1024 * 1024
"""Maximum size of the write-ahead log after a checkpoint. A long read by another program lets it grow."""

CHECK_STEPS = 100_000  # steps of SQLite between two checks for Ctrl-C: about a millisecond

SECURE_DELETE = "PRAGMA secure_delete = ON"
"""Overwrites removed texts with zeros. Without it `forget` could not remove texts that were edited or deleted earlier."""


def real_file(path: Path) -> Path:
    """The file that a symbolic link leads to: SQLite keeps the write-ahead log and its index beside that one."""
    return Path(os.path.realpath(path))  # Path.resolve raises RuntimeError for links in a circle


def connect(path: Path) -> apsw.Connection:
    """Open a file that exists; raise Unavailable. A removed file must not come back as an empty list."""
    try:
        db = apsw.Connection(str(path.absolute()), flags=apsw.SQLITE_OPEN_READWRITE)
    except apsw.CantOpenError as error:
        fault = access_problem(path) or (
            f"{path} does not exist, or too many files are open. "
            f"Correct DATABASE_URL, or restore a back-up: {typed('restore FILE')}"
        )
        raise Unavailable(fault) from error
    db.set_busy_timeout(int(LOCK_TIMEOUT_SECONDS * 1000))
    # Plan a statement once. To plan it again for each value of its LIMIT takes longer than to run
    # it.
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    db.execute(
        f"PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF; PRAGMA journal_size_limit = {WAL_MAX_BYTES}"
    )
    db.execute(SECURE_DELETE)
    return db


@contextmanager
def savepoint(db: apsw.Connection) -> Iterator[None]:
    """Make all changes of the block or none.

    `with db` does the same, but on a full disk it raises an error that hides the reason.
    """
    db.execute("SAVEPOINT block")
    try:
        yield
        db.execute("RELEASE block")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK TO block; RELEASE block")
        raise


@contextmanager
def transaction(db: apsw.Connection) -> Iterator[None]:
    """Make and commit all changes of the block, or none; raise Unavailable if the file was replaced."""
    db.execute("BEGIN IMMEDIATE")
    try:
        if has_moved(db):
            raise Unavailable("the file was replaced or removed")  # noqa: TRY301 - it must be rolled back
        yield
        db.execute("COMMIT")
    except BaseException as error:
        if db.in_transaction:
            db.execute("ROLLBACK")
        if isinstance(error, apsw.IOError):
            # Overwrite a transaction that is in the log but was not synced: a crash would bring it back. If the disk still
            # fails, the next successful commit overwrites it.
            with suppress(apsw.Error), db:
                db.pragma("user_version", db.pragma("user_version"))
        raise


@contextmanager
def interruptible(db: apsw.Connection) -> Iterator[None]:
    """Let Ctrl-C interrupt the statements of the block, but not the commit after it."""
    interrupt.check()  # it may have come during the wait for the lock
    db.set_progress_handler(interrupt.check, CHECK_STEPS)
    yield
    db.set_progress_handler(None)
    interrupt.check()


def has_moved(db: apsw.Connection) -> bool:
    """Whether the open file was removed or replaced, so that changes to it would be lost."""
    moved = ctypes.c_int()
    db.file_control("main", apsw.SQLITE_FCNTL_HAS_MOVED, ctypes.addressof(moved))
    return bool(moved.value)


def log_inodes(path: Path) -> list[tuple[int, int]]:
    """The device and inode of the file's write-ahead log, and those of its index, as far as they exist."""
    found = []
    for suffix in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            status = os.stat(f"{path}{suffix}")  # noqa: PTH116 - each read asks, and a Path costs more
            found.append((status.st_dev, status.st_ino))
    return found


def remove_wal(path: Path, inodes: Sequence[tuple[int, int]]) -> None:
    """Remove the write-ahead log of a file that was replaced. SQLite would apply it to the new file.

    Call it while that log is still open, because its inode cannot be reused until then. Of several workers the first
    removes the log; the others find no log or another one, and leave it.
    """
    with folder_lock(path.parent):
        if inodes and inodes == log_inodes(path):
            for suffix in ("-wal", "-shm"):
                Path(f"{path}{suffix}").unlink(missing_ok=True)


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Lock a folder against other processes of this program, which hold it for a moment only."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
