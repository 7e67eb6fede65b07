"""Forms that are refused: the status, the message beside each wrong field, and that nothing is stored."""

from pathlib import Path
from typing import Self, cast
from urllib.parse import parse_qsl, quote

import httpx
import pytest
from form_answers import ADD, KEPT, assert_form, assert_page, post_raw, two_records
from harness import Page, Site
from stores import opened

from mahasiswa.settings import Settings
from mahasiswa.store import Store, migrate
from mahasiswa.store.errors import Unavailable
from mahasiswa.web.app import create_app
from mahasiswa.work import Kind, Limits

# The fixtures, which pytest finds by these names.
__all__ = ["two_records"]

REST = "&nama=Ani+%26+<Co>&alamat=+%22Klaten%22+"
MISSING = {
    name.lower(): f"{name} tidak terkirim. Isi kolom {name}, lalu simpan lagi." for name in ("NIM", "Nama", "Alamat")
}
TWICE = "lebih dari sekali"

REFUSED: dict[str, dict[str, str]] = {
    "nim=." + REST: {"nim": "tidak boleh"},
    "nim=.." + REST: {"nim": "tidak boleh"},
    "nim=" + "9" * 256 + REST: {"nim": "255 karakter"},
    "nim=" + "🎓" * 256 + REST: {"nim": "255 karakter"},
    "nim=12%0034" + REST: {"nim": "NUL"},
    "nim=3&nama=Ani%00&alamat=Klaten": {"nama": "NUL"},
    "nim=3&nama=Ani&alamat=%00": {"alamat": "NUL"},
    "nim=0001" + REST: {
        "nim": "NIM ini sudah terdaftar atas nama Siti. Periksa kembali, atau buka data dengan NIM ini."
    },
    "nama=Ani&alamat=Klaten&lain=x": {"nim": MISSING["nim"]},
    "nim=3&alamat=Klaten": {"nama": MISSING["nama"]},
    "nama=Ani": {"nim": MISSING["nim"], "alamat": MISSING["alamat"]},
    "lain=x": MISSING,
    "nim=%FF" + REST: {"nim": "UTF-8"},
    "nim=3&nama=a%C3&alamat=Klaten": {"nama": "UTF-8"},
    "nim=3&nama=Ani&alamat=%ED%A0%80": {"alamat": "UTF-8"},
    "nim=3&nama=Ani&alamat=%C0%AF": {"alamat": "UTF-8"},
    "nim=3&nim=3" + REST: {"nim": TWICE},
    "nim=3&n%69m=4" + REST: {"nim": TWICE},
    "nim=3&nama=Ani&alamat=Klaten&nama=": {"nama": TWICE},
    "nim=3&nama=%FF&alamat=a&alamat=b": {"nama": "UTF-8", "alamat": TWICE},
}


@pytest.mark.parametrize(("body", "wrong"), REFUSED.items(), ids=lambda value: str(value)[:24])
def test_a_refused_add_shows_the_form_again(site: Site, body: str, wrong: dict[str, str]) -> None:
    """The form has a message beside each wrong field and keeps the typed texts, and nothing is stored."""
    answer = post_raw(site, ADD, body.encode())
    assert answer.status_code == (409 if "nim=0001" in body else 400)
    page = assert_form(site, answer, "Tambah Data Mahasiswa", ADD, list(wrong))
    for field, words in wrong.items():
        assert words in reason(page, field)
    typed = dict(reversed(parse_qsl(body.replace("%00", "\ufffd"), keep_blank_values=True)))
    assert page.record_form.values == {field: typed.get(field, "") for field in ("nim", "nama", "alamat")}


def test_a_raw_byte_that_is_not_utf8_is_refused(site: Site) -> None:
    """It is shown as a replacement character, as if it were percent-encoded."""
    answer = post_raw(site, ADD, b"nim=3&nama=Ani&alamat=\xff")
    page = assert_form(site, answer, "Tambah Data Mahasiswa", ADD, ["alamat"])
    assert page.record_form.values == {"nim": "3", "nama": "Ani", "alamat": "\ufffd"}


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
        ("kembali ke daftar", "/?halaman=1"),
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

    def reader(self, _kind: Kind) -> Self:
        return self

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
