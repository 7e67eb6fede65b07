"""Forms and paths as people, programs and broken networks send them: what is refused, how, and that nothing is stored."""

import re
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import product
from urllib.parse import quote

import httpx
import pytest
from harness import URL_ENCODED, Page, Service, Site

KEPT = [("0001", "Siti", "Solo"), ("20/2", "Budi", "Bantul")]
ADD = "/mahasiswa/add"
NO_PAGE = "Halaman tidak ditemukan. Periksa kembali tautannya."
NO_RECORD = "Data mahasiswa tidak ditemukan. Mungkin sudah dihapus atau NIM-nya keliru."
NO_METHOD = "Halaman ini tidak dapat dibuka dengan cara tersebut."
TOO_LARGE = "Data yang dikirim terlalu besar (maksimal 64 KB)."

LIMIT = 64 * 1024


@pytest.fixture(scope="module")
def visitor(service: Service) -> Iterator[Site]:
    """Visit a service of this module's own."""
    with service.site() as site:
        yield site


@pytest.fixture
def site(visitor: Site) -> Iterator[Site]:
    """Visit the service; whatever a test sends, the two records are all there is before and after it."""
    if [row[1:] for row in visitor.list().rows] != KEPT:  # at first, and where the test before this one failed
        for nim in visitor.list().nims:
            visitor.delete(nim)
        for record in KEPT:
            visitor.add(*record)
    yield visitor
    assert [row[1:] for row in visitor.list().rows] == KEPT


# ---- a form that is refused


REFUSED = {
    "a dot": ("nim", ".", "tidak boleh"),
    "two dots": ("nim", "..", "tidak boleh"),
    "256 characters": ("nim", "9" * 256, "255 karakter"),
    "256 emoji": ("nim", "🎓" * 256, "255 karakter"),
    "a NUL in nim": ("nim", "12\x0034", "NUL"),
    "a NUL in nama": ("nama", "Ani\0", "NUL"),
    "a NUL in alamat": ("alamat", "\0", "NUL"),
    "a nim that exists": ("nim", "0001", "NIM ini sudah terdaftar. Periksa kembali, atau buka data dengan NIM ini."),
}


@pytest.mark.parametrize(("field", "value", "words"), REFUSED.values(), ids=REFUSED)
def test_a_refused_add_shows_the_form_again(site: Site, field: str, value: str, words: str) -> None:
    """Beside the field stands what is wrong; all that was typed is kept; nothing is stored."""
    typed = {"nim": "3", "nama": "Ani & <Co>", "alamat": ' "Klaten" ', field: value}
    answer = site.post(ADD, typed)
    assert answer.status_code == (409 if value == "0001" else 400)
    page = assert_form(site, answer, "Tambah Data Mahasiswa", ADD, [field])
    assert words in reason(page, field)
    shown = {name: text.replace("\0", "\ufffd") for name, text in typed.items()}
    assert page.record_form.values == shown


def test_a_duplicate_links_to_the_record(site: Site) -> None:
    """The message leads to the page of the record that has the nim, whatever the nim is like."""
    for nim, path in [("0001", "/mahasiswa/edit/0001"), ("20/2", "/mahasiswa/edit/20%2F2")]:
        page = Page(site.add(nim, "Ani", "Klaten").text, site.origin)
        (link,) = [link for link in page.links if link.text == "buka data dengan NIM ini"]
        assert link.href == path
        assert site.page(link.target).record_form.values["nim"] == nim


@pytest.mark.parametrize("missing", [["nim"], ["nama"], ["alamat"], ["nim", "alamat"], ["nim", "nama", "alamat"]])
def test_a_missing_field_is_named(site: Site, missing: list[str]) -> None:
    """Each field that was not sent has its own message, by its label; the others keep what was typed."""
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
    """Bytes that are no text are not guessed at; what can be read of them is shown."""
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
    """Which of the two was meant cannot be known, even where they are the same."""
    typed = [("nim", "3"), ("nama", "Ani"), ("alamat", "Klaten")]
    again = dict(typed)[field] if second == "same" else second
    answer = site.post(ADD, [*typed, (field, again)])
    assert answer.status_code == 400
    page = assert_form(site, answer, "Tambah Data Mahasiswa", ADD, [field])
    assert "lebih dari sekali" in reason(page, field)
    assert page.record_form.values == dict(typed)


def test_a_field_name_in_disguise_is_the_same_field(site: Site) -> None:
    """`n%69m` is `nim`: twice is twice, however it is written."""
    assert post_raw(site, ADD, b"nim=3&n%69m=4&nama=Ani&alamat=Klaten").status_code == 400


