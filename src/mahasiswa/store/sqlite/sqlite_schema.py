"""Creates and upgrades the table mahasiswa and its history in an SQLite file.

The schema's version stands in PRAGMA user_version. Each of UPGRADES is the SQL that raises it by one. All upgrades that a
file lacks run in one transaction. To change the schema, add one; never change one that was released. The triggers belong
to no version: every start compares them with those of this release, and creates them again if they differ.
"""

import logging
import secrets
from collections.abc import Iterable
from pathlib import Path

import apsw

from mahasiswa.settings import DEFAULT_HISTORY_DAYS
from mahasiswa.store.sqlite import sqlite_sql as sql
from mahasiswa.store.sqlite.backup import copy_before, refuse_if_lost
from mahasiswa.store.sqlite.connection import opened, real_file, transaction
from mahasiswa.store.sqlite.sqlite_errors import access_problem, explained, usable
from mahasiswa.store.store_errors import NeedsRepair, Unusable
from mahasiswa.system.administrator import typed
from mahasiswa.system.folder_lock import folder_lock

log = logging.getLogger(__name__)

# UPGRADES[n] makes version n + 1 of version n.
UPGRADES = (Path(__file__).with_name("version_1.sql").read_text(),)


def migrate(
    path: Path,
    history_days: int | None = None,
    *,
    create: bool = True,
    backups: Iterable[Path] = (),
) -> None:
    """See Engine. An empty list is not begun if a folder of `backups` has back-ups of it.

    With such folders, an older file is copied before it is upgraded.
    """
    file = real_file(path)
    # Switching to a write-ahead log needs the file alone, and SQLite's busy timeout does not cover it. A restore and the
    # service lock the folder too.
    with usable(path), folder_lock(file.parent):
        if not file.exists():
            if not create:
                raise Unusable(f"{path} does not exist")
            refuse_if_lost(path, backups)
            file.touch(mode=0o600)  # SQLite gives the mode of the file to the write-ahead log
        # SQLite would create a log beside a file that it cannot write
        if problem := access_problem(file):
            raise Unusable(problem)
        with opened(file) as db:
            # The order of another encoding would not be that of code points.
            if (encoding := db.pragma("encoding")) != "UTF-8":
                raise NeedsRepair(f"{path} has the encoding {encoding}; it must be UTF-8")
            version = known_version(db, path)
            if not version:
                refuse_if_lost(path, backups)
            elif version < len(UPGRADES) and backups:
                fault = f"{file} is of an older version, and could not be copied before its upgrade"
                with explained(fault, NeedsRepair):
                    copy = copy_before(file)
                log.info("%s is the list before the upgrade; an older release can restore it", copy)
            with transaction(db):
                for number, upgrade in enumerate(UPGRADES[version:], version + 1):
                    db.execute(upgrade)
                    db.pragma("user_version", number)
                _complete(db, path, history_days)
            if db.execute("PRAGMA journal_mode = WAL").get != "wal":
                raise Unusable(f"{path} cannot have a write-ahead log. It needs a local disk")


def _complete(db: apsw.Connection, path: Path, days: int | None) -> None:
    """Store the days, and create missing triggers. Write nothing if nothing differs."""
    db.execute(sql.CREATE_STATE, (days or DEFAULT_HISTORY_DAYS, secrets.token_hex(32)))
    if days and db.execute(sql.SET_DAYS, (days,)).get:
        log.warning("HISTORY_DAYS of %s is %d from now on", path, days)
    triggers = dict(db.execute(sql.STORED_TRIGGERS))
    if triggers != sql.TRIGGERS:
        if triggers:
            log.info("triggers of %s were missing or changed, and are created again", path)
        for statement in [*map(sql.DROP_TRIGGER.format, triggers), *sql.TRIGGERS.values()]:
            db.execute(statement)


def known_version(db: apsw.Connection, path: Path) -> int:
    """The version of the schema, 0 without tables; raise NeedsRepair if no release made them, or a newer one."""
    version: int = db.pragma("user_version")
    has = f"{path} has schema version {version}"
    if is_newer(db):
        raise NeedsRepair(
            f"{has}, and this release knows only up to {len(UPGRADES)}: use a newer release"
        )
    if version and db.execute(sql.IS_RELEASED).get:
        return version
    if version or db.execute(sql.HAS_TABLES).get:
        remedy = f"export its records as CSV with its own program, then run: {typed('import FILE')}"
        raise NeedsRepair(f"{has}, but not the tables of it. Restore a back-up, or {remedy}")
    return 0


def is_newer(db: apsw.Connection) -> bool:
    """Whether a later release made the tables."""
    return bool(db.pragma("user_version") > len(UPGRADES) and db.execute(sql.IS_RELEASED).get)
