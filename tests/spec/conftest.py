"""Fixtures for the implementation under test: our own service, or another implementation at CONFORM_URL."""

from collections.abc import Iterator

import pytest
from engines import ENGINES, empty
from harness import Site
from spec.records import CONFORM_URL, listed


@pytest.fixture(params=ENGINES[:1] if CONFORM_URL else ENGINES)
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """Visit the implementation under test, with an empty list: our own service on each engine, or another one once."""
    url = CONFORM_URL or empty(request.getfixturevalue(f"{request.param}_service")).url
    with Site(url) as site:
        if listed(site):
            pytest.exit("the list holds records that are not ours to delete", 1)
        yield site
        for nim, *_ in listed(site):
            site.delete(nim)
