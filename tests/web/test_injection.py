"""Injection: hostile texts in every input change neither the structure of a page nor the lines of the log."""

import re
from collections.abc import Iterator
from urllib.parse import quote, quote_from_bytes

import httpx
import pytest
from attack import CLOSE, CONTROL, HOST, assert_log_is_sound, exchange, post, statuses
from harness import Service, Site
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from naughty import NAUGHTY
from selectolax.lexbor import LexborHTMLParser

# Besides the texts that programs often damage: markup, templates, header lines, log lines and terminal escapes.
HOSTILE = [
    *NAUGHTY,
    "</td></tr></table><script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "' onmouseover='alert(1)", "javascript:alert(1)",
    "</title></style></textarea><svg/onload=alert(1)>", "<!--", "-->", "<![CDATA[", "<?php", "&#x3c;script>", "{% raw %}", "#{7*7}",
    "%(name)s", "{0.__class__}", "<!--rows-->", "\x01<b>", "'; DROP TABLE mahasiswa; --", '" OR ""="', "%' OR 1=1 --", "_%\\", "*?[a-z]",
    "a\r\nSet-Cookie: x=y\r\n\r\n<html>", "a\nLocation: http://jahat.example/", "\r\n2026-01-01 00:00:00,000 INFO POST /mahasiswa/add 302 0.1 ms",
    "\x1b[2J\x1b]0;judul\x07", "\x9b31m", "//jahat.example/", "http://jahat.example/", "%0d%0a", "%25", "a" * 5000,
]  # fmt: skip

# Every character that can be stored and shown: all but NUL and the surrogates.
TEXTS = st.one_of(
    st.sampled_from(HOSTILE),
    st.lists(st.sampled_from(HOSTILE) | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=9), max_size=4).map("".join),
)  # fmt: skip
NIMS = TEXTS.map(lambda text: text[:255]).filter(lambda nim: nim not in (".", ".."))
# Request headers. The HTTP server refuses other characters in their values; test_raw.py tests that.
HEADERS = ("User-Agent", "Referer", "Cookie", "Accept", "Accept-Language", "Accept-Encoding", "Range", "X-Forwarded-For", "X-Forwarded-Host",
           "X-Forwarded-Proto", "Forwarded", "X-Original-URL", "X-Rewrite-URL", "X-HTTP-Method-Override", "Origin", "Sec-Fetch-Site",
           "If-None-Match", "If-Modified-Since", "Authorization", "Content-Type", "Expect-CT", "TE", "Via", "X" * 200)  # fmt: skip

attacks = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Start a service. After all tests of the module its log must be sound."""
    with Service(tmp_path_factory.mktemp("injection") / "a.db") as service:
        yield service
        text = service.stderr()
        assert text.count("\n") > 100, "the log has too few lines for the check to mean anything"
        assert_log_is_sound(text)
        assert all(line.startswith("mahasiswa") for line in service.stdout().splitlines())


def structure(html: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return every element of a page in order, with its attributes' names and whether each value is a path."""

    def kind(value: str | None) -> str:
        # A path or an id leads to the same site. Two slashes at the start would lead to another one.
        return "path" if value and re.match("/(?!/)|#[a-z]+$", value) else "text"

    assert "<!--" not in html
    return [
        (node.tag or "", tuple(f"{name}={kind(value)}" for name, value in node.attributes.items()))
        for node in LexborHTMLParser(html).css("*")
        if node.tag != "wbr"  # long words of the list get <wbr>
    ]


