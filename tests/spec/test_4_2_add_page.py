"""Specification 4.2: GET /mahasiswa/add, the add form page."""

from harness import Site
from spec.records import Records


def test_4_2_1_add_page_has_its_heading(site: Site) -> None:
    """The heading is Tambah Data Mahasiswa."""
    assert "Tambah Data Mahasiswa" in site.page(site.path("/mahasiswa/add")).headings


def test_4_2_2_add_form_has_three_required_text_inputs(site: Site) -> None:
    """The POST form has the empty text inputs nim, nama and alamat, each required and editable, and the button Simpan."""
    form = site.page(site.path("/mahasiswa/add")).record_form
    assert (form.method, form.target) == ("post", site.path("/mahasiswa/add"))
    assert [field.name for field in form.text_inputs] == ["nim", "nama", "alamat"]
    for field in form.text_inputs:
        assert (field.value, field.required, field.readonly, field.disabled) == ("", True, False, False)
    assert (form.labels, form.submit) == (("NIM", "Nama", "Alamat"), "Simpan")


def test_4_2_2_add_form_adds_what_is_typed(site: Site, records: Records) -> None:
    """A submitted form adds a record with the typed texts."""
    nim = records.new_nim()
    form = site.page(site.path("/mahasiswa/add")).record_form
    assert site.submit(form, nim=nim, nama="Agus Salim", alamat="Wates").status_code == 302
    assert records.listed(nim) == (nim, "Agus Salim", "Wates")
