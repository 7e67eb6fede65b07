"""Chooses the engine by the address of a database. Both engines have the methods of SQLiteEngine."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from mahasiswa.settings import DatabaseURL, SQLiteURL

if TYPE_CHECKING:
    from mahasiswa.store.postgres.engine import PostgresEngine
    from mahasiswa.store.sqlite.engine import SQLiteEngine


def engine_of(url: DatabaseURL) -> "SQLiteEngine | PostgresEngine":
    """The engine of an address. It is imported only if it is chosen: SQLite alone needs no psycopg."""
    if isinstance(url, SQLiteURL):
        from mahasiswa.store.sqlite.engine import SQLiteEngine  # noqa: PLC0415 - see above

        # SQLite keeps the write-ahead log beside the file that a symbolic link leads to.
        return SQLiteEngine(Path(os.path.realpath(url.address)))
    from mahasiswa.store.postgres.engine import PostgresEngine  # noqa: PLC0415 - see above

    return PostgresEngine(url.address)
