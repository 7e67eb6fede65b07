"""Fixtures for tests of the stores: an empty database of each engine, and a store that is open on it."""

from collections.abc import AsyncIterator

import pytest
from stores import opened

from mahasiswa.settings import DatabaseURL, parse_database_url
from mahasiswa.store import Store, migrate


@pytest.fixture
def url(database: str) -> DatabaseURL:
    """Return the address of an empty database with its table, once for each engine."""
    url = parse_database_url(database)
    migrate(url)
    return url


@pytest.fixture
async def store(url: DatabaseURL) -> AsyncIterator[Store]:
    """Return a store that is open on the empty database, once for each engine."""
    async with opened(url) as store:
        yield store
