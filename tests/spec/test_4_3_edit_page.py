"""Specification 4.3: GET /mahasiswa/edit/:nim, the edit form page."""

from harness import Site
from spec.records import Records


def test_4_3_1_edit_page_has_its_heading(records: Records) -> None:
    """The heading is Edit Data Mahasiswa."""
    assert "Edit Data Mahasiswa" in records.edit_page(records.add().nim).headings


def test_4_3_1_edit_page_reads_the_record_of_the_path(records: Records) -> None:
    """The edit page of each of two records shows that record."""
    for added in (records.add("Siti", "Solo"), records.add("Budi", "Bantul")):
        assert records.stored(added.nim) == added


def test_4_3_2_edit_form_posts_to_edit(site: Site, records: Records) -> None:
    """The form is sent by POST to the record's edit route."""
    nim = records.add().nim
    form = records.edit_page(nim).record_form
    assert (form.method, form.target) == ("post", site.path("/mahasiswa/edit/", nim))


def test_4_3_2_edit_form_has_three_required_text_inputs(records: Records) -> None:
    """The form has the pre-filled, required text inputs nim, nama and alamat."""
    added = records.add()
    fields = records.edit_page(added.nim).record_form.text_inputs
    assert [field.name for field in fields] == ["nim", "nama", "alamat"]
    assert [field.value for field in fields] == list(added)
    assert all(field.required for field in fields)


def test_4_3_2_nim_is_read_only_and_still_sent(records: Records) -> None:
    """Only nim is read-only, and no input is disabled, so a browser sends all three."""
    fields = records.edit_page(records.add().nim).record_form.text_inputs
    assert [field.readonly for field in fields] == [True, False, False]
    assert not any(field.disabled for field in fields)


def test_4_3_2_edit_form_has_its_button(records: Records) -> None:
    """The button is Simpan."""
    assert records.edit_page(records.add().nim).record_form.submit == "Simpan"
