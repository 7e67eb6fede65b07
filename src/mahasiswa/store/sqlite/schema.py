"""Creates, upgrades and adopts the table mahasiswa and its history in an SQLite file.

The schema's version stands in PRAGMA user_version. Each step of STEPS raises it by one, in one transaction. To change
the schema, add a step; never change one that was released. The triggers of the history belong to no step: every start
compares them with those of this release, and creates them again if they differ.
"""

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import cast

import apsw

from mahasiswa import interrupt
from mahasiswa.record import NIM_MAX_CHARACTERS, Mahasiswa
from mahasiswa.settings import DEFAULT_HISTORY_DAYS
from mahasiswa.store import Adopted
from mahasiswa.store.errors import Refused, Unavailable, Unusable
from mahasiswa.store.sqlite import sql
from mahasiswa.store.sqlite.backup import backup_beside
from mahasiswa.store.sqlite.connection import LOCK_TIMEOUT_SECONDS, SECURE_DELETE, folder_lock, open_failure, refusal

NAMED_ROWS = 3
"""Maximum number of refused records that an error names."""

SHOWN_NIM_CHARACTERS = 40

PROBLEMS = {
    "missing": "{field} is NULL",
    "nul": "{field} contains a NUL character",
    "too_long": f"it has more than {NIM_MAX_CHARACTERS} characters",
    "unaddressable": "no link can reach it",
    "duplicate": "it occurs more than once",
}

log = logging.getLogger(__name__)


def migrate(path: Path, history_days: int | None = None) -> None:
    """Create the file and its tables, or upgrade those that an earlier release made; raise Unusable.

    Records are moved only after a back-up file was written. If `history_days` is None, the file keeps its days. All
    handles are closed when it returns.
    """
    with _exclusive(path) as db:
        version = known_version(db, path)
        for number, step in enumerate(STEPS[version:], version + 1):
            with db:
                step(db, path)
                db.pragma("user_version", number)
        with db:
            _set_history_days(db, path, history_days)
        if db.execute("PRAGMA journal_mode = WAL").get != "wal":
            raise Unusable(f"{path} cannot have a write-ahead log; is it on a network drive?")
        _warn_if_public(path)


def adopt(path: Path) -> Adopted:
    """Rebuild a table mahasiswa that another program made as this program's own, in one transaction; raise Unusable.

    The columns nim, nama and alamat may have any order, type and collation. Every value must be a text that the new
    table admits; numbers are refused, because a number has lost the zeros that it began with. Rules of the old table
    (CHECK, DEFAULT, NOCASE) are dropped; they remain in the back-up file.
    """
    with _exclusive(path, create=False) as db, db:
        kind, definition = _describe(db)
        if kind is None:
            raise Unusable(f"{path} has no table mahasiswa; there is nothing to adopt")
        if definition == sql.CREATE_MAHASISWA:
            raise Unusable(f"the table mahasiswa in {path} is this program's own already; there is nothing to adopt")
        if (version := db.pragma("user_version")) > len(STEPS):
            raise Unusable(f"{path} has user_version {version}, which a newer release or another program has set")
        if kind != "table":
            raise Unusable(f"mahasiswa in {path} is of type {kind}; only a table can be adopted")
        if sorted(columns := [name for (name,) in db.execute(sql.COLUMNS)]) != sorted(Mahasiswa._fields):
            raise Unusable(
                f"the table mahasiswa in {path} has the columns {', '.join(columns)}; it must have nim, nama and alamat"
            )
        adopted = _rebuild(db, path)
        for step in STEPS[1:]:
            step(db, path)
        _set_history_days(db, path, None)
        db.pragma("user_version", len(STEPS))
    return adopted


def upgrade_copy(path: Path) -> None:
    """Bring the table mahasiswa of a copy to this schema; raise Unusable. A copy of it remains, so no back-up is written."""
    with _exclusive(path, create=False) as db:
        if known_version(db, path):
            return
        kind, definition = _describe(db)
        if definition == sql.CREATE_MAHASISWA_1_0_0:
            with db:
                _move_table(db, path)
        elif definition != sql.CREATE_MAHASISWA:
            raise _foreign(path, str(kind))


