"""Fixtures for the implementation under test: our own service, or another implementation at --base-url."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from engines import ENGINES, empty, empty_database
from harness import Site
from spec.records import Records


@pytest.fixture(scope="session")
def foreign_url(request: pytest.FixtureRequest) -> str:
    """Return the address given with --base-url, or an empty text if our own service is tested."""
    return str(request.config.getoption("base_url"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run every test on both engines of our service, or once on another implementation."""
    if "engine" in metafunc.fixturenames:
        engines = ["foreign"] if metafunc.config.getoption("base_url") else ENGINES
        metafunc.parametrize("engine", engines, scope="module")


@pytest.fixture(scope="module")
def site(engine: str, foreign_url: str, request: pytest.FixtureRequest) -> Iterator[Site]:
    """Visit the implementation under test."""
    with Site(foreign_url or empty(request.getfixturevalue(f"{engine}_service")).url) as site:
        yield site


@pytest.fixture
def records(site: Site) -> Iterator[Records]:
    """Keep track of a test's records, and delete them after it."""
    with Records(site) as records:
        yield records


@pytest.fixture
def own_database(
    engine: str, foreign_url: str, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[str]:
    """Return the address of an empty database of our own service. Skip the test if another implementation is tested."""
    if foreign_url:
        pytest.skip("this test has to start the service itself")
    with empty_database(engine, tmp_path, request) as database:
        yield database
