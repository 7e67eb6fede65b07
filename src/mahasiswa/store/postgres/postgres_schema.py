"""Creates, upgrades and checks the table mahasiswa in PostgreSQL, with its history.

The schema's version stands in a comment on the table. Each of UPGRADES is the SQL that raises it by
one. All upgrades that a table lacks run in one transaction. Only the role that owns the tables may
use them. To change the schema, add an upgrade; never change one that was released.

The functions and triggers belong to no version. Their digest stands in a comment. If it is not that
of this release, or if a trigger is missing or disabled, the start creates all of them again.
"""

import hashlib
import logging
import re
from pathlib import Path
from typing import NamedTuple

import psycopg

from mahasiswa.settings import DEFAULT_HISTORY_DAYS
from mahasiswa.store.postgres import postgres_sql as sql
from mahasiswa.store.postgres.pool import SyncConnection, connected
from mahasiswa.store.store_errors import NeedsRepair
from mahasiswa.system.administrator import typed

# Requests queue behind an upgrade, so it must give up before they do.
BEGIN = f"{sql.BEGIN_CHANGE} SET LOCAL lock_timeout = '2s'; {sql.LOCK_SCHEMA}"
FOLDER = Path(__file__).parent
# UPGRADES[n] makes version n + 1 of version n.
UPGRADES = ((FOLDER / "version_1.sql").read_text(),)
TRIGGERS = "\n".join(
    (FOLDER / name).read_text() for name in ("nim_trigger.sql", "history_triggers.sql")
)
DIGEST = hashlib.sha256(TRIGGERS.encode()).hexdigest()
TRIGGER_NAMES = re.findall(r"CREATE TRIGGER (\w+)", TRIGGERS)

log = logging.getLogger(__name__)


class StoredTable(NamedTuple):
    """The object that `mahasiswa` names, in `schema`, whose name is quoted for SQL.

    `version` is that of the schema, 0 if there is no table. `is_complete` is whether the functions and triggers are
    those of this release.
    """

    version: int
    schema: str
    is_complete: bool
    is_standby: bool


def migrate(conninfo: str, history_days: int | None = None) -> None:
    """See `SQLiteEngine.migrate`. A standby stays as it is."""
    with connected(conninfo) as db:
        table = find_table(db)
        if table.is_standby and table.version == len(UPGRADES):
            return
        psycopg.ClientCursor(db).execute(BEGIN, sql.COMMAND)
        # Look again: another process may have changed it before the lock.
        _upgrade(db, find_table(db), history_days)
        db.commit()


def find_table(db: SyncConnection) -> StoredTable:
    """Return the table; raise NeedsRepair if it is not of a release, or belongs to another role."""
    if (encoding := db.info.parameter_status("server_encoding")) != "UTF8":
        raise NeedsRepair(f"the database has the encoding {encoding}; it must be UTF8")
    ((exists, comment, is_released, schema, parts, is_standby),) = db.execute(sql.FIND_TABLE)
    if not exists:
        return StoredTable(0, schema, is_complete=False, is_standby=is_standby)
    stored = re.fullmatch(r"schema (\d{1,9}) of mahasiswa", comment)
    if not (stored and is_released):
        remedy = "export it as CSV with its own program, rename it, then run"
        raise NeedsRepair(f"no release made the table mahasiswa; {remedy}: {typed('import FILE')}")
    version = int(stored[1])
    if version > len(UPGRADES):
        raise NeedsRepair(
            f"the table mahasiswa has schema version {version}, and this release knows only up to "
            f"{len(UPGRADES)}: use a newer release"
        )
    if statements := [statement for (statement,) in db.execute(sql.TAKE_OVER)]:
        remedy = f"the owner of the tables must run: {'; '.join(statements)}"
        raise NeedsRepair(f"the role {db.info.user} does not own the table mahasiswa; {remedy}")
    is_complete = set(parts) == {DIGEST, *TRIGGER_NAMES}
    return StoredTable(version, schema, is_complete, is_standby)


def _upgrade(db: SyncConnection, table: StoredTable, history_days: int | None) -> None:
    db.execute(sql.SET_SCHEMA.format(schema=table.schema))
    for upgrade in UPGRADES[table.version :]:
        db.execute(upgrade)
    if table.version < len(UPGRADES):
        db.execute(sql.SET_VERSION.format(version=len(UPGRADES)))
    if not table.is_complete:
        if table.version:
            log.warning("triggers were missing or of another release, and are created again")
        db.execute(TRIGGERS)
        db.execute(sql.SET_DIGEST.format(digest=DIGEST))
    days = {"days": history_days, "default": DEFAULT_HISTORY_DAYS}
    db.execute(sql.SET_HISTORY_DAYS, days)
