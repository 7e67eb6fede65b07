"""Forms that are refused: the status, the message beside each wrong field, and that nothing is stored."""

from pathlib import Path
from typing import cast
from urllib.parse import quote

import httpx
import pytest
from form_answers import ADD, KEPT, assert_form, assert_page, module_visitor, post_raw, two_records
from harness import Page, Site
from stores import opened

from mahasiswa.settings import Settings
from mahasiswa.store import Store, migrate
from mahasiswa.store.errors import Unavailable
from mahasiswa.web.app import create_app
from mahasiswa.work import Limits

# The fixtures, which pytest finds by these names.
__all__ = ["module_visitor", "two_records"]

REFUSED = {
    "a dot": ("nim", ".", "tidak boleh"),
    "two dots": ("nim", "..", "tidak boleh"),
    "256 characters": ("nim", "9" * 256, "255 karakter"),
    "256 emoji": ("nim", "🎓" * 256, "255 karakter"),
    "a NUL in nim": ("nim", "12\x0034", "NUL"),
    "a NUL in nama": ("nama", "Ani\0", "NUL"),
    "a NUL in alamat": ("alamat", "\0", "NUL"),
    "a nim that exists": (
        "nim",
        "0001",
        "NIM ini sudah terdaftar atas nama Siti. Periksa kembali, atau buka data dengan NIM ini.",
    ),
}


@pytest.mark.parametrize(("field", "value", "words"), REFUSED.values(), ids=REFUSED)
def test_a_refused_add_shows_the_form_again(site: Site, field: str, value: str, words: str) -> None:
    """The form explains the error beside the field and keeps the typed texts, and nothing is stored."""
    typed = {"nim": "3", "nama": "Ani & <Co>", "alamat": ' "Klaten" ', field: value}
    answer = site.post(ADD, typed)
    assert answer.status_code == (409 if value == "0001" else 400)
    page = assert_form(site, answer, "Tambah Data Mahasiswa", ADD, [field])
    assert words in reason(page, field)
    shown = {name: text.replace("\0", "\ufffd") for name, text in typed.items()}
    assert page.record_form.values == shown


def test_the_message_about_a_duplicate_nim_links_to_its_record(site: Site) -> None:
    """The message about a duplicate nim links to the edit page of the existing record, even if the nim has a slash."""
    for nim, path in [("0001", "/mahasiswa/edit/0001"), ("20/2", "/mahasiswa/edit/20%2F2")]:
        page = Page(site.add(nim, "Ani", "Klaten").text, site.origin)
        (link,) = [link for link in page.links if link.text == "buka data dengan NIM ini"]
        assert link.href == path
        assert site.page(link.target).record_form.values["nim"] == nim


@pytest.mark.parametrize("nim", ["3", "20/3", "é 🎓", "", "a\r\nb"])
def test_the_second_click_on_an_addition_says_that_it_is_stored(site: Site, nim: str) -> None:
    """An addition of a record that is stored exactly so gets 409, and a page that links to it and to the list."""
    record = (nim, "Ani & <Co>", " Klaten\r\n")
    assert site.add(*record).status_code == 302
    answer = site.add(*record)
    assert answer.status_code == 409
    page = assert_page(answer, site)
    assert page.headings == ["Tambah Data Mahasiswa"]
    (alert,) = page.tree.css("[role=alert]")
    assert alert.text() == "Data ini sudah tersimpan. Lihat datanya atau kembali ke daftar."
    assert [(link.text, link.target) for link in page.links if link.text in alert.text()] == [
        ("Lihat datanya", site.path("/mahasiswa/edit/", nim)),
        ("kembali ke daftar", "/"),
    ]
    assert site.page(site.path("/mahasiswa/edit/", nim)).record_form.values["nim"] == nim
    site.delete(nim)


@pytest.mark.parametrize(("field", "text"), [("nama", "ani"), ("nama", "Ani "), ("alamat", "Klaten\n"), ("alamat", "")])
def test_an_addition_that_differs_from_the_stored_record_is_a_duplicate(site: Site, field: str, text: str) -> None:
    """The record is not called stored if a text differs, even only in letter case or spaces."""
    record = {"nim": "3", "nama": "Ani", "alamat": "Klaten"}
    assert site.post(ADD, record).status_code == 302
    answer = site.post(ADD, {**record, field: text})
    assert answer.status_code == 409
    page = assert_form(site, answer, "Tambah Data Mahasiswa", ADD, ["nim"])
    assert "NIM ini sudah terdaftar atas nama Ani." in reason(page, "nim")
    site.delete("3")


