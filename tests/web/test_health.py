"""Monitoring: the page `/sehat`, and the log with one line for each change and each refused request."""

import re
import socket
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import pytest
from attack import FORM, HOST, LOG_LINE, Line, assert_log_is_sound, until
from harness import Page, Service, Site
from selectolax.lexbor import LexborHTMLParser

LogLine = tuple[str, str, str, str | None, int]
"""The level, method, path, nim and status in a line of the log."""

SECRETS = ("Rahasia Namanya", "Jalan Rahasia 7", "caritahu")


def test_sehat_answers_200_while_the_store_can_be_read(service: Service) -> None:
    """GET /sehat answers 200 with an uncached page that names the version, HEAD answers alike, and POST is refused."""
    with service.site() as site:
        answer = site.get("/sehat")
        assert answer.status_code == 200
        assert Page(answer.text, service.url).title == "Program Input Data Mahasiswa"
        assert Page(answer.text, service.url).headings == ["Sehat"]
        assert f"versi {version('mahasiswa')}" in answer.text
        assert answer.headers["cache-control"] == "no-cache, private"
        assert answer.headers["x-robots-tag"] == "noindex"
        head = site.send("HEAD", "/sehat")
        assert (head.status_code, head.content) == (200, b"")
        assert site.post("/sehat").status_code == 405


def test_sehat_answers_503_while_the_store_cannot_be_read(tmp_path: Path) -> None:
    """Once the file was moved, GET /sehat answers 503 with a page that names the version, also if the file comes back."""
    database = tmp_path / "a.db"
    with Service(database) as service, service.site() as site:
        assert site.get("/sehat").status_code == 200
        database.rename(tmp_path / "away")
        for name in ("away", "away", "a.db"):
            (tmp_path / "away").rename(tmp_path / name)
            answer = site.get("/sehat")
            assert answer.status_code == 503
            assert Page(answer.text, service.url).title == "Program Input Data Mahasiswa"
            assert f"versi {version('mahasiswa')}" in answer.text


def lines(service: Service) -> list[LogLine]:
    """Return the lines of the log that are about requests."""
    assert_log_is_sound(service.stderr(), allowed=["was replaced or removed"])
    found = [match for line in service.stderr().splitlines() if (match := LOG_LINE.fullmatch(line)) and match["status"]]
    return [(match["level"], match["method"], match["path"], match["nim"], int(match["status"])) for match in found]


def assert_lines(service: Service, expected: Sequence[LogLine]) -> None:
    """Check that the log has exactly these lines. A line is written after its answer, so wait for the last one."""
    until(lambda: len(lines(service)) >= len(expected))
    assert lines(service) == expected


def read_change_and_be_refused(site: Site) -> None:
    """Read pages, make changes and send refused requests, with texts that must not be in the log."""
    nama, alamat, cari = SECRETS
    site.list()
    site.get(f"/?cari={cari}")
    site.get("/mahasiswa/add")
    assert site.add("20/1", nama, alamat).status_code == 302
    assert site.add("20/1", nama, alamat).status_code == 409
    assert site.post("/mahasiswa/add", {"nama": nama, "alamat": alamat}).status_code == 400
    assert site.edit("20/1", nama + " Baru", alamat).status_code == 302
    site.get("/mahasiswa/ekspor.csv")
    assert site.delete("20/1").status_code == 302
    assert site.get(f"/tidak-ada?cari={cari}").status_code == 404
    assert site.get("/mahasiswa/edit/hilang").status_code == 404


CHANGES: list[LogLine] = [
    ("INFO", "POST", "/mahasiswa/add", '"20/1"', 302),
    ("INFO", "POST", "/mahasiswa/edit/20%2F1", None, 302),
    ("INFO", "POST", "/mahasiswa/delete/20%2F1", None, 302),
]
REFUSALS: list[LogLine] = [
    ("WARNING", "POST", "/mahasiswa/add", '"20/1"', 409),
    ("WARNING", "POST", "/mahasiswa/add", None, 400),
    ("WARNING", "GET", "/tidak-ada", None, 404),
    ("WARNING", "GET", "/mahasiswa/edit/hilang", None, 404),
]


