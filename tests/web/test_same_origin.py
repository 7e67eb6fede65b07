"""SAME_ORIGIN_ONLY: requests that other sites make a browser send, with the setting off and on."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from attack import FORM, assert_log_is_sound
from browser import OpenWindow
from harness import Page, Service

REFUSED = "Permintaan dari situs lain"
NAME = "kampus.example:8443"
BASE_URL = f"https://{NAME}/siswa"

SITES = ("same-origin", "none", "same-site", "cross-site", "", "SAME-ORIGIN", None)
ORIGINS = (
    f"https://{NAME}",
    f"http://{NAME}",
    f"https://{NAME.upper()}",
    "https://kampus.example",
    "https://kampus.example:1",
    f"https://jahat.{NAME}",
    f"https://{NAME}.jahat.example",
    f"https://jahat.example/{NAME}",
    f"https://jahat.example@{NAME}",
    "null",
    "",
    "http://[",
    None,
)
METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PROPFIND")


def go_allows(method: str, site: str | None, origin: str | None) -> bool:
    """Return the decision of Go's http.CrossOriginProtection for a request to NAME, by its documentation."""
    if method in ("GET", "HEAD", "OPTIONS"):
        return True
    if site:
        return site in ("same-origin", "none")
    if not origin:
        return True
    return origin.lower() in (f"https://{NAME}", f"http://{NAME}")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Start a service with the setting on and the name of BASE_URL."""
    database = tmp_path_factory.mktemp("guarded") / "a.db"
    with Service(database, {"SAME_ORIGIN_ONLY": "1", "BASE_URL": BASE_URL}) as service:
        yield service
        assert_log_is_sound(service.stderr())


def status(service: Service, method: str, host: str, site: str | None = None, origin: str | None = None) -> int:
    """Request the add form (GET, HEAD) or the deletion of an unknown record; return the status."""
    path = "/siswa/mahasiswa/delete/x" if method not in ("GET", "HEAD") else "/siswa/mahasiswa/add"
    headers = b"".join(
        b"%b: %b\r\n" % (name, value.encode())
        for name, value in ((b"Sec-Fetch-Site", site), (b"Origin", origin))
        if value is not None
    )
    request = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n".encode() + FORM + headers + b"Connection: close\r\n\r\n"
    answer = service.raw(request)
    assert answer.startswith(b"HTTP/1.1 ")
    assert (REFUSED.encode() in answer) == (b"HTTP/1.1 403" in answer) or method == "HEAD"
    return int(answer[9:12])


@pytest.mark.parametrize("method", METHODS)
def test_cross_site_requests_are_refused_as_in_go(guarded: Service, method: str) -> None:
    """For all combinations of Sec-Fetch-Site and Origin the decision is that of Go's CrossOriginProtection."""
    usual = {"GET": 200, "HEAD": 200, "OPTIONS": 405, "POST": 302, "PUT": 405, "PROPFIND": 405}[method]
    decided = {(site, origin): status(guarded, method, NAME, site, origin) for site, origin in product(SITES, ORIGINS)}
    expected = {
        (site, origin): usual if go_allows(method, site, origin) else 403 for site, origin in product(SITES, ORIGINS)
    }
    assert decided == expected


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("site", [None, "same-origin", "none"])
def test_a_request_to_another_host_name_is_refused(guarded: Service, method: str, site: str | None) -> None:
    """A Host other than that of BASE_URL is refused, because another site's name may resolve to our address."""
    for host in (
        "jahat.example",
        "kampus.example",
        "kampus.example:443",
        "127.0.0.1",
        f"127.0.0.1:{guarded.port}",
        "8443",
    ):
        assert status(guarded, method, host, site, f"https://{host}") == 403
    assert status(guarded, method, NAME.upper(), site, None) != 403


