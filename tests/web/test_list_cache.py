"""The cached list page: never stale, correct ETags and compression, and streaming of a list too long to cache."""

import asyncio
import gzip
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Self, cast

import httpx
import psycopg
import pytest
from attack import fill
from harness import Page, Service, Site
from spreadsheets import Database
from stores import opened, other_program

from mahasiswa.settings import Settings
from mahasiswa.store import Store, migrate
from mahasiswa.web.app import create_app
from mahasiswa.web.list_cache import PAGE_MAX_RECORDS
from mahasiswa.web.responses import CachedPage
from mahasiswa.work import LIST, Busy, Limits, Slots

Commit = Callable[[str], object]
"""Runs and commits a statement in another program that uses the same database."""


@contextmanager
def another_program(database: str) -> Iterator[Commit]:
    """Start another program that writes to the same database, one statement at a time."""
    if database.startswith("sqlite:///"):
        with other_program(Path(database.removeprefix("sqlite:///"))) as commit:
            yield commit
    else:
        with psycopg.connect(database, autocommit=True) as db:
            yield lambda statement: db.execute(statement.encode())


@pytest.fixture(params=["1", "2"], ids=["one worker", "two workers"])
def shared(request: pytest.FixtureRequest, database: str) -> Iterator[tuple[Service, Commit]]:
    """Start a service and another program on one database."""
    with Service(database, {"WORKERS": request.param}) as service, another_program(database) as commit:
        yield service, commit


def add(client: httpx.Client, nim: str, nama: str = "Siti") -> None:
    """Add a record. Fail unless it is acknowledged."""
    answer = client.post("/mahasiswa/add", data={"nim": nim, "nama": nama, "alamat": "Bogor"})
    assert answer.status_code == 302


def test_a_page_read_after_an_acknowledged_write_shows_it(shared: tuple[Service, Commit]) -> None:
    """After a change by the service or by another program, the next page has it, during concurrent writes as well."""
    service, commit = shared
    failures: list[str] = []

    def write_and_read(name: str) -> None:
        dice = random.Random(name)
        with service.client() as writer, service.client() as reader:
            for n in range(40):
                nim = f"{name}-{n}"
                add(writer, nim, "sebelum")
                expect(reader, nim, "sebelum")
                if dice.random() < 0.5:
                    writer.post(f"/mahasiswa/edit/{nim}", data={"nama": "sesudah", "alamat": "Bogor"})
                    expect(reader, nim, "sesudah")
                writer.post(f"/mahasiswa/delete/{nim}")
                expect(reader, nim, None)

    def write_elsewhere_and_read() -> None:
        with service.client() as reader:
            for n in range(40):
                commit(f"INSERT INTO mahasiswa VALUES ('lain-{n}', 'sebelum', 'Bogor')")
                expect(reader, f"lain-{n}", "sebelum")
                commit(f"DELETE FROM mahasiswa WHERE nim = 'lain-{n}'")
                expect(reader, f"lain-{n}", None)

    def expect(reader: httpx.Client, nim: str, nama: str | None) -> None:
        page = reader.get("/").text
        shown = f"<td>{nim}</td><td>{nama}</td>" in page if nama else f"<td>{nim}</td>" not in page
        if not shown:
            failures.append(f"{nim} {nama}")

    with ThreadPoolExecutor(4) as threads:
        elsewhere = threads.submit(write_elsewhere_and_read)
        list(threads.map(write_and_read, "abc"))
        elsewhere.result()
    assert not failures


def test_a_304_is_sent_only_for_the_same_bytes(shared: tuple[Service, Commit]) -> None:
    """Pages with the same ETag are equal, and a conditional request gets 304 only for the current page."""
    service, _ = shared
    pages: dict[str, bytes] = {}
    with service.client() as client:
        for number in range(12):
            if number % 4 == 1:
                add(client, "1")
            elif number % 4 == 3:
                client.post("/mahasiswa/delete/1")
            for encoding in ("gzip", "identity"):
                now = client.get("/", headers={"accept-encoding": encoding})
                assert pages.setdefault(now.headers["etag"], now.content) == now.content
                for tag in pages:
                    answer = client.get("/", headers={"accept-encoding": encoding, "if-none-match": tag})
                    assert answer.status_code == (304 if tag == now.headers["etag"] else 200)
                    assert answer.content == (b"" if answer.status_code == 304 else now.content)
    assert len(pages) >= 6


