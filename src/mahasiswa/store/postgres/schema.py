"""Creates, upgrades and adopts the table mahasiswa in PostgreSQL, with its history.

The schema's version stands in a comment on the table. Each step of STEPS gives the SQL that raises it by one. All steps
that a table lacks are made in one transaction, by us or by the table's owner. To change the schema, add a step; never
change one that was released.
"""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import psycopg
from psycopg.errors import IntegrityError, LockNotAvailable

from mahasiswa.record import Mahasiswa
from mahasiswa.settings import DEFAULT_HISTORY_DAYS
from mahasiswa.store.errors import Unusable
from mahasiswa.store.history import PURGE_ENTRIES
from mahasiswa.store.postgres import sql
from mahasiswa.store.postgres.pool import first_line, is_lost, parameters

START_TIMEOUT_SECONDS = 10.0
"""Maximum time to wait for a server that does not answer yet, perhaps because it is starting too."""

NAMED_ROWS = 3
"""Maximum number of refused rows that a message names."""

NAMED_ROW_CHARACTERS = 120

Connection = psycopg.Connection[tuple[Any, ...]]
T = TypeVar("T")


class Table(NamedTuple):
    """The object that `mahasiswa` names in the database, as sql.FIND_TABLE describes it. Names are quoted for SQL."""

    kind: str
    schema: str
    comment: str
    owner: str
    is_ours_to_alter: bool

    @property
    def exists(self) -> bool:
        return self.kind != "nothing"


def migrate(conninfo: str, history_days: int | None = None) -> str | None:
    """Make the table and its history ready; return warnings as one line; raise Unusable.

    `history_days` is as in `store.migrate`. If the schema is current and the days are the same, this needs no right but
    to read, and works on a standby.
    """
    return _run(conninfo, lambda db: _make_ready(db, history_days))


def _run(conninfo: str, work: Callable[[Connection], T]) -> T:
    """Connect and work; repeat this if the connection is lost, until the server has had time to start."""
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while True:
        try:
            with psycopg.connect(**parameters(conninfo)) as db:
                if (encoding := db.info.parameter_status("server_encoding")) != "UTF8":
                    raise Unusable(f"the database has the encoding {encoding}; it must be UTF8")
                # The database may have another default, and a row that was read before the lock must not be kept.
                db.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
                return work(db)
        except LockNotAvailable:
            raise Unusable("the table mahasiswa is in use; stop the programs that use it, then try again") from None
        except psycopg.Error as error:
            if not is_lost(error) or time.monotonic() > deadline:
                raise Unusable(f"PostgreSQL cannot be used: {first_line(error)}") from None
            time.sleep(0.2)


def _make_ready(db: Connection, wanted_days: int | None) -> str | None:
    warnings = []
    if not _is_current(db, _find_table(db), wanted_days):
        with _changing(db):
            table = _find_table(db)  # another process may have changed it meanwhile
            if table.exists and not _version(table) and set(db.execute(sql.DESCRIBE_TABLE)) != sql.RELEASE_1_0_0_TABLE:
                raise Unusable("another program made the table mahasiswa; to convert it, run: mahasiswa adopt")
            if not _is_current(db, table, wanted_days):
                stored = _history_days(db, table)
                if stored is not None and wanted_days not in (None, stored):
                    warnings.append(f"HISTORY_DAYS is now {wanted_days} for every instance; it was {stored}")
                _upgrade(db, table, wanted_days)
    if unsafe := [name for (name,) in db.execute(sql.UNSAFE_SETTINGS)]:
        warnings.append(f"PostgreSQL runs with {' and '.join(unsafe)} = off: a crash of its host can destroy the list")
    return "; ".join(warnings) or None


def _adopt(db: Connection) -> int:
    with _changing(db):
        table = _find_table(db)
        if not table.exists:
            raise Unusable("there is no table mahasiswa to adopt; the service creates it when it starts")
        if _version(table):
            raise Unusable("the table mahasiswa is this program's own; there is nothing to adopt")
        _upgrade(db, table, None)
        count: int = db.execute(sql.COUNT.format(source=sql.ALL_RECORDS, where="")).fetchall()[0][0]
    return count


@contextmanager
def _changing(db: Connection) -> Iterator[None]:
    """A transaction in which no other process of this program changes the schema."""
    with db.transaction():
        db.execute(sql.SYNCHRONOUS_COMMIT)
        db.execute(sql.LOCK_SCHEMA)
        db.execute(sql.ALTER_LOCK_TIMEOUT)
        yield


def _find_table(db: Connection) -> Table:
    return Table._make(db.execute(sql.FIND_TABLE).fetchone() or db.execute(sql.NEW_TABLE).fetchall()[0])


def _version(table: Table) -> int:
    """Return the number of steps that were made: 0 if there is no table, or one without a version."""
    if table.exists and table.kind != "a table":
        raise Unusable(f"mahasiswa is {table.kind} in this database; it must be a table")
    stored = re.fullmatch(r"mahasiswa schema version (\d{1,9})", table.comment)
    version = int(stored[1]) if stored else 0
    if version > len(STEPS):
        raise Unusable(
            f"a newer release made the table mahasiswa: its schema version is {version}, and this release knows none"
            f" above {len(STEPS)}; install the newer release"
        )
    return version


def _is_current(db: Connection, table: Table, wanted_days: int | None) -> bool:
    """Return whether there is nothing to do. A standby cannot be changed, so its days may differ."""
    if _version(table) != len(STEPS):
        return False
    stored = _history_days(db, table)
    is_same = wanted_days in (None, stored) and _has_triggers(db, stored)
    return is_same or bool(db.execute(sql.IS_STANDBY).fetchone())


