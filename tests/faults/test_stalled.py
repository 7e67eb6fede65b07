"""Stalled clients: a thousand at once, in every phase of a request, do not delay other clients."""

import shutil
import socket
import subprocess
import time
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import cast

import pytest
from attack import FORM, HOST, Line, assert_log_is_sound, fill, linux, memory, open_files, until, workers
from harness import Service

from mahasiswa.work import MAX_LARGE_BODIES

pytestmark = pytest.mark.torture

HEAD_SECONDS, BODY_SECONDS, DRAIN_SECONDS, UNREAD_SECONDS = 10, 10, 30, 30
"""The deadlines of the service, from http_protocol.py and forms.py."""

LATENESS_SECONDS = 30.0
"""How late a deadline may be noticed on a busy machine."""

ANSWER_SECONDS = 2.0
"""Other clients must be answered within this time."""

ROWS = 8000
"""Enough for a list page of 2.5 MB."""

HALF_A_FORM = (
    b"POST /mahasiswa/add HTTP/1.1\r\n" + HOST + FORM + b"Content-Length: 50000\r\n\r\nnim=setengah&nama=Siti&alamat="
)
BIG_LIST = b"GET / HTTP/1.1\r\n" + HOST + b"\r\n"

# For each phase: the bytes sent before the client stalls, the start of the answer, and the deadline in seconds.
PHASES = {
    "says nothing": (b"", b"", HEAD_SECONDS),
    "half a line": (b"GET / HT", b"", HEAD_SECONDS),
    "half a head": (b"GET / HTTP/1.1\r\n" + HOST + b"X: ", b"", HEAD_SECONDS),
    "nothing after an answer": (b"GET /mahasiswa/add HTTP/1.1\r\n" + HOST + b"\r\n", b"HTTP/1.1 200", HEAD_SECONDS),
    "half a body": (HALF_A_FORM, b"HTTP/1.1 408", BODY_SECONDS),
    "half of too large a body": (HALF_A_FORM.replace(b"50000", b"5000000"), b"HTTP/1.1 413", DRAIN_SECONDS),
    "half a chunk": (
        b"POST /mahasiswa/add HTTP/1.1\r\n" + HOST + FORM + b"Transfer-Encoding: chunked\r\n\r\nff\r\nnim=",
        b"HTTP/1.1 408",
        BODY_SECONDS,
    ),
    "half a file": (
        b"POST /mahasiswa/impor HTTP/1.1\r\n" + HOST + b"Content-Type: multipart/form-data; boundary=x\r\n"
        b'Content-Length: 90000\r\n\r\n--x\r\nContent-Disposition: form-data; name="berkas"; filename="a.csv"\r\n\r\nNIM',
        (b"HTTP/1.1 408", b"HTTP/1.1 503"),  # more uploads than may arrive at the same time are refused at once
        BODY_SECONDS,
    ),
}
# The requests of clients that read nothing: a long list, many answers, a file.
READERS = (
    BIG_LIST,
    BIG_LIST * 20,
    (b"GET /mahasiswa/add HTTP/1.1\r\n" + HOST + b"\r\n") * 500,
    b"GET /mahasiswa/ekspor.csv HTTP/1.1\r\n" + HOST + b"\r\n",
)


class Stalled:
    """A client that sends bytes and then only watches whether the service closes its connection."""

    def __init__(self, port: int, data: bytes, *, reads: bool = True) -> None:
        self.received = b""
        self.began = time.monotonic()
        self.socket = socket.socket()
        if not reads:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.settimeout(ANSWER_SECONDS)
        self.socket.connect(("127.0.0.1", port))
        self.socket.sendall(data)
        self.socket.settimeout(0)

    def is_closed(self) -> bool:
        """Return whether the service has closed the connection."""
        try:
            while part := self.socket.recv(65536):
                self.received += part
        except BlockingIOError:
            return False
        except ConnectionResetError:
            pass
        self.socket.close()
        return True


