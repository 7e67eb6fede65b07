"""The table in PostgreSQL: made where it is not there, looked at where it is."""

import time
from contextlib import suppress

import psycopg
from psycopg.errors import DuplicateObject, DuplicateTable, UniqueViolation

from mahasiswa.record import Mahasiswa
from mahasiswa.store import Adopted, statements
from mahasiswa.store.errors import Unusable
from mahasiswa.store.postgres.pool import first_line, is_lost, parameters

PATIENCE = 10.0
"""Seconds that a server which does not answer yet, perhaps because it starts too, is given."""


def migrate(url: str) -> None:
    """Make the table where it does not exist; raise Unusable where it, or the database, cannot be used."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with psycopg.connect(**parameters(url)) as db:
                _prepare_table(db)
        except psycopg.Error as error:
            if not is_lost(error) or time.monotonic() > deadline:
                raise Unusable(f"PostgreSQL cannot be used: {first_line(error)}") from None
            time.sleep(0.2)
        else:
            return


def _prepare_table(db: psycopg.Connection) -> None:
    if (encoding := db.info.parameter_status("server_encoding")) != "UTF8":
        raise Unusable(f"the database has the encoding {encoding}; it must be UTF8")
    if not (columns := _describe(db)):
        with suppress(DuplicateTable, DuplicateObject, UniqueViolation):  # another process made it at the same time
            db.execute(statements.postgres(statements.CREATE_TABLE_POSTGRES))
        columns = _describe(db)
    for is_table, name, is_text, is_exact, is_key in columns:
        if not is_table:
            raise Unusable("mahasiswa is no table in this database")
        if name in Mahasiswa._fields and not is_text:
            raise Unusable(f"the table mahasiswa has a column {name} that is not of type text or varchar")
        if not is_exact:
            raise Unusable(
                f"the table mahasiswa has a column {name} whose collation takes different texts for the same"
            )
        if name == "nim" and not is_key:
            raise Unusable("the table mahasiswa has a nim that is not its key")
    names = [name for _, name, *_ in columns]
    if sorted(names) != sorted(Mahasiswa._fields):
        raise Unusable(f"the table mahasiswa has other columns: {', '.join(names)}")


def _describe(db: psycopg.Connection) -> list[tuple[bool, str, bool, bool, bool]]:
    return db.execute(statements.postgres(statements.DESCRIBE_TABLE)).fetchall()


def adopt(url: str) -> Adopted:
    raise NotImplementedError