def test_several_wrong_fields_have_a_message_each(site: Site) -> None:
    """What is wrong is said in one go; the first wrong field has the focus."""
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
    """The same, on the edit page of the same record, whose nim stays read-only."""
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
    """Whatever the body says of a nim, the path selects the record, and its nim stays (specification 4.5.1)."""
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
    """Percent signs that encode nothing stand for themselves, as the URL standard has it."""
    answer = post_raw(site, "/mahasiswa/edit/0001", b"&&nama=" + sent + b"&&alamat=" + sent + b"&")
    assert answer.status_code == 302
    assert site.page("/mahasiswa/edit/0001").record_form.values == {"nim": "0001", "nama": stored, "alamat": stored}
    site.edit(*KEPT[0])


# ---- a body that is no form


@pytest.mark.parametrize("target", [ADD, "/mahasiswa/edit/0001"])
@pytest.mark.parametrize(
    "headers",
    [
        {"content_type": "multipart/form-data; boundary=x"},
        {"content_type": "application/json"},
        {"content_type": "text/plain"},
        {"content_type": "application/x-www-form-urlencodedx"},
        {"content_type": ""},
        {},
        {"content_type": URL_ENCODED, "content_encoding": "gzip"},
    ],
    ids=str,
)
def test_a_body_that_is_no_form_is_refused(site: Site, target: str, headers: dict[str, str]) -> None:
    """Only `application/x-www-form-urlencoded` is a form (specification 4)."""
    answer = site.send("POST", target, b"nim=3&nama=Ani&alamat=Klaten", **headers)
    assert answer.status_code == 415
    assert_error(answer, site, "tidak dikirim sebagai formulir")


@pytest.mark.parametrize("content_type", [URL_ENCODED.upper(), f"{URL_ENCODED}; charset=UTF-8", f"{URL_ENCODED} ;x"])
def test_a_form_is_a_form_however_it_is_written(site: Site, content_type: str) -> None:
    """A media type has no case, and may have parameters."""
    assert site.send("POST", ADD, b"nim=3&nama=Ani&alamat=Klaten", content_type=content_type).status_code == 302
    site.delete("3")


def test_a_form_of_64_kib_is_taken(site: Site) -> None:
    """The bound is on the whole body, to the byte."""
    body = b"nama=Siti&alamat="
    assert post_raw(site, "/mahasiswa/edit/0001", body + b"a" * (LIMIT - len(body))).status_code == 302
    assert len(site.page("/mahasiswa/edit/0001").record_form.values["alamat"]) == LIMIT - len(body)
    site.edit(*KEPT[0])


@pytest.mark.parametrize("target", [ADD, "/mahasiswa/edit/0001"])
@pytest.mark.parametrize("size", [LIMIT + 1, 10 * LIMIT])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_over_64_kib_is_refused(site: Site, service: Service, target: str, size: int, *, chunked: bool) -> None:
    """Whether its length is announced or not, the page that says so arrives."""
    body = b"nim=3&nama=Ani&alamat=".ljust(size, b"a")
    head = f"POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {URL_ENCODED}\r\n".encode()
    if chunked:
        pieces = [body[start : start + 1000] for start in range(0, size, 1000)]
        sent = b"Transfer-Encoding: chunked\r\n\r\n"
        sent += b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    else:
        sent = b"Content-Length: %d\r\n\r\n" % size + body
    answer = parsed(service.raw(head + sent))
    assert answer.status_code == 413
    assert_error(answer, site, TOO_LARGE)


def test_a_body_over_64_kib_is_refused_when_it_is_announced(site: Site, service: Service) -> None:
    """Nobody has to send it first."""
    head = f"POST {ADD} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {URL_ENCODED}\r\n".encode()
    for length in (b"65537", b"1" + b"0" * 18):
        answer = parsed(service.raw(head + b"Content-Length: " + length + b"\r\n\r\n"))
        assert answer.status_code == 413
        assert_error(answer, site, TOO_LARGE)


@pytest.mark.parametrize(
    ("target", "host", "expected"),
    [
        (ADD, "a", (413, TOO_LARGE)),
        ("/mahasiswa/impor", "a", (413, "melebihi 16 MB")),
        ("/tidak/ada", "a", (404, "Halaman tidak ditemukan")),
        ("/sehat", "a", (405, "tidak dapat dibuka dengan cara tersebut")),
        (ADD, "", (400, "Alamat atau data yang dikirim rusak")),
    ],
)
def test_who_sends_much_before_reading_still_gets_the_page(
    site: Site, service: Service, target: str, host: str, expected: tuple[int, str]
) -> None:
    """As browsers and proxies do: what is sent after the refusal is read, so that no reset takes the answer away."""
    size = 32 << 20
    head = f"POST {target} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {URL_ENCODED}\r\nContent-Length: {size}\r\n"
    answer = parsed(service.raw(f"{head}Connection: close\r\n\r\n".encode() + bytes(size), 30))
    assert answer.status_code == expected[0]
    assert_error(answer, site, expected[1])


