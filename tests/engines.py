"""An empty database of either engine, `ENGINES` and `empty_database`, and fixtures that run a module on both."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest
from harness import Service
from postgres import own_schema
from stores import url_of

from mahasiswa.settings import SQLiteURL

ENGINES = ["sqlite", "postgres"]


@contextmanager
def empty_database(engine: str, folder: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """Return the address of an SQLite file in `folder` that does not exist, or of an empty schema of PostgreSQL."""
    if engine == "sqlite":
        yield f"sqlite:///{folder}/mahasiswa.db"
    else:
        with own_schema(request.getfixturevalue("postgres")) as url:
            yield url


def empty(service: Service) -> Service:
    """Delete the records and the history of a service, and begin its log anew. No store of this process may be open on it."""
    url = url_of(service.database)
    with closing(
        sqlite3.connect(url.address, timeout=30)
        if isinstance(url, SQLiteURL)
        else psycopg.connect(url.address)
    ) as db:
        db.execute("DELETE FROM mahasiswa")
        db.execute("DELETE FROM mahasiswa_history")
        db.commit()
    service.begin_log()
    return service


@pytest.fixture(scope="module", name="service", params=ENGINES)
def service_on_each_engine(request: pytest.FixtureRequest) -> Service:
    service: Service = request.getfixturevalue(f"{request.param}_service")
    return empty(service)
