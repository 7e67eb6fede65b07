"""Specification, section 3: a record either exists or does not."""

from harness import Site
from spec.records import Records


def test_3_add_creates_and_delete_removes(site: Site, records: Records) -> None:
    """A record exists from its addition to its deletion, and can then be added again."""
    nim = records.new_nim()
    assert records.listed(nim) is None
    for nama in ("Siti", "Budi"):
        site.add(nim, nama, "Solo")
        assert records.listed(nim) == (nim, nama, "Solo")
        site.delete(nim)
        assert records.listed(nim) is None
