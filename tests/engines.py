"""An empty database of either engine: `ENGINES` and `empty_database`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from postgres import own_schema

ENGINES = ["sqlite", "postgres"]


@contextmanager
def empty_database(engine: str, folder: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """Return the address of an SQLite file in `folder` that does not exist, or of an empty schema of PostgreSQL."""
    if engine == "sqlite":
        yield f"sqlite:///{folder}/mahasiswa.db"
    else:
        with own_schema(request.getfixturevalue("postgres")) as url:
            yield url
