"""Checks a PostgreSQL database for `mahasiswa doctor`."""

import time
from collections.abc import Iterator

import psycopg

from mahasiswa.store.errors import Unusable
from mahasiswa.store.findings import Finding, good, wrong
from mahasiswa.store.postgres import sql
from mahasiswa.store.postgres.pool import first_line, parameters
from mahasiswa.work import DATABASE_CONNECTIONS

CLOCK_TOLERANCE_SECONDS = 5


def examine(conninfo: str, workers: int) -> Iterator[Finding]:
    """Check the table, its constraints, the server's settings, its clock and its connections."""
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
            yield _clock(db)
            yield _connections(db, workers)
    except (psycopg.Error, Unusable) as error:
        yield wrong(f"PostgreSQL cannot be used: {first_line(error)}. Check DATABASE_URL and the server.")


def _table(db: psycopg.Connection) -> Finding:
    parts = {name for kind, name, _ in db.execute(sql.DESCRIBE_TABLE) if kind == "constraint"}
    if missing := {"nim_duplicate", "nim_too_long", "nim_unaddressable"} - parts:
        names = ", ".join(sorted(missing))
        return wrong(f"The table mahasiswa does not exist, or lacks the constraints {names}. Start the service once.")
    if refused := db.execute(sql.FIND_REFUSED_ROWS, (1,)).fetchone():
        return wrong(f"A record breaks the rule {refused[0]}: {refused[1:]!a}. Correct it.")
    (count,) = db.execute(sql.COUNT.format(source=sql.ALL_RECORDS, where="")).fetchall()[0]
    return good(f"The table mahasiswa has its constraints and holds {count} records.")


def _clock(db: psycopg.Connection) -> Finding:
    began = time.time()
    (theirs,) = db.execute(sql.CLOCK).fetchall()[0]
    difference = abs((began + time.time()) / 2 - theirs)
    if difference > CLOCK_TOLERANCE_SECONDS:
        return wrong(f"The clock differs from the server's by {difference:.0f} s. Set both: timedatectl set-ntp true")
    return good("The clock agrees with the server's.")


def _connections(db: psycopg.Connection, workers: int) -> Finding:
    allowed, used = db.execute(sql.CONNECTIONS).fetchall()[0]
    needed = workers * DATABASE_CONNECTIONS
    text = f"This instance opens at most {needed} connections. The server allows {allowed} and has {used} now"
    if needed > allowed:
        return wrong(f"{text}. Raise max_connections, or lower WORKERS.")
    return good(f"{text}. Its limit must be enough for all instances together.")