def assert_same_structure(answer: httpx.Response, usual: httpx.Response, *, status: int) -> None:
    """Check that an answer has the status, the headers, the elements and the attributes of the usual answer."""
    assert answer.status_code == usual.status_code == status
    assert answer.headers.keys() == usual.headers.keys()
    assert answer.headers["content-security-policy"] == usual.headers["content-security-policy"]
    pages = [structure(page.text) for page in (answer, usual)]
    # Compare names only: the address of a link or a form may contain a nim.
    names = [[(tag, [name.partition("=")[0] for name in attributes]) for tag, attributes in page] for page in pages]
    assert names[0] == names[1]
    for tag, attributes in pages[0]:
        for attribute in attributes:
            if attribute.startswith(("action=", "formaction=")) or (tag == "a" and attribute.startswith("href=")):
                assert attribute.endswith("=path"), (tag, attribute)


@attacks
@given(nim=NIMS.filter(str.strip), nama=TEXTS.filter(str.strip), alamat=TEXTS)  # a blank one has a warning
@example(nim=HOSTILE[-31], nama=HOSTILE[-30], alamat=HOSTILE[-29])
def test_hostile_fields_do_not_change_the_structure_of_a_page(site: Site, nim: str, nama: str, alamat: str) -> None:
    """The list, a search, both forms and all error pages have the same structure for hostile and for plain records."""
    pages = []
    for texts in (("1", "Siti", "Solo"), (nim, nama, alamat)):
        target = site.path("/mahasiswa/edit/", texts[0])
        try:
            assert site.add(*texts).status_code == 302
            assert site.list().rows == [("1", *texts)]
            pages.append([
                (200, site.get("/")),
                (200, site.get("/?urut=nama&per=10")),
                (200, site.get(target)),
                (409, site.add(*texts)),
                (400, site.post("/mahasiswa/add", {"nim": texts[0], "nama": texts[1]})),
                (400, site.post(target, {"alamat": texts[2]})),
                (409, site.post(target, {"nama": texts[1] + "!", "alamat": texts[2], "versi": "x"})),
                (200, site.get("/mahasiswa/impor")),
            ])  # fmt: skip
        finally:
            assert site.delete(texts[0]).status_code == 302
    for (status, usual), (_, answer) in zip(*pages, strict=True):
        assert_same_structure(answer, usual, status=status)


@attacks
@given(name=TEXTS, value=TEXTS)
def test_hostile_queries_do_not_change_the_structure_of_a_page(site: Site, name: str, value: str) -> None:
    """A search with hostile values has the structure of a usual search, and unknown parameters change nothing."""
    name, value = name[:300], value[:300]  # a query has at most 8 KB
    assume(value.replace("\0", "").strip()[:255].strip())
    for parameter in ("urut", "arah", "halaman", "per"):
        answer = site.get(f"/?cari=x&{parameter}={quote(value, safe='')}")
        assert answer.status_code == 200
    usual, answer = (site.get(f"/?cari={quote(text, safe='')}") for text in ("x", value))
    assert_same_structure(answer, usual, status=200)
    assume(name not in ("cari", "urut", "arah", "halaman", "per"))
    assert site.get(f"/?{quote(name, safe='')}={quote(value, safe='')}").content == site.get("/").content


@attacks
@given(text=TEXTS, data=st.binary(max_size=40))
def test_hostile_paths_do_not_change_the_error_page(site: Site, text: str, data: bytes) -> None:
    """The 404 page is the same for any unknown path, and for any unknown record."""
    for path, usual in (("/tidak/", "/tidak-ada"), ("/mahasiswa/edit/", "/mahasiswa/edit/tidak-ada")):
        expected = site.get(usual)
        for encoded in (quote(text, safe=""), quote_from_bytes(data, safe="")):
            answer = site.get(path + encoded)
            assert (answer.status_code, answer.content) == (404, expected.content)
    answer = site.post("/mahasiswa/edit/" + quote_from_bytes(data, safe=""), {"nama": text, "alamat": text})
    assert (answer.status_code, answer.headers["location"], answer.content) == (302, "/", b"")


