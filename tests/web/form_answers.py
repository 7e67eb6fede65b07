"""Helpers of the form tests: a service with two records that must not change, and checks of its answers."""

import re
from collections.abc import Iterator

import httpx
import pytest
from harness import URL_ENCODED, Page, Site

KEPT = [("0001", "Siti", "Solo"), ("20/2", "Budi", "Bantul")]
ADD = "/mahasiswa/add"
STYLE_SHEET = ("link[rel~=stylesheet]", "href")


@pytest.fixture(name="site")
def two_records(site: Site) -> Iterator[Site]:
    """Visit the service. Its list holds exactly the two records before each test, and must hold them after it."""
    for record in KEPT:
        site.stores(*record)
    yield site
    assert site.records == KEPT


def post_raw(site: Site, target: str, body: bytes) -> httpx.Response:
    return site.send("POST", target, body, content_type=URL_ENCODED)


def parsed(received: bytes, *, without_body: bool = False) -> httpx.Response:
    """Return the one response in the bytes of a connection. Fail unless it is complete."""
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    assert first.startswith("HTTP/1.1 "), received[:200]
    headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    assert body == b"" if without_body else dict(headers)["content-length"] == str(len(body))
    return httpx.Response(int(first.split()[1]), headers=headers, content=body)


def assert_form(
    site: Site, answer: httpx.Response, heading: str, action: str, wrong: list[str]
) -> Page:
    """Check that the answer is the same form again, that exactly the wrong fields are marked, and the first focused."""
    page = assert_page(answer, site)
    assert page.headings == [heading]
    form = page.record_form
    assert (form.method, form.action) == ("post", action)
    assert form.values("input[type=text]", "name") == ["nim", "nama", "alamat"]
    assert page.values("input[aria-invalid=true]", "name") == wrong
    assert page.values("input[autofocus]", "name") == wrong[:1]
    return page


def assert_error(answer: httpx.Response, site: Site, status: int, words: str) -> None:
    """Check that the answer is a page with this status, this text and a link back to the list."""
    assert answer.status_code == status
    page = assert_page(answer, site)
    assert words in page.css("main.container")[0].text()
    assert page.target("Kembali ke daftar") == "/?halaman=1"


def assert_page(answer: httpx.Response, site: Site) -> Page:
    """Check that the answer is a complete page in the shared layout."""
    assert_headers(answer)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    html = answer.text
    assert re.match(r"<!doctype html>\s*<html lang=\"id\">", html, re.IGNORECASE)
    assert html.rstrip().endswith("</html>")
    page, layout = Page(html, site.origin), site.page(site.path(ADD))
    assert page.texts("head > title") == ["Program Input Data Mahasiswa"]
    assert page.values(*STYLE_SHEET) == layout.values(*STYLE_SHEET) != []
    assert len(page.css("body > main.container")) == 1
    assert len(page.css("h1")) == 1
    return page


def assert_headers(answer: httpx.Response) -> None:
    """Check that the security headers restrict the answer, and that it sets no cookie."""
    policy = answer.headers["content-security-policy"]
    parts = [
        "default-src 'none'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'self'",
    ]
    assert set(parts) <= {part.strip() for part in policy.split(";")}
    assert "'unsafe-inline'" not in policy
    assert "*" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    for about in ("resource", "opener"):
        assert answer.headers[f"cross-origin-{about}-policy"] == "same-origin"
    assert answer.headers["referrer-policy"] in ("same-origin", "no-referrer", "strict-origin")
    assert "set-cookie" not in answer.headers