def test_the_first_content_type_counts(site: Site, service: Service) -> None:
    """As for everyone else who looks at a request on its way."""
    head = f"POST {ADD} HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Type: {URL_ENCODED}\r\n"
    answer = parsed(service.raw(f"{head}Connection: close\r\nContent-Length: 5\r\n\r\nnim=3".encode()))
    assert answer.status_code == 415
    assert_error(answer, site, "tidak dikirim sebagai formulir")


def test_a_body_that_does_not_come_is_not_waited_for(site: Site, service: Service) -> None:
    """Announced and not sent, half sent, or sent a byte at a time: 408 after ten seconds, while others are answered."""
    heads = [
        f"POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {URL_ENCODED}\r\n".encode()
        for target in (ADD, "/mahasiswa/edit/0001")
    ]
    starts = [b"Content-Length: 99\r\n\r\n", b"Content-Length: 99\r\n\r\nnim=3&nama=Ani&alamat=Klaten"]
    starts += [b"Transfer-Encoding: chunked\r\n\r\n5\r\nnim=3\r\n"]
    with ExitStack() as stack:
        connections = []
        for head, start in product(heads, starts):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", service.port), 20))
            connection.sendall(head + start)
            connections.append(connection)
        dripping = connections[0]
        began = time.monotonic()
        dripping.settimeout(1)
        while True:  # a byte a second does not buy more time
            assert time.monotonic() - began < 15
            try:
                received = dripping.recv(65536)
                break
            except TimeoutError:
                dripping.sendall(b"a")
                assert site.get("/").status_code == 200
        took = time.monotonic() - began
        assert 8 < took < 13
        answers = [received + read_all(dripping)] + [read_all(connection) for connection in connections[1:]]
    for data in answers:
        answer = parsed(data)
        assert answer.status_code == 408
        assert_error(answer, site, "Data tidak diterima lengkap pada waktunya, jadi belum disimpan.")


def test_a_client_that_goes_away_stores_nothing(site: Site, service: Service) -> None:
    """Half a form is no form."""
    head = f"POST {ADD} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {URL_ENCODED}\r\n".encode()
    for end in (
        b"Content-Length: 99\r\n\r\nnim=3&nama=Ani&alamat=Klaten",
        b"Transfer-Encoding: chunked\r\n\r\n5\r\nnim=3",
    ):
        with socket.create_connection(("127.0.0.1", service.port)) as connection:
            connection.sendall(head + end)
    assert site.get("/").status_code == 200


# ---- delete


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (None, {}),
        (b"", {"content_type": "text/plain"}),
        (b"", {"content_type": URL_ENCODED}),
        (b"nim=0001", {"content_type": URL_ENCODED}),
        (b"{}", {"content_type": "application/json"}),
        (b"\xff\0", {}),
    ],
    ids=str,
)
def test_a_delete_needs_no_body(site: Site, body: bytes | None, headers: dict[str, str]) -> None:
    """The path says all: no body, no content type, and any that come are no matter."""
    site.add("3", "Ani", "Klaten")
    answer = site.send("POST", "/mahasiswa/delete/3", body, **headers)
    assert (answer.status_code, answer.headers["location"], answer.content) == (302, "/", b"")


def test_a_delete_does_not_wait_for_a_body(site: Site, service: Service) -> None:
    """One that is announced and never sent holds nothing up."""
    site.add("3", "Ani", "Klaten")
    with socket.create_connection(("127.0.0.1", service.port), 5) as connection:
        connection.sendall(b"POST /mahasiswa/delete/3 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 302 ")


# ---- paths


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT"])
@pytest.mark.parametrize(
    "path", ["edit/100%", "edit/%zz", "edit/%2", "edit/a%g0b", "delete/%", "delete/0001%0", "%6", "add%"]
)
def test_a_broken_escape_in_a_path_is_a_bad_request(site: Site, path: str, method: str) -> None:
    """A path that cannot be decoded is nobody's: 400, and a page."""
    answer = site.send(method, f"/mahasiswa/{path}", content_type=URL_ENCODED)
    assert answer.status_code == 400
    if method != "HEAD":
        assert_error(answer, site, "Alamat atau data yang dikirim rusak.")


