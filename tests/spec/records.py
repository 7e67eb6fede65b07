"""Reads the records of any implementation: `listed` and `stored`."""

from harness import Site
from visitor import Part

TEXT_INPUT = "input:is(:not([type]), [type=text])"


def texts(row: Part) -> list[str]:
    return [cell.strip() for cell in row.cells]


def listed(site: Site) -> list[tuple[str, ...]]:
    """Return the records as the list shows them, ordered, without white space around a text."""
    rows = map(texts, site.list().table)
    return sorted(
        tuple(row[1:4]) for row in rows if len(row) > 1
    )  # one cell may say that it is empty


def stored(site: Site, nim: str) -> tuple[str, ...]:
    """Return a record as its edit form holds it. Unlike the list, a form adds no white space."""
    fields = site.page(site.path("/mahasiswa/edit/", nim)).form("alamat").fields
    return fields["nim"], fields["nama"], fields["alamat"]
