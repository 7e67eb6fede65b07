"""Monitoring: the page `/sehat`, and the log with one line for each change and each refused request."""

import re
import socket
from importlib.metadata import version
from pathlib import Path

import pytest
from harness import LOG_LINE, Service, assert_log_is_sound, page_of, visited
from processes import until
from selectolax.lexbor import LexborHTMLParser
from sockets import FORM, HOST

LogLine = tuple[str, str, str, str | None, int]
"""The level, method, path, nim and status in a line of the log. Each line also has the duration."""

SECRETS = ("Rahasia Namanya", "Jalan Rahasia 7", "caritahu")


def test_sehat_says_whether_the_store_can_be_read(tmp_path: Path) -> None:
    """It is an uncached page with the version. Once the file was moved, it is 503, also if the file comes back."""
    with visited(Service(tmp_path / "a.db")) as site:
        healthy = site.get("/sehat")
        (tmp_path / "a.db").rename(tmp_path / "away")
        answers = [healthy, site.get("/sehat")]
        (tmp_path / "away").rename(tmp_path / "a.db")
        answers.append(site.get("/sehat"))
    for answer, status in zip(answers, (200, 503, 503), strict=True):
        assert f"versi {version('mahasiswa')}" in page_of(answer, status).texts("footer")[0]
    assert page_of(healthy).texts("h1, h2, h3") == ["Sehat"]
    assert healthy.headers["cache-control"] == "no-cache, private"
    assert healthy.headers["x-robots-tag"] == "noindex"


def lines(service: Service) -> list[LogLine]:
    assert_log_is_sound(service.stderr(), allowed=["was replaced or removed"])
    found = [match for line in service.stderr().splitlines() if (match := LOG_LINE.fullmatch(line))]
    return [
        (match["level"], match["method"], match["path"], match["nim"], int(match["status"]))
        for match in found
    ]


LEVELS = ["INFO", "WARNING", "ERROR"]
LOG: list[LogLine] = [
    ("INFO", "POST", "/mahasiswa/add", '"20/1"', 302), ("WARNING", "POST", "/mahasiswa/add", '"20/1"', 409),
    ("WARNING", "POST", "/mahasiswa/add", None, 400), ("INFO", "POST", "/mahasiswa/edit/20%2F1", None, 302),
    ("INFO", "POST", "/mahasiswa/delete/20%2F1", None, 302), ("WARNING", "GET", "/tidak-ada", None, 404),
    ("WARNING", "GET", "/mahasiswa/edit/hilang", None, 404), ("ERROR", "POST", "/mahasiswa/add", '"1"', 503),
    ("ERROR", "GET", "/sehat", None, 503),
]  # fmt: skip


@pytest.mark.parametrize(
    ("level", "levels"),
    [
        ("", LEVELS),
        ("debug", LEVELS),
        ("Warning", LEVELS[1:]),
        ("error", LEVELS[2:]),
    ],
)
def test_the_log_has_changes_and_refusals_but_no_personal_texts(
    tmp_path: Path, level: str, levels: list[str]
) -> None:
    """`info` logs changes and refusals, `warning` refusals, each level failures; reads and texts other than nim never."""
    nama, alamat, cari = SECRETS
    expected = [line for line in LOG if line[0] in levels]
    with Service(tmp_path / "a.db", {"LOG_LEVEL": level}) as service, service.site() as site:
        site.get(f"/?cari={cari}")
        for _ in range(2):
            site.add("20/1", nama, alamat)
        site.post("/mahasiswa/add", data={"nama": nama, "alamat": alamat})
        site.edit("20/1", nama + " Baru", alamat)
        site.get("/mahasiswa/ekspor.csv")
        site.delete("20/1")
        site.get(f"/tidak-ada?cari={cari}")
        site.get("/mahasiswa/edit/hilang")
        (tmp_path / "a.db").unlink()
        site.add("1", nama, alamat)
        site.get("/sehat")
        until(lambda: len(lines(service)) >= len(expected))  # a line is written after its answer
        assert lines(service) == expected
        text = service.stderr() + service.stdout()
    assert not [secret for secret in SECRETS if secret.split()[0] in text]
    assert re.search(rf"not saved: {tmp_path}/a\.db.* \(request [0-9]{{8}}\)\n", text)