@pytest.mark.parametrize(
    "segment",
    [
        ".",
        "..",
        "%2e",
        "%2E%2e",
        "9" * 256,
        "%F0%9F%8E%93" * 256,
        "%00",
        "0001%00",
        "%000001",
        "%FF",
        "0001%FF",
        "%ED%A0%80",
        "nobody",
        "0001%20",
        "00%30%31%20",
        "20%252F2",
        "%EF%BB%BF0001",
    ],
)
def test_a_path_that_is_no_records_matches_nothing(site: Site, segment: str) -> None:
    """Edit and delete redirect whether or not there was a record (specification 4.5.2, 4.6.2); its page is a 404."""
    edit, delete = f"/mahasiswa/edit/{segment}", f"/mahasiswa/delete/{segment}"
    for answer in (site.post(edit, {"nama": "Ani", "alamat": "Klaten"}), site.post(edit), site.post(delete)):
        assert (answer.status_code, answer.headers["location"], answer.content) == (302, "/", b"")
    answer = site.get(edit)
    assert answer.status_code == 404
    assert_error(answer, site, NO_RECORD)


def test_a_path_is_decoded_once(site: Site) -> None:
    """Every way to write the same nim in a path is that nim, and `%25` is a percent sign."""
    for segment in ("20%2F2", "20%2f2", "%32%30%2F%32"):
        assert site.page(f"/mahasiswa/edit/{segment}").record_form.values["nim"] == "20/2"
    site.add("20%2F2", "Ani", "Klaten")
    assert site.page("/mahasiswa/edit/20%252F2").record_form.values["nim"] == "20%2F2"
    assert site.post("/mahasiswa/delete/20%252F2").status_code == 302


ALLOWED = {
    "/": "GET, HEAD",
    "/mahasiswa/add": "GET, HEAD, POST",
    "/mahasiswa/edit/0001": "GET, HEAD, POST",
    "/mahasiswa/edit/20%2F2": "GET, HEAD, POST",
    "/mahasiswa/edit/": "GET, HEAD, POST",
    "/mahasiswa/delete/0001": "POST",
    "/mahasiswa/delete/": "POST",
}


