"""Creates and upgrades the table mahasiswa and its history in an SQLite file.

The schema's version stands in PRAGMA user_version. Each of UPGRADES raises it by one, in one
transaction. To change the schema, add one; never change one that was released. The triggers belong
to no version: every start compares them with those of this release, and creates them again if they
differ.
"""

import logging
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import apsw

from mahasiswa.settings import DEFAULT_HISTORY_DAYS
from mahasiswa.store import shared_sql
from mahasiswa.store.backup_folder import lack_of_room
from mahasiswa.store.sqlite import sqlite_sql as sql
from mahasiswa.store.sqlite.backup import copy_before
from mahasiswa.store.sqlite.connection import (
    LOCK_TIMEOUT_SECONDS,
    SECURE_DELETE,
    folder_lock,
    real_file,
)
from mahasiswa.store.sqlite.sqlite_errors import NO_LOG, access_problem, reason, usable
from mahasiswa.store.store_errors import NeedsRepair, Unusable
from mahasiswa.system.administrator import typed

log = logging.getLogger(__name__)


def migrate(
    path: Path,
    history_days: int | None = None,
    *,
    create: bool = True,
    copy_first: bool = False,
) -> None:
    """See Engine. With `copy_first` an older file is copied before it is upgraded; raise NeedsRepair if it cannot be."""
    with _exclusive(path, create=create) as db:
        version = known_version(db, path)
        if is_upgraded := 0 < version < len(UPGRADES):
            if copy_first:
                _copy_before_upgrade(path)
            log.info("upgrading %s records in %s", f"{db.execute(shared_sql.COUNT).get:,}", path)
        for number, upgrade in enumerate(UPGRADES[version:], version + 1):
            with db:
                upgrade(db)
                db.pragma("user_version", number)
        if is_upgraded:
            log.info("upgraded %s to schema version %d", path, len(UPGRADES))
        with db:
            _set_history_days(db, path, history_days)
        if db.execute("PRAGMA journal_mode = WAL").get != "wal":
            raise Unusable(NO_LOG.format(path))


def _copy_before_upgrade(path: Path) -> None:
    """Make a verified copy beside the file, with which an older release can go on; raise NeedsRepair."""
    file = real_file(path)
    if problem := lack_of_room(file.parent, file.stat().st_size):
        raise NeedsRepair(
            f"{path} is of an older version, and is upgraded only after a copy: {problem}"
        )
    try:
        copy = copy_before(file)
    except (apsw.Error, OSError) as error:
        raise NeedsRepair(
            f"{path} is of an older version, and could not be copied: {reason(error)}"
        ) from error
    log.info("%s is the list before the upgrade; an older release can restore it", copy)


def known_version(db: apsw.Connection, path: Path) -> int:
    """The version of the schema; raise Unusable if it is newer, or if no release made the tables."""
    version: int = db.pragma("user_version")
    has = f"{path} has schema version {version}"
    if is_newer(db):
        raise NeedsRepair(
            f"{has}, and this release knows only up to {len(UPGRADES)}: use a newer release"
        )
    stored = sorted(db.execute(sql.STORED_TABLES))
    if not version and stored:
        version = _dumped_version(stored)
    if stored and not (version and db.execute(sql.IS_RELEASED).get):
        name, kind, _ = stored[0]
        remedy = f"export it as CSV with its own program, then run: {typed('import FILE')}"
        raise NeedsRepair(f"{path} holds a {kind} {name} that no release made; {remedy}")
    if version and (missing := {"mahasiswa", "mahasiswa_history"} - {name for name, *_ in stored}):
        raise NeedsRepair(f"{has}, but its table {min(missing)} is missing")
    return version


def _dumped_version(stored: Sequence[object]) -> int:
    """The version of tables that come from `.dump` of the sqlite3 shell, which saves no version.

    It is 0 if they are not those of any version.
    """
    with closing(apsw.Connection(":memory:")) as made:
        for number, upgrade in enumerate(UPGRADES, 1):
            upgrade(made)
            if sorted(made.execute(sql.STORED_TABLES)) == stored:
                return number
    return 0


def is_newer(db: apsw.Connection) -> bool:
    """Whether a later release made the tables."""
    return bool(db.pragma("user_version") > len(UPGRADES) and db.execute(sql.IS_RELEASED).get)


VERSION_1 = Path(__file__).with_name("version_1.sql").read_text()
# UPGRADES[n] makes version n + 1 of version n.
UPGRADES: Sequence[Callable[[apsw.Connection], object]] = (lambda db: db.execute(VERSION_1),)


def _set_history_days(db: apsw.Connection, path: Path, days: int | None) -> None:
    """Store the days, and create missing triggers. Commit nothing if nothing differs."""
    stored = db.execute(shared_sql.DAYS).get
    if days is None:
        days = DEFAULT_HISTORY_DAYS if stored is None else stored
    if stored is None:
        db.execute(sql.CREATE_STATE, (days, secrets.token_hex(32)))
    elif stored != days:
        log.warning("HISTORY_DAYS of %s was %d and is %d from now on", path, stored, days)
        db.execute(sql.SET_DAYS, (days,))
    if (triggers := dict(db.execute(sql.STORED_TRIGGERS))) != sql.TRIGGERS:
        if stored is not None:
            log.warning("triggers of %s were missing or changed, and are created again", path)
        for statement in [*map(sql.DROP_TRIGGER.format, triggers), *sql.TRIGGERS.values()]:
            db.execute(statement)


@contextmanager
def _exclusive(path: Path, *, create: bool) -> Iterator[apsw.Connection]:
    """Open the file, and perhaps create it, under the lock of its folder; raise Unusable."""
    with usable(path):
        if not create and not path.exists():
            raise Unusable(f"{path} does not exist")
        # Switching to a write-ahead log needs the file alone, and SQLite's busy timeout does not cover it.
        with folder_lock(real_file(path).parent):  # a restore and the service lock that one
            if create:  # SQLite gives the mode of the file to the write-ahead log
                # The file exists; if it cannot be created, SQLite says so next.
                with suppress(OSError):
                    real_file(path).touch(mode=0o600, exist_ok=False)
            with closing(apsw.Connection(str(path.absolute()))) as db:
                _check(db, path)
                yield db


def _check(db: apsw.Connection, path: Path) -> None:
    db.set_busy_timeout(int(LOCK_TIMEOUT_SECONDS * 1000))
    db.transaction_mode = "IMMEDIATE"
    db.execute(SECURE_DELETE)
    if db.readonly("main"):
        raise Unusable(access_problem(path) or f"{path} cannot be written")
    if (encoding := db.pragma("encoding")) != "UTF-8":  # its order would not be that of code points
        raise NeedsRepair(f"{path} has the encoding {encoding}; it must be UTF-8")
