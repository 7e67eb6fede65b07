"""The list page is never stale, and what a browser keeps of it is only reused where it is the very same."""

import asyncio
import gzip
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from harness import Service

from mahasiswa.settings import Settings
from mahasiswa.store import migrate, open_store
from mahasiswa.web.app import Application, create_app
from mahasiswa.web.list_cache import ListCache
from mahasiswa.web.request_guard import RequestGuard

# Another program: it commits a record at each line it reads, and says so. A process of its own, because closing a
# descriptor of this file by Python's sqlite3 would drop the locks that APSW holds in this one.
OTHER_PROGRAM = """
import sys
if sys.argv[1].startswith("sqlite:///"):
    import sqlite3
    db = sqlite3.connect(sys.argv[1].removeprefix("sqlite:///"), timeout=30, isolation_level=None)
    place = "?"
else:
    import psycopg
    db = psycopg.connect(sys.argv[1], autocommit=True)
    place = "%s"
for line in sys.stdin:
    statement, *values = line.rstrip("\\n").split("\\t")
    db.execute(statement.replace("?", place), values)
    print("done", flush=True)
"""


class OtherProgram:
    """A program that writes to the same database, one statement at a time."""

    def __init__(self, database: Path | str) -> None:
        url = f"sqlite:///{database}" if isinstance(database, Path) else database
        self.process = subprocess.Popen(
            [sys.executable, "-c", OTHER_PROGRAM, url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def commit(self, statement: str, *values: str) -> None:
        """Run a statement; return when it is committed."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write("\t".join([statement, *values]) + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def close(self) -> None:
        """End it."""
        self.process.communicate()


@pytest.fixture(params=["1", "2"], ids=["one worker", "two workers"])
def shared(request: pytest.FixtureRequest, database: str) -> Iterator[tuple[Service, OtherProgram]]:
    """Start a service and another program on one database."""
    with Service(database, {"WORKERS": request.param}) as service:
        other = OtherProgram(database)
        yield service, other
        other.close()


def add(client: httpx.Client, nim: str, nama: str = "Siti") -> None:
    """Add a record; it must be acknowledged."""
    answer = client.post("/mahasiswa/add", data={"nim": nim, "nama": nama, "alamat": "Bogor"})
    assert answer.status_code == 302


def test_a_page_read_after_an_acknowledged_write_shows_it(shared: tuple[Service, OtherProgram]) -> None:
    """Whoever writes, here or in another program, whatever others write meanwhile: the next page has it."""
    service, other = shared
    failures: list[str] = []

    def write_and_read(name: str) -> None:
        dice = random.Random(name)
        with service.client() as writer, service.client() as reader:
            for n in range(60):
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
            for n in range(60):
                other.commit("INSERT INTO mahasiswa VALUES (?, ?, ?)", f"lain-{n}", "sebelum", "Bogor")
                expect(reader, f"lain-{n}", "sebelum")
                other.commit("DELETE FROM mahasiswa WHERE nim = ?", f"lain-{n}")
                expect(reader, f"lain-{n}", None)

    def expect(reader: httpx.Client, nim: str, nama: str | None) -> None:
        page = reader.get("/").text
        shown = f"<td>{nim}</td><td>{nama}</td>" in page if nama else f"<td>{nim}</td>" not in page
        if not shown:
            failures.append(f"{nim} {nama}")

    threads = [threading.Thread(target=write_and_read, args=(name,)) for name in ("a", "b", "c")]
    threads.append(threading.Thread(target=write_elsewhere_and_read))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_304_stands_for_the_very_same_bytes(shared: tuple[Service, OtherProgram]) -> None:
    """An ETag names one page and no other; a conditional request gets 304 for that page alone."""
    service, _ = shared
    pages: dict[str, bytes] = {}
    dice = random.Random(7)
    present: set[str] = set()
    with service.client() as client:
        for _ in range(120):
            if dice.random() < 0.5:
                nim = str(dice.randrange(4))
                if nim in present:
                    client.post(f"/mahasiswa/delete/{nim}")
                    present.remove(nim)
                else:
                    add(client, nim)
                    present.add(nim)
            encoding = dice.choice(["gzip", "identity"])
            now = client.get("/", headers={"accept-encoding": encoding})
            assert pages.setdefault(now.headers["etag"], now.content) == now.content
            for tag, body in pages.items():
                answer = client.get("/", headers={"accept-encoding": encoding, "if-none-match": tag})
                if answer.status_code == 304:
                    assert body == now.content
                    assert answer.headers["etag"] == tag
                    assert not answer.content
                else:
                    assert tag != now.headers["etag"]
    assert len(pages) > 4


def test_head_has_the_headers_of_get(service: Service) -> None:
    """HEAD answers as GET does, without the body."""
    with service.client() as client:
        full, head = client.get("/"), client.head("/")
    assert head.status_code == 200
    assert not head.content
    for name in ("content-length", "content-type", "etag", "content-security-policy", "cache-control", "vary"):
        assert head.headers[name] == full.headers[name]


@pytest.mark.parametrize(
    ("accepted", "encoded"),
    [("gzip", True), ("br, gzip;q=0.5", True), ("gzip;q=0", False), ("gzip; q=0.0, br", False), ("identity", False)],
)
def test_gzip_holds_the_same_page(service: Service, accepted: str, encoded: bool) -> None:  # noqa: FBT001 - a parameter
    """A client that takes gzip gets the same page, smaller, under another ETag."""
    plain, head, body = fetched_twice(service, "/", accepted)
    assert (b"content-encoding: gzip" in head.lower()) == encoded
    assert (gzip.decompress(body) if encoded else body) == plain.content
    assert (plain.headers["etag"].encode() in head) != encoded
    assert b"vary: accept-encoding" in head.lower()


@pytest.mark.parametrize("path", ["/mahasiswa/add", "/?cari=siti", "/mahasiswa/impor", "/tidak/ada"])
@pytest.mark.parametrize(("accepted", "encoded"), [("gzip", True), ("gzip;q=0", False)])
def test_so_does_every_other_page(service: Service, path: str, accepted: str, encoded: bool) -> None:  # noqa: FBT001 - a parameter
    """A form is a third as long."""
    plain, head, body = fetched_twice(service, path, accepted)
    assert (b"content-encoding: gzip" in head.lower()) == encoded
    assert (gzip.decompress(body) if encoded else body) == plain.content
    assert (len(body) < len(plain.content) / 2) == encoded
    assert b"vary: accept-encoding" in head.lower()


def fetched_twice(service: Service, path: str, accepted: str) -> tuple[httpx.Response, bytes, bytes]:
    """A page as it is, and the head and body of the same page for a client that accepts certain encodings."""
    with service.client() as client:
        plain = client.get(path, headers={"accept-encoding": "identity"})
    request = f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAccept-Encoding: {accepted}\r\n\r\n"
    head, _, body = service.raw(request.encode()).partition(b"\r\n\r\n")
    return plain, head, body


def test_a_list_too_long_to_keep_is_streamed_whole(database: str) -> None:
    """A page past 32 MiB comes without ETag, complete and in order; and the service goes on to notice a write."""
    count = 112_000
    with Service(database) as service:
        other = OtherProgram(database)
        other.commit(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < CAST(? AS INTEGER))"
            " INSERT INTO mahasiswa SELECT substr(CAST(100000000 + i AS TEXT), 2), 'Nama ' || i, 'Alamat' FROM n",
            str(count),
        )
        with service.client() as client:
            page = client.get("/", timeout=60)
            head = client.head("/")
            add(client, "99999999z")
            assert "<td>99999999z</td>" in client.get("/", timeout=60).text
        other.close()
    assert "etag" not in page.headers
    assert "etag" not in head.headers
    assert len(page.content) > 32 * 1024 * 1024
    rows = page.text.split("<tr><td>")[1:]
    assert [row[: row.index("</td><td>N")] for row in rows] == [f"{n}</td><td>{n:08}" for n in range(1, count + 1)]


def test_the_stream_equals_the_kept_page(database: str) -> None:
    """The route behind the cache writes the same bytes, chunk by chunk, as the cache keeps."""
    settings = Settings.from_environment({"DATABASE_URL": database})

    async def both() -> tuple[bytes, bytes]:
        guard = create_app(settings)
        assert isinstance(guard, RequestGuard)
        assert isinstance(guard.app, ListCache)
        routes = guard.app.app
        assert isinstance(routes, Application)
        routes.store = guard.app.store = await open_store(settings.database_url)
        for n in range(2500):
            await routes.store.add(f"{n}/é<{n % 7}", "Nur'aini & \r\n", "")
        pages = []
        for app in (guard, routes):
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://a") as client:
                pages.append((await client.get("/", headers={"accept-encoding": ""})).content)
        await routes.store.close()
        return pages[0], pages[1]

    migrate(settings.database_url)
    kept, streamed = asyncio.run(both())
    assert kept.count(b"<tr>") == 2501
    assert kept == streamed


@pytest.mark.skipif(sys.platform != "linux", reason="the time that a worker spends is read from /proc")
def test_a_reader_that_goes_away_ends_its_stream(tmp_path: Path) -> None:
    """What nobody reads is not rendered: ten abandoned readers cost less than one who reads it all."""
    with Service(tmp_path / "a.db") as service:
        other = OtherProgram(tmp_path / "a.db")
        other.commit(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < CAST(? AS INTEGER))"
            " INSERT INTO mahasiswa SELECT printf('%08d', i), 'Nama ' || i, 'Alamat' FROM n",
            "400000",
        )
        other.close()
        before = seconds_spent(service)
        with service.client() as client:
            client.get("/", timeout=60)
        whole = seconds_spent(service) - before
        for _ in range(10):
            with socket.create_connection(("127.0.0.1", service.port)) as connection:
                connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                assert connection.recv(100_000)
        abandoned = settled(lambda: seconds_spent(service)) - before - whole
    assert whole > 0.2
    assert abandoned < whole


def seconds_spent(service: Service) -> float:
    """Read how long the service's one worker has had a processor."""
    worker = Path(f"/proc/{service.pid}/task/{service.pid}/children").read_text().split()[0]
    fields = Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def settled(measure: Callable[[], float]) -> float:
    """Measure until it has not changed for half a second."""
    last, since = measure(), time.monotonic()
    while time.monotonic() < since + 0.5:
        if (now := measure()) != last:
            last, since = now, time.monotonic()
    return last