@pytest.mark.parametrize("path", ["/", "/mahasiswa/add", "/?cari=siti", "/mahasiswa/impor", "/tidak/ada"])
@pytest.mark.parametrize(
    ("accepted", "encoded"),
    [("gzip", True), ("br, gzip;q=0.5", True), ("gzip;q=0", False), ("gzip; q=0.0, br", False), ("identity", False)],
)
def test_every_page_is_compressed_for_clients_that_accept_gzip(
    service: Service,
    path: str,
    accepted: str,
    encoded: bool,  # noqa: FBT001 - a parameter
) -> None:
    """The list, forms, searches and error pages are compressed to less than half, the list with another ETag."""
    with service.client() as client:
        plain = client.get(path, headers={"accept-encoding": "identity"})
    request = f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAccept-Encoding: {accepted}\r\n\r\n"
    head, _, body = service.raw(request.encode()).partition(b"\r\n\r\n")
    assert (b"content-encoding: gzip" in head.lower()) == encoded
    assert (gzip.decompress(body) if encoded else body) == plain.content
    assert (len(body) < len(plain.content) / 2) == encoded
    assert b"vary: accept-encoding" in head.lower()
    if path == "/":
        assert (plain.headers["etag"].encode() in head) != encoded


def test_a_page_of_old_and_new_parts_shows_every_record(site: Site, other: Database) -> None:
    """After any changes, by the service or by another program, compressed or not, with an ETag of its own."""
    dice = random.Random(1)
    tags: dict[str, bytes] = {}
    records: dict[str, tuple[str, str]] = {}
    odd = ("", "\x01", "\r", "<&>", "é", "\U0010ffff", "<!--rows-->", "%d", "x" * 101, "x" * 33_000)

    def check() -> None:
        plain, packed = (site.send("GET", "/", accept_encoding=name) for name in ("identity", "gzip"))
        assert packed.content == plain.content
        rows = [(str(number), nim, *records[nim]) for number, nim in enumerate(sorted(records), 1)]
        assert Page(plain.text, site.origin).rows == rows
        assert tags.setdefault(plain.headers["etag"], plain.content) == plain.content
        assert len(set(tags.values())) == len(tags)

    other.fill([])
    for size in (0, 1, 99, 100, 101, 199, 200, 201, 350):
        while len(records) < size:
            nim, nama = f"{dice.randrange(10**6):06}-{len(records)}", dice.choice("abc")
            other.run("INSERT INTO mahasiswa VALUES (?, ?, '')", nim, nama)
            records[nim] = (nama, "")
        check()
    for step in range(60):
        nims, texts = sorted(records), (dice.choice(odd), f"{step}")
        place = dice.choice([0, -1, dice.randrange(len(nims))])  # a change of the first row shifts all slices
        if step % 3 == 0:
            other.run("DELETE FROM mahasiswa WHERE nim = ?", nims[place])
            del records[nims[place]]
        elif step % 3 == 1:
            site.edit(nims[place], *texts)
            records[nims[place]] = texts
        else:
            nim = f"{nims[place]}-{step}" if place else f"!{10**6 - step}"
            site.add(nim, *texts)
            records[nim] = texts
        check()


async def test_a_long_page_is_compressed_after_the_queue_was_full() -> None:
    """A request that was refused because the service was busy does not make later ones fail."""
    slots = Slots()
    page = CachedPage(random.Random(1).randbytes(2 * 1024 * 1024), "tag", {})
    scope = {"headers": [(b"accept-encoding", b"gzip")]}
    async with slots.slot(LIST):
        queue: list[asyncio.Task[list[object]]] = [
            asyncio.create_task(slots.run(LIST, list)) for _ in range(LIST.waiting)
        ]
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await page.respond(scope, slots)
    await asyncio.gather(*queue)
    assert (await page.respond(scope, slots)).status_code == 200


WITHOUT_ISAL = """
import gzip, sys, zlib
sys.modules["isal"] = None
from mahasiswa.web import responses
assert responses.compressobj is zlib.compressobj
body = b"a" * 100_000
assert gzip.decompress(responses.gzipped(body)) == body
"""


def test_pages_are_compressed_on_a_machine_without_isal() -> None:
    """If ISA-L is not installed, zlib compresses."""
    subprocess.run([sys.executable, "-c", WITHOUT_ISAL], check=True, timeout=60)


