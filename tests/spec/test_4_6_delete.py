"""Specification 4.6: POST /mahasiswa/delete/:nim."""

from harness import Site
from spec.records import Records, texts


def test_4_6_1_delete_removes_the_record(site: Site, records: Records) -> None:
    """Only the record in the path is deleted."""
    kept, removed = records.add(), records.add()
    site.delete(removed.nim)
    assert records.listed(removed.nim) is None
    assert records.listed(kept.nim) == kept


def test_4_6_2_delete_redirects_even_if_there_is_no_record(site: Site, records: Records) -> None:
    """The answer is a redirect to /."""
    for nim in (records.add().nim, records.new_nim()):
        answer = site.delete(nim)
        assert (answer.status_code, answer.headers["location"]) == (302, site.path("/"))


def test_4_6_3_rows_are_renumbered_and_keep_their_nim(site: Site, records: Records) -> None:
    """After a deletion the row numbers have no gap, and the remaining records keep their nims."""
    added = [records.add(f"Nama {i}") for i in range(3)]
    site.delete(added[1].nim)
    rows = [texts(row) for row in site.list().table]
    assert [row[0] for row in rows] == [str(i + 1) for i in range(len(rows))]
    assert [row[1:4] for row in rows if row[1] == added[0].nim] == [list(added[0])]
    assert [row[1:4] for row in rows if row[1] == added[2].nim] == [list(added[2])]
