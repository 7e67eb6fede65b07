"""Paths and methods: which record a path selects, the answers 400, 404 and 405, and the layout and the headers of all answers."""

import re

import httpx
import pytest
from harness import URL_ENCODED, Service, Site, led_to, page_of
from web.records.test_forms import two_records

# The fixtures, which pytest finds by these names.
__all__ = ["two_records"]

ALLOWED = {
    "/": "GET, HEAD", "/mahasiswa/add": "GET, HEAD, POST", "/mahasiswa/edit/0001": "GET, HEAD, POST",
    "/mahasiswa/edit/20%2F2": "GET, HEAD, POST", "/mahasiswa/edit/": "GET, HEAD, POST",
    "/mahasiswa/delete/0001": "POST", "/mahasiswa/delete/": "POST", "/mahasiswa/riwayat/perubahan/1": "POST",
}  # fmt: skip


POLICY = {"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"}
RESTRICTED = {
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
STYLE_SHEET = ("link[rel~=stylesheet]", "href")


def assert_headers(answer: httpx.Response) -> None:
    """Check that the security headers restrict the answer, and that it sets no cookie."""
    headers = answer.headers
    policy = headers["content-security-policy"]
    assert set(policy.split("; ")) >= POLICY
    assert not re.search(r"'unsafe-inline'|\*", policy)
    assert RESTRICTED.items() <= headers.items()
    assert headers["referrer-policy"] in ("same-origin", "no-referrer", "strict-origin")
    assert "set-cookie" not in headers


PAGES = {
    "/": 200, "/mahasiswa/edit/0001": 200, "/mahasiswa/riwayat": 200, "/sehat": 200,
    "/%": 400, "/nowhere": 404, "/mahasiswa/delete/0001": 405,
}  # fmt: skip


@pytest.mark.parametrize(("target", "status"), PAGES.items())
def test_every_page_has_the_shared_layout_and_restricting_headers(
    site: Site, target: str, status: int
) -> None:
    """An error has them too, and a link back to the list."""
    answer = site.get(target)
    page = page_of(answer, status)
    layout = site.page("/mahasiswa/add")
    assert_headers(answer)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert re.match(r"(?is)<!doctype html>\s*<html lang=\"id\">.*</html>\s*$", answer.text)
    assert page.texts("head > title") == ["Program Input Data Mahasiswa"]
    assert page.values(*STYLE_SHEET) == layout.values(*STYLE_SHEET) != []
    assert len(page.css("body > main.container")) == len(page.css("h1")) == 1
    if status >= 400:
        assert page.target("Kembali ke daftar") == "/?halaman=1"


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT"])
def test_a_broken_escape_in_a_path_is_a_bad_request(site: Site, method: str) -> None:
    for path in (
        "edit/100%",
        "edit/%zz",
        "edit/%2",
        "edit/a%g0b",
        "delete/%",
        "delete/0001%0",
        "%6",
        "add%",
    ):
        exact = {"target": f"/mahasiswa/{path}".encode()}
        headers = {"content-type": URL_ENCODED}
        answer = site.request(method, "/", headers=headers, extensions=exact)
        if method != "HEAD":
            assert "Tautan atau data yang dikirim rusak." in page_of(answer, 400).html


@pytest.mark.parametrize(
    "segment",
    [".", "..", "%2e", "%2E%2e", "9" * 256, "%F0%9F%8E%93" * 256, "%00", "0001%00", "%000001", "%FF", "0001%FF", "%ED%A0%80",
     "nobody", "0001%20", "00%30%31%20", "20%252F2", "%EF%BB%BF0001"],
)  # fmt: skip
def test_a_path_without_a_record_redirects_a_post_and_is_404_for_a_get(
    site: Site, segment: str
) -> None:
    """Edit and delete redirect even if there is no such record (specification 4.5.2, 4.6.2); its edit page is a 404."""
    edit, delete = (
        {"target": f"/mahasiswa/{name}/{segment}".encode()} for name in ("edit", "delete")
    )
    for answer in (
        site.post("/", data={"nama": "Ani", "alamat": "Klaten"}, extensions=edit),
        site.post("/", extensions=edit),
        site.post("/", extensions=delete),
    ):
        assert led_to(answer) == "/"
    said = "Data mahasiswa tidak ditemukan. Mungkin sudah dihapus atau NIM-nya keliru."
    assert said in page_of(site.get("/", extensions=edit), 404).html


@pytest.mark.parametrize(
    "method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY"]
)
def test_another_method_of_a_known_path_is_405(site: Site, method: str) -> None:
    """`Allow` lists the methods of the path."""
    for path, allowed in ALLOWED.items():
        if method not in allowed.split(", "):
            answer = site.request(method, path)
            found = ", ".join(sorted(answer.headers["allow"].split(", ")))
            assert (answer.status_code, found) == (405, allowed), path
            if method != "HEAD":
                said = "Halaman ini tidak dapat dibuka dengan cara tersebut."
                assert said in page_of(answer, 405).html


@pytest.mark.parametrize(
    "target", ["/", "/mahasiswa/add", "/mahasiswa/edit/0001", "/mahasiswa/edit/nobody", "/nowhere"]
)
def test_head_is_get_without_a_body(site: Site, service: Service, target: str) -> None:
    get, head = (
        site.request(method, target, headers={"accept-encoding": "identity"})
        for method in ("GET", "HEAD")
    )
    assert head.status_code == get.status_code
    own = {"date": "", "x-request-id": ""}
    assert {**head.headers, **own} == {**get.headers, **own}
    assert int(head.headers["content-length"]) == len(get.content) > 0
    received = service.raw(f"HEAD {target} HTTP/1.0\r\n\r\n".encode())
    assert received.partition(b"\r\n\r\n")[2] == b""


@pytest.mark.parametrize(
    "target",
    ["/mahasiswa/add/", "/mahasiswa", "/mahasiswa/edit", "/mahasiswa/edit/0001/", "/mahasiswa/edit/20/2", "/mahasiswa/Add", "//", "//mahasiswa/add", "/mahasiswa%2Fadd", "/%6dahasiswa/add", "/./", "/metrics", "/mahasiswa/edit/a/../0001", "/mahasiswa/edit/0001/%2e%2e/"],
)  # fmt: skip
def test_a_similar_path_is_404(site: Site, target: str) -> None:
    """Paths are compared byte by byte: no slash is added, removed or merged, and nothing is redirected."""
    exact = {"target": target.encode()}
    texts = {"nama": "Ani", "alamat": "Klaten"}
    for answer in (
        site.get("/", extensions=exact),
        site.post("/", data=texts, extensions=exact),
    ):
        assert "Periksa kembali tautannya." in page_of(answer, 404).html
