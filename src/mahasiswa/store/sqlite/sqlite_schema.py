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
from mahasiswa.store.sqlite.connection import transaction
from mahasiswa.store.store_errors import NeedsRepair
from mahasiswa.system.administrator import typed

log = logging.getLogger(__name__)

# UPGRADES[n] makes version n + 1 of version n.
UPGRADES = (Path(__file__).with_name("version_1.sql").read_text(),)


class Newer(NeedsRepair):
    """A later release made the tables."""


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