@attacks
@given(header=st.sampled_from(HEADERS), value=TEXTS)
def test_hostile_request_headers_do_not_change_the_answer(site: Site, header: str, value: str) -> None:
    """No request header is copied into an answer, and only Accept-Encoding and If-None-Match change it."""
    sent = re.sub(r"[\0-\x1f\x7f]", "", value).strip().encode()[:4000]
    for path in ("/mahasiswa/add", "/"):
        answer = site.client.get(path, headers={header.encode(): sent})
        usual = site.get(path)
        if header == "If-None-Match" and sent == b"*":
            assert answer.status_code == 304
            continue
        assert (answer.status_code, answer.content) == (200, usual.content)
        own = ("date", "content-encoding", "content-length", "etag") if header == "Accept-Encoding" else ("date",)
        assert {**answer.headers, **dict.fromkeys(own)} == {**usual.headers, **dict.fromkeys(own)}


@attacks
@given(text=TEXTS, file_name=TEXTS, boundary=st.sampled_from(["x", "a b", "'", "--"]))
def test_hostile_uploads_put_no_script_into_the_preview(site: Site, text: str, file_name: str, boundary: str) -> None:
    """The preview or refusal of a file with a hostile name or hostile cells has no script and no event handler."""
    name = file_name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
    body = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="berkas"; filename="{name}"\r\n\r\n'
        f"NIM;Nama;Alamat\n1;{text};{text}\r\n--{boundary}--\r\n"
    ).encode()
    uploaded = site.send("POST", "/mahasiswa/impor", body, content_type=f'multipart/form-data; boundary="{boundary}"')
    pasted = site.client.post("/mahasiswa/impor", files={"tempel": (None, f"NIM\tNama\tAlamat\n1\t{text}\t{text}")})
    for answer in (uploaded, pasted):
        assert answer.status_code in (200, 400)
        elements = structure(answer.text)
        assert {"script", "img", "svg", "iframe", "object", "base"}.isdisjoint(tag for tag, _ in elements)
        assert not [name for _, names in elements for name in names if name.startswith("on")]


FORGED = "2026-01-01 00:00:00,000 INFO POST /mahasiswa/delete/1 302 0.1 ms"


@pytest.mark.parametrize(
    "between", ["\n", "\r", "\r\n", "\x0b", "\x0c", "\x1b[1A", "\x85", "\u2028", "\u2029", '"\n', "\\n"]
)
def test_no_line_of_the_log_can_be_forged(service: Service, site: Site, between: str) -> None:
    """Line breaks and control characters in a nim or a path are escaped in the log, so they start no new line."""
    nim = f"palsu{between}{FORGED}"
    assert site.add(nim, "Siti", "Solo").status_code == 302
    assert site.add(nim, "Siti", "Solo").status_code == 409
    assert site.delete(nim).status_code == 302
    site.get(f"/palsu{quote(between, safe='')}{quote(FORGED)}")
    exchange(service, f"GET /palsu{between}{FORGED} HTTP/1.1\r\n".encode() + HOST + CLOSE + b"\r\n")
    assert not re.search(f"(?m)^{FORGED}", service.stderr())
    assert not CONTROL.search(service.stderr())


@pytest.mark.parametrize("size", [256, 4_000, 60_000])
def test_lines_of_the_log_have_a_limited_length(service: Service, size: int) -> None:
    """A long nim, path or method makes a line of at most 4,500 bytes, so requests cannot fill the disk quickly."""
    before = len(service.stderr())
    nim = b"".join(b"%%%02x" % (1 + n % 30) for n in range(size // 3))
    assert statuses(exchange(service, post("/mahasiswa/add", b"nim=" + nim + b"&nama=a&alamat=b", CLOSE))) in (
        [400],
        [302],
    )
    assert statuses(exchange(service, b"GET /%b HTTP/1.1\r\n" % nim + HOST + CLOSE + b"\r\n")) == [404]
    assert statuses(exchange(service, b"A" * size + b" / HTTP/1.1\r\n" + HOST + CLOSE + b"\r\n")) == [405]
    assert len(service.stderr()) - before < 3 * 4500
