"""Opens connections to the SQLite file and makes transactions."""

import ctypes
import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import apsw

from mahasiswa.store.sqlite.sqlite_errors import usable
from mahasiswa.store.store_errors import Unavailable
from mahasiswa.system.folder_lock import folder_lock

LOCK_TIMEOUT_SECONDS = 10.0
"""Maximum wait for a lock that another program holds. A change of the service waits until its own deadline."""

WAL_MAX_BYTES = 64 * 1024 * 1024
"""Maximum size of the write-ahead log after a checkpoint. A long read by another program lets it grow."""

CTRL_C_STEPS = 100_000  # steps of SQLite between two looks for Ctrl-C: about a millisecond

LOG_SUFFIXES = ("-wal", "-shm")  # of the write-ahead log, and of its index

# Without secure_delete, the free space of the file would keep texts that were edited or deleted, also from `forget`.
PRAGMAS = f"""
PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF; PRAGMA secure_delete = ON;
PRAGMA journal_size_limit = {WAL_MAX_BYTES}"""


def connect(path: Path) -> apsw.Connection:
    """Open a file that exists and can be written; raise apsw.Error. A removed file must not come back as an empty list."""
    db = apsw.Connection(str(path.absolute()), flags=apsw.SQLITE_OPEN_READWRITE)
    if db.readonly("main"):
        raise apsw.ReadOnlyError("it cannot be written")
    db.set_busy_timeout(int(LOCK_TIMEOUT_SECONDS * 1000))
    # Plan a statement once. To plan it again for each value of its LIMIT takes longer than to run
    # it.
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    # SQLite runs a statement only when the rows of the one before it are read.
    db.execute(PRAGMAS).fetchall()
    return db


@contextmanager
def opened(path: Path) -> Iterator[apsw.Connection]:
    """Open the file for a command; raise Refused or Unusable."""
    with usable(path), closing(connect(path)) as db:
        obey_ctrl_c(db)
        yield db


def obey_ctrl_c(db: apsw.Connection) -> None:
    """Let Ctrl-C raise KeyboardInterrupt also while a long statement runs, because Python runs this function meanwhile."""
    db.set_progress_handler(lambda: False, CTRL_C_STEPS)


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


def has_moved(db: apsw.Connection) -> bool:
    """Whether the open file was removed or replaced, so that changes to it would be lost."""
    moved = ctypes.c_int()
    db.file_control("main", apsw.SQLITE_FCNTL_HAS_MOVED, ctypes.addressof(moved))
    return bool(moved.value)


def log_inodes(path: Path) -> Sequence[int]:
    """The inodes of the file's write-ahead log and of its index; none if one of them does not exist."""
    try:
        # Each read asks, and a Path costs more.
        return [os.stat(f"{path}{suffix}").st_ino for suffix in LOG_SUFFIXES]  # noqa: PTH116
    except FileNotFoundError:
        return []


def remove_wal(path: Path, inodes: Sequence[int]) -> None:
    """Remove the write-ahead log of a file that was replaced. SQLite would apply it to the new file.

    Call it while that log is still open, because its inode cannot be reused until then. Of several workers the first
    removes the log; the others find no log or another one, and leave it.
    """
    with folder_lock(path.parent):
        if inodes and inodes == log_inodes(path):
            for suffix in LOG_SUFFIXES:
                Path(f"{path}{suffix}").unlink(missing_ok=True)