FORWARDED = {
    None: "127.0.0.1", "192.0.2.1, 203.0.113.9, 10.0.0.7": "203.0.113.9", "::ffff:203.0.113.9": "203.0.113.9",
    "10.0.0.8,10.0.0.7": "10.0.0.8", "203.0.113.9, <script>": "127.0.0.1",
}  # fmt: skip
"""X-Forwarded-For, and the address of the client if only 10.0.0.0/8 and this computer are proxies."""


def test_an_answer_has_the_number_and_the_log_the_address_of_its_request(tmp_path: Path) -> None:
    """An error page has the number as a header and as a text, also if it is compressed. Other answers have none.

    A client cannot choose its address, because only the part that a trusted proxy has added is believed. The log has the
    time zone of the pages.
    """
    proxies = {"TRUSTED_PROXIES": "127.0.0.1,10.0.0.0/8", "TIMEZONE": "Asia/Jayapura"}
    with Service(tmp_path / "a.db", proxies) as service, service.site() as site:
        answers = []
        for forwarded in FORWARDED:
            headers = {} if forwarded is None else {"X-Forwarded-For": forwarded}
            for _ in range(2):
                form = {"nim": "1", "nama": "Ani", "alamat": forwarded or ""}
                answers.append(site.post("/mahasiswa/add", data=form, headers=headers))
        numbers = [answer.headers["x-request-id"] for answer in answers[1:]]
        for answer, number in zip(answers[1:], numbers, strict=True):
            footer = page_of(answer, 409).texts("footer")[0]
            assert footer.endswith(f"Nomor permintaan: {number}")
        assert "x-request-id" not in {**site.get("/").headers, **answers[0].headers}
        until(lambda: len(service.stderr().splitlines()) >= len(answers))
        logged = [
            match for line in service.stderr().splitlines() if (match := LOG_LINE.fullmatch(line))
        ]
    assert [match["number"] for match in logged][1:] == numbers
    assert [match["address"] for match in logged] == [
        address for address in FORWARDED.values() for _ in range(2)
    ]
    assert all("+09:00 " in match[0] for match in logged)


@pytest.mark.parametrize(
    ("path", "rest"),
    [
        ("/mahasiswa/add", FORM + b"Content-Length: 99\r\n\r\nnim=3&nama=Ani&alamat=Klaten"),
        ("/mahasiswa/add", FORM + b"Transfer-Encoding: chunked\r\n\r\n5\r\nnim=3"),
        (
            "/mahasiswa/impor",
            b"Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 99\r\n\r\n--x",
        ),
    ],
)
def test_a_client_that_disconnects_in_a_body_is_logged_as_499(
    service: Service, path: str, rest: bytes
) -> None:
    """It is no malformed request, which would be 400. Nothing is stored."""
    before = len(lines(service))
    with socket.create_connection(("127.0.0.1", service.port)) as connection:
        connection.sendall(b"POST %b HTTP/1.1\r\n" % path.encode() + HOST + rest)
    until(lambda: len(lines(service)) > before)
    assert lines(service)[before:] == [("WARNING", "POST", path, None, 499)]
    with service.site() as site:
        assert "3" not in site.nims


def test_no_page_reveals_the_software_or_its_paths(service: Service, tmp_path: Path) -> None:
    """No page has a version but our own, the name of a library, a path of the machine or a traceback."""
    words = [
        "Traceback",
        "File ",
        ".py",
        "uvicorn",
        "httptools",
        "starlette",
        "sqlite",
        "apsw",
        "/work",
    ]
    requests = map(
        str.split, ("GET /", "GET /sehat", "GET /x", "PUT /", "GET /%zz", "POST /mahasiswa/add")
    )
    with service.site() as site:
        answers = [
            site.request(method, "/", extensions={"target": target.encode()})
            for method, target in requests
        ]
    for answer in answers:
        assert "server" not in answer.headers
        tree = LexborHTMLParser(answer.text)
        for node in tree.css("style, link, footer"):
            node.decompose()
        text = tree.html or ""
        assert not [
            word for word in [*words, str(tmp_path.parents[1])] if word.lower() in text.lower()
        ]
        assert not re.search(r"\b\d+\.\d+\.\d+\b", text)
