"""SAME_ORIGIN_ONLY: requests that other sites make a browser send, with the setting off and on."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from harness import Service, assert_log_is_sound

REFUSED = "Permintaan dari situs lain"
NAME = "kampus.example:8443"
BASE_URL = f"https://{NAME}/siswa"

SITES = ("same-origin", "none", "same-site", "cross-site", "", None)
ORIGINS = (
    *(f"https://{NAME}", f"http://{NAME.upper()}", None, "null", ""),
    *("https://kampus.example", f"https://jahat.{NAME}", "http://[", f"https://a.id@{NAME}"),
)
METHODS = {"GET": 200, "HEAD": 200, "OPTIONS": 405, "POST": 302}


def go_allows(method: str, site: str | None, origin: str | None) -> bool:
    """Return the decision of Go's http.CrossOriginProtection for a request to NAME, by its documentation."""
    if method != "POST":
        return True
    if site:
        return site in ("same-origin", "none")
    if not origin:
        return True
    return origin.lower() in (f"https://{NAME}", f"http://{NAME}")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    database = tmp_path_factory.mktemp("guarded") / "a.db"
    with Service(database, {"SAME_ORIGIN_ONLY": "1", "BASE_URL": BASE_URL}) as service:
        yield service
        assert_log_is_sound(service.stderr())


def status(service: Service, request: str, **headers: str | None) -> int:
    """Send a request with these headers, if they have a value; return the status of its answer, which names no host."""
    named = [
        f"{name.replace('_', '-')}: {value}" for name, value in headers.items() if value is not None
    ]
    answer = service.raw("\r\n".join([request, *named, "Connection: close", "", ""]).encode())
    assert answer.startswith(b"HTTP/1.1 ")
    assert (REFUSED.encode() in answer) == (b"HTTP/1.1 403" in answer) or request.startswith("HEAD")
    assert (headers.get("Host") or "no host").encode() not in answer
    return int(answer[9:12])


@pytest.mark.parametrize(("method", "usual"), METHODS.items())
def test_cross_site_requests_are_refused_as_in_go(
    guarded: Service, method: str, usual: int
) -> None:
    """The decision is that of Go's CrossOriginProtection. A Host other than that of BASE_URL is always refused."""
    path = "/siswa/mahasiswa/add" if method in ("GET", "HEAD") else "/siswa/mahasiswa/delete/x"
    request = f"{method} {path} HTTP/1.1"
    for site, origin in product(SITES, ORIGINS):
        found = status(guarded, request, Host=NAME, Sec_Fetch_Site=site, Origin=origin)
        assert found == (usual if go_allows(method, site, origin) else 403), (site, origin)
    # With the colon, because the random number of the request in an error page could hold the port.
    others = ("jahat.example", "kampus.example", f"127.0.0.1:{guarded.port}", ":8443")
    for site, host in product((None, "same-origin", "none"), others):
        assert (
            status(guarded, request, Host=host, Sec_Fetch_Site=site, Origin=f"https://{host}")
            == 403
        ), (site, host)
    assert status(guarded, request, Host=NAME.upper()) == usual


@pytest.mark.parametrize(
    ("base_url", "ours", "others"),
    [
        ("https://kampus.example", ("kampus.example", "kampus.example:443"), ("kampus.example:3000", "a.kampus.example")),
        ("http://kampus.example", ("kampus.example", "kampus.example:80"), ("kampus.example:3000",)),
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
        for host in (*ours, *others):
            found = status(service, "GET /mahasiswa/add HTTP/1.1", Host=host)
            assert found == (200 if host in ours else 403), host


def test_a_load_balancer_asks_for_sehat_by_any_host_name(guarded: Service) -> None:
    """HAProxy and others ask by an address or without a Host. HTTP/1.1 needs one. No other page is open to any host."""
    for request, host, expected in (
        ("GET /siswa/sehat HTTP/1.0", None, 200),
        ("GET /siswa/sehat HTTP/1.1", "10.0.0.7:3000", 200),
        ("GET /siswa/sehat HTTP/1.1", None, 400),
        ("GET /siswa/sehat HTTP/1.1", f"{NAME}\r\nHost: {NAME}", 400),
        ("GET /siswa/metrics HTTP/1.0", None, 404),  # without METRICS
        ("GET /siswa/mahasiswa/add HTTP/1.0", None, 403),
    ):
        assert status(guarded, request, Host=host) == expected, (request, host)
