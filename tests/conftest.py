"""The environment and the order of the tests, and what all share: a service, a database, a PostgreSQL server, a small disk."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

# A failed assertion in one of these modules shows its values, as in a test.
pytest.register_assert_rewrite("cli.operators", "harness", "visitor")

from engines import ENGINES, empty, empty_database
from harness import Service, Site
from hypothesis import HealthCheck, settings
from postgres import Server, new_schema
from processes import cannot, run

from mahasiswa.settings import Settings

# Examples may be slow to make: the machine may be busy, and Hypothesis's tables of Unicode are made at their first use.
# A test that takes `site` removes the records of each example itself.
# In CI the examples are the same each time, as Hypothesis wants it there.
settings.register_profile("busy", deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile("busy")


UNWANTED = (
    "NOTIFY_SOCKET",  # of a unit that runs the tests
    "MAKEFLAGS",
    "PYTHONPATH",
    "PYTHONDONTWRITEBYTECODE",  # hundreds of processes would compile the source again
)


def pytest_configure() -> None:
    """Give children the default handlers of Ctrl-C and SIGHUP, also in a background job, and no settings of this shell."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # A child does not inherit this handler. It would inherit that SIGHUP is ignored, as nohup lets it be.
    signal.signal(signal.SIGHUP, lambda *_: None)
    for variable in [*UNWANTED, *(variable for variable, _ in Settings.declared())]:
        os.environ.pop(variable, None)


@pytest.hookimpl(tryfirst=True)  # before the tests are selected by their marks
def pytest_collection_modifyitems(items: list[pytest.Function]) -> None:
    """Mark the tests that mount a file system, which `make test-long` runs as root, and put browser tests last (web/browser.py)."""
    for item in items:
        if "small_disk" in item.fixturenames:
            item.add_marker("root")
        if "chromium" in item.fixturenames:
            item.add_marker("browser")
    in_browser = {item.path for item in items if "chromium" in item.fixturenames}
    # The modules of all pages and of the guide take longest, and are the first of them.
    items.sort(key=lambda item: (item.path in in_browser, item.path.parent.name != "pages"))


@pytest.fixture(scope="session")
def sqlite_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service(tmp_path_factory.mktemp("service") / "mahasiswa.db") as service:
        yield service


@pytest.fixture(scope="session")
def postgres_service(postgres: str) -> Iterator[Service]:
    with Service(new_schema(postgres)) as service:
        yield service


@pytest.fixture(scope="session")
def engine() -> str:
    """Return the engine of `service`. A module with `pytestmark = EACH_ENGINE` runs once for each engine."""
    return "sqlite"


@pytest.fixture(scope="module")
def service(engine: str, request: pytest.FixtureRequest) -> Service:
    """Return the service that all tests of this worker share. It has no records, and its log begins with the module."""
    return empty(request.getfixturevalue(f"{engine}_service"))


@pytest.fixture
def site(service: Service) -> Iterator[Site]:
    """Visit the service, whose list and history are empty."""
    with empty(service).site() as site:
        yield site


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run coroutine tests and fixtures on asyncio, by the pytest plugin that anyio brings."""
    return "asyncio"


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Return the address of a PostgreSQL server, which is started when the first test needs it."""
    with Server() as server:
        yield server.url


@pytest.fixture(params=ENGINES)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of an empty database, once for each engine."""
    return empty_database(request.param, tmp_path, request)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 3 MB, or skip if this process may not."""
    folder = tmp_path / "small"
    folder.mkdir()
    try:
        run("mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", folder)
    except AssertionError as error:
        cannot("mount a file system", error)
    try:
        yield folder
    finally:
        run("umount", folder)
