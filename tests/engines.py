"""An empty database of either engine, `ENGINES` and `empty_database`, and the mark of a module that runs on both."""

from pathlib import Path

import pytest
from harness import Service
from postgres import new_schema
from stores import execute

ENGINES = ["sqlite", "postgres"]
EACH_ENGINE = pytest.mark.parametrize("engine", ENGINES, scope="module")
"""The mark of a module whose `service` is one of each engine."""


def empty_database(engine: str, folder: Path, request: pytest.FixtureRequest) -> str:
    """Return the address of an SQLite file in `folder` that does not exist, or of an empty schema of PostgreSQL."""
    if engine == "sqlite":
        return f"sqlite:///{folder}/mahasiswa.db"
    return new_schema(request.getfixturevalue("postgres"))


def empty(service: Service) -> Service:
    """Delete the records and the history of a service, and begin its log anew."""
    execute(
        service.database,
        "BEGIN; DELETE FROM mahasiswa; DELETE FROM mahasiswa_history; COMMIT",
    )
    service.begin_log()
    return service
