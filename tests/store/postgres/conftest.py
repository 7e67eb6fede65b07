"""Fixtures for tests of the PostgreSQL store: a server that a test may stop, freeze and configure."""

from collections.abc import Iterator

import pytest
from postgres import Server, new_schema


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """Start a server that only these tests use, so that they may stop it."""
    with Server() as server:
        yield server


@pytest.fixture
def database(server: Server) -> str:
    """Return the address of an empty schema on that server, without a table. `url` and `store` use it."""
    return new_schema(server.url)
