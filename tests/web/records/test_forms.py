"""Forms that are refused: the message beside each wrong field, bodies that are no form or too large, and nothing is stored."""

from urllib.parse import parse_qsl

import pytest
from form_answers import (
    ADD,
    KEPT,
    assert_error,
    assert_form,
    assert_page,
    parsed,
    post_raw,
    two_records,
)
from harness import URL_ENCODED, Page, Service, Site
from visitor import page_of

# The fixtures, which pytest finds by these names.
__all__ = ["two_records"]

EDIT, BUDI = "/mahasiswa/edit/0001", "/mahasiswa/edit/20%2F2"
BODY = b"nim=3&nama=Ani&alamat=Klaten"
TOO_LARGE = "Data yang dikirim terlalu besar (maksimal 64 KB)."
NO_FORM = "tidak dikirim sebagai formulir"
REST = "&nama=Ani+%26+<Co>&alamat=+%22Klaten%22+"
MISSING = {
    name.lower(): f"{name} tidak terkirim. Isi kolom {name}, lalu simpan lagi."
    for name in ("NIM", "Nama", "Alamat")
}
LOOK = "Periksa kembali, atau buka data dengan NIM ini."

REFUSED: dict[str, dict[str, str]] = {
    "nim=." + REST: {"nim": "tidak boleh"},
    "nim=" + "🎓" * 256 + REST: {"nim": "255 karakter"},
    "nim=12%0034" + REST: {"nim": "NUL"},
    "nim=3&nama=Ani%00&alamat=Klaten": {"nama": "NUL"},
    "nim=20%2F2" + REST: {"nim": f"NIM ini sudah terdaftar atas nama Budi. {LOOK}"},
    "nama=Ani": {"nim": MISSING["nim"], "alamat": MISSING["alamat"]},
    "lain=x": MISSING,
}
REFUSED_EDITS: dict[str, dict[str, str]] = {
    "nama=Ani": {"alamat": MISSING["alamat"]},
    "nama=Ani%00&alamat=Klaten": {"nama": "NUL"},
}


@pytest.mark.parametrize(
    ("target", "body", "wrong"),
    [
        (target, *row)
        for target, rows in ((ADD, REFUSED), (BUDI, REFUSED_EDITS))
        for row in rows.items()
    ],
    ids=lambda value: ascii(value)[:24],
)
def test_a_refused_form_is_shown_again(
    site: Site, target: str, body: str, wrong: dict[str, str]
) -> None:
    """A message stands beside each wrong field, and the typed texts stay. A duplicate links to its record."""
    answer = post_raw(site, target, body.encode())
    is_duplicate = LOOK in wrong.get("nim", "")
    assert answer.status_code == (409 if is_duplicate else 400)
    heading, readonly = (
        ("Tambah Data Mahasiswa", []) if target == ADD else ("Edit Data Mahasiswa", ["nim"])
    )
    page = assert_form(site, answer, heading, target, list(wrong))
    for field, words in wrong.items():
        assert words in reason(page, field)
    body = ("" if target == ADD else "nim=20%2F2&") + body.replace("%00", "\ufffd")
    typed = dict(reversed(parse_qsl(body, keep_blank_values=True)))
    assert page.record_form.values == {
        field: typed.get(field, "") for field in ("nim", "nama", "alamat")
    }
    assert [field["name"] for field in page.record_form.inputs if "readonly" in field] == readonly
    if is_duplicate:
        assert page.target("buka data dengan NIM ini") == site.path(
            "/mahasiswa/edit/", page.record_form.values["nim"]
        )


@pytest.mark.parametrize(
    "body",
    [b"nim=3&nama=%FF&alamat=a", b"nim=3&nama=a&alamat=\xff", b"nim=3&nama=a&nama=b&alamat=a"],
)
@pytest.mark.parametrize("target", [ADD, BUDI])
def test_a_form_that_no_browser_sends_is_refused(site: Site, target: str, body: bytes) -> None:
    """A text that is not UTF-8, and a field that is sent twice, are answered with 400."""
    assert_error(post_raw(site, target, body), site, 400, "Tautan atau data yang dikirim rusak")


def reason(page: Page, field: str) -> str:
    """Return the message about a wrong field, which a screen reader reads with the field."""
    (node,) = page.tree.css(f"input[name={field}]")
    return " ".join(page.texts(f"#{node.attributes['aria-describedby']}")[0].split())


