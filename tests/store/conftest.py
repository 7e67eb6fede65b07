"""Fixtures for tests of the stores: an empty database of each engine, and a store that is open on it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from stores import opened

from mahasiswa.settings import DatabaseURL, SQLiteURL, parse_database_url
from mahasiswa.store import Store
from mahasiswa.store.engines import engine_of


@pytest.fixture
def url(database: str) -> DatabaseURL:
    """Return the address of an empty database with its table, once for each engine."""
    url = parse_database_url(database)
    engine_of(url).migrate()
    return url


@pytest.fixture
async def store(url: DatabaseURL) -> AsyncIterator[Store]:
    """Return a store that is open on the empty database, once for each engine."""
    async with opened(url) as store:
        yield store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of an SQLite file with an empty table."""
    engine_of(SQLiteURL(tmp_path / "mahasiswa.db")).migrate()
    return tmp_path / "mahasiswa.db"
