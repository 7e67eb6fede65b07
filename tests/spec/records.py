"""Reads the records of any implementation: `listed` and `stored`."""

import os

from harness import Site

CONFORM_URL = os.environ.get("CONFORM_URL")
"""The address of another implementation that is tested, not our own service."""

TEXT_INPUT = "input:is(:not([type]), [type=text])"


def listed(site: Site) -> list[tuple[str, ...]]:
    """Return the records as the list shows them, ordered, without white space around a text."""
    records = filter(None, site.records)  # a row with one cell may say that it is empty
    return sorted(tuple(map(str.strip, record)) for record in records)


def stored(site: Site, nim: str) -> tuple[str, ...]:
    """Return a record as its edit form holds it. Unlike the list, a form adds no white space."""
    fields = site.page(site.path("/mahasiswa/edit/", nim)).form("alamat").fields
    return fields["nim"], fields["nama"], fields["alamat"]
