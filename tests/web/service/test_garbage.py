"""A request leaves nothing for the garbage collector, which would stop the event loop for the longer the more there is."""

import sys
from collections.abc import Iterator
from multiprocessing.connection import Connection, Listener
from pathlib import Path

import pytest
from engines import ENGINES, empty_database
from harness import Service
from sockets import CLOSE, Line, get, post, upload

COUNTER = Path(__file__).parents[2] / "garbage"
TIMES = 50

REQUESTS = {
    "the list": get("/"),
    "a page of the list": get("/?per=10"),
    "a search": get("/?cari=siti"),
    "a search without a hit": get("/?cari=budi"),
    "a form": get("/mahasiswa/edit/1"),
    "no record": get("/mahasiswa/edit/0"),
    "no page": get("/0"),
    "a wrong method": get("/mahasiswa/delete/1"),
    "the history": get("/mahasiswa/riwayat"),
    "the checks": get("/mahasiswa/periksa"),
    "an export": get("/mahasiswa.csv"),
    "a duplicate": post("/mahasiswa/add", b"nim=1&nama=Siti&alamat=Solo", CLOSE),
    "a missing field": post("/mahasiswa/add", b"nim=2&nama=Siti", CLOSE),
    "an edit": post("/mahasiswa/edit/1", b"nama=Siti&alamat=Solo", CLOSE),
    "a conflict": post("/mahasiswa/edit/1", b"nama=Ani&alamat=Solo&versi=0", CLOSE),
    "a deletion of no record": post("/mahasiswa/delete/0", b"", CLOSE),
    "a body of no form": post("/mahasiswa/add", b"{}", b"Content-Type: text/plain\r\n", CLOSE),
    "a preview": upload(b"NIM,Nama,Alamat\n1,Siti,Solo\n2,Budi,Solo\n"),
    "no spreadsheet": upload(b"\0"),
    "no HTTP": b"\x16\x03\x01\r\n\r\n",
}


@pytest.fixture(scope="module", params=ENGINES)
def counted(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Service, Connection]]:
    """Start a service, and return it with the connection to the counter in this worker."""
    folder = tmp_path_factory.mktemp("garbage")
    socket = str(folder / "socket")
    # In the place of the clock of the other tests.
    environment = {"PYTHONPATH": str(COUNTER), "GARBAGE": socket}
    with (
        Listener(socket) as listener,
        empty_database(request.param, folder, request) as database,
        Service(database, environment, command=(sys.executable, "-m", "mahasiswa")) as service,
        listener.accept() as counter,
    ):
        with Line(service.port) as line:
            line.add("1", "Siti", "Solo")
        yield service, counter


def garbage(counter: Connection) -> int:
    counter.send("count")
    count: int = counter.recv()
    return count


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_leaves_no_garbage(counted: tuple[Service, Connection], name: str) -> None:
    service, counter = counted
    service.raw(REQUESTS[name])  # what is made once is no garbage
    garbage(counter)
    for _ in range(TIMES):
        service.raw(REQUESTS[name])
    assert garbage(counter) < TIMES