@pytest.mark.parametrize("missing", [["nim"], ["nama"], ["alamat"], ["nim", "alamat"], ["nim", "nama", "alamat"]])
def test_each_missing_field_of_an_add_has_a_message(site: Site, missing: list[str]) -> None:
    """Each field that was not sent has a message with its label, and the other fields keep the typed texts."""
    labels = {"nim": "NIM", "nama": "Nama", "alamat": "Alamat"}
    typed = {
        name: text for name, text in {"nim": "3", "nama": "Ani", "alamat": "Klaten"}.items() if name not in missing
    }
    answer = site.post(ADD, {**typed, "lain": "x"})
    assert answer.status_code == 400
    page = assert_form(site, answer, "Tambah Data Mahasiswa", ADD, missing)
    for field in missing:
        assert reason(page, field) == f"{labels[field]} tidak terkirim. Isi kolom {labels[field]}, lalu simpan lagi."
    assert page.record_form.values == {"nim": "", "nama": "", "alamat": "", **typed}


@pytest.mark.parametrize("field", ["nim", "nama", "alamat"])
@pytest.mark.parametrize("broken", ["%FF", "a%C3", "%ED%A0%80", "%C0%AF", "\xff"])
def test_text_that_is_not_utf8_is_refused(site: Site, field: str, broken: str) -> None:
    """A field that is not UTF-8 is refused, and the form shows its text with replacement characters."""
    sent = {"nim": "3", "nama": "Ani", "alamat": "Klaten", field: broken}
    answer = post_raw(site, ADD, "&".join(f"{name}={value}" for name, value in sent.items()).encode("latin-1"))
    assert answer.status_code == 400
    page = assert_form(site, answer, "Tambah Data Mahasiswa", ADD, [field])
    assert "UTF-8" in reason(page, field)
    others = {name: value for name, value in sent.items() if name != field}
    assert others.items() <= page.record_form.values.items()
    assert "\ufffd" in page.record_form.values[field]


@pytest.mark.parametrize("field", ["nim", "nama", "alamat"])
@pytest.mark.parametrize("second", ["lain", "", "same"])
def test_a_field_that_is_sent_twice_is_refused(site: Site, field: str, second: str) -> None:
    """A field that is sent twice is refused, even if both values are the same."""
    typed = [("nim", "3"), ("nama", "Ani"), ("alamat", "Klaten")]
    again = dict(typed)[field] if second == "same" else second
    answer = site.post(ADD, [*typed, (field, again)])
    assert answer.status_code == 400
    page = assert_form(site, answer, "Tambah Data Mahasiswa", ADD, [field])
    assert "lebih dari sekali" in reason(page, field)
    assert page.record_form.values == dict(typed)


def test_a_percent_encoded_field_name_is_the_same_field(site: Site) -> None:
    """`n%69m` is `nim`, so a form with both has sent the field twice."""
    assert post_raw(site, ADD, b"nim=3&n%69m=4&nama=Ani&alamat=Klaten").status_code == 400


def test_several_wrong_fields_have_a_message_each(site: Site) -> None:
    """A form with two wrong fields has a message at both of them."""
    answer = post_raw(site, ADD, b"nim=3&nama=%FF&alamat=a&alamat=b")
    assert answer.status_code == 400
    page = assert_form(site, answer, "Tambah Data Mahasiswa", ADD, ["nama", "alamat"])
    assert "UTF-8" in reason(page, "nama")
    assert "lebih dari sekali" in reason(page, "alamat")


