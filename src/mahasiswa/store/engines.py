"""Chooses the Engine by the address of a database."""

import os
from pathlib import Path

from mahasiswa.settings import DatabaseURL, SQLiteURL
from mahasiswa.store.engine import Engine


def engine_of(url: DatabaseURL) -> Engine:
    """The engine of an address. It is imported only if it is chosen: SQLite alone needs no psycopg."""
    if isinstance(url, SQLiteURL):
        from mahasiswa.store.sqlite.engine import SQLiteEngine  # noqa: PLC0415 - see above

        # SQLite keeps the write-ahead log beside the file that a symbolic link leads to.
        return SQLiteEngine(Path(os.path.realpath(url.address)))
    from mahasiswa.store.postgres.engine import PostgresEngine  # noqa: PLC0415 - see above

    return PostgresEngine(url.address)
