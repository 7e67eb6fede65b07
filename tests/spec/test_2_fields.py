"""Specification, section 2: the resource and its fields."""

import pytest
from harness import Site
from spec.records import Records


@pytest.mark.parametrize("text", ["007", "1e5", "1.0", "true", "null", "-0"])
def test_2_0_every_field_is_text(site: Site, records: Records, text: str) -> None:
    """Texts that look like numbers or keywords are stored as text."""
    nim = records.new_nim()
    site.add(nim, text, text)
    assert records.stored(nim) == (nim, text, text)


def test_2_2_nim_is_immutable(site: Site, records: Records) -> None:
    """The edit page shows the nim read-only, and an edit with another nim in the body does not change it."""
    added, other = records.add(), records.new_nim()
    assert [field.readonly for field in records.edit_page(added.nim).record_form.text_inputs] == [True, False, False]
    site.submit(records.edit_page(added.nim).record_form, nim=other, nama="Budi")
    assert records.listed(added.nim) == (added.nim, "Budi", added.alamat)
    assert records.listed(other) is None


def test_2_3_there_are_no_other_fields(site: Site, records: Records) -> None:
    """The list and both forms have only the fields nim, nama and alamat."""
    assert len(site.list().columns) == 5
    for page in (site.page(site.path("/mahasiswa/add")), records.edit_page(records.add().nim)):
        assert [field.name for field in page.record_form.text_inputs] == ["nim", "nama", "alamat"]
        assert not page.tree.css("form textarea, form select")
