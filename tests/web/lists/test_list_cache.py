"""The cached list page: never stale, correct ETags and compression, and streaming of a list too long to cache."""

import gzip
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import pytest
from engines import ENGINES, empty_database
from harness import Page, Service, Site, led_to, visited
from processes import run
from sockets import get
from stores import execute

from mahasiswa.web.list_cache import PAGE_MAX_RECORDS


@pytest.fixture(scope="module", params=[*product(ENGINES, "12")], ids=" ".join)
def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """Start a service with one or two workers, once for each engine."""
    engine, workers = request.param
    database = empty_database(engine, tmp_path_factory.mktemp("shared"), request)
    with Service(database, {"WORKERS": workers}) as service:
        yield service


def test_a_page_read_after_an_acknowledged_write_shows_it(shared: Service) -> None:
    """After a change by the service or by another program, the next page has it, during concurrent writes as well."""

    def expect(reader: Site, nim: str, nama: str | None) -> None:
        assert {row[1]: row[2] for row in reader.list().rows}.get(nim) == nama, nim

    def write_and_read(name: str) -> None:
        with shared.site() as writer, shared.site() as reader:
            for n in range(10):
                nim = f"{name}-{n}"
                led_to(writer.add(nim, "sebelum", "Bogor"))
                expect(reader, nim, "sebelum")
                writer.edit(nim, "sesudah", "Bogor")
                expect(reader, nim, "sesudah")
                writer.delete(nim)
                expect(reader, nim, None)

    def write_elsewhere_and_read() -> None:
        with shared.site() as reader:
            for n in range(10):
                execute(
                    shared.database,
                    f"INSERT INTO mahasiswa VALUES ('lain-{n}', 'sebelum', 'Bogor')",
                )
                expect(reader, f"lain-{n}", "sebelum")
                execute(shared.database, f"DELETE FROM mahasiswa WHERE nim = 'lain-{n}'")
                expect(reader, f"lain-{n}", None)

    with ThreadPoolExecutor(4) as threads:
        elsewhere = threads.submit(write_elsewhere_and_read)
        list(threads.map(write_and_read, "abc"))
        elsewhere.result()


def test_a_304_is_sent_only_for_the_same_bytes(shared: Service) -> None:
    """Pages with the same ETag are equal, and a conditional request gets 304 only for the current page."""
    pages: dict[str, bytes] = {}
    with shared.site() as site:
        for alamat in ("Solo", "Bantul"):
            site.add("1", "Siti", "Solo")
            site.edit("1", "Siti", alamat)
            for encoding in ("gzip", "identity") * 2:
                accepted = {"accept-encoding": encoding}
                now = site.get("/", headers=accepted)
                assert pages.setdefault(now.headers["etag"], now.content) == now.content
                for tag in pages:
                    answer = site.get("/", headers={**accepted, "if-none-match": tag})
                    is_same = tag == now.headers["etag"]
                    assert answer.status_code == (304 if is_same else 200)
                    assert answer.content == (b"" if is_same else now.content)
    assert len(pages) == 4


@pytest.mark.parametrize("path", ["/", "/tidak/ada"])
def test_every_page_is_compressed_for_clients_that_accept_gzip(
    service: Service, site: Site, path: str
) -> None:
    """The list and error pages are compressed to less than half."""
    plain = site.get(path, headers={"accept-encoding": "identity"})
    number = rb"Nomor permintaan: \S+"  # of an error page, another one for each request
    body = re.sub(number, b"", plain.content)
    several = "br, gzip;q=0.5"
    for accepted, is_encoded in (("gzip", True), (several, True), ("gzip; q=0.0, br", False)):
        request = get(path).replace(
            b"\r\n\r\n", f"\r\nAccept-Encoding: {accepted}\r\n\r\n".encode()
        )
        head, _, sent = service.raw(request).partition(b"\r\n\r\n")
        assert (b"content-encoding: gzip" in head.lower()) == is_encoded, accepted
        assert re.sub(number, b"", gzip.decompress(sent) if is_encoded else sent) == body
        assert (len(sent) < len(plain.content) / 2) == is_encoded
        assert b"vary: accept-encoding" in head.lower()


def test_pages_are_compressed_on_a_machine_without_isal() -> None:
    compress = (
        "import gzip, sys; sys.modules['isal'] = None; from mahasiswa.web.responses import gzipped"
    )
    run(
        sys.executable,
        "-c",
        f"{compress}; assert gzip.decompress(gzipped(b'a' * 100_000)) == b'a' * 100_000",
    )


def test_a_list_too_long_for_the_cache_is_streamed(database: str) -> None:
    """Its page is complete, in order and without ETag, and the next one shows a later change."""
    count = PAGE_MAX_RECORDS + 1
    with visited(Service(database)) as site:
        execute(
            database,
            f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})"
            " INSERT INTO mahasiswa SELECT substr(CAST(100000000 + i AS TEXT), 2), 'Nama ' || i, 'Alamat' FROM n",
        )
        answer = site.get("/")
        head = site.request("HEAD", "/")
        led_to(site.add("99999999z", "Siti", "Solo"))
        assert site.nims[-1] == "99999999z"
    assert not {"etag"} & {*answer.headers, *head.headers}
    page = Page(answer.text, "")
    assert page.texts("p.latest")
    assert [row[:2] for row in page.rows] == [(str(n), f"{n:08}") for n in range(1, count + 1)]


CLOCK = """
import sys
from datetime import datetime
from pathlib import Path

import mahasiswa.web.pages
from mahasiswa.commands.cli import main

class Clock(datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromisoformat(Path({path!r}).read_text())

mahasiswa.web.pages.datetime = Clock
main()
"""


def test_the_list_is_rendered_again_on_another_day(tmp_path: Path) -> None:
    """The page holds the date, which is shown on paper, so a page of yesterday is not sent. One of today is not made again."""
    clock = tmp_path / "clock"
    clock.write_text("2026-12-31T23:59")
    program = CLOCK.format(path=str(clock))
    command = (sys.executable, "-c", program)
    with Service(tmp_path / "a.db", command=command) as service, service.site() as site:
        first = site.get("/")
        assert "31 Desember 2026" in first.text
        for moment, status in (("2026-12-31T23:59:59", 304), ("2027-01-01T00:00", 200)):
            clock.write_text(moment)
            answer = site.get("/", headers={"if-none-match": first.headers["etag"]})
            assert answer.status_code == status
    assert "1 Januari 2027" in answer.text
