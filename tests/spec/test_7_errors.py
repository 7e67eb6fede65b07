"""Specification, sections 5 and 7: no authentication, and errors. The rules of section 5 are counted from the top."""

import httpx
import pytest
from harness import URL_ENCODED, Site, led_to
from spec.records import Records, texts


def test_5_2_there_are_no_cookies_and_no_tokens(site: Site, records: Records) -> None:
    """Every route is open to a client without credentials, and no answer sets a cookie or requests credentials."""
    nim = records.new_nim()
    pages = [site.path("/"), site.path("/mahasiswa/add"), site.path("/mahasiswa/edit/", nim)]
    answers = [
        site.add(nim, "Siti", "Solo"),
        *map(site.get, pages),
        site.edit(nim, "Budi", "Bantul"),
        site.delete(nim),
    ]
    assert [answer.status_code for answer in answers] == [302, 200, 200, 200, 302, 302]
    for answer in answers:
        assert not {"set-cookie", "www-authenticate"} & set(answer.headers)


def test_5_2_a_form_of_another_site_is_accepted(site: Site, records: Records) -> None:
    """A form that comes from another site is accepted."""
    nim = records.new_nim()
    body = f"nim={nim}&nama=Siti&alamat=Solo".encode()
    elsewhere = {"origin": "https://elsewhere.example", "referer": "https://elsewhere.example/form"}
    headers = {"content_type": URL_ENCODED, "sec_fetch_site": "cross-site", **elsewhere}
    assert site.send("POST", site.path("/mahasiswa/add"), body, **headers).status_code == 302
    assert records.listed(nim) == (nim, "Siti", "Solo")


def test_7_1_there_is_no_validation_of_input(site: Site, records: Records) -> None:
    """Add and edit accept any text, including empty and unusual ones."""
    nim = records.new_nim()
    for nama, alamat in (("", "<>&\"'%\\;--"), ("12345", ""), ("panjang " * 100, " ")):
        for answer in (site.add(nim, nama, alamat), site.edit(nim, alamat, nama)):
            assert answer.status_code == 302
        assert records.stored(nim) == (nim, alamat, nama)
        site.delete(nim)


def add_in_vain(site: Site, **fields: str) -> int:
    """Send an addition that must fail; return its status. It is not specified, so there may be no answer at all: 0."""
    try:
        return site.post(site.path("/mahasiswa/add"), fields).status_code
    except httpx.HTTPError:
        return 0


def test_7_3_a_duplicate_nim_makes_the_insert_fail(
    site: Site, records: Records, foreign_url: str
) -> None:
    """A second record with the same nim is not stored, and the first does not change."""
    added = records.add()
    status = add_in_vain(site, nim=added.nim, nama="Budi", alamat="Bantul")
    assert records.listed(added.nim) == added
    assert foreign_url or status == 409


@pytest.mark.parametrize("missing", ["nim", "nama", "alamat"])
def test_7_3_a_missing_field_makes_the_insert_fail(
    site: Site, records: Records, foreign_url: str, missing: str
) -> None:
    """Nothing is stored if nim, nama or alamat is missing from the body."""
    sent = {name: records.new_nim() for name in ("nim", "nama", "alamat") if name != missing}
    status = add_in_vain(site, **sent)
    for row in site.list().table:
        assert not set(sent.values()) & set(texts(row))
    assert foreign_url or status == 400


def test_7_5_successful_posts_answer_302_without_a_body(site: Site, records: Records) -> None:
    """302 Found with Location: / and no body, also for an unknown record, which neither creates. No body is needed."""
    nim, unknown = records.new_nim(), records.new_nim()
    answers = [site.add(nim, "Siti", "Solo")]
    for each in (nim, unknown):
        answers += [
            site.edit(each, "Siti", "Solo"),
            site.send("POST", site.path("/mahasiswa/delete/", each)),
        ]
        assert records.listed(each) is None
    for answer in answers:
        assert led_to(answer) == site.path("/")
