"""Options of the test suite, and the fixtures that all tests share: a service, a database, a PostgreSQL server, a small disk."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from engines import ENGINES, empty_database
from harness import Service
from postgres import a_server


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of this suite."""
    group = parser.getgroup("mahasiswa")
    group.addoption(
        "--base-url", default="", help="run tests/spec against the implementation at this address, not against our own"
    )
    group.addoption("--screenshots", action="store_true", help="make the pictures of docs/panduan.md again")
    group.addoption("--nothing-skipped", action="store_true", help="fail each test that would be skipped")
    group.addoption("--torture", action="store_true", help="run the long versions of the tests that attack the service")


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers of this suite, and let children get the default handler of Ctrl-C.

    A shell starts a background job with SIGINT ignored, which children would inherit.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line(
        "markers", "beyond: goes beyond the specification; with --base-url it runs only if -m selects it"
    )
    config.addinivalue_line("markers", "torture: takes so long that it runs only with --torture")
    config.addinivalue_line("markers", "alone: measures time or cost, so no other test runs at the same time")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests marked `torture`, unless --torture is given."""
    if not config.getoption("torture"):
        left_out = [item for item in items if item.get_closest_marker("torture")]
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Keep the other processes of pytest-xdist from running a test while one marked `alone` runs."""
    if not hasattr(item.config, "workerinput"):
        return (yield)
    with _turn(item.config.workerinput["testrunuid"], is_alone=item.get_closest_marker("alone") is not None):
        return (yield)


@contextmanager
def _turn(run: str, *, is_alone: bool) -> Iterator[None]:
    import fcntl  # noqa: PLC0415 - Windows has none

    path = Path(tempfile.gettempdir()) / f"mahasiswa-tests-{run}"
    with path.with_suffix(".lock").open("w") as lock:
        # The process that waits for the lock keeps the queue, because flock lets the others overtake it.
        with path.with_suffix(".queue").open("w") as queue:
            fcntl.flock(queue, fcntl.LOCK_EX)
            fcntl.flock(lock, fcntl.LOCK_EX if is_alone else fcntl.LOCK_SH)
        yield


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Report a skipped test as failed if --nothing-skipped is given."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        _refuse_skip(item.config, report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Report a skipped file as failed if --nothing-skipped is given."""
    report = yield
    if report.skipped:
        _refuse_skip(collector.config, report)
    return report


def _refuse_skip(config: pytest.Config, report: pytest.TestReport | pytest.CollectReport) -> None:
    if config.getoption("nothing_skipped"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"skipped, which --nothing-skipped forbids: {reason}"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Start a service with an empty database, once for each test module."""
    with Service(tmp_path_factory.mktemp("service") / "mahasiswa.db") as service:
        yield service


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run coroutine tests and fixtures on asyncio, by the pytest plugin that anyio brings."""
    return "asyncio"


@pytest.fixture(scope="session")
def rounds(request: pytest.FixtureRequest) -> Callable[[int, int], int]:
    """Return a function that chooses a number of rounds or seconds: the usual one, or the one for --torture."""
    tortured = bool(request.config.getoption("torture"))
    return lambda usual, torture: torture if tortured else usual


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Return the address of a PostgreSQL server, which is started when the first test needs it."""
    with a_server() as url:
        yield url


@pytest.fixture(params=ENGINES)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Return the address of an empty database, once for each engine."""
    with empty_database(request.param, tmp_path, request) as url:
        yield url


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 3 MB, or skip if this process may not."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)]
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("only root on Linux may mount a small file system")
    mounted = subprocess.run(mount, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no file system may be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)