@pytest.mark.parametrize(
    "method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY", "get"]
)
@pytest.mark.parametrize(("path", "allowed"), ALLOWED.items())
def test_another_method_is_not_allowed(service: Service, site: Site, path: str, allowed: str, method: str) -> None:
    """A known path with a method that it has not: 405, and `Allow` says which would do."""
    if method in allowed.split(", "):
        return
    received = service.raw(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    answer = parsed(received, without_body=method == "HEAD")
    assert answer.status_code == 405
    assert sorted(answer.headers["allow"].split(", ")) == sorted(allowed.split(", "))
    if method != "HEAD":
        assert_error(answer, site, NO_METHOD)


@pytest.mark.parametrize(
    "target", ["/", "/mahasiswa/add", "/mahasiswa/edit/0001", "/mahasiswa/edit/nobody", "/nowhere"]
)
def test_head_is_get_without_a_body(site: Site, service: Service, target: str) -> None:
    """The same status and the same headers, and not a byte after them."""
    get, head = (site.send(method, target, accept_encoding="identity") for method in ("GET", "HEAD"))
    assert head.status_code == get.status_code
    for name in get.headers.keys() - {"date"}:
        assert head.headers.get(name) == get.headers[name]
    assert int(head.headers["content-length"]) == len(get.content) > 0
    received = service.raw(f"HEAD {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    assert received.partition(b"\r\n\r\n")[2] == b""


@pytest.mark.parametrize(
    "target",
    ["/mahasiswa/add/", "/mahasiswa/", "/mahasiswa", "/mahasiswa/edit", "/mahasiswa/delete", "/mahasiswa/edit/0001/", "/mahasiswa/delete/0001/", "/mahasiswa/edit/20/2", "/mahasiswa/Add", "/MAHASISWA/add", "//", "//mahasiswa/add", "/mahasiswa//add", "/mahasiswa%2Fadd", "/%6dahasiswa/add", "/./", "/index.html", "/favicon.ico", "/mahasiswa/edit/a/../0001", "/mahasiswa/edit/0001/%2e%2e/"],
)  # fmt: skip
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_any_other_path_is_not_there(site: Site, target: str, method: str) -> None:
    """A path is what it is, to the byte: no slash is added, taken away or merged, and nothing is redirected."""
    answer = site.send(
        method, target, b"nama=Ani&alamat=Klaten" if method == "POST" else None, content_type=URL_ENCODED
    )
    assert answer.status_code == 404
    assert_error(answer, site, NO_PAGE)


@pytest.mark.parametrize("target", ["/?a=b", "/mahasiswa/add?nim=3", "/mahasiswa/edit/0001?x=%zz"])
def test_a_query_changes_nothing(site: Site, target: str) -> None:
    """No route reads a query; a link that someone has added one to still works."""
    path = target.partition("?")[0]
    assert site.get(target).text == site.get(path).text


# ---- every answer


def test_every_answer_has_the_headers(site: Site) -> None:
    """Pages, forms, errors and redirects alike are strict about what a browser may do with them."""
    answers = [
        site.get(target) for target in ("/", ADD, "/mahasiswa/edit/0001", "/mahasiswa/edit/nobody", "/nowhere", "/%")
    ]
    answers += [site.post("/mahasiswa/delete/nobody"), site.post(ADD), site.send("PUT", "/")]
    answers += [site.send("HEAD", "/"), site.send("POST", ADD, b"x", content_type="text/plain")]
    assert {answer.status_code for answer in answers} == {200, 302, 400, 404, 405, 415}
    for answer in answers:
        assert_headers(answer)


def post_raw(site: Site, target: str, body: bytes) -> httpx.Response:
    """Send a form's body exactly as it is."""
    return site.send("POST", target, body, content_type=URL_ENCODED)


def parsed(received: bytes, *, without_body: bool = False) -> httpx.Response:
    """Read one answer, which must be complete, from the bytes of a connection."""
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    assert first.startswith("HTTP/1.1 "), received[:200]
    headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    assert body == b"" if without_body else dict(headers)["content-length"] == str(len(body))
    return httpx.Response(int(first.split()[1]), headers=headers, content=body)


def read_all(connection: socket.socket) -> bytes:
    """Read until the end of the connection, or until nothing more comes."""
    received = b""
    connection.settimeout(5)
    try:
        while part := connection.recv(65536):
            received += part
    except TimeoutError:
        pass
    return received


def assert_headers(answer: httpx.Response) -> None:
    """The answer says strictly what a browser may do with it."""
    policy = {
        name: sources
        for name, *sources in (part.split() for part in answer.headers["content-security-policy"].split(";"))
    }
    assert policy["default-src"] == ["'none'"]
    assert policy["frame-ancestors"] == ["'none'"]
    assert policy["base-uri"] == ["'none'"]
    assert policy["form-action"] == ["'self'"]
    assert "'unsafe-inline'" not in answer.headers["content-security-policy"]
    assert "*" not in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] in ("same-origin", "no-referrer", "strict-origin")
    assert "set-cookie" not in answer.headers


def assert_page(answer: httpx.Response, site: Site) -> Page:
    """The answer is a complete page of the shared layout."""
    assert_headers(answer)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    html = answer.text
    assert re.match(r"<!doctype html>\s*<html lang=\"id\">", html, re.IGNORECASE)
    assert html.rstrip().endswith("</html>")
    page, layout = Page(html, site.origin), site.page(ADD)
    assert page.title == "Program Input Data Mahasiswa"
    assert page.stylesheets == layout.stylesheets != []
    assert len(page.tree.css("body > .container")) == 1
    assert len(page.tree.css("h1")) == 1
    return page


def assert_error(answer: httpx.Response, site: Site, words: str) -> None:
    """The answer is a page that says what happened, in these words, and leads back to the list."""
    page = assert_page(answer, site)
    assert words in page.tree.css(".container")[0].text()
    assert [link.target for link in page.links if link.text == "Kembali ke daftar"] == ["/"]


def assert_form(site: Site, answer: httpx.Response, heading: str, action: str, wrong: list[str]) -> Page:
    """The answer is the same form again, each wrong field marked, the first with the focus, and no other."""
    page = assert_page(answer, site)
    assert page.headings == [heading]
    form = page.record_form
    assert (form.method, form.action) == ("post", action)
    assert [field.name for field in form.text_inputs] == ["nim", "nama", "alamat"]
    inputs = page.tree.css("input")
    assert [node.attributes["name"] for node in inputs if node.attributes.get("aria-invalid") == "true"] == wrong
    assert [node.attributes["name"] for node in inputs if "autofocus" in node.attributes] == wrong[:1]
    return page


def reason(page: Page, field: str) -> str:
    """Return what stands beside a wrong field, as a screen reader reads it with the field."""
    (node,) = page.tree.css(f"input[name={field}]")
    (described,) = page.tree.css(f"#{node.attributes['aria-describedby']}")
    return " ".join(described.text().split())