@pytest.mark.parametrize(
    ("base_url", "ours", "others"),
    [
        ("https://kampus.example", ("kampus.example", "kampus.example:443"), ("kampus.example:80", "a.kampus.example")),
        ("http://kampus.example", ("kampus.example", "kampus.example:80"), ("kampus.example:443", "kampus.example:3000")),
        ("http://kampus.example:80", ("kampus.example", "kampus.example:80"), ("kampus.example:81",)),
        ("http://10.0.0.7:3000", ("10.0.0.7:3000",), ("10.0.0.7", "localhost:3000", "127.0.0.1:3000")),
        ("http://localhost:3000", ("localhost:3000", "127.0.0.1:3000", "[::1]:3000"), ("localhost", "jahat.example:3000")),
    ],
)  # fmt: skip
def test_the_allowed_host_names_come_from_base_url(
    tmp_path: Path, base_url: str, ours: tuple[str, ...], others: tuple[str, ...]
) -> None:
    """Only the host of BASE_URL is allowed, with its default port optional; localhost allows all its spellings."""
    with Service(tmp_path / "a.db", {"SAME_ORIGIN_ONLY": "1", "BASE_URL": base_url}) as service:

        def ask(host: str) -> int:
            answer = service.raw(f"GET /mahasiswa/add HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            return int(answer[9:12])

        assert {host: ask(host) for host in ours} == dict.fromkeys(ours, 200)
        assert {host: ask(host) for host in others} == dict.fromkeys(others, 403)


def test_a_load_balancer_asks_for_sehat_by_any_host_name(guarded: Service) -> None:
    """HAProxy and others ask by an address or without a Host. HTTP/1.1 needs one, and the counters stay guarded."""
    for path, version, hosts, expected in (
        ("sehat", "1.0", (), 200),
        ("sehat", "1.1", ("10.0.0.7:3000",), 200),
        ("sehat", "1.1", (), 400),
        ("sehat", "1.1", (NAME, NAME), 400),
        ("metrics", "1.0", (), 403),
        ("mahasiswa/add", "1.0", (), 403),
    ):
        head = "".join(f"Host: {host}\r\n" for host in hosts)
        answer = guarded.raw(f"GET /siswa/{path} HTTP/{version}\r\n{head}Connection: close\r\n\r\n".encode())
        assert int(answer[9:12]) == expected, (path, version, hosts)
        assert b"10.0.0.7" not in answer


OTHER_SITE = """<!doctype html><title>Hadiah</title><form method="POST" action="{}/mahasiswa/add">
<input name="nim" value="jahat"><input name="nama" value="Penyusup"><input name="alamat" value="Entah">
<button type="submit">Ambil hadiah</button></form>"""


def test_a_form_of_another_site_is_refused_with_same_origin_only(open_window: OpenWindow, tmp_path: Path) -> None:
    """With the setting on, a form of another site gets an error page and changes nothing, and our own forms work."""
    with Service(tmp_path / "a.db", {"SAME_ORIGIN_ONLY": "1"}) as service, service.site() as site:
        window = open_window(url=service.url)
        window.page.route(
            "http://jahat.example/",
            lambda route: route.fulfill(body=OTHER_SITE.format(service.url), content_type="text/html"),
        )
        window.page.goto("http://jahat.example/")
        with window.leaving():
            window.page.get_by_role("button", name="Ambil hadiah").click()
        assert Page(window.source(), service.url).headings == [REFUSED]
        assert site.list().nims == []

        with window.leaving():
            window.page.get_by_role("link", name="Kembali ke daftar").click()
        with window.leaving():
            window.page.get_by_role("link", name="Tambah Data").click()
        window.type(nim="20/1", nama="Siti", alamat="Solo")
        window.save()
        with window.leaving():
            window.row("20/1").get_by_role("link", name="Edit").click()
        window.type(nama="Siti Aminah")
        window.save()
        assert window.cells() == [["20/1", "Siti Aminah", "Solo"]]
        with window.leaving():
            window.row("20/1").get_by_role("button", name="Delete").click()
        assert site.list().nims == []
        assert window.dialogs == ["confirm: Apakah Anda yakin ingin menghapus data ini?"]