@linux
def test_a_thousand_stalled_clients_do_not_delay_others(tmp_path: Path) -> None:
    """Stalled clients are disconnected at their deadlines, others are answered, and then all memory is free again."""
    each = 100
    with Service(tmp_path / "a.db") as service, ExitStack() as stack:
        fill(tmp_path / "a.db", ROWS)
        (worker,) = workers(service)
        with Line(service.port) as line:
            for path in ("/", "/?cari=1", "/mahasiswa/ekspor.csv"):
                assert line.get(path).status == 200
        seconds = calibrated(service)
        before, files = memory(worker), open_files(worker)
        waiting: dict[str, list[Stalled]] = {}
        for name, (data, _, _) in PHASES.items():
            waiting[name] = [Stalled(service.port, data) for _ in range(each)]
        began = time.monotonic()
        unread = [Stalled(service.port, data, reads=False) for data in READERS for _ in range(each)]
        for client in chain(unread, *waiting.values()):
            stack.callback(client.socket.close)
        assert len(unread) + sum(map(len, waiting.values())) >= 1000
        until(lambda: open_files(worker) > files + 1000, 30)
        assert_other_clients_are_answered(service, -1, 30)  # while a thousand requests arrive in one moment

        most, answered = before, 0
        # Count open files, because a client that does not read cannot see that its connection was closed.
        while any(waiting.values()) or open_files(worker) > files + 10:
            assert_other_clients_are_answered(service, answered, seconds)
            answered += 1
            most = max(most, memory(worker))
            now = time.monotonic()
            assert now < began + UNREAD_SECONDS + LATENESS_SECONDS, "clients that do not read are still connected"
            for name, clients in waiting.items():
                _, answer, deadline = PHASES[name]
                closed = [client for client in clients if client.is_closed()]
                assert all(
                    client.received.startswith(cast("bytes", answer)) and bool(client.received) == bool(answer)
                    for client in closed
                )
                waiting[name] = [client for client in clients if client not in closed]
                last = deadline + LATENESS_SECONDS
                assert all(now < client.began + last for client in waiting[name]), f"{name}: still connected"
        assert answered > 50
        assert time.monotonic() > began + UNREAD_SECONDS - 1, "clients that do not read were disconnected too early"

        # A client that does not read may cost a buffer, but not the 2.5 MB of the list.
        assert most - before < 0.7 * len(unread), f"{most - before:.0f} MB"
        assert memory(worker) - before < 0.5 * len(unread), f"{memory(worker) - before:.0f} MB"
        assert workers(service) == [worker]
        assert_other_clients_are_answered(service, answered, seconds)
        assert_log_is_sound(service.stderr(), ["busy: "])
        until(lambda: service.stderr().count(" 408 ") == 2 * each + MAX_LARGE_BODIES)


def calibrated(service: Service) -> float:
    """Return ANSWER_SECONDS, or more on a machine that is slow now: 100 times the answers of an idle service."""
    began = time.monotonic()
    for number in range(10):
        assert_other_clients_are_answered(service, number, 30)
    return max(ANSWER_SECONDS, 10 * (time.monotonic() - began))


def assert_other_clients_are_answered(service: Service, number: int, seconds: float) -> None:
    """Check that new clients can probe the service, add a record, see it in the list and delete it, each in time."""
    for request in (
        lambda line: line.get("/sehat").status == 200,
        lambda line: line.add(f"n{number}", "Siti", "Solo").status == 302,
        lambda line: f"<td>n{number}</td>".encode() in line.get("/").body,
        lambda line: line.delete(f"n{number}").status == 302,
    ):
        began = time.monotonic()
        with Line(service.port, seconds) as line:
            assert request(line)
        assert time.monotonic() - began < seconds


@linux
def test_clients_that_do_not_read_take_little_of_the_kernels_memory(tmp_path: Path) -> None:
    """The kernel holds at most 2 MB of the answer to each of them, and the service holds the page once."""
    with Service(tmp_path / "a.db") as service, ExitStack() as stack:
        fill(tmp_path / "a.db", 2 * ROWS)
        (worker,) = workers(service)
        with Line(service.port) as line:
            assert len(line.get("/").body) > 4_000_000
        held, before = memory(worker), buffered_megabytes()
        for _ in range(50):
            client = stack.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", service.port))
            client.sendall(BIG_LIST)
            assert client.recv(12, socket.MSG_PEEK | socket.MSG_WAITALL) == b"HTTP/1.1 200"
        assert buffered_megabytes() - before < 50 * 2
        assert memory(worker) - held < 20


def buffered_megabytes() -> float:
    """Return the size of the kernel's buffers of all TCP connections of this computer."""
    words = Path("/proc/net/sockstat").read_text("utf-8").partition("TCP: ")[2].split()
    return int(words[words.index("mem") + 1]) * 4096 / 1e6


@linux
def test_sigterm_does_not_wait_for_stalled_clients(tmp_path: Path) -> None:
    """With hundreds of stalled clients, SIGTERM ends the service long before the clients have to be gone."""
    with Service(tmp_path / "a.db") as service, ExitStack() as stack:
        fill(tmp_path / "a.db", ROWS)
        (worker,) = workers(service)
        files = open_files(worker)
        everyone = [*(data for data, _, _ in PHASES.values()), *READERS]
        for data in everyone:
            for _ in range(30):
                stack.callback(Stalled(service.port, data, reads=False).socket.close)
        until(lambda: open_files(worker) >= files + 30 * len(everyone))
        began = time.monotonic()
        assert service.stop() == 0
        assert time.monotonic() - began < 15


@pytest.mark.parametrize("mode", ["-H", "-B", "-X"], ids=["slow heads", "slow bodies", "slow readers"])
def test_slowhttptest_does_not_make_the_service_unavailable(tmp_path: Path, mode: str) -> None:
    """The service answers other clients after an attack by the tool slowhttptest with a thousand connections."""
    tool = shutil.which("slowhttptest")
    if tool is None:
        pytest.skip("slowhttptest is not installed")
    with Service(tmp_path / "a.db") as service:
        command = [tool, mode, "-c", "1000", "-r", "500", "-i", "5", "-l", "25", "-p", "3", "-u", f"{service.url}/"]
        subprocess.run(command, check=True, capture_output=True, cwd=tmp_path, timeout=90)
        assert_other_clients_are_answered(service, 0, ANSWER_SECONDS)
        assert_log_is_sound(service.stderr())
