"""What all tests share: the options, and a service to test against."""

from collections.abc import Generator, Iterator

import pytest
from harness import Service


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of this suite."""
    group = parser.getgroup("mahasiswa")
    group.addoption(
        "--base-url", default="", help="run tests/spec against the implementation at this address, not against our own"
    )
    group.addoption("--nothing-skipped", action="store_true", help="a test that would be skipped fails")


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers of this suite."""
    config.addinivalue_line(
        "markers", "beyond: goes beyond the specification; left out with --base-url unless -m asks for it"
    )


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skipped test into a failed one where nothing may be skipped."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        _refuse_skip(item.config, report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Turn a skipped file into a failed one where nothing may be skipped."""
    report = yield
    if report.skipped:
        _refuse_skip(collector.config, report)
    return report


def _refuse_skip(config: pytest.Config, report: pytest.TestReport | pytest.CollectReport) -> None:
    if config.getoption("nothing_skipped"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"nothing may be skipped, yet: {reason}"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Start a service with a database of its own, new for each test module."""
    with Service(tmp_path_factory.mktemp("service") / "mahasiswa.db") as service:
        yield service
