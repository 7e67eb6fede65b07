"""Fixtures for tests of the PostgreSQL store: a server that a test may stop, freeze and configure."""

from collections.abc import Iterator

import pytest
from postgres import Server, own_schema
from stores import migrate

from mahasiswa.settings import PostgresURL


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """Start a server that only these tests use, so that they may stop it."""
    with Server() as server:
        yield server


@pytest.fixture
def address(server: Server) -> Iterator[str]:
    """Return the address of an empty schema on that server, without a table."""
    with own_schema(server.url()) as address:
        yield address


@pytest.fixture
def url(address: str) -> PostgresURL:
    """Return the same with the table; the fixture `store` opens it."""
    url = PostgresURL(address)
    migrate(url)
    return url


@pytest.fixture
def dsn(url: PostgresURL) -> str:
    """Return it as other programs write it."""
    return url.address
