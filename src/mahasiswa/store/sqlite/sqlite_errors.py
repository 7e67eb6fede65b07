"""Translates the errors of SQLite and of its files to sentences for the operator, with the remedy."""

import errno
import os
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


@contextmanager
def usable(path: Path) -> Iterator[None]:
    """Raise Refused or Unusable for every error in the use of a database file."""
    try:
        yield
    except Unavailable as error:
        raise Unusable(str(error)) from error
    except apsw.ConstraintError as error:
        raise refusal(error) from error
    except (apsw.NotADBError, apsw.CorruptError) as error:
        fault = f"{path} is damaged or not an SQLite database ({error})"
        remedy = f"Correct DATABASE_URL, or restore a back-up: {typed('restore FILE')}"
        raise NeedsRepair(f"{fault}. {remedy}") from error
    except (apsw.Error, OSError) as error:
        fault = access_problem(path) or (
            f"{path} cannot be used: {reason(error)}. Check who has the file open, and its disk,"
            " which must be a local one"
        )
        raise Unusable(fault) from error


@contextmanager
def explained(fault: str, kind: type[Unusable] = Unusable) -> Iterator[None]:
    """Raise an error of this kind with this fault and its reason for every error of SQLite and of files."""
    try:
        yield
    except (apsw.Error, OSError) as error:
        raise kind(f"{fault}: {reason(error)}") from error


def access_problem(path: Path) -> str:
    """Why this user cannot use a file, with the remedy, or nothing.

    It does not open the file, because that would drop SQLite's locks.
    """
    path = path.absolute()
    user = process_user()
    if not os.path.isdir(path.parent):  # noqa: PTH112 - Path.is_dir may raise PermissionError
        fault = f"The folder {path.parent} does not exist. Create it"
        return f"{fault}, or let {user} use the folders above it, or correct DATABASE_URL"
    if os.path.isdir(path):  # noqa: PTH112
        return f"{path} is a folder. Correct DATABASE_URL"
    for used in (path.parent, path):
        if os.path.exists(used) and not os.access(used, os.R_OK | os.W_OK):  # noqa: PTH110
            owner = user_name(used.stat().st_uid)
            fault = f"{used} belongs to {owner}, and {user} may not read and write it"
            return f"{fault}. Run this as its owner, or correct its mode or DATABASE_URL"
    return ""


def reason(error: BaseException) -> str:
    # SQLite's own texts say "database or disk is full" for the disk of the copy, and sometimes "not an error".
    match error:
        case apsw.FullError():
            return os.strerror(errno.ENOSPC)
        case apsw.IOError() if getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE:
            return os.strerror(errno.ENOSPC)  # the index of the log needs room, too
        case apsw.CorruptError():
            return "the file is damaged"
        case apsw.IOError():
            return os.strerror(errno.EIO)
        case OSError():
            return error.strerror or str(error)
    return str(error)


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
