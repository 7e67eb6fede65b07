"""Specification 4.5: POST /mahasiswa/edit/:nim."""

from harness import Site
from spec.records import Records


def test_4_5_1_edit_sets_nama_and_alamat(site: Site, records: Records) -> None:
    """Both values of the record change, and other records do not."""
    other, added = records.add("Lain", "Lain"), records.add("Siti", "Solo")
    site.edit(added.nim, " Siti Baru ", "Jalan <Baru> & Lama")
    assert records.stored(added.nim) == (added.nim, " Siti Baru ", "Jalan <Baru> & Lama")
    assert records.listed(other.nim) == other


def test_4_5_1_edit_form_edits_what_is_typed(site: Site, records: Records) -> None:
    """A submitted edit form, which also sends nim, changes the record to the typed texts."""
    added = records.add("Siti", "Solo")
    site.submit(records.edit_page(added.nim).record_form, alamat="Semarang")
    assert records.listed(added.nim) == (added.nim, "Siti", "Semarang")


def test_4_5_1_a_nim_in_the_body_is_ignored(site: Site, records: Records) -> None:
    """The nim in the path selects the record, even if the body has the nim of another existing record."""
    first, second = records.add("Siti", "Solo"), records.add("Budi", "Bantul")
    fields = {"nim": second.nim, "nama": "Ani", "alamat": "Magelang"}
    site.post(site.path("/mahasiswa/edit/", first.nim), fields)
    assert records.listed(first.nim) == (first.nim, "Ani", "Magelang")
    assert records.listed(second.nim) == second


def test_4_5_2_edit_redirects_with_302(site: Site, records: Records) -> None:
    """A successful edit answers with a redirect to /."""
    answer = site.edit(records.add().nim, "Siti", "Solo")
    assert (answer.status_code, answer.headers["location"]) == (302, site.path("/"))


def test_4_5_2_edit_of_no_record_redirects_too(site: Site, records: Records) -> None:
    """Editing an unknown record has the same answer and creates no record."""
    nim = records.new_nim()
    answer = site.edit(nim, "Siti", "Solo")
    assert (answer.status_code, answer.headers["location"]) == (302, site.path("/"))
    assert records.listed(nim) is None
