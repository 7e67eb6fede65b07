"""Fixtures of the tests of pages: a visitor, another program at the same database, an importer, and a browser."""

from collections.abc import Iterator

import pytest
from browser import install_node_modules, one_window, path_of_axe, start_chromium, window_opener
from harness import Service, Site
from spreadsheets import another_program, own_importer

__all__ = [
    "another_program",
    "install_node_modules",
    "one_window",
    "own_importer",
    "path_of_axe",
    "start_chromium",
    "window_opener",
]


@pytest.fixture(scope="module")
def site(service: Service) -> Iterator[Site]:
    """Visit the module's service."""
    with service.site() as site:
        yield site