FAILURES: list[LogLine] = [("ERROR", "POST", "/mahasiswa/add", '"1"', 503), ("ERROR", "GET", "/sehat", None, 503)]


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ("info", [CHANGES[0], *REFUSALS[:2], *CHANGES[1:], *REFUSALS[2:], *FAILURES]),
        ("warning", [*REFUSALS, *FAILURES]),
        ("error", FAILURES),
    ],
)
def test_the_log_has_changes_and_refusals_but_no_personal_texts(
    tmp_path: Path, level: str, expected: list[LogLine]
) -> None:
    """`info` logs changes and refusals, `warning` refusals, each level failures; reads and texts other than nim never."""
    with Service(tmp_path / "a.db", {"LOG_LEVEL": level}) as service:
        with service.site() as site:
            read_change_and_be_refused(site)
        (tmp_path / "a.db").unlink()
        with Line(service.port) as line:
            assert line.add("1", SECRETS[0], SECRETS[1]).status == 503
            assert line.get("/sehat").status == 503
        assert_lines(service, expected)
        text = service.stderr() + service.stdout()
    assert not [secret for secret in SECRETS if secret.split()[0] in text]
    assert f"a change was not saved: {tmp_path}/a.db" in text


@pytest.mark.parametrize(
    ("path", "rest"),
    [
        ("/mahasiswa/add", FORM + b"Content-Length: 99\r\n\r\nnim=3&nama=Ani&alamat=Klaten"),
        ("/mahasiswa/add", FORM + b"Transfer-Encoding: chunked\r\n\r\n5\r\nnim=3"),
        ("/mahasiswa/impor", b"Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 99\r\n\r\n--x"),
    ],
)
def test_a_client_that_disconnects_in_a_body_is_logged_as_499(service: Service, path: str, rest: bytes) -> None:
    """It is no malformed request, which would be 400. Nothing is stored."""
    before = len(lines(service))
    with socket.create_connection(("127.0.0.1", service.port)) as connection:
        connection.sendall(b"POST %b HTTP/1.1\r\n" % path.encode() + HOST + rest)
    until(lambda: len(lines(service)) > before)
    assert lines(service)[before:] == [("WARNING", "POST", path, None, 499)]
    with service.site() as site:
        assert "3" not in site.list().nims


def test_a_log_line_ends_with_the_duration_in_milliseconds(service: Service) -> None:
    """The duration in a log line is more than zero and less than a minute."""
    with service.site() as site:
        site.add("lama", "Siti", "Solo")
    until(lambda: '"lama"' in service.stderr())
    (took,) = re.findall(r'"lama" 302 (\d+\.\d) ms\n', service.stderr())
    assert 0 < float(took) < 60_000


def test_no_page_reveals_the_software_or_its_paths(service: Service, tmp_path: Path) -> None:
    """No page has a version but our own, the name of a library, a path of the machine or a traceback."""
    with service.site() as site:
        for answer in (site.list(), site.page("/sehat")):
            assert_reveals_nothing(answer.html, tmp_path)
        for method, target in (("GET", "/x"), ("PUT", "/"), ("GET", "/%zz"), ("POST", "/mahasiswa/add")):
            refused = site.send(method, target)
            assert refused.status_code >= 400
            assert_reveals_nothing(refused.text, tmp_path)
            assert "server" not in refused.headers


def assert_reveals_nothing(html: str, tmp_path: Path) -> None:
    """Check that a page names no library, version or path, except in its style sheets and its footer."""
    tree = LexborHTMLParser(html)
    for node in tree.css("style, link, footer"):
        node.decompose()
    text = tree.html or ""
    words = ["Traceback", "File ", ".py", "uvicorn", "httptools", "starlette", "sqlite", "apsw", "/work"]
    for word in [*words, str(tmp_path.parents[1])]:
        assert word.lower() not in text.lower()
    assert not re.search(r"\b\d+\.\d+\.\d+\b", text)
