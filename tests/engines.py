"""An empty database of either engine, `ENGINES` and `empty_database`, and fixtures that run a module on both."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from harness import Service
from postgres import own_schema
from stores import execute

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
    """Delete the records and the history of a service, and begin its log anew."""
    execute(
        service.database,
        "BEGIN; DELETE FROM mahasiswa; DELETE FROM mahasiswa_history; COMMIT",
    )
    service.begin_log()
    return service


@pytest.fixture(scope="module", name="service", params=ENGINES)
def service_on_each_engine(request: pytest.FixtureRequest) -> Service:
    service: Service = request.getfixturevalue(f"{request.param}_service")
    return empty(service)
