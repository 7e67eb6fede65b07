"""The cached list page: never stale, correct ETags and compression, and streaming of a list too long to cache."""

import asyncio
import gzip
import re
import sys
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import datetime, timedelta, tzinfo
from functools import partial
from itertools import product
from pathlib import Path
from typing import Self
from unittest.mock import create_autospec

import httpx
import pytest
import uvicorn
from engines import ENGINES, empty_database, run_elsewhere
from harness import Page, Service, Site, visited
from processes import run
from sockets import get
from spreadsheets import Database, numbered
from stores import migrate, opened
from uvicorn.server import ServerState

from mahasiswa.server.http_protocol import HttpProtocol
from mahasiswa.server.worker import Application
from mahasiswa.settings import Settings
from mahasiswa.store import Store
from mahasiswa.web.app import create_app
from mahasiswa.web.list_cache import PAGE_MAX_RECORDS
from mahasiswa.web.pages import Pages
from mahasiswa.work import Slots


@pytest.fixture(scope="module", params=[*product(ENGINES, "12")], ids=" ".join)
def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """Start a service with one or two workers, once for each engine."""
    engine, workers = request.param
    with (
        empty_database(engine, tmp_path_factory.mktemp("shared"), request) as database,
        Service(database, {"WORKERS": workers}) as service,
    ):
        yield service


def test_a_page_read_after_an_acknowledged_write_shows_it(shared: Service) -> None:
    """After a change by the service or by another program, the next page has it, during concurrent writes as well."""

    def expect(reader: Site, nim: str, nama: str | None) -> None:
        assert {row[1]: row[2] for row in reader.list().rows}.get(nim) == nama, nim

    def write_and_read(name: str) -> None:
        with shared.site() as writer, shared.site() as reader:
            for n in range(20):
                nim = f"{name}-{n}"
                writer.stores(nim, "sebelum", "Bogor")
                expect(reader, nim, "sebelum")
                writer.edit(nim, "sesudah", "Bogor")
                expect(reader, nim, "sesudah")
                writer.delete(nim)
                expect(reader, nim, None)

    def write_elsewhere_and_read() -> None:
        with shared.site() as reader:
            for n in range(10):
                run_elsewhere(
                    shared.database,
                    f"INSERT INTO mahasiswa VALUES ('lain-{n}', 'sebelum', 'Bogor')",
                )
                expect(reader, f"lain-{n}", "sebelum")
                run_elsewhere(shared.database, f"DELETE FROM mahasiswa WHERE nim = 'lain-{n}'")
                expect(reader, f"lain-{n}", None)

    with ThreadPoolExecutor(4) as threads:
        elsewhere = threads.submit(write_elsewhere_and_read)
        list(threads.map(write_and_read, "abc"))
        elsewhere.result()


def test_a_304_is_sent_only_for_the_same_bytes(shared: Service) -> None:
    """Pages with the same ETag are equal, and a conditional request gets 304 only for the current page."""
    pages: dict[str, bytes] = {}
    with shared.site() as site:
        for number in range(7):
            if number:
                assert (
                    site.add("1", "Siti", "Solo") if number % 2 else site.delete("1")
                ).status_code == 302
            for encoding in ("gzip", "identity") * 2:
                now = site.send("GET", "/", accept_encoding=encoding)
                assert pages.setdefault(now.headers["etag"], now.content) == now.content
                for tag in pages:
                    answer = site.send("GET", "/", accept_encoding=encoding, if_none_match=tag)
                    is_same = tag == now.headers["etag"]
                    assert (answer.status_code, answer.content) == (
                        (304, b"") if is_same else (200, now.content)
                    )
    assert len(pages) >= 6


