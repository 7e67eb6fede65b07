"""Fixtures for tests of the pages: browser windows, and another connection to the database of the service."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from apsw import Connection
from harness import Service
from stores import connect
from web.browser import chromium, node_modules, open_window, window


@pytest.fixture(scope="module")
def other(service: Service) -> Iterator[Connection]:
    """Open the SQLite file of the service on another connection."""
    assert isinstance(service.database, Path)
    with closing(connect(service.database)) as database:
        yield database
