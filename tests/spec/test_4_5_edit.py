"""Specification 4.5: POST /mahasiswa/edit/:nim."""

from harness import Site
from spec.records import Records


def test_4_5_1_edit_sets_nama_and_alamat(site: Site, records: Records) -> None:
    """The record gets both texts of its form. Other records do not change."""
    other, added = records.add("Lain", "Lain"), records.add("Siti", "Solo")
    site.submit(records.edit_page(added.nim).record_form, nama=" Siti Baru ", alamat="Jalan <Baru> & Lama")
    assert records.stored(added.nim) == (added.nim, " Siti Baru ", "Jalan <Baru> & Lama")
    assert records.listed(other.nim) == other


def test_4_5_1_a_nim_in_the_body_is_ignored(site: Site, records: Records) -> None:
    """The nim in the path selects the record, even if the body has the nim of another existing record."""
    first, second = records.add("Siti", "Solo"), records.add("Budi", "Bantul")
    fields = {"nim": second.nim, "nama": "Ani", "alamat": "Magelang"}
    site.post(site.path("/mahasiswa/edit/", first.nim), fields)
    assert records.listed(first.nim) == (first.nim, "Ani", "Magelang")
    assert records.listed(second.nim) == second


def test_4_5_2_edit_redirects_even_if_there_is_no_record(site: Site, records: Records) -> None:
    """The answer is a redirect to /, and the edit of an unknown record creates none."""
    unknown = records.new_nim()
    for nim in (records.add().nim, unknown):
        answer = site.edit(nim, "Siti", "Solo")
        assert (answer.status_code, answer.headers["location"]) == (302, site.path("/"))
    assert records.listed(unknown) is None
