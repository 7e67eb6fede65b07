"""Translates the errors of SQLite and of its files to sentences for the operator, with the remedy."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from mahasiswa.store.store_errors import (
    NeedsRepair,
    Refused,
    StoreError,
    Unavailable,
    Unusable,
)
from mahasiswa.system.administrator import process_user, typed, user_name

FULL_BYTES = 1 << 20  # a disk with less free space is full: SQLite needs some room for its log

NO_LOG = "{} cannot have a write-ahead log. Is it on a network drive? The file needs a local disk"
# A network drive has no memory that processes share. Of SQLITE_IOERR_SHMSIZE the cause is a full disk.
NO_SHARED_MEMORY = (
    apsw.SQLITE_IOERR_SHMOPEN,
    apsw.SQLITE_IOERR_SHMMAP,
    apsw.SQLITE_IOERR_SHMLOCK,
)


@contextmanager
def usable(path: Path) -> Iterator[None]:
    """Raise Unusable for every error in the use of a database file."""
    try:
        yield
    except Unavailable as error:
        raise Unusable(str(error)) from error
    except apsw.NotADBError as error:
        remedy = f"Correct DATABASE_URL, or restore a back-up: {typed('restore FILE')}"
        raise NeedsRepair(f"{path} is not an SQLite database. {remedy}") from error
    except apsw.CorruptError as error:
        raise NeedsRepair(
            f"{path} is damaged ({error}). Restore a back-up: {typed('restore FILE')}"
        ) from error
    except (apsw.Error, OSError) as error:
        if problem := access_problem(path):
            raise Unusable(problem) from error
        if getattr(error, "extendedresult", 0) in NO_SHARED_MEMORY:
            raise Unusable(NO_LOG.format(path)) from error
        if shutil.disk_usage(path.parent).free < FULL_BYTES:  # SQLite cannot make its log either
            raise Unusable(f"The disk of {path} is full. Make room on it") from error
        raise Unusable(
            f"{path} cannot be used: {reason(error)}. Check who has the file open, and its disk"
        ) from error


def access_problem(path: Path) -> str:
    """Why this user cannot use a file, with the remedy, or nothing.

    It does not open the file, because that would drop SQLite's locks.
    """
    path = path.absolute()
    folder = path.parent
    try:
        if not folder.is_dir():
            return f"The folder {folder} does not exist. Create it, or correct DATABASE_URL"
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            return forbidden(folder)
        if path.is_dir():
            return f"{path} is a folder. Correct DATABASE_URL"
        if path.exists() and not os.access(path, os.R_OK | os.W_OK):
            return forbidden(path)
    except OSError as error:
        return f"{path} cannot be used by {process_user()}: {error.strerror}. Correct DATABASE_URL, or run this as its owner"
    return ""


def forbidden(path: Path) -> str:
    """The sentence about a file or a folder that this user may not use."""
    user = process_user()
    owner = user_name(path.stat().st_uid)
    if user == owner:
        return f"{path} belongs to {user}, who may not use it. Run: chmod u+rwX {path}"
    remedy = "correct DATABASE_URL" if path.is_dir() else f"as root: chown {user}: {path}*"
    return f"{path} belongs to {owner}, so {user} may not use it. Run this as {owner}, or {remedy}"


def reason(error: apsw.Error | OSError) -> str:
    # SQLite's own texts say "database or disk is full" for the disk of the copy, and sometimes "not an error".
    match error:
        case apsw.CorruptError() if str(error) == "not an error":
            return "the file is damaged"
        case apsw.FullError():
            return os.strerror(errno.ENOSPC)
        case apsw.IOError() if getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE:
            return os.strerror(errno.ENOSPC)  # the index of the log needs room, too
        case apsw.IOError():
            return os.strerror(errno.EIO)
        case OSError():
            return error.strerror or str(error)
    return str(error)


def is_of_full_disk(error: BaseException | None) -> bool:
    """Whether a full disk has caused an error, also by the errors between them."""
    if isinstance(error, apsw.Error | OSError) and reason(error) == os.strerror(errno.ENOSPC):
        return True
    return error is not None and is_of_full_disk(error.__cause__)


def refusal(error: apsw.ConstraintError) -> StoreError:
    """Translate the error of a constraint.

    Its name or its column gives the field and the reason.
    """
    match str(error).partition(" constraint failed: "):
        case "CHECK", _, constraint:
            field, _, reason = constraint.partition("_")
            return Refused(field, reason)
        case "NOT NULL", _, column:
            return Refused(column.removeprefix("mahasiswa."), "missing")
        case "UNIQUE", _, _:
            return Refused("nim", "duplicate")
    return Unavailable(str(error))  # raised by another program's trigger
