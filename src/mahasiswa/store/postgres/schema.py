"""Creates, upgrades and adopts the table mahasiswa in PostgreSQL.

The schema's version stands in a comment on the table. Each step of STEPS raises it by one, in one transaction. To
change the schema, add a step; never change one that was released.
"""

import re
import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import psycopg
from psycopg.errors import IntegrityError, LockNotAvailable

from mahasiswa.record import Mahasiswa
from mahasiswa.store import Adopted
from mahasiswa.store.errors import Unusable
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
    """The object that `mahasiswa` names in the database, as sql.FIND_TABLE describes it."""

    kind: str
    name: str
    comment: str
    owner: str
    is_ours_to_alter: bool


def migrate(conninfo: str) -> str | None:
    """Create the table, or upgrade a table of an earlier release; return a warning of the server; raise Unusable.

    If the table is current, this needs no right but to connect, and works on a standby.
    """
    return _run(conninfo, _make_ready)


def adopt(conninfo: str) -> Adopted:
    """Convert a table of another program in one transaction; raise Unusable if that would lose or change anything."""
    return Adopted(_run(conninfo, _adopt), None)


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


def _make_ready(db: Connection) -> str | None:
    _migrate(db)
    unsafe = [name for (name,) in db.execute(sql.UNSAFE_SETTINGS)]
    if not unsafe:
        return None
    return f"PostgreSQL runs with {' and '.join(unsafe)} = off: a crash of its host can destroy the list"


def _migrate(db: Connection) -> None:
    while _version(_find_table(db)) < len(STEPS):
        with db.transaction():
            db.execute(sql.SYNCHRONOUS_COMMIT)
            db.execute(sql.LOCK_SCHEMA)
            table = _find_table(db)  # another process may have made the step meanwhile
            if (version := _version(table)) < len(STEPS):
                STEPS[version](db, table)
                db.execute(sql.SET_VERSION.format(table="mahasiswa", version=version + 1))


def _adopt(db: Connection) -> int:
    with db.transaction():
        db.execute(sql.SYNCHRONOUS_COMMIT)
        db.execute(sql.LOCK_SCHEMA)
        if (table := _find_table(db)) is None:
            raise Unusable("there is no table mahasiswa to adopt; the service creates it when it starts")
        if _version(table):
            raise Unusable("the table mahasiswa is this program's own; there is nothing to adopt")
        _convert(db, table)
        db.execute(sql.SET_VERSION.format(table="mahasiswa", version=1))
        count: int = db.execute(sql.COUNT.format(where="")).fetchall()[0][0]
    _migrate(db)
    return count


def _find_table(db: Connection) -> Table | None:
    row = db.execute(sql.FIND_TABLE).fetchone()
    return Table._make(row) if row else None


def _version(table: Table | None) -> int:
    """Return the number of steps that were made: 0 if there is no table, or one without a version."""
    if not table:
        return 0
    if table.kind != "a table":
        raise Unusable(f"mahasiswa is {table.kind} in this database; it must be a table")
    stored = re.fullmatch(r"mahasiswa schema version (\d{1,9})", table.comment)
    version = int(stored[1]) if stored else 0
    if version > len(STEPS):
        raise Unusable(
            f"a newer release made the table mahasiswa: its schema version is {version}, and this release knows none"
            f" above {len(STEPS)}; install the newer release"
        )
    return version


def _create_or_convert(db: Connection, table: Table | None) -> None:
    """Make version 1: create the table, or convert the one of release 1.0.0, which kept no version."""
    if table is None:
        db.execute(sql.CREATE_TABLE)
    elif set(db.execute(sql.DESCRIBE_TABLE)) == sql.RELEASE_1_0_0_TABLE:
        _convert(db, table)
    else:
        raise Unusable("another program made the table mahasiswa; to convert it, run: mahasiswa adopt")


def _convert(db: Connection, table: Table) -> None:
    """Give the table the columns and constraints of version 1. Its texts and the rights on it stay the same."""
    parts = db.execute(sql.DESCRIBE_TABLE).fetchall()
    _refuse_parts(parts)
    replaced = [name for kind, name, text in parts if kind == "constraint" and text in sql.REPLACED_CONSTRAINTS]
    drop_constraints = " ".join(sql.DROP_CONSTRAINT.format(name=name) for name in replaced)
    convert = sql.CONVERT_TABLE.format(table=table.name, drop_constraints=drop_constraints).strip()
    if not table.is_ours_to_alter:
        _refuse_rows(db)
        set_version = sql.SET_VERSION.format(table=table.name, version=1)
        script = f"BEGIN;\n{sql.ALTER_LOCK_TIMEOUT};\n{convert};\n{set_version};\nCOMMIT"
        raise Unusable(f"the table mahasiswa belongs to {table.owner}, who must run this SQL:\n{script};")
    db.execute(sql.ALTER_LOCK_TIMEOUT)
    try:
        with db.transaction():
            db.execute(convert)
    except IntegrityError:
        _refuse_rows(db)
        raise


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


STEPS: tuple[Callable[[Connection, Table | None], None], ...] = (_create_or_convert,)
"""STEPS[n] makes version n + 1 of version n, in one transaction."""
