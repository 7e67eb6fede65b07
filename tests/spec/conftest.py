"""Fixtures for the implementation under test: our own service, or another implementation at --base-url."""

from collections.abc import Iterator

import pytest
from engines import ENGINES, empty
from harness import Site
from spec.records import listed


@pytest.fixture(scope="session")
def foreign_url(request: pytest.FixtureRequest) -> str:
    """Return the address given with --base-url, or an empty text if our own service is tested."""
    return str(request.config.getoption("base_url"))


@pytest.fixture(params=ENGINES)
def site(foreign_url: str, request: pytest.FixtureRequest) -> Iterator[Site]:
    """Visit the implementation under test, with an empty list: our own service on each engine, or another one once."""
    if foreign_url and request.param != ENGINES[0]:
        pytest.skip("another implementation is tested once")
    url = foreign_url or empty(request.getfixturevalue(f"{request.param}_service")).url
    with Site(url) as site:
        if listed(site):
            pytest.exit("the list holds records that are not ours to delete", 1)
        yield site
        for nim, *_ in listed(site):
            site.delete(nim)