@pytest.mark.parametrize(
    ("body", "wrong", "words"),
    [
        (b"nama=Ani", "alamat", "Alamat tidak terkirim. Isi kolom Alamat, lalu simpan lagi."),
        (b"alamat=Klaten", "nama", "Nama tidak terkirim. Isi kolom Nama, lalu simpan lagi."),
        (b"nama=Ani%00&alamat=Klaten", "nama", "NUL"),
        (b"nama=Ani&alamat=%FF", "alamat", "UTF-8"),
        (b"nama=Ani&nama=Ani&alamat=Klaten", "nama", "lebih dari sekali"),
    ],
)
def test_a_refused_edit_shows_the_form_again(site: Site, body: bytes, wrong: str, words: str) -> None:
    """The edit form of the same record explains the error and keeps the typed texts, and its nim stays read-only."""
    for nim in ("0001", "20/2"):
        target = "/mahasiswa/edit/" + quote(nim, safe="")
        answer = post_raw(site, target, body)
        assert answer.status_code == 400
        page = assert_form(site, answer, "Edit Data Mahasiswa", target, [wrong])
        assert words in reason(page, wrong)
        form = page.record_form
        assert form.values["nim"] == nim
        assert [field.name for field in form.inputs if field.readonly] == ["nim"]
        if b"nama=Ani&" in body + b"&":
            assert form.values["nama"] == "Ani"


@pytest.mark.parametrize("body", [b"nim=9", b"nim=20%2F2", b"nim=..", b"nim=%FF", b"nim=%00", b"nim=1&nim=2", b"nim"])
def test_an_edit_takes_no_nim_from_the_body(site: Site, body: bytes) -> None:
    """The path selects the record, and its nim does not change for any nim in the body (specification 4.5.1)."""
    answer = post_raw(site, "/mahasiswa/edit/0001", body + b"&nama=Ani&alamat=Klaten")
    assert (answer.status_code, answer.headers["location"]) == (302, "/")
    assert [row[1:] for row in site.list().rows] == [("0001", "Ani", "Klaten"), KEPT[1]]
    site.edit(*KEPT[0])


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        (b"100%zz%", "100%zz%"),
        (b"a+b%2Bc%20d", "a b+c d"),
        (b"a=b", "a=b"),
        (b"%26%3D", "&="),
        (b"%C3%AB", "\u00eb"),
        ("\u00eb".encode(), "\u00eb"),
        (b"", ""),
    ],
)
def test_a_body_is_decoded_once_as_a_browser_encodes_it(site: Site, sent: bytes, stored: str) -> None:
    """A body is percent-decoded once, and a percent sign that encodes nothing stays a percent sign."""
    answer = post_raw(site, "/mahasiswa/edit/0001", b"&&nama=" + sent + b"&&alamat=" + sent + b"&")
    assert answer.status_code == 302
    assert site.page("/mahasiswa/edit/0001").record_form.values == {"nim": "0001", "nama": stored, "alamat": stored}
    site.edit(*KEPT[0])


def reason(page: Page, field: str) -> str:
    """Return the message about a wrong field, which a screen reader reads with the field."""
    (node,) = page.tree.css(f"input[name={field}]")
    (described,) = page.tree.css(f"#{node.attributes['aria-describedby']}")
    return " ".join(described.text().split())


class WithoutReads:
    """A store that writes but cannot be read, as while PostgreSQL's server is restarted between two statements."""

    def __init__(self, store: Store) -> None:
        self.add = store.add
        self.version = store.version
        self.version_now = store.version_now

    async def get(self, nim: str) -> None:
        raise Unavailable(nim)


async def test_a_duplicate_keeps_the_typed_texts_if_the_record_cannot_be_compared(tmp_path: Path) -> None:
    """If the stored record cannot be read, the answer is the form with the message about the NIM."""
    settings = Settings.from_environment({"DATABASE_URL": f"sqlite:///{tmp_path / 'a.db'}"})
    migrate(settings.database_url)
    async with opened(settings.database_url) as store:
        transport = httpx.ASGITransport(create_app(settings, cast("Store", WithoutReads(store)), Limits()))
        async with httpx.AsyncClient(transport=transport, base_url="http://a") as client:
            typed = {"nim": "1", "nama": "Siti", "alamat": "Solo"}
            assert (await client.post("/mahasiswa/add", data=typed)).status_code == 302
            again = await client.post("/mahasiswa/add", data=typed)
    assert again.status_code == 409
    assert 'value="Siti"' in again.text