@pytest.mark.parametrize("nim", ["3", "20/3", "é 🎓", "", "a\r\nb"])
def test_the_second_click_on_an_addition_says_that_it_is_stored(site: Site, nim: str) -> None:
    """A record that is stored exactly so gets 409, and a page that links to it. Any other difference is a duplicate."""
    record = (nim, "Ani & <Co>", " Klaten\r\n")
    site.stores(*record)
    answer = site.add(*record)
    assert answer.status_code == 409
    page = assert_page(answer, site)
    assert page.headings == ["Tambah Data Mahasiswa"]
    assert page.texts("[role=alert]") == [
        "Data ini sudah tersimpan. Lihat datanya atau kembali ke daftar."
    ]
    assert page.target("kembali ke daftar") == "/?halaman=1"
    assert site.page(page.target("Lihat datanya")).record_form.values["nim"] == nim
    for nama, alamat in (
        ("ani & <co>", record[2]),
        ("Ani & <Co> ", record[2]),
        (record[1], " Klaten"),
    ):
        page = page_of(site.add(nim, nama, alamat), 409)
        assert "NIM ini sudah terdaftar atas nama Ani & <Co>." in reason(page, "nim")
    site.delete(nim)


NIMS_IN_A_BODY = (
    b"nim=9",
    b"nim=20%2F2",
    b"nim=..",
    b"nim=%FF",
    b"nim=%00",
    b"nim=1&nim=2",
    b"nim",
)
DECODED = {
    b"100%zz%": "100%zz%",
    b"a+b%2Bc%20d": "a b+c d",
    b"a=b": "a=b",
    b"%26%3D": "&=",
    b"": "",
}
DECODED |= dict.fromkeys((b"%C3%AB", "\u00eb".encode()), "\u00eb")


@pytest.mark.parametrize(
    ("body", "text"),
    [
        *((nim + b"&nama=Ani&alamat=Ani", "Ani") for nim in NIMS_IN_A_BODY),
        *((b"&&nama=" + sent + b"&&alamat=" + sent + b"&", text) for sent, text in DECODED.items()),
    ],
)
def test_an_edit_decodes_its_texts_once_and_takes_no_nim_from_the_body(
    site: Site, body: bytes, text: str
) -> None:
    """The path selects the record (specification 4.5.1). A percent sign that encodes nothing stays one."""
    answer = post_raw(site, EDIT, body)
    assert (answer.status_code, answer.headers["location"]) == (302, "/")
    assert site.records == [("0001", text, text), KEPT[1]]
    site.edit(*KEPT[0])


@pytest.mark.parametrize("target", [ADD, EDIT])
@pytest.mark.parametrize(
    "headers",
    [
        *(
            {"content_type": kind}
            for kind in ("multipart/form-data; boundary=x", "text/plain", f"{URL_ENCODED}x", "")
        ),
        {},
        {"content_type": URL_ENCODED, "content_encoding": "gzip"},
    ],
    ids=str,
)
def test_a_body_that_is_no_form_is_refused(
    site: Site, target: str, headers: dict[str, str]
) -> None:
    """A body that is not `application/x-www-form-urlencoded` is answered with 415 (specification 4)."""
    answer = site.send("POST", target, BODY, **headers)
    assert_error(answer, site, 415, NO_FORM)


@pytest.mark.parametrize(
    "kind", [URL_ENCODED.upper(), f"{URL_ENCODED}; charset=UTF-8", f"{URL_ENCODED} ;x"]
)
def test_the_content_type_of_a_form_ignores_case_and_parameters(site: Site, kind: str) -> None:
    assert site.send("POST", ADD, BODY, content_type=kind).status_code == 302
    site.delete("3")


def head(target: str, *headers: str, host: str = "a") -> bytes:
    """Return the first lines of a request that sends a form and closes the connection."""
    lines = [
        f"POST {target} HTTP/1.1",
        f"Host: {host}",
        "Connection: close",
        *headers,
        f"Content-Type: {URL_ENCODED}",
    ]
    return "".join(f"{line}\r\n" for line in lines).encode()


@pytest.mark.parametrize(
    ("target", "host", "expected"),
    [
        (ADD, "a", (413, TOO_LARGE)),
        ("/mahasiswa/impor", "a", (415, NO_FORM)),
        ("/tidak/ada", "a", (404, "Halaman tidak ditemukan")),
        ("/sehat", "a", (405, "tidak dapat dibuka dengan cara tersebut")),
        (ADD, "", (400, "Tautan atau data yang dikirim rusak")),
    ],
)
def test_a_client_that_sends_its_whole_body_first_gets_the_refusal(
    site: Site, service: Service, target: str, host: str, expected: tuple[int, str]
) -> None:
    """The service reads the rest of a refused body, so that the client receives the page instead of a reset."""
    size = 32 << 20
    answer = parsed(
        service.raw(head(target, f"Content-Length: {size}", host=host) + b"\r\n" + bytes(size), 30)
    )
    assert_error(answer, site, expected[0], expected[1])
