"""An empty database of either engine, `ENGINES` and `empty_database`, and fixtures that run a module on both."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from harness import Service, Site
from postgres import own_schema
from stores import Place, run_script, url_of

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


def run_elsewhere(database: Place, statement: str) -> None:
    """Let another program run one statement in a database."""
    url = url_of(database)
    if isinstance(url, SQLiteURL):
        run_script(url.address, statement)
        return
    with psycopg.connect(url.address) as db:
        db.execute(statement)


@pytest.fixture(scope="module", name="service", params=ENGINES)
def service_on_each_engine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("engine")
    with empty_database(request.param, folder, request) as database, Service(database) as service:
        yield service


@pytest.fixture(name="site")
def empty_list(service: Service) -> Iterator[Site]:
    run_elsewhere(service.database, "DELETE FROM mahasiswa")
    with service.site() as site:
        yield site
