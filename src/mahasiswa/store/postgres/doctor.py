"""Checks a PostgreSQL database, for the start of the service and for `mahasiswa doctor`."""

from collections.abc import Callable, Iterator, Sequence

import psycopg
from psycopg.errors import LockNotAvailable

from mahasiswa.store import shared_sql
from mahasiswa.store.commands import try_changes
from mahasiswa.store.engines import Check, Finding, good, wrong
from mahasiswa.store.errors import Unusable
from mahasiswa.store.postgres import sql
from mahasiswa.store.postgres.pool import first_line, parameters
from mahasiswa.store.postgres.schema import Connection, check_encoding, check_table


def examine(conninfo: str, _check: Check, *, quick: bool) -> Iterator[Finding]:
    """Check the tables, this role's rights and the server; raise Unusable if the service cannot work with them."""
    try:
        with psycopg.connect(**parameters(conninfo)) as db:
            for check in QUICK_CHECKS if quick else CHECKS:
                yield from check(db)
    except psycopg.Error as error:
        raise Unusable(f"PostgreSQL cannot be used: {first_line(error)}. Check DATABASE_URL and the server") from error


def _schema(db: Connection) -> Iterator[Finding]:
    check_encoding(db)
    check_table(db)
    present = {name for (name,) in db.execute(sql.CONSTRAINTS)}
    if missing := {"nim_duplicate", "nim_too_long", "nim_unaddressable"} - present:
        names = ", ".join(sorted(missing))
        yield wrong(f"The table mahasiswa lacks the constraints {names}. Restore a back-up, or create them again.")


def _rights(db: Connection) -> Iterator[Finding]:
    if missing := [f"GRANT {rights} ON {table} TO {db.info.user}" for table, rights in db.execute(sql.MISSING_RIGHTS)]:
        raise Unusable(f"The role {db.info.user} lacks rights. The owner of the tables must run: {'; '.join(missing)}")
    yield from ()


def _changes(db: Connection) -> Iterator[Finding]:
    if db.execute(sql.IS_STANDBY).fetchone():
        yield wrong("The server is a standby, which takes no changes. Promote it, or correct DATABASE_URL.")
        return
    try:
        with db.transaction(force_rollback=True):
            db.execute(sql.ALTER_LOCK_TIMEOUT)
            finding = try_changes(db, sql.SHARED, "The table mahasiswa")
    except LockNotAvailable:
        yield wrong("Another program has locked the table mahasiswa. Try again when it has ended.")
    else:
        yield finding


def _durability(db: Connection) -> Iterator[Finding]:
    unsafe = [name for (name,) in db.execute(sql.UNSAFE_SETTINGS)]
    for name in unsafe:
        yield wrong(f"PostgreSQL runs with {name} = off: a crash of its host can destroy the list. Set it to on.")
    if not unsafe:
        yield good("PostgreSQL writes each change to the disk before it acknowledges it (fsync).")


def _count(db: Connection) -> Iterator[Finding]:
    (count,) = db.execute(shared_sql.COUNT).fetchall()[0]
    yield good(f"The table mahasiswa holds {count} records.")


Checks = Sequence[Callable[[Connection], Iterator[Finding]]]

QUICK_CHECKS: Checks = (_schema, _rights, _changes, _durability)  # the checks at the start of the service
CHECKS: Checks = (*QUICK_CHECKS, _count)
