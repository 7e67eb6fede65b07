"""Fixtures for tests of the stores: an empty database of each engine, and a store that is open on it."""

from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from stores import SITI, migrate, opened

from mahasiswa.settings import DatabaseURL, PostgresURL, parse_database_url
from mahasiswa.store import Store
from mahasiswa.store.reader import Steps
from mahasiswa.store.shared_sql import named
from mahasiswa.store.store_errors import StoreError


@pytest.fixture
def url(database: str) -> DatabaseURL:
    """Return the address of an empty database with its table, once for each engine."""
    url = parse_database_url(database)
    migrate(url)
    return url


def one_change() -> Steps[None]:
    """Make a single change of each kind, and roll it back."""
    yield "add", SITI._asdict()
    yield "update", {"nama": "", "alamat": "", **named([SITI.nim])}
    yield "delete", named([SITI.nim])
    raise StoreError


@pytest.fixture
async def store(url: DatabaseURL) -> AsyncIterator[Store]:
    """Return a store that is open on the empty database, once for each engine.

    Its connection has made a single change of each kind, so PostgreSQL has planned its triggers for one row.
    """
    async with opened(url) as store:
        if isinstance(url, PostgresURL):
            with suppress(StoreError):
                await store.run(one_change)
        yield store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of an SQLite file with an empty table."""
    migrate(tmp_path / "mahasiswa.db")
    return tmp_path / "mahasiswa.db"
