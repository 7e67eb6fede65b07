"""Clients that send much, or read nothing, take neither time nor memory from others. The cause is in how HTTP is parsed."""

import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from attack import assert_log_is_sound, fill
from harness import Service
from processes import client_files, until
from sockets import FORM, HOST, Line, statuses
from stores import other_program

from mahasiswa.server.http_protocol import CHECK_SECONDS, WRITE_TIMEOUT_SECONDS
from mahasiswa.server.listener import UNSENT_MAX_BYTES
from mahasiswa.web.connection import MIN_BYTES_PER_SECOND

pytestmark = pytest.mark.alone

LIST = b"GET / HTTP/1.1\r\n" + HOST + b"\r\n"
ADD_FORM = b"GET /mahasiswa/add HTTP/1.1\r\n" + HOST + b"\r\n"
CHUNKED_POST = (
    b"POST /mahasiswa/add HTTP/1.1\r\n" + HOST + FORM + b"Transfer-Encoding: chunked\r\n\r\n"
)
CHUNKED_GET = b"GET / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
BYTE_BY_BYTE = b"1\r\na\r\n" * 10_000
EXTENSIONS = (b"1;" + b"x" * 60_000 + b"\r\na\r\n") * 2
EXPORT = b"GET /mahasiswa/ekspor.csv HTTP/1.1\r\n" + HOST + b"\r\n"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with Service(tmp_path / "a.db", {"LOG_LEVEL": "warning"}) as service:
        fill(tmp_path / "a.db", 3000)
        yield service
        assert_log_is_sound(service.stderr(), ["busy: ", "an answer was cut off: "])


# The first bytes, and what follows without end.
ENDLESS = {
    "trailers of a form": (CHUNKED_POST + b"0\r\n", b"X: y\r\n" * 10_000),
    "trailers of a page": (CHUNKED_GET + b"0\r\n", b"X: y\r\n" * 10_000),
    "one endless trailer": (CHUNKED_POST + b"0\r\nX: ", b"y" * 60_000),
    "chunks of one byte": (CHUNKED_POST, BYTE_BY_BYTE),
    "chunks of one byte for a page": (CHUNKED_GET, BYTE_BY_BYTE),
    "chunk extensions": (CHUNKED_POST, EXTENSIONS),
    "pipelined pages": (b"", ADD_FORM * 1000),
    "pipelined lists": (b"", LIST * 1000),
    "requests behind an export": (EXPORT, ADD_FORM * 1000),
}


@pytest.mark.parametrize(("head", "endless"), list(ENDLESS.values())[:3], ids=list(ENDLESS)[:3])
def test_endless_trailers_are_cut_off(service: Service, head: bytes, endless: bytes) -> None:
    """Trailers are dropped, and more than 64 KB of them are answered 400, unless a page was answered before they arrive."""
    answer = service.raw(head + endless * 8, 30)
    assert statuses(answer) in ([400], [200][: head.startswith(b"GET")])


def test_a_page_is_as_new_as_the_last_byte_of_its_request(service: Service, tmp_path: Path) -> None:
    """Another program commits between the halves of a request that the worker reads in one turn of its event loop.

    The worker is stopped while 100 requests arrive, so they are one turn. It answers the first one long before it reads
    the last one. This test fails if the version of the data is asked once per turn.
    """
    worker = service.worker
    with other_program(tmp_path / "a.db") as execute, ExitStack() as stack:
        for number in range(3):
            lines = [stack.enter_context(Line(service.port)) for _ in range(101)]
            # Every connection is accepted.
            assert all(line.get("/sehat").status == 200 for line in lines)
            os.kill(worker, signal.SIGSTOP)
            for line in lines[:-1]:
                line.socket.sendall(LIST)
            lines[-1].socket.sendall(LIST[:-1])
            os.kill(worker, signal.SIGCONT)
            assert lines[0].socket.recv(1)
            execute(f"INSERT INTO mahasiswa VALUES ('baru-{number}', 'Siti', 'Solo')")
            assert f"<td>baru-{number}</td>".encode() in lines[-1].ask(LIST[-1:]).body, number


@pytest.mark.torture
def test_a_client_takes_4_kb_a_second_of_an_answer_that_is_not_shared(tmp_path: Path) -> None:
    """The kernel tells in steps of 32 KB how much a client takes, and holds 64 KB for it. Both are lost at the reset."""
    with Service(tmp_path / "a.db") as service, ExitStack() as stack:
        fill(tmp_path / "a.db", 30_000)
        speeds = {}
        for speed in (500, 1300, MIN_BYTES_PER_SECOND * 3 // 2):
            reader = stack.enter_context(socket.socket())
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.connect(("127.0.0.1", service.port))
            reader.sendall(EXPORT)
            speeds[reader] = speed
        worker = service.worker
        until(lambda: client_files(worker) >= 2 * len(speeds))
        began = time.monotonic()
        lost: dict[int, float] = {}
        while len(lost) < 2 and time.monotonic() < began + 150:
            time.sleep(1)  # the pace of the clients is the subject of this test
            for reader, speed in speeds.items():
                with suppress(ConnectionResetError):
                    if speed in lost or reader.recv(speed, socket.MSG_WAITALL):
                        continue
                lost[speed] = time.monotonic() - began
        assert sorted(lost) == [500, 1300], lost
        assert WRITE_TIMEOUT_SECONDS < lost[500] < 45, "it took less than 32 KB in 30 s"
        held = UNSENT_MAX_BYTES + WRITE_TIMEOUT_SECONDS * MIN_BYTES_PER_SECOND
        latest = held / (MIN_BYTES_PER_SECOND - 1300) + 10 * CHECK_SECONDS
        assert WRITE_TIMEOUT_SECONDS < lost[1300] < latest, "it took less than 4 KB a second"
