"""A request leaves nothing for the garbage collector, which would stop the event loop for the longer the more there is."""

import re
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from multiprocessing.connection import Connection, Listener
from pathlib import Path

import pytest
from engines import ENGINES, empty_database
from harness import Service
from processes import until
from sockets import CLOSE, RESET, Line, connected, get, post, upload

COUNTER = Path(__file__).parents[2] / "garbage"
TIMES = 50
RECORDS = 120
MOMENTS, MOMENT_SECONDS = 12, 0.01  # of an abandoned request
LEFT_BY_POOL = 2000

REQUESTS = {
    "the list": (get("/"), 200),
    "a page of the list": (get("/?per=10"), 200),
    "a search": (get("/?cari=siti"), 200),
    "a search without a hit": (get("/?cari=budi"), 200),
    "a form": (get("/mahasiswa/edit/1"), 200),
    "no record": (get("/mahasiswa/edit/0"), 404),
    "no page": (get("/0"), 404),
    "a wrong method": (get("/mahasiswa/delete/1"), 405),
    "the history": (get("/mahasiswa/riwayat"), 200),
    "the checks": (get("/mahasiswa/periksa"), 200),
    "an export": (get("/mahasiswa/ekspor.csv"), 200),
    "a workbook": (get("/mahasiswa/ekspor.xlsx"), 200),
    "a duplicate": (post("/mahasiswa/add", b"nim=1&nama=Siti&alamat=Solo", CLOSE), 409),
    "a missing field": (post("/mahasiswa/add", b"nim=2&nama=Siti", CLOSE), 400),
    "an edit": (post("/mahasiswa/edit/1", b"nama=Siti&alamat=Solo", CLOSE), 302),
    "a conflict": (post("/mahasiswa/edit/1", b"nama=Ani&alamat=Solo&versi=0", CLOSE), 409),
    "a deletion of no record": (post("/mahasiswa/delete/0", b"", CLOSE), 302),
    "a body of no form": (post("/mahasiswa/add", b"x", b"Content-Encoding: gzip\r\n", CLOSE), 415),
    "a preview": (upload(b"NIM,Nama,Alamat\n1,Siti,Solo\n2,Budi,Solo\n"), 200),
    "no spreadsheet": (upload(b"\0"), 400),
    "no HTTP": (b"\x16\x03\x01\r\n\r\n", 400),
}


@pytest.fixture(scope="module", params=ENGINES)
def counted(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Service, Connection]]:
    """Start a service, and return it with the connection to the counter in this worker."""
    folder = tmp_path_factory.mktemp("garbage")
    socket = str(folder / "socket")
    # In the place of the clock of the other tests.
    environment = {"PYTHONPATH": str(COUNTER), "GARBAGE": socket, "METRICS": "1"}
    with (
        Listener(socket) as listener,
        empty_database(request.param, folder, request) as database,
        Service(database, environment, command=(sys.executable, "-m", "mahasiswa")) as service,
        listener.accept() as counter,
    ):
        with Line(service.port) as line:
            line.add("1", "Siti", "Solo")
        yield service, counter


ABANDONED = {
    "a long page": get("/?per=10000"),
    "a printout": get("/mahasiswa/cetak"),
    "an export": get("/mahasiswa/ekspor.csv"),
    "a workbook": get("/mahasiswa/ekspor.xlsx"),
    "a selection": get("/mahasiswa/pilih?cari=siti"),
    "a preview": upload(
        b"NIM,Nama,Alamat\n" + b"".join(b"%d,Siti,Solo\n" % at for at in range(9000))
    ),
    "a large preview": upload(b"NIM,Nama,Alamat\n1,Siti,Solo\n" + b"\n" * 8_000_000),
}


def garbage(counter: Connection) -> int:
    counter.send("count")
    count: int = counter.recv()
    return count


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_leaves_no_garbage(counted: tuple[Service, Connection], name: str) -> None:
    service, counter = counted
    request, status = REQUESTS[name]
    for times in (1, TIMES):  # the first request also makes caches, which are no garbage
        garbage(counter)
        for _ in range(times):
            assert service.raw(request).startswith(b"HTTP/1.1 %d " % status)
    assert garbage(counter) < TIMES


@pytest.fixture(scope="module")
def long(counted: tuple[Service, Connection]) -> tuple[Service, Connection]:
    """The same with long texts in the list."""
    with Line(counted[0].port) as line:
        for at in range(RECORDS):
            assert line.add(f"{at:04}", "Siti " + "a" * 62_000, "🎓").status == 302
    return counted


def is_idle(service: Service) -> bool:
    """Whether no other request runs or is held."""
    text = service.raw(get("/metrics")).decode()
    held = re.findall(
        r"^mahasiswa_(?:work_running|request_bodies_bytes|answers_bytes)\{.*\} (\S+)$",
        text,
        re.MULTILINE,
    )
    return {*held} == {"0"}


@pytest.mark.parametrize("name", ABANDONED)
def test_an_abandoned_request_leaves_no_garbage(
    long: tuple[Service, Connection], name: str
) -> None:
    """What it held would stay in memory after the budgets count it as free. The client goes at different moments."""
    service, counter = long
    left = 0
    garbage(counter)
    for at in range(MOMENTS):
        with ExitStack() as stack:
            for _ in range(3):
                connected(service, stack, ABANDONED[name], linger=RESET)
            time.sleep(at * MOMENT_SECONDS)
        until(lambda: is_idle(service))
        left += garbage(counter)
    # A request that ends while it waits for a connection of psycopg_pool leaves about a hundred small objects.
    has_pool = str(service.database).startswith("postgres")
    assert left < (LEFT_BY_POOL if has_pool else TIMES)
