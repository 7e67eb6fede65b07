"""Translates the errors of SQLite and of its files to sentences for the operator, with the remedy."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from mahasiswa.store.store_errors import (
    Locked,
    NeedsRepair,
    Refused,
    StoreError,
    TookTooLong,
    Unavailable,
    Unusable,
)
from mahasiswa.system.administrator import process_user, typed

NOT_UTF8 = "another program has stored a text that is not UTF-8"

DAMAGE = (apsw.CorruptError, apsw.NotADBError)
KINDS: dict[type, type[Unavailable]] = {apsw.BusyError: Locked, apsw.InterruptError: TookTooLong}

log = logging.getLogger(__name__)


@contextmanager
def usable(path: Path) -> Iterator[None]:
    """Raise Refused or Unusable for every error in the use of a database file."""
    try:
        yield
    except apsw.ConstraintError as error:
        raise translate(error) from error
    except DAMAGE as error:
        fault = f"{path} is damaged or not an SQLite database ({error})"
        remedy = f"Correct DATABASE_URL, or restore a back-up: {typed('restore FILE')}"
        raise NeedsRepair(f"{fault}. {remedy}") from error
    except (Unavailable, apsw.Error, OSError, UnicodeDecodeError) as error:
        rights = f"The user {process_user()} must be able to write it and its folder"
        remedy = f"{rights}, which must be on a local disk. Check DATABASE_URL too"
        raise Unusable(f"{path} cannot be used: {_reason(error)}. {remedy}") from error


@contextmanager
def explained(fault: str) -> Iterator[None]:
    """Raise NeedsRepair with this fault and its reason for every error of SQLite and of files."""
    try:
        yield
    except (apsw.Error, OSError) as error:
        raise NeedsRepair(f"{fault}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def translate(error: Exception) -> StoreError:
    """The StoreError for any error of a change or a read."""
    if isinstance(error, StoreError):
        return error
    if isinstance(error, UnicodeDecodeError):
        return Unavailable(NOT_UTF8)
    text = str(error)
    # The name of a constraint, or its column, gives the field and the reason.
    match text.partition(" constraint failed: "):
        case "CHECK", _, constraint:
            field, _, reason = constraint.partition("_")
            return Refused(field, reason)
        case "NOT NULL", _, column:
            return Refused(column.removeprefix("mahasiswa."), "missing")
        case "UNIQUE", _, _:
            return Refused("nim", "duplicate")
    if not isinstance(error, apsw.Error):
        log.error("not an error of SQLite", exc_info=error)
    # A constraint without such a text is the trigger of another program.
    return KINDS.get(type(error), Unavailable)(text)
