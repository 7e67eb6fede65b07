"""Checks a PostgreSQL database for `mahasiswa doctor`."""

from collections.abc import Iterator

import psycopg

from mahasiswa.store.errors import Unusable
from mahasiswa.store.findings import Finding, good, wrong
from mahasiswa.store.postgres import sql
from mahasiswa.store.postgres.pool import first_line, parameters


def examine(conninfo: str) -> Iterator[Finding]:
    """Check the table, its constraints, and the settings of the server by which a crash would lose changes."""
    try:
        with psycopg.connect(**parameters(conninfo)) as db:
            yield _table(db)
            unsafe = [name for (name,) in db.execute(sql.UNSAFE_SETTINGS)]
            for name in unsafe:
                yield wrong(
                    f"PostgreSQL runs with {name} = off: a crash of its host can destroy the list. Set it to on."
                )
            if not unsafe:
                yield good("PostgreSQL writes each change to the disk before it acknowledges it (fsync).")
    except (psycopg.Error, Unusable) as error:
        yield wrong(f"PostgreSQL cannot be used: {first_line(error)}. Check DATABASE_URL and the server.")


def _table(db: psycopg.Connection) -> Finding:
    present = {name for (name,) in db.execute(sql.CONSTRAINTS)}
    if missing := {"nim_duplicate", "nim_too_long", "nim_unaddressable"} - present:
        names = ", ".join(sorted(missing))
        return wrong(f"The table mahasiswa does not exist, or lacks the constraints {names}. Start the service once.")
    (count,) = db.execute(sql.COUNT).fetchall()[0]
    return good(f"The table mahasiswa has its constraints and holds {count} records.")