def _history_days(db: Connection, table: Table) -> int | None:
    """Return HISTORY_DAYS as the database has it, or None if it has none yet."""
    if _version(table) < HISTORY_VERSION:
        return None
    if unreadable := [name for (name,) in db.execute(sql.UNREADABLE_TABLES)]:
        raise Unusable(
            "the history of the table mahasiswa cannot be read; its owner must run:"
            f" GRANT SELECT, UPDATE, DELETE ON {', '.join(unreadable)} TO {db.info.user}"
        )
    days: int | None = db.execute(sql.HISTORY_DAYS).fetchall()[0][0]
    return days


def _has_triggers(db: Connection, history_days: int | None) -> bool:
    """Return whether the triggers of the history are those that these days need: all of them, or none."""
    count = db.execute(sql.COUNT_HISTORY_TRIGGERS, ([*sql.HISTORY_TRIGGERS],)).fetchall()[0][0]
    return bool(count == (len(sql.HISTORY_TRIGGERS) if history_days else 0))


def _upgrade(db: Connection, table: Table, wanted_days: int | None) -> None:
    """Make the steps that the table lacks and set HISTORY_DAYS. If someone else owns the table, give them the SQL."""
    version = _version(table)
    stored = _history_days(db, table)
    default = DEFAULT_HISTORY_DAYS if stored is None else stored
    history_days = default if wanted_days is None else wanted_days
    statements = [step(db, table) for step in STEPS[version:]]
    if version < len(STEPS):
        statements.append(sql.SET_VERSION.format(schema=table.schema, version=len(STEPS)))
    if stored is None or not _has_triggers(db, history_days):
        start_or_stop = sql.START_HISTORY if history_days else sql.STOP_HISTORY
        statements.append(start_or_stop.format(schema=table.schema))
    needs_owner = bool(statements)
    statements.append(sql.SET_HISTORY_DAYS.format(schema=table.schema, days=history_days))
    script = ";\n".join(statement.strip() for statement in statements)
    if needs_owner and not table.is_ours_to_alter:
        if not version:
            _refuse_rows(db)
        script = f"BEGIN;\n{sql.ALTER_LOCK_TIMEOUT};\n{script};\nCOMMIT"
        raise Unusable(f"the table mahasiswa belongs to {table.owner}, who must run this SQL:\n{script};")
    try:
        with db.transaction():
            db.execute(script)
    except IntegrityError:
        if table.exists and not version:
            _refuse_rows(db)
        raise


def _create_or_convert(db: Connection, table: Table) -> str:
    """Make version 1: create the table, or convert a table without a version. Its texts and the rights on it stay."""
    if not table.exists:
        return sql.CREATE_TABLE.format(schema=table.schema)
    parts = db.execute(sql.DESCRIBE_TABLE).fetchall()
    _refuse_parts(parts)
    replaced = [name for kind, name, text in parts if kind == "constraint" and text in sql.REPLACED_CONSTRAINTS]
    drop_constraints = " ".join(sql.DROP_CONSTRAINT.format(name=name) for name in replaced)
    return sql.CONVERT_TABLE.format(schema=table.schema, drop_constraints=drop_constraints)


def _create_history(_db: Connection, table: Table) -> str:
    """Make version 2: the tables and functions of the history. START_HISTORY creates the triggers."""
    return sql.CREATE_HISTORY.format(schema=table.schema, owner=table.owner, purge_entries=PURGE_ENTRIES)


def _create_search(_db: Connection, table: Table) -> str:
    """Make version 3: the folded texts of the search, with their triggers."""
    return sql.CREATE_SEARCH.format(schema=table.schema, owner=table.owner, letters=sql.FOLDED_LETTERS)


def _refuse_parts(parts: list[tuple[Any, ...]]) -> None:
    """Raise Unusable if the table lacks a column, or has a part that it would lose or that could refuse our writes."""
    columns = [name for kind, name, _ in parts if kind == "column"]
    for field in Mahasiswa._fields:
        if field not in columns:
            raise Unusable(f"the table mahasiswa cannot be adopted: it has no column {field}")
    for kind, name, text in parts:
        if kind == "column" and name in Mahasiswa._fields:
            if "GENERATED" in text or not re.match(r"(text|character varying(\(\d+\))?)( |$)", text):
                raise Unusable(
                    f"the table mahasiswa cannot be adopted: the column {name} is {text};"
                    " it must be text or character varying"
                )
        elif kind == "trigger" and name in (*sql.HISTORY_TRIGGERS, *sql.SEARCH_TRIGGERS):
            continue
        elif kind != "constraint" or text not in sql.REPLACED_CONSTRAINTS:
            raise Unusable(
                f"the table mahasiswa cannot be adopted: remove the {kind} {name} first,"
                " which would be lost or could refuse records"
            )


def _refuse_rows(db: Connection) -> None:
    """Raise Unusable if there are rows that the constraints refuse."""
    if rows := db.execute(sql.FIND_REFUSED_ROWS, (NAMED_ROWS + 1,)).fetchall():
        named = "; ".join(f"{reason} {ascii(record)[:NAMED_ROW_CHARACTERS]}" for reason, *record in rows[:NAMED_ROWS])
        more = "; and more" if len(rows) > NAMED_ROWS else ""
        raise Unusable(f"rows of the table mahasiswa break a rule, and nothing was changed: {named}{more}")


STEPS: tuple[Callable[[Connection, Table], str], ...] = (_create_or_convert, _create_history, _create_search)
"""STEPS[n] returns the SQL that makes version n + 1 of version n."""

HISTORY_VERSION = 2
"""The first version that keeps a history."""
