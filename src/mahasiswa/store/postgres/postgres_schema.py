"""Creates, upgrades and checks the table mahasiswa in PostgreSQL, with its history.

The schema's version stands in a comment on the table. Each of UPGRADES is the SQL that raises it by
one. All upgrades that a table lacks run in one transaction, by this program or by the table's
owner. To change the schema, add an upgrade; never change one that was released.

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
from mahasiswa.store.postgres.pool import (
    SyncConnection,
    connect,
    first_line,
    is_lost,
)
from mahasiswa.store.results import Finding, good, wrong
from mahasiswa.store.store_errors import NeedsRepair, Unusable
from mahasiswa.system.administrator import typed

# Maximum time to wait for a server that does not answer, because it may be starting too.
START_TIMEOUT_SECONDS = 10.0
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
    """The object that `mahasiswa` names, with its names quoted for SQL.

    `version` is that of the schema, 0 if there is no table. `days` is HISTORY_DAYS as the database has it, None if it
    has none yet.
    """

    version: int
    days: int | None
    schema: str
    owner: str
    is_ours_to_alter: bool


def migrate(conninfo: str, history_days: int | None = None) -> None:
    """See `Engine.migrate`. If nothing is to be changed, it works with the right to read alone, and on a standby."""
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while True:  # until the server has had time to start
        try:
            with connect(conninfo) as db:
                _check_encoding(db)
                _make_ready(db, history_days)
                return
        except LockNotAvailable:
            raise Unusable(
                "the table mahasiswa is in use; stop the programs that use it, then try again"
            ) from None
        except psycopg.Error as error:
            if not is_lost(error) or time.monotonic() > deadline:
                raise Unusable(f"PostgreSQL cannot be used: {first_line(error)}") from None
            time.sleep(0.2)


def _check_encoding(db: SyncConnection) -> None:
    if (encoding := db.info.parameter_status("server_encoding")) != "UTF8":
        raise NeedsRepair(f"the database has the encoding {encoding}; it must be UTF8")


def _make_ready(db: SyncConnection, wanted_days: int | None) -> None:
    if _is_current(db, _find_table(db), wanted_days):
        return
    with db.transaction():
        db.execute(sql.SYNCHRONOUS_COMMIT)
        db.execute(sql.LOCK_SCHEMA)
        db.execute(sql.ALTER_LOCK_TIMEOUT)
        # Look again: another process may have changed it before the lock.
        _upgrade(db, _find_table(db), wanted_days)


def _find_table(db: SyncConnection) -> StoredTable:
    """Return the table; raise Unusable if it is not of a release, or if we may not read it."""
    ((comment, is_released, *others),) = db.execute(sql.FIND_TABLE).fetchall()
    if comment is None:
        return StoredTable(0, None, *others)
    version = _version(comment, is_released=is_released)
    _check_rights(db, "SELECT")
    ((days,),) = db.execute(shared_sql.DAYS).fetchall()
    return StoredTable(version, days, *others)


def _version(comment: str, *, is_released: bool) -> int:
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
    return version


def _is_current(db: SyncConnection, table: StoredTable, wanted_days: int | None) -> bool:
    """Return whether there is nothing to do.

    On a standby the days may differ: it cannot be changed.
    """
    if table.version != len(UPGRADES):
        return False
    is_same = wanted_days in (None, table.days) and _is_complete(db)
    return is_same or bool(db.execute(sql.IS_STANDBY).fetchone())


def _check_rights(db: SyncConnection, needed: str = "") -> None:
    """Raise Unusable with all rights that this role lacks, if `needed` is one of them."""
    missing = db.execute(sql.MISSING_RIGHTS).fetchall()
    if any(needed in rights for _, rights in missing):
        grants = "; ".join(
            f"GRANT {rights} ON {table} TO {db.info.user}" for table, rights in missing
        )
        raise Unusable(
            f"the role {db.info.user} lacks rights; the owner of the tables must run: {grants}"
        )


def _is_complete(db: SyncConnection) -> bool:
    """Return whether the functions and triggers are those of this release."""
    return {part for (part,) in db.execute(sql.PARTS)} == {DIGEST, *TRIGGER_NAMES}


def _upgrade(db: SyncConnection, table: StoredTable, wanted_days: int | None) -> None:
    """Upgrade the table and set HISTORY_DAYS.

    If another role owns the table, raise Unusable with the SQL for the owner.
    """
    if wanted_days is None:
        wanted_days = DEFAULT_HISTORY_DAYS if table.days is None else table.days

    statements = _lacking(db, table)
    set_schema = sql.SET_SCHEMA.format(schema=table.schema)
    set_days = sql.SET_HISTORY_DAYS.format(days=wanted_days)
    script = _script(set_schema, *statements, set_days)
    if statements and not table.is_ours_to_alter:
        script = sql.SCRIPT_OF_OWNER.format(script=script)
        raise Unusable(
            f"the table mahasiswa belongs to {table.owner}, who must run this SQL:\n{script}"
        )

    if table.days not in (None, wanted_days):
        log.warning("HISTORY_DAYS is now %s for every instance; it was %s", wanted_days, table.days)

    is_older = 0 < table.version < len(UPGRADES)
    if is_older:
        log.info("upgrading %s records", f"{db.execute(shared_sql.COUNT).fetchall()[0][0]:,}")
    db.execute(script)
    if is_older:
        log.info("upgraded the table mahasiswa to schema version %d", len(UPGRADES))


def _lacking(db: SyncConnection, table: StoredTable) -> list[str]:
    """Return the statements that the owner of the table must run."""
    statements = [*UPGRADES[table.version :]]
    if statements:
        statements.append(sql.SET_VERSION.format(version=len(UPGRADES)))
    if table.days is None or not _is_complete(db):
        if table.days is not None:
            log.warning("triggers were missing or of another release, and are created again")
        dropped = map(sql.DROP_TRIGGER.format, TRIGGER_NAMES)
        statements += [*dropped, TRIGGERS, sql.SET_DIGEST.format(digest=DIGEST)]
    return statements


def _script(*statements: str) -> str:
    return ";\n".join(statement.strip().removesuffix(";") for statement in statements)


# --- Checks, for `mahasiswa doctor`


def examine(conninfo: str) -> Finding:
    """Check that the tables are of this version, and that this role can use them."""
    try:
        with connect(conninfo) as db:
            return _schema(db)
    except Unusable as error:
        return wrong(f"{error}.")
    except psycopg.Error as error:
        remedy = "Check DATABASE_URL and the server"
        return wrong(f"PostgreSQL cannot be used: {first_line(error)}. {remedy}.")


def _schema(db: SyncConnection) -> Finding:
    _check_encoding(db)
    table = _find_table(db)
    if table.days is None:
        return wrong(
            "The table mahasiswa does not exist. Start the service, or correct DATABASE_URL."
        )
    if table.version < len(UPGRADES):
        return wrong("The tables are of an older version. To upgrade them, restart the service.")
    if db.execute(sql.IS_STANDBY).fetchone():
        return wrong(
            "The server is a standby, which takes no changes. Promote it, or correct DATABASE_URL."
        )
    _check_rights(db)
    present = {name for (name,) in db.execute(sql.CONSTRAINTS)}
    if missing := {"nim_duplicate", "nim_too_long", "nim_unaddressable"} - present:
        names = ", ".join(sorted(missing))
        return wrong(f"The table mahasiswa lacks the constraints {names}. Create them again.")
    (count,) = db.execute(shared_sql.COUNT).fetchall()[0]
    return good(f"The table mahasiswa holds {count} records.")