@pytest.mark.parametrize("path", ["/", "/tidak/ada"])
def test_every_page_is_compressed_for_clients_that_accept_gzip(
    service: Service, site: Site, path: str
) -> None:
    """The list, forms, searches and error pages are compressed to less than half, the list with another ETag."""
    wanted = ("gzip", "br, gzip;q=0.5")
    plain = site.send("GET", path, accept_encoding="identity")
    for accepted in (*wanted, "gzip;q=0", "gzip; q=0.0, br", "identity"):
        encoded = accepted in wanted
        request = f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAccept-Encoding: {accepted}\r\n\r\n"
        head, _, body = service.raw(request.encode()).partition(b"\r\n\r\n")
        assert (b"content-encoding: gzip" in head.lower()) == encoded, accepted
        # Of an error page, which is another one for each request.
        number = rb"Nomor permintaan: \S+"
        assert re.sub(number, b"", gzip.decompress(body) if encoded else body) == re.sub(
            number, b"", plain.content
        )
        assert (len(body) < len(plain.content) / 2) == encoded
        assert b"vary: accept-encoding" in head.lower()
        if path == "/":
            assert (plain.headers["etag"].encode() in head) != encoded


def test_pages_are_compressed_on_a_machine_without_isal() -> None:
    compress = (
        "import gzip, sys; sys.modules['isal'] = None; from mahasiswa.web.responses import gzipped"
    )
    run(
        sys.executable,
        "-c",
        f"{compress}; assert gzip.decompress(gzipped(b'a' * 100_000)) == b'a' * 100_000",
    )


def test_requests_that_come_during_a_rendering_get_its_page(
    service: Service, other: Database
) -> None:
    """A page that is streamed has no ETag."""
    other.fill(numbered(5000, "Nama", "Alamat"))
    with ThreadPoolExecutor(8) as clients:
        assert all(
            b"\r\netag: " in answer[:2000] for answer in clients.map(service.raw, [get("/")] * 8)
        )


def test_a_list_too_long_for_the_cache_is_streamed(database: str) -> None:
    """Its page is complete, in order and without ETag, and the next one shows a later change."""
    count = PAGE_MAX_RECORDS + 1
    with visited(database) as site:
        run_elsewhere(
            database,
            f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})"
            " INSERT INTO mahasiswa SELECT substr(CAST(100000000 + i AS TEXT), 2), 'Nama ' || i, 'Alamat' FROM n",
        )
        page, head = site.get("/"), site.send("HEAD", "/")
        site.stores("99999999z", "Siti", "Solo")
        assert site.nims[-1] == "99999999z"
    assert not {"etag"} & {*page.headers, *head.headers}
    # The line with the latest change is on a page that is not kept, too.
    assert Page(page.text, "").texts("p.latest")
    numbers = [row[:2] for row in Page(page.text, "").rows]
    assert numbers == [(str(n), f"{n:08}") for n in range(1, count + 1)]


@asynccontextmanager
async def client_of(settings: Settings, store: Store) -> AsyncIterator[httpx.AsyncClient]:
    """Serve in this process, in which a test can replace a method; yield a client."""
    app = Application(settings)
    app.middleware = create_app(settings, store, Slots())
    config = uvicorn.Config(app, http=HttpProtocol, log_config=None, proxy_headers=False)
    config.load()
    state = ServerState()
    state.default_headers = [(b"date", b"")]
    serve = partial(HttpProtocol, config, state, {})
    async with await asyncio.get_running_loop().create_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
            yield client


async def test_the_list_is_rendered_again_on_another_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page holds the date, which is shown on paper, so a page of yesterday is not sent. One of today is not made again."""
    settings = Settings.from_environment({"DATABASE_URL": f"sqlite:///{tmp_path / 'a.db'}"})
    migrate(settings.database_url)
    day = datetime(2026, 12, 31, 23, 59, tzinfo=settings.timezone)

    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return cls.fromtimestamp(day.timestamp(), tz)

    render = create_autospec(Pages.list_frame, side_effect=Pages.list_frame)
    monkeypatch.setattr("mahasiswa.web.pages.datetime", Clock)
    monkeypatch.setattr(Pages, "list_frame", render)
    async with opened(settings.database_url) as store, client_of(settings, store) as client:
        first = await client.get("/")
        render.reset_mock()
        day += timedelta(seconds=59)
        second = await client.get("/", headers={"if-none-match": first.headers["etag"]})
        render.assert_not_called()
        day += timedelta(seconds=1)
        third = await client.get("/", headers={"if-none-match": first.headers["etag"]})
    assert "31 Desember 2026" in first.text
    assert second.status_code == 304
    assert "1 Januari 2027" in third.text
