"""Specification 4.2: GET /mahasiswa/add, the add form page."""

import pytest
from harness import Form, Site
from spec.records import Records


@pytest.fixture
def form(site: Site) -> Form:
    """Return the form of the add page."""
    return site.page(site.path("/mahasiswa/add")).record_form


def test_4_2_1_add_page_has_its_heading(site: Site) -> None:
    """The heading is Tambah Data Mahasiswa."""
    assert "Tambah Data Mahasiswa" in site.page(site.path("/mahasiswa/add")).headings


def test_4_2_2_add_form_posts_to_add(site: Site, form: Form) -> None:
    """The form is sent by POST to /mahasiswa/add."""
    assert (form.method, form.target) == ("post", site.path("/mahasiswa/add"))


def test_4_2_2_add_form_has_three_required_text_inputs(form: Form) -> None:
    """The form has the empty single-line text inputs nim, nama and alamat, each required and editable."""
    assert [field.name for field in form.text_inputs] == ["nim", "nama", "alamat"]
    for field in form.text_inputs:
        assert (field.value, field.required, field.readonly, field.disabled) == ("", True, False, False)


def test_4_2_2_add_form_has_labels_and_button(form: Form) -> None:
    """The labels are NIM, Nama and Alamat, the button is Simpan."""
    assert form.labels == ("NIM", "Nama", "Alamat")
    assert form.submit == "Simpan"


def test_4_2_2_add_form_adds_what_is_typed(site: Site, records: Records, form: Form) -> None:
    """A submitted form adds a record with the typed texts."""
    nim = records.new_nim()
    assert site.submit(form, nim=nim, nama="Agus Salim", alamat="Wates").status_code == 302
    assert records.listed(nim) == (nim, "Agus Salim", "Wates")


def test_4_2_3_service_does_not_check_required(site: Site, records: Records) -> None:
    """The service stores empty texts, which a browser would not send."""
    nim = records.new_nim()
    assert site.add(nim, "", "").status_code == 302
    assert records.listed(nim) == (nim, "", "")
