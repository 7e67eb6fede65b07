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
import time
from pathlib import Path
from typing import NamedTuple

import psycopg
from psycopg.errors import LockNotAvailable

from mahasiswa.settings import DEFAULT_HISTORY_DAYS
from mahasiswa.store import shared_sql
from mahasiswa.store.postgres import postgres_sql as sql
from mahasiswa.store.postgres.pool import SyncConnection, connected, is_lost
from mahasiswa.store.results import Finding, good, wrong
from mahasiswa.store.store_errors import NeedsRepair, Unusable
from mahasiswa.system.administrator import typed

# Maximum time to wait for a server that does not answer, because it may be starting too.
START_TIMEOUT_SECONDS = 10.0
# Requests queue behind an upgrade, so it must give up before they do.
BEGIN = sql.BEGIN_CHANGE + "SET LOCAL lock_timeout = '2s'"
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

    `version` is that of the schema, 0 if there is no table. `days` is HISTORY_DAYS as the database has it, None if it
    has none yet. `is_complete` is whether the functions and triggers are those of this release.
    """

    version: int
    days: int | None
    schema: str
    is_complete: bool
    is_standby: bool


def migrate(conninfo: str, history_days: int | None = None) -> None:
    """See `Engine.migrate`. If nothing is to be changed, it works on a standby too."""
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while True:  # until the server has had time to start
        try:
            with connected(conninfo) as db:
                return _make_ready(db, history_days)
        except Unusable as error:
            cause = error.__cause__
            if isinstance(cause, LockNotAvailable):
                reason = "stop the programs that use it, then try again"
                raise Unusable(f"the table mahasiswa is in use; {reason}") from None
            if not (cause and is_lost(cause)) or time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def _make_ready(db: SyncConnection, wanted_days: int | None) -> None:
    table = _find_table(db)
    is_current = table.version == len(UPGRADES)
    if is_current and (
        table.is_standby or (table.is_complete and wanted_days in (None, table.days))
    ):
        return
    psycopg.ClientCursor(db).execute(BEGIN, sql.COMMAND)
    db.execute(sql.LOCK_SCHEMA)
    # Look again: another process may have changed it before the lock.
    _upgrade(db, _find_table(db), wanted_days)
    db.commit()


def _find_table(db: SyncConnection) -> StoredTable:
    """Return the table; raise NeedsRepair if it is not of a release, or belongs to another role."""
    if (encoding := db.info.parameter_status("server_encoding")) != "UTF8":
        raise NeedsRepair(f"the database has the encoding {encoding}; it must be UTF8")
    ((exists, comment, is_released, schema, parts, is_standby),) = db.execute(sql.FIND_TABLE)
    if not exists:
        return StoredTable(0, None, schema, is_complete=False, is_standby=is_standby)
    stored = re.fullmatch(r"schema (\d{1,9}) of mahasiswa", comment)
    if not (stored and is_released):
        remedy = (
            f"export it as CSV with its own program, rename it, then run: {typed('import FILE')}"
        )
        raise NeedsRepair(f"no release made the table mahasiswa; {remedy}")
    version = int(stored[1])
    if version > len(UPGRADES):
        fault = (
            f"its schema version is {version}, and this release knows none above {len(UPGRADES)}"
        )
        raise NeedsRepair(
            f"a newer release made the table mahasiswa: {fault}; install the newer release"
        )
    if statements := [statement for (statement,) in db.execute(sql.TAKE_OVER)]:
        remedy = f"the owner of the tables must run: {'; '.join(statements)}"
        raise NeedsRepair(f"the role {db.info.user} does not own the table mahasiswa; {remedy}")
    ((days,),) = db.execute(shared_sql.DAYS)
    is_complete = set(parts) == {DIGEST, *TRIGGER_NAMES}
    return StoredTable(version, days, schema, is_complete, is_standby)


def _upgrade(db: SyncConnection, table: StoredTable, wanted_days: int | None) -> None:
    db.execute(sql.SET_SCHEMA.format(schema=table.schema))
    for upgrade in UPGRADES[table.version :]:
        db.execute(upgrade)
    if table.version < len(UPGRADES):
        db.execute(sql.SET_VERSION.format(version=len(UPGRADES)))
        log.info("the table mahasiswa has the schema version %d now", len(UPGRADES))

    if not table.is_complete:
        if table.version:
            log.warning("triggers were missing or of another release, and are created again")
        db.execute(TRIGGERS)
        db.execute(sql.SET_DIGEST.format(digest=DIGEST))

    days = wanted_days or table.days or DEFAULT_HISTORY_DAYS
    if table.days not in (None, days):
        log.warning("HISTORY_DAYS is now %s for every instance; it was %s", days, table.days)
    db.execute(sql.SET_HISTORY_DAYS.format(days=days))


# --- Checks, for `mahasiswa doctor`


def examine(conninfo: str) -> Finding:
    """Check that the tables are of this version and belong to this role."""
    try:
        with connected(conninfo) as db:
            table = _find_table(db)
            present = {name for (name,) in db.execute(sql.CONSTRAINTS)}
            count = db.execute(shared_sql.COUNT).fetchall()[0][0] if table.version else 0
    except Unusable as error:
        return wrong(f"{error}.")
    missing = {"nim_duplicate", "nim_too_long", "nim_unaddressable"} - present
    faults = {
        "The table mahasiswa does not exist. Start the service, or correct DATABASE_URL.": not table.version,
        "The tables are of an older version. To upgrade them, restart the service.": table.version
        < len(UPGRADES),
        "The server is a standby, which takes no changes. Promote it, or correct DATABASE_URL.": table.is_standby,
        f"The table mahasiswa lacks the constraints {', '.join(sorted(missing))}. Create them again.": missing,
    }
    fault = next((text for text, is_so in faults.items() if is_so), None)
    return wrong(fault) if fault else good(f"The table mahasiswa holds {count} records.")