def test_a_list_too_long_for_the_cache_is_streamed(database: str) -> None:
    """Its page is complete, in order and without ETag, and the next one shows a later change."""
    count = PAGE_MAX_RECORDS + 1
    with Service(database) as service, another_program(database) as commit, service.client() as client:
        commit(
            f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})"
            " INSERT INTO mahasiswa SELECT substr(CAST(100000000 + i AS TEXT), 2), 'Nama ' || i, 'Alamat' FROM n"
        )
        page = client.get("/")
        head = client.head("/")
        add(client, "99999999z")
        assert "<td>99999999z</td>" in client.get("/").text
    assert "etag" not in page.headers
    assert "etag" not in head.headers
    rows = page.text.split("<tr><td>")[1:]
    assert [row[: row.index("</td><td>N")] for row in rows] == [f"{n}</td><td>{n:08}" for n in range(1, count + 1)]


class WithoutVersion:
    """A store that cannot tell its version, as a standby of PostgreSQL, so that the list is never cached."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def __getattr__(self, name: str) -> object:
        return getattr(self.store, name)

    async def version(self) -> None:
        pass


async def test_the_streamed_list_equals_the_cached_one(database: str) -> None:
    """The handler behind the cache streams the bytes that the cache sends."""
    settings = Settings.from_environment({"DATABASE_URL": database})
    migrate(settings.database_url)
    async with opened(settings.database_url) as store:
        for start in range(0, 1200, 100):
            await asyncio.gather(
                *(store.add(f"{n}/é<{n % 7}", "Nur'aini & \r\n", "") for n in range(start, start + 100))
            )
        cached, streamed = [
            await client.get("/", headers={"accept-encoding": ""})
            for data in (store, cast("Store", WithoutVersion(store)))
            for app in [create_app(settings, data, Limits())]
            for client in [httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://a")]
        ]
    assert "etag" in cached.headers
    assert "etag" not in streamed.headers
    assert cached.text.count("<tr>") == 1201
    assert cached.text == streamed.text


async def test_the_list_is_rendered_again_on_another_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page holds the date, which is shown on paper, so a page of yesterday is not sent."""
    settings = Settings.from_environment({"DATABASE_URL": f"sqlite:///{tmp_path / 'a.db'}"})
    migrate(settings.database_url)
    day = datetime(2026, 12, 31, 23, 59, tzinfo=settings.timezone)

    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return cls.fromtimestamp(day.timestamp(), tz)

    monkeypatch.setattr("mahasiswa.web.pages.datetime", Clock)
    monkeypatch.setattr("mahasiswa.web.list_cache.time.time", lambda: Clock.now().timestamp())
    async with opened(settings.database_url) as store:
        transport = httpx.ASGITransport(create_app(settings, store, Limits()))
        async with httpx.AsyncClient(transport=transport, base_url="http://a") as client:
            first = await client.get("/")
            day += timedelta(seconds=59)
            second = await client.get("/", headers={"if-none-match": first.headers["etag"]})
            day += timedelta(seconds=1)
            third = await client.get("/", headers={"if-none-match": first.headers["etag"]})
            day -= timedelta(days=1)  # the clock was ahead, and is put right
            fourth = await client.get("/", headers={"if-none-match": third.headers["etag"]})
    assert "31 Desember 2026" in first.text
    assert second.status_code == 304
    assert "1 Januari 2027" in third.text
    assert "31 Desember 2026" in fourth.text


@pytest.mark.torture
@pytest.mark.skipif(sys.platform != "linux", reason="reads the processor time of a worker from /proc")
def test_a_disconnected_client_ends_its_stream(tmp_path: Path) -> None:
    """The service stops rendering for a client that disconnects: ten of them cost less than one complete page."""
    with Service(tmp_path / "a.db") as service:
        fill(tmp_path / "a.db", 200_000)
        before = seconds_spent(service)
        with service.client() as client:
            client.get("/")
        whole = seconds_spent(service) - before
        for _ in range(10):
            with socket.create_connection(("127.0.0.1", service.port)) as connection:
                connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                assert connection.recv(100_000)
        abandoned = settled(lambda: seconds_spent(service)) - before - whole
    assert whole > 0.1
    assert abandoned < whole


def seconds_spent(service: Service) -> float:
    """Return the processor time that the service's only worker has used, in seconds."""
    worker = Path(f"/proc/{service.pid}/task/{service.pid}/children").read_text().split()[0]
    fields = Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def settled(measure: Callable[[], float]) -> float:
    """Measure until the value has not changed for half a second; return it."""
    last, since = measure(), time.monotonic()
    while time.monotonic() < since + 0.5:
        time.sleep(0.01)
        if (now := measure()) != last:
            last, since = now, time.monotonic()
    return last
