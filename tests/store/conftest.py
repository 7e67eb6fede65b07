"""Fixtures for tests of the stores: an empty database of each engine, and a store that is open on it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from stores import migrate, opened

from mahasiswa.store import Store


@pytest.fixture
def url(database: str) -> str:
    """Return the address of an empty database with its table, once for each engine."""
    migrate(database)
    return database


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    """Return a store that is open on the empty database, once for each engine."""
    async with opened(url) as store:
        yield store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of an SQLite file with an empty table."""
    migrate(tmp_path / "mahasiswa.db")
    return tmp_path / "mahasiswa.db"
