"""Helpers of the form tests: a service with two records that must not change, and checks of its answers."""

import re
from collections.abc import Iterator

import httpx
import pytest
from harness import Page, Site

KEPT = [("0001", "Siti", "Solo"), ("20/2", "Budi", "Bantul")]
ADD = "/mahasiswa/add"
STYLE_SHEET = ("link[rel~=stylesheet]", "href")
POLICY = ("default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'")
RESTRICTED = {
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}


@pytest.fixture(name="site")
def two_records(site: Site) -> Iterator[Site]:
    """Visit the service. Its list holds exactly the two records before each test, and must hold them after it."""
    for record in KEPT:
        site.stores(*record)
    yield site
    assert site.records == KEPT


def assert_error(answer: httpx.Response, site: Site, status: int, words: str) -> None:
    """Check that the answer is a page with this status, this text and a link back to the list."""
    page = assert_page(answer, site)
    assert answer.status_code == status
    assert words in page.css("main.container")[0].text()
    assert page.target("Kembali ke daftar") == "/?halaman=1"


def assert_page(answer: httpx.Response, site: Site) -> Page:
    """Check that the answer is a complete page in the shared layout."""
    assert_headers(answer)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert re.match(r"(?is)<!doctype html>\s*<html lang=\"id\">.*</html>\s*$", answer.text)
    page, layout = Page(answer.text, site.origin), site.page(site.path(ADD))
    assert page.texts("head > title") == ["Program Input Data Mahasiswa"]
    assert page.values(*STYLE_SHEET) == layout.values(*STYLE_SHEET) != []
    assert len(page.css("body > main.container")) == len(page.css("h1")) == 1
    return page


def assert_headers(answer: httpx.Response) -> None:
    """Check that the security headers restrict the answer, and that it sets no cookie."""
    headers = answer.headers
    policy = headers["content-security-policy"]
    assert all(part in policy.split("; ") for part in POLICY)
    assert not re.search(r"'unsafe-inline'|\*", policy)
    assert RESTRICTED.items() <= headers.items()
    assert headers["referrer-policy"] in ("same-origin", "no-referrer", "strict-origin")
    assert "set-cookie" not in headers
