"""Specification, section 7: errors."""

import pytest
from harness import Site
from spec.records import Records, texts


def test_7_1_there_is_no_validation_of_input(site: Site, records: Records) -> None:
    """Add and edit accept any text, including empty and unusual ones."""
    nim = records.new_nim()
    for nama, alamat in (("", "<>&\"'%\\;--"), ("12345", ""), ("panjang " * 100, " ")):
        for answer in (site.add(nim, nama, alamat), site.edit(nim, alamat, nama)):
            assert answer.status_code == 302
        assert records.stored(nim) == (nim, alamat, nama)
        site.delete(nim)


def test_7_3_a_duplicate_nim_makes_the_insert_fail(records: Records, foreign_url: str) -> None:
    """A second record with the same nim is not stored, and the first does not change."""
    added = records.add()
    answer = records.add_in_vain(nim=added.nim, nama="Budi", alamat="Bantul")
    assert records.listed(added.nim) == added
    if not foreign_url:
        assert answer is not None
        assert answer.status_code == 409


@pytest.mark.parametrize("missing", ["nim", "nama", "alamat"])
def test_7_3_a_missing_field_makes_the_insert_fail(
    site: Site, records: Records, foreign_url: str, missing: str
) -> None:
    """Nothing is stored if nim, nama or alamat is missing from the body."""
    fields = {name: records.new_nim() for name in ("nim", "nama", "alamat")}
    sent = {name: value for name, value in fields.items() if name != missing}
    answer = records.add_in_vain(**sent)
    for row in site.list().table:
        assert not set(sent.values()) & set(texts(row))
    if not foreign_url:
        assert answer is not None
        assert answer.status_code == 400


def test_7_5_successful_posts_answer_302_without_a_body(site: Site, records: Records) -> None:
    """Add, edit and delete answer 302 Found without a body."""
    nim = records.new_nim()
    for answer in (site.add(nim, "Siti", "Solo"), site.edit(nim, "Budi", "Bantul"), site.delete(nim)):
        assert answer.status_code == 302
        assert answer.content == b""


def test_7_6_the_service_itself_returns_no_error_code(site: Site, records: Records) -> None:
    """All six routes answer 200 or 302, even if edit and delete find no record."""
    added, unknown = records.add(), records.new_nim()
    for target in (site.path("/"), site.path("/mahasiswa/add"), site.path("/mahasiswa/edit/", added.nim)):
        assert site.get(target).status_code == 200
    for nim in (added.nim, unknown):
        assert site.edit(nim, "Siti", "Solo").status_code == 302
        assert site.delete(nim).status_code == 302
