"""Forms that are refused: the message beside each wrong field, bodies that are no form or too large, and nothing is stored."""

from collections.abc import Iterator
from urllib.parse import parse_qsl

import pytest
from harness import URL_ENCODED, Page, Service, Site, led_to, page_of
from sockets import CLOSE, post, statuses

from mahasiswa.web.forms import FORM_MAX_BYTES
from mahasiswa.wording import size

KEPT = [("0001", "Siti", "Solo"), ("20/2", "Budi", "Bantul")]
ADD = "/mahasiswa/add"
EDIT, BUDI = "/mahasiswa/edit/0001", "/mahasiswa/edit/20%2F2"
IS_FORM = {"content-type": URL_ENCODED}
BODY = b"nim=3&nama=Ani&alamat=Klaten"
TOO_LARGE = f"Data yang dikirim terlalu besar (maksimal {size(FORM_MAX_BYTES)})."
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
    "nim=20%2F2" + REST: {"nim": f"NIM ini sudah terdaftar atas nama Budi. {LOOK}"},
    "nama=Ani&alamat=": {"nim": MISSING["nim"]},
}
REFUSED_EDITS: dict[str, dict[str, str]] = {
    "nama=Ani": {"alamat": MISSING["alamat"]},
    "nama=Ani%00&alamat=Klaten": {"nama": "NUL"},
}


@pytest.fixture(name="site")
def two_records(site: Site) -> Iterator[Site]:
    """Visit the service. Its list holds exactly the two records before each test, and must hold them after it."""
    for record in KEPT:
        led_to(site.add(*record))
    yield site
    assert site.records == KEPT


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
    answer = site.post(target, content=body, headers=IS_FORM)
    is_duplicate = LOOK in wrong.get("nim", "")
    heading = "Tambah Data Mahasiswa" if target == ADD else "Edit Data Mahasiswa"
    page = page_of(answer, 409 if is_duplicate else 400)
    form = page.form("alamat")
    assert page.texts("h1, h2, h3") == [heading]
    assert form.target == target
    assert form.values("[aria-invalid=true]", "name") == list(wrong)
    assert form.values("[autofocus]", "name") == list(wrong)[:1]
    for field, words in wrong.items():
        assert words in reason(page, field)
    shown = body.replace("%00", "\ufffd")
    typed = dict(parse_qsl(shown, keep_blank_values=True))
    known = {} if target == ADD else {"nim": "20/2"}
    assert form.fields == {"nim": "", "nama": "", "alamat": ""} | typed | known
    assert form.values("[readonly]", "name") == list(known)
    if is_duplicate:
        assert page.target("buka data dengan NIM ini") == BUDI


@pytest.mark.parametrize(
    "body",
    [b"nim=3&nama=%FF&alamat=a", b"nim=3&nama=a&alamat=\xff", b"nim=3&nama=a&nama=b&alamat=a"],
)
@pytest.mark.parametrize("target", [ADD, BUDI])
def test_a_form_that_no_browser_sends_is_refused(site: Site, target: str, body: bytes) -> None:
    """A text that is not UTF-8, and a field that is sent twice, are answered with 400."""
    answer = site.post(target, content=body, headers=IS_FORM)
    assert "Tautan atau data yang dikirim rusak" in page_of(answer, 400).html


def reason(page: Page, field: str) -> str:
    """Return the message about a wrong field, which a screen reader reads with the field."""
    (node,) = page.css(f"input[name={field}]")
    return " ".join(page.texts(f"#{node.attributes['aria-describedby']}")[0].split())


def test_the_second_click_on_an_addition_says_that_it_is_stored(site: Site) -> None:
    """A record that is stored exactly so gets 409, and a page that links to it. Any other difference is a duplicate."""
    nim = "a/\r\nb"
    record = (nim, "Ani & <Co>", " Klaten\r\n")
    led_to(site.add(*record))
    page = page_of(site.add(*record), 409)
    assert page.texts("h1, h2, h3") == ["Tambah Data Mahasiswa"]
    said = "Data ini sudah tersimpan. Lihat datanya atau kembali ke daftar."
    assert page.texts("[role=alert]") == [said]
    assert page.target("kembali ke daftar") == "/?halaman=1"
    assert site.page(page.target("Lihat datanya")).form("alamat").fields["nim"] == nim
    page = page_of(site.add(nim, record[1], " Klaten"), 409)
    assert "NIM ini sudah terdaftar atas nama Ani & <Co>." in reason(page, "nim")
    site.delete(nim)


DECODED = {b"100%zz%": "100%zz%", b"a+b%2Bc%20d": "a b+c d", b"%26%3D": "&=", b"": ""}


@pytest.mark.parametrize(("sent", "text"), DECODED.items())
def test_an_edit_decodes_its_texts_once(site: Site, sent: bytes, text: str) -> None:
    """A percent sign that encodes nothing stays one. A nim in the body is ignored, also a malformed one."""
    body = b"&&nim=%FF&nim=2&nama=" + sent + b"&&alamat=" + sent + b"&"
    answer = site.post(EDIT, content=body, headers=IS_FORM)
    assert (answer.status_code, answer.headers["location"]) == (302, "/")
    stored = ("0001", text, text)
    assert site.records == [stored, KEPT[1]]
    site.edit(*KEPT[0])


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "multipart/form-data; boundary=x"},
        {"content-type": f"{URL_ENCODED}x"},
        {},
        {"content-type": URL_ENCODED, "content-encoding": "gzip"},
    ],
    ids=str,
)
def test_a_body_that_is_no_form_is_refused(site: Site, headers: dict[str, str]) -> None:
    """A body that is not `application/x-www-form-urlencoded` is answered with 415 (specification 4)."""
    assert NO_FORM in page_of(site.post(ADD, content=BODY, headers=headers), 415).html


def test_the_content_type_of_a_form_ignores_case_and_parameters(site: Site) -> None:
    headers = {"content-type": f"{URL_ENCODED.upper()} ;x"}
    assert site.post(ADD, content=BODY, headers=headers).status_code == 302
    site.delete("3")


@pytest.mark.parametrize(
    ("target", "status", "words"),
    [(ADD, 413, TOO_LARGE), ("/tidak/ada", 404, "Halaman tidak ditemukan")],
)
def test_a_client_that_sends_its_whole_body_first_gets_the_refusal(
    service: Service, target: str, status: int, words: str
) -> None:
    """The service reads the rest of a refused body, so that the client receives the page instead of a reset."""
    request = post(target, bytes(32 << 20), CLOSE)
    answer = service.raw(request, 30)
    assert statuses(answer) == [status]
    assert words.encode() in answer
