"""Specification, sections 5 and 7: no authentication, and errors. The rules of section 5 are counted from the top."""

import httpx
import pytest
from harness import Site, led_to
from spec.records import CONFORM_URL, listed, stored
from stores import BUDI, SITI


def test_5_2_there_are_no_cookies_and_no_tokens(site: Site) -> None:
    """Every route is open to a client without credentials, and no answer sets a cookie or requests credentials."""
    pages = [site.path(path) for path in ("/", "/mahasiswa/add", "/mahasiswa/edit/0001")]
    answers = [
        site.add(*SITI),
        *map(site.get, pages),
        site.edit(SITI.nim, "Budi", "Bantul"),
        site.delete(SITI.nim),
    ]
    statuses = [answer.status_code for answer in answers]
    assert statuses == [302, 200, 200, 200, 302, 302]
    for answer in answers:
        assert not {"set-cookie", "www-authenticate"} & set(answer.headers)


def test_5_2_a_form_of_another_site_is_accepted(site: Site) -> None:
    """A form that comes from another site is accepted."""
    elsewhere = {"origin": "https://elsewhere.example", "referer": "https://elsewhere.example/form"}
    headers = {"sec-fetch-site": "cross-site", **elsewhere}
    answer = site.post(site.path("/mahasiswa/add"), data=SITI._asdict(), headers=headers)
    assert answer.status_code == 302
    assert listed(site) == [SITI]


def test_7_1_there_is_no_validation_of_input(site: Site) -> None:
    """Add and edit accept any text, including empty and unusual ones."""
    for nama, alamat in (("", "<>&\"'%\\;--"), ("12345", ""), ("panjang " * 100, " ")):
        for answer in (site.add("1", nama, alamat), site.edit("1", alamat, nama)):
            assert answer.status_code == 302
        assert stored(site, "1") == ("1", alamat, nama)
        site.delete("1")


def add_in_vain(site: Site, **fields: str) -> int:
    """Send an addition that must fail; return its status. It is not specified, so there may be no answer at all: 0."""
    try:
        return site.post(site.path("/mahasiswa/add"), data=fields).status_code
    except httpx.HTTPError:
        return 0


def test_7_3_a_duplicate_nim_makes_the_insert_fail(site: Site) -> None:
    """A second record with the same nim is not stored, and the first does not change."""
    site.add(*SITI)
    status = add_in_vain(site, nim=SITI.nim, nama="Budi", alamat="Bantul")
    assert listed(site) == [SITI]
    assert CONFORM_URL or status == 409


@pytest.mark.parametrize("missing", ["nim", "nama", "alamat"])
def test_7_3_a_missing_field_makes_the_insert_fail(site: Site, missing: str) -> None:
    """Nothing is stored if nim, nama or alamat is missing from the body."""
    sent = {name: value for name, value in SITI._asdict().items() if name != missing}
    status = add_in_vain(site, **sent)
    assert listed(site) == []
    assert CONFORM_URL or status == 400


def test_7_5_successful_posts_answer_302_without_a_body(site: Site) -> None:
    """302 Found with Location: / and no body, also for an unknown record, which neither creates. No body is needed."""
    answers = [site.add(*SITI)]
    for nim in (SITI.nim, BUDI.nim):
        delete = site.path("/mahasiswa/delete/", nim)
        answers += [site.edit(nim, "Siti", "Solo"), site.post(delete)]
        assert listed(site) == []
    for answer in answers:
        assert led_to(answer) == site.path("/")
