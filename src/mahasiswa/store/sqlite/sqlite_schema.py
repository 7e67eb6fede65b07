"""Creates and upgrades the table mahasiswa and its history in an SQLite file.

The schema's version stands in PRAGMA user_version. Each of UPGRADES is the SQL that raises it by one. All upgrades that a
file lacks run in one transaction. To change the schema, add one; never change one that was released. The triggers belong
to no version: every start compares them with those of this release, and creates them again if they differ.
"""

import logging
import secrets
from pathlib import Path

import apsw

from mahasiswa.settings import DEFAULT_HISTORY_DAYS
from mahasiswa.store.sqlite import sqlite_sql as sql
from mahasiswa.store.sqlite.backup import copy_before, refuse_if_lost
from mahasiswa.store.sqlite.connection import opened, transaction
from mahasiswa.store.sqlite.sqlite_errors import explained, usable
from mahasiswa.store.store_errors import NeedsRepair, Unusable
from mahasiswa.system.administrator import typed
from mahasiswa.system.folder_lock import folder_lock

log = logging.getLogger(__name__)

# UPGRADES[n] makes version n + 1 of version n.
UPGRADES = (Path(__file__).with_name("version_1.sql").read_text(),)


class Newer(NeedsRepair):
    """A later release made the tables."""


def migrate(path: Path, history_days: int | None = None, backups: Path | None = None) -> None:
    """See SQLiteEngine. An older file is copied before it is upgraded."""
    # Switching to a write-ahead log needs the file alone, and SQLite's busy timeout does not cover it. A restore and the
    # service lock the folder too.
    with usable(path), folder_lock(path.parent):
        if not path.exists():
            refuse_if_lost(path, backups)
            path.touch(mode=0o600)  # SQLite gives the mode of the file to the write-ahead log
        with opened(path) as db:
            version = known_version(db, path)
            if not version:
                refuse_if_lost(path, backups)
            elif version < len(UPGRADES):
                fault = f"{path} is of an older version, and could not be copied before its upgrade"
                with explained(fault, NeedsRepair):
                    copy = copy_before(path)
                log.info("%s is the list before the upgrade; an older release can restore it", copy)
            upgrade(db, version, history_days)
            if db.execute("PRAGMA journal_mode = WAL").get != "wal":
                raise Unusable(f"{path} cannot have a write-ahead log. It needs a local disk")


def upgrade(db: apsw.Connection, version: int, history_days: int | None = None) -> None:
    """Make the upgrades that a file of that version lacks, and missing triggers, or nothing. Store the days."""
    with transaction(db):
        for number, statements in enumerate(UPGRADES[version:], version + 1):
            db.execute(statements)
            db.pragma("user_version", number)
        db.execute(sql.SET_STATE, (history_days, DEFAULT_HISTORY_DAYS, secrets.token_hex(32)))
        triggers = dict(db.execute(sql.STORED_TRIGGERS))
        if triggers != sql.TRIGGERS:
            if triggers:
                log.info("triggers were missing or changed, and are created again")
            for statement in [*map(sql.DROP_TRIGGER.format, triggers), *sql.TRIGGERS.values()]:
                db.execute(statement)


def known_version(db: apsw.Connection, path: Path) -> int:
    """The version of the schema, 0 in an empty file. Raise Newer, or NeedsRepair if no release made the tables."""
    version: int = db.pragma("user_version")
    has = f"{path} has schema version {version}"
    if version and db.execute(sql.IS_RELEASED).get:
        if version > len(UPGRADES):
            known = f"this release knows only up to {len(UPGRADES)}"
            raise Newer(f"{has}, and {known}: use a newer release")
        return version
    if version or db.execute(sql.HAS_OBJECTS).get:
        remedy = f"export its records as CSV with its own program, then run: {typed('import FILE')}"
        raise NeedsRepair(f"{has}, but not the tables of it. Restore a back-up, or {remedy}")
    return 0