def known_version(db: apsw.Connection, path: Path) -> int:
    """The version of the schema; raise Unusable if it is newer, or if the table is not the one of that version."""
    version: int = db.pragma("user_version")
    if version > len(STEPS):
        raise Unusable(
            f"{path} has schema version {version}, and this release knows only up to {len(STEPS)}: use a newer release"
        )
    if version:
        kind, definition = _describe(db)
        if kind is None:
            raise Unusable(f"{path} has schema version {version}, but its table mahasiswa is missing")
        if definition != sql.CREATE_MAHASISWA:
            raise _foreign(path, kind)
    return version


def _create_or_rebuild(db: apsw.Connection, path: Path) -> None:
    """Step 1: the table with its rules. A table of release 1.0.0, which set no version, is rebuilt."""
    kind, definition = _describe(db)
    if kind is None:
        db.execute(sql.CREATE_MAHASISWA)
    elif definition == sql.CREATE_MAHASISWA_1_0_0:
        adopted = _rebuild(db, path)
        log.warning("%s was made by release 1.0.0 and is upgraded; a back-up is in %s", path, adopted.backup)
    elif definition != sql.CREATE_MAHASISWA:  # `.dump` of the sqlite3 shell keeps the table, not the version
        raise _foreign(path, kind)


def _create_history(db: apsw.Connection, path: Path) -> None:
    """Step 2: the tables of the history. They exist already in a file that `.dump` of the sqlite3 shell made."""
    for name, definition in sql.HISTORY_TABLES.items():
        stored = db.execute(sql.DESCRIBE_TABLE, (name,)).get
        if stored is None:
            db.execute(definition)
        elif stored != definition:
            raise Unusable(f"{path} holds a table {name} that this program did not make; rename it")
    db.execute(sql.CREATE_HISTORY_INDEX)


def _create_search(db: apsw.Connection, path: Path) -> None:
    """Step 3: the folded texts of the search. Those of a file that `.dump` made are folded again."""
    stored = db.execute(sql.DESCRIBE_TABLE, ("mahasiswa_cari",)).get
    if stored not in (None, sql.CREATE_MAHASISWA_CARI):
        raise Unusable(f"{path} holds a table mahasiswa_cari that this program did not make; rename it")
    db.execute(sql.DROP_SEARCH)
    db.execute(sql.CREATE_SEARCH)
    db.execute(sql.FILL_MAHASISWA_CARI)


STEPS: Sequence[Callable[[apsw.Connection, Path], None]] = (_create_or_rebuild, _create_history, _create_search)


def _set_history_days(db: apsw.Connection, path: Path, days: int | None) -> None:
    """Store the days, and create the triggers; with 0 days remove the triggers and the history.

    Nothing is written if nothing changes, because every commit is a new version of the list.
    """
    stored = db.execute(sql.DAYS).get
    if days is None:
        days = DEFAULT_HISTORY_DAYS if stored is None else stored
    if stored not in (None, days):
        log.warning("HISTORY_DAYS of %s was %d and is %d from now on", path, stored, days)
    if stored != days:
        db.execute(sql.SET_DAYS, (days,))
    if dict(db.execute(sql.STORED_TRIGGERS)) != (sql.HISTORY_TRIGGERS if days else {}):
        db.execute(sql.DROP_TRIGGERS)
        if days:
            db.execute(sql.CREATE_TRIGGERS)
    if stored != days == 0:
        db.execute(sql.CLEAR_HISTORY)


@contextmanager
def _exclusive(path: Path, *, create: bool = True) -> Iterator[apsw.Connection]:
    """Open the file, and perhaps create it, under the lock of its folder; translate every error to Unusable."""
    try:
        if not path.parent.is_dir():
            raise Unusable(f"the folder {path.parent} does not exist")
        if not create and not path.exists():
            raise Unusable(f"{path} does not exist")
        # Switching to a write-ahead log needs the file alone, and SQLite's busy timeout does not cover it.
        with folder_lock(path.parent):
            if create:
                _create_private(path)
            with closing(apsw.Connection(str(path.absolute()))) as db:
                _check(db, path)
                yield db
    except Unavailable as error:
        raise Unusable(str(error)) from error
    except apsw.CantOpenError as error:
        raise Unusable(f"{path} cannot be opened: {open_failure(path)}") from error
    except apsw.NotADBError:
        raise Unusable(f"{path} is not an SQLite database") from None
    except apsw.Error as error:
        raise Unusable(f"{path} cannot be used: {error}") from error
    except OSError as error:
        raise Unusable(f"{path} cannot be opened: {error.strerror}") from error


