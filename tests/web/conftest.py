"""The fixture of the tests of pages: a visitor."""

from collections.abc import Iterator

import pytest
from harness import Service, Site


@pytest.fixture(scope="module")
def site(service: Service) -> Iterator[Site]:
    with service.site() as site:
        yield site
