"""Specification 4.3: GET /mahasiswa/edit/:nim, the edit form page."""

from harness import Site
from spec.records import Records


def test_4_3_1_edit_page_reads_the_record_of_the_path(records: Records) -> None:
    """The heading is Edit Data Mahasiswa, and the edit page of each of two records shows that record."""
    for added in (records.add("Siti", "Solo"), records.add("Budi", "Bantul")):
        assert "Edit Data Mahasiswa" in records.edit_page(added.nim).headings
        assert records.stored(added.nim) == added


def test_4_3_2_edit_form_has_three_required_text_inputs(site: Site, records: Records) -> None:
    """The POST form has the pre-filled, required text inputs nim, nama and alamat, and the button Simpan.

    Only nim is read-only, and no input is disabled, so a browser sends all three.
    """
    added = records.add()
    form = records.edit_page(added.nim).record_form
    assert (form.method, form.target) == ("post", site.path("/mahasiswa/edit/", added.nim))
    assert [field.name for field in form.text_inputs] == ["nim", "nama", "alamat"]
    assert [field.value for field in form.text_inputs] == list(added)
    assert [field.readonly for field in form.text_inputs] == [True, False, False]
    assert all(field.required and not field.disabled for field in form.text_inputs)
    assert form.submit == "Simpan"
