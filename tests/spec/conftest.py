"""The implementation under test: our own service, or any other at --base-url."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from harness import Service, Site
from spec.records import Records


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what goes beyond the specification where another implementation is tested."""
    if not config.getoption("base_url") or config.getoption("markexpr"):
        return
    beyond = [item for item in items if item.get_closest_marker("beyond")]
    config.hook.pytest_deselected(items=beyond)
    items[:] = [item for item in items if item not in beyond]


@pytest.fixture(scope="session")
def foreign_url(request: pytest.FixtureRequest) -> str:
    """Return the address given with --base-url, or nothing where our own service is tested."""
    return str(request.config.getoption("base_url"))


@pytest.fixture(scope="session")
def site(foreign_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Visit the implementation under test."""
    with ExitStack() as stack:
        url = foreign_url or stack.enter_context(Service(tmp_path_factory.mktemp("spec") / "mahasiswa.db")).url
        yield stack.enter_context(Site(url))


@pytest.fixture
def records(site: Site) -> Iterator[Records]:
    """Give a test records of its own, and delete them after it."""
    with Records(site) as records:
        yield records


@pytest.fixture
def own_database(foreign_url: str, tmp_path: Path) -> Path:
    """Return where a service of our own may make its database; skip where another implementation is tested."""
    if foreign_url:
        pytest.skip("only a service that this test starts itself can show it")
    return tmp_path / "mahasiswa.db"
