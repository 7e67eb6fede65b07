"""Seen from outside: the page for a probe, and the log: one line a change and one a refused request, about nobody."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from attack import LOG_LINE, Line, assert_log_is_sound, until
from harness import Page, Service, Site
from selectolax.lexbor import LexborHTMLParser

LogLine = tuple[str, str, str, str | None, int]
"""Level, method, path, nim and status."""

SECRETS = ("Rahasia Namanya", "Jalan Rahasia 7", "caritahu")


def test_the_store_answers(service: Service) -> None:
    """200 and a page in the layout, that no one keeps; HEAD alike; nothing else."""
    with service.site() as site:
        answer = site.get("/sehat")
        assert answer.status_code == 200
        assert Page(answer.text, service.url).title == "Program Input Data Mahasiswa"
        assert Page(answer.text, service.url).headings == ["Sehat"]
        assert answer.headers["cache-control"] == "no-cache"
        head = site.send("HEAD", "/sehat")
        assert (head.status_code, head.content) == (200, b"")
        assert site.post("/sehat").status_code == 405


def test_the_store_does_not_answer(tmp_path: Path) -> None:
    """503 and a page while the file is gone, 200 when it is back; adding nothing to the file."""
    database = tmp_path / "a.db"
    with Service(database) as service, service.site() as site:
        assert site.get("/sehat").status_code == 200
        database.rename(tmp_path / "away")
        for _ in range(3):
            answer = site.get("/sehat")
            assert answer.status_code == 503
            assert Page(answer.text, service.url).title == "Program Input Data Mahasiswa"
        (tmp_path / "away").rename(database)
        assert site.get("/sehat").status_code == 200
        assert site.list().rows == []


@pytest.fixture
def levels(tmp_path: Path) -> Iterator[dict[str, Service]]:
    """Start a service at each level."""
    services = {
        level: Service(tmp_path / f"{level}.db", {"LOG_LEVEL": level}) for level in ("info", "warning", "error")
    }
    yield services
    for service in services.values():
        service.close()


def lines(service: Service) -> list[LogLine]:
    """Return what the log says of requests."""
    assert_log_is_sound(service.stderr(), allowed=["was replaced or removed"])
    found = [match for line in service.stderr().splitlines() if (match := LOG_LINE.fullmatch(line)) and match["status"]]
    return [(match["level"], match["method"], match["path"], match["nim"], int(match["status"])) for match in found]


def assert_lines(service: Service, expected: Sequence[LogLine]) -> None:
    """These lines and no other; each is written when its answer has left."""
    until(lambda: len(lines(service)) >= len(expected))
    assert lines(service) == expected


def use(site: Site) -> None:
    """Read, change and be refused, with words that are nobody's business."""
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


def test_a_line_for_each(levels: dict[str, Service]) -> None:
    """`info` has changes and refusals, `warning` refusals, `error` neither; none has reads, or anything but the nim."""
    for service in levels.values():
        with service.site() as site:
            use(site)
        text = service.stderr() + service.stdout()
        assert not [secret for secret in SECRETS if secret.split()[0] in text]
    assert_lines(levels["info"], [CHANGES[0], *REFUSALS[:2], CHANGES[1], CHANGES[2], *REFUSALS[2:]])
    assert_lines(levels["warning"], REFUSALS)
    assert_lines(levels["error"], [])


def test_a_fault_is_an_error(levels: dict[str, Service], tmp_path: Path) -> None:
    """What could not be read or stored is a line at every level."""
    for level, service in levels.items():
        (tmp_path / f"{level}.db").unlink()
        with Line(service.port) as line:
            assert line.add("1", "Siti", "Solo").status == 503
            assert line.get("/sehat").status == 503
        faults: list[LogLine] = [
            ("ERROR", "POST", "/mahasiswa/add", '"1"', 503),
            ("ERROR", "GET", "/sehat", None, 503),
        ]
        assert_lines(service, faults)


def test_how_long_it_took(service: Service) -> None:
    """A line ends with milliseconds that are neither none nor a clock's."""
    with service.site() as site:
        site.add("lama", "Siti", "Solo")
    until(lambda: '"lama"' in service.stderr())
    (took,) = re.findall(r'"lama" 302 (\d+\.\d) ms\n', service.stderr())
    assert 0 < float(took) < 60_000


def test_no_page_tells_what_runs(service: Service, tmp_path: Path) -> None:
    """No page or header has a version, a path of the machine or a traceback."""
    with service.site() as site:
        for answer in (site.list(), site.page("/sehat")):
            assert_tells_nothing(answer.html, tmp_path)
        for method, target in (
            ("GET", "/x"),
            ("PUT", "/"),
            ("GET", "/%zz"),
            ("POST", "/mahasiswa/add"),
            ("GET", "/mahasiswa/edit/x"),
        ):
            refused = site.send(method, target)
            assert refused.status_code >= 400
            assert_tells_nothing(refused.text, tmp_path)
            assert refused.headers["server"] == "granian"


def assert_tells_nothing(html: str, tmp_path: Path) -> None:
    """A page has no word about what made it."""
    tree = LexborHTMLParser(html)
    for node in tree.css("style, link"):
        node.decompose()
    text = tree.html or ""
    for word in (
        "Traceback",
        "File ",
        ".py",
        "granian",
        "starlette",
        "sqlite",
        "apsw",
        "/work",
        str(tmp_path.parents[1]),
    ):
        assert word.lower() not in text.lower()
    assert not re.search(r"\b\d+\.\d+\.\d+\b", text)