def _check(db: apsw.Connection, path: Path) -> None:
    db.set_busy_timeout(int(LOCK_TIMEOUT_SECONDS * 1000))
    db.transaction_mode = "IMMEDIATE"
    db.execute(SECURE_DELETE)
    if db.readonly("main"):
        raise Unusable(f"{path} cannot be written")
    if (encoding := db.pragma("encoding")) != "UTF-8":  # its order would not be that of code points
        raise Unusable(f"{path} has the encoding {encoding}; it must be UTF-8")


def _create_private(path: Path) -> None:
    """Create an empty file that only its owner can read. SQLite gives its mode to the write-ahead log."""
    with suppress(OSError):  # it exists; if it cannot be created, SQLite says so next
        path.resolve().touch(mode=0o600, exist_ok=False)


def _warn_if_public(path: Path) -> None:
    """Warn if every user of this computer can read the file. If only a group can read it, an operator has chosen that."""
    file = path.resolve()
    if sys.platform != "win32" and file.stat().st_mode & 0o004 and all(p.stat().st_mode & 0o001 for p in file.parents):
        log.warning("every user of this computer can read %s; to prevent it: chmod o= %s*", file, file)


def _describe(db: apsw.Connection) -> tuple[str | None, str | None]:
    """The type of the object named mahasiswa, and the SQL that made it; None if there is none."""
    return next(db.execute(sql.DESCRIBE_MAHASISWA), (None, None))


def _foreign(path: Path, kind: str) -> Unusable:
    return Unusable(
        f"{path} holds a {kind} mahasiswa that this program did not make; to rebuild it, run: mahasiswa adopt"
    )


def _rebuild(db: apsw.Connection, path: Path) -> Adopted:
    """Write a back-up file, then move every record into a new table, to the byte. The caller holds a transaction."""
    if dependent := db.execute(sql.DEPENDENT_OBJECTS).fetchone():
        raise Unusable(f"{path}: remove {' '.join(dependent)} first, because it depends on the old table mahasiswa")
    saved = backup_beside(path)
    try:
        count = _move_table(db, path)
    except BaseException:
        saved.unlink()  # nothing is changed, and a service that is started again and again would fill the disk
        raise
    return Adopted(count, saved)


def _move_table(db: apsw.Connection, path: Path) -> int:
    db.execute(sql.SET_ASIDE)
    db.execute(sql.CREATE_MAHASISWA)
    count = _move_rows(db, path)
    db.execute(sql.DROP_BEFORE)
    return count


def _move_rows(db: apsw.Connection, path: Path) -> int:
    problems = []
    refused = 0
    for *types, nim, nama, alamat in db.execute(sql.ROWS_BEFORE):
        interrupt.check()
        if problem := _move_row(db, types, (nim, nama, alamat)):
            refused += 1
            if refused <= NAMED_ROWS:
                shown = "NULL" if nim is None else ascii(nim.decode(errors="replace"))[:SHOWN_NIM_CHARACTERS]
                problems.append(f"NIM {shown}: {problem}")
    if refused:
        more = f"; and {refused - NAMED_ROWS} more" if refused > NAMED_ROWS else ""
        raise Unusable(f"{path}: nothing was changed, invalid records: {refused}. {'; '.join(problems)}{more}")
    count, kept = db.execute(sql.COUNT_BEFORE).get, db.execute(sql.COUNT_KEPT).get
    if count != kept:
        raise Unusable(f"{path}: nothing was changed, because {count - kept} records would differ")
    return cast("int", count)


def _move_row(db: apsw.Connection, types: Sequence[str], values: Sequence[bytes | None]) -> str | None:
    """Insert a record into the new table, and return None; or return the rule that it breaks."""
    texts = []
    for field, kind, value in zip(Mahasiswa._fields, types, values, strict=True):
        if kind not in ("text", "null"):
            return f"{field} is of type {kind}, not text"
        try:
            texts.append(None if value is None else value.decode())
        except UnicodeDecodeError:
            return f"{field} is not UTF-8"
    try:
        db.execute(sql.ADD, texts)
    except apsw.ConstraintError as error:
        refused = refusal(error)
        return PROBLEMS[refused.reason].format(field=refused.field) if isinstance(refused, Refused) else str(refused)
    return None
