"""Uses a store through its protocol, and another program at the same database: `opened`, `execute`, `connect`."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import apsw
import psycopg

from mahasiswa.record import Incoming, Mahasiswa
from mahasiswa.settings import DatabaseURL, SQLiteURL, parse_database_url
from mahasiswa.store import Query, Store
from mahasiswa.store.engines import engine_of
from mahasiswa.store.history_items import Item
from mahasiswa.store.postgres.engine import PostgresEngine
from mahasiswa.store.results import Merged
from mahasiswa.store.sqlite.engine import SQLiteEngine
from mahasiswa.work import SEARCH, Slots

SITI = Mahasiswa("0001", "Siti Aminah", "Jalan Kaliurang 5")
BUDI = Mahasiswa("0002", "Budi", "Bantul")


Place = Path | str
"""The path of an SQLite file, or the address of a database as in DATABASE_URL."""


def url_of(place: Place) -> DatabaseURL:
    return SQLiteURL(place) if isinstance(place, Path) else parse_database_url(place)


def engine_at(place: Place) -> SQLiteEngine | PostgresEngine:
    return engine_of(url_of(place))


def migrate(place: Place) -> None:
    """Create or upgrade the tables of a database, as a start does."""
    engine_at(place).migrate()


@asynccontextmanager
async def opened(place: Place) -> AsyncIterator[Store]:
    store = await engine_at(place).open_store(Slots())
    try:
        yield store
    finally:
        await store.close()


def merge(place: Place, *records: Incoming) -> Merged:
    """Import records by command. Those of the list get the new texts, and are no new ones of the result."""
    return engine_at(place).merge(records, update=True, dry_run=False)


async def items(store: Store) -> Sequence[Item]:
    """Return the items of the history, newest first."""
    return (await store.reader(SEARCH).history("", 0, 1000)).items


async def read_all(store: Store) -> list[Mahasiswa]:
    return await store.export(Query(), list)


def connect(database: Path) -> apsw.Connection:
    """Return a connection to an SQLite file that is not the store's, like one of another program."""
    connection = apsw.Connection(str(database))
    connection.set_busy_timeout(30_000)
    return connection


def refill(other: apsw.Connection, records: Iterable[Sequence[str]]) -> None:
    """Replace the whole list by another program."""
    with other:
        other.execute("DELETE FROM mahasiswa")
        other.executemany("INSERT INTO mahasiswa VALUES (?, ?, ?)", records)


def nims_of(database: Path) -> set[str]:
    """Return the nims of a database as another connection reads them. Fail if its integrity check does."""
    assert execute(database, "PRAGMA integrity_check") == [("ok",)]
    return {nim for (nim,) in execute(database, "SELECT nim FROM mahasiswa")}


def execute(place: Place, script: str) -> list[tuple[Any, ...]]:
    """Run SQL on a connection of its own, and return the rows of its last statement."""
    url = url_of(place)
    if isinstance(url, SQLiteURL):
        with closing(connect(url.address)) as other:
            return other.execute(script).fetchall()
    with psycopg.connect(url.address, autocommit=True) as db:
        cursor = db.execute(script.encode()).set_result(-1)
        return cursor.fetchall() if cursor.description else []


# It lets every entry of the history expire.
EXPIRE = "UPDATE mahasiswa_history SET moment = '2020-01-01T00:00:00.000Z'"
