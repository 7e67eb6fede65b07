"""Clients that stall in every phase of a request, a thousand at once, or break off again and again, cost others nothing."""

import socket
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from attack import Bystander, assert_log_is_sound, fill
from harness import Service
from processes import allow_files, memory, open_files, until
from sockets import FORM, HOST, Line, connected, upload

from mahasiswa.server.http_protocol import (
    DRAIN_TIMEOUT_SECONDS,
    HEAD_TIMEOUT_SECONDS,
    WRITE_TIMEOUT_SECONDS,
)
from mahasiswa.server.worker import CLOSING_SECONDS, GRACEFUL_SHUTDOWN_SECONDS
from mahasiswa.web.forms import BODY_TIMEOUT_SECONDS
from mahasiswa.web.list_cache import PAGE_MAX_RECORDS
from mahasiswa.work import UPLOAD

pytestmark = pytest.mark.alone

LATENESS_SECONDS = 60.0
"""How late a deadline may be noticed on a busy machine."""

ROWS = 8000
"""Enough for a list page of 2.5 MB."""

POST_FORM = b"POST /mahasiswa/add HTTP/1.1\r\n" + HOST + FORM
ADD_FORM = b"GET /mahasiswa/add HTTP/1.1\r\n" + HOST + b"\r\n"
BIG_LIST = b"GET / HTTP/1.1\r\n" + HOST + b"\r\n"

# For each phase: the bytes sent before the client stalls, the start of the answer, and the deadline in seconds.
PHASES: Mapping[str, tuple[bytes, bytes | tuple[bytes, ...], float]] = {
    "says nothing": (b"", b"", HEAD_TIMEOUT_SECONDS),
    "half a line": (b"GET / HT", b"", HEAD_TIMEOUT_SECONDS),
    "half a head": (b"GET / HTTP/1.1\r\n" + HOST + b"X: ", b"", HEAD_TIMEOUT_SECONDS),
    "nothing after an answer": (ADD_FORM, b"HTTP/1.1 200", HEAD_TIMEOUT_SECONDS),
    "half a body": (
        POST_FORM + b"Content-Length: 50000\r\n\r\nnim=1",
        b"HTTP/1.1 408",
        BODY_TIMEOUT_SECONDS,
    ),
    "half of too large a body": (
        POST_FORM + b"Content-Length: 5000000\r\n\r\n1",
        b"HTTP/1.1 413",
        DRAIN_TIMEOUT_SECONDS,
    ),
    "half a chunk": (
        POST_FORM + b"Transfer-Encoding: chunked\r\n\r\nff\r\nnim=",
        b"HTTP/1.1 408",
        BODY_TIMEOUT_SECONDS,
    ),
    "half a file": (
        upload(bytes(90_000), b"berkas", b"a.xlsx")[:300],
        (b"HTTP/1.1 408", b"HTTP/1.1 503"),  # few uploads of an address may arrive
        DRAIN_TIMEOUT_SECONDS,
    ),
}
# The requests of clients that read nothing: a long list, many answers, a file.
READERS = (
    BIG_LIST,
    BIG_LIST * 20,
    ADD_FORM * 500,
    b"GET /mahasiswa/ekspor.csv HTTP/1.1\r\n" + HOST + b"\r\n",
)


class Stalled:
    """A client that sends bytes and then only watches whether the service closes its connection."""

    def __init__(self, service: Service, stack: ExitStack, data: bytes) -> None:
        self.received = b""
        self.began = time.monotonic()
        self.socket = connected(service, stack, data)
        self.socket.settimeout(0)

    def is_closed(self) -> bool:
        try:
            while part := self.socket.recv(65536):
                self.received += part
        except BlockingIOError:
            return False
        except ConnectionResetError:
            pass
        self.socket.close()
        return True


@pytest.mark.torture
def test_a_thousand_stalled_clients_do_not_delay_others(tmp_path: Path) -> None:
    """Stalled clients are disconnected at their deadlines, others are answered, and then all memory is free again."""
    each = 100
    allow_files(1500)
    with Service(tmp_path / "a.db") as service, ExitStack() as stack:
        fill(tmp_path / "a.db", ROWS)
        worker = service.worker
        with Line(service.port) as line:
            for path in ("/", "/?cari=1", "/mahasiswa/ekspor.csv"):
                assert line.get(path).status == 200
        bystander = Bystander(service)
        before, files = memory(worker), open_files(worker)
        waiting: dict[str, list[Stalled]] = {}
        for name, (data, _, _) in PHASES.items():
            waiting[name] = [Stalled(service, stack, data) for _ in range(each)]
        began = time.monotonic()
        unread = [connected(service, stack, data) for data in READERS for _ in range(each)]
        assert len(unread) + sum(map(len, waiting.values())) >= 1000
        until(lambda: open_files(worker) > files + 1000)
        bystander.visit()  # while a thousand requests arrive in one moment, which takes its time
        bystander.worst = (0.0, 0.0)

        most = before
        visits = bystander.number
        # Count open files, because a client that does not read cannot see that its connection was closed.
        while any(waiting.values()) or open_files(worker) > files + 10:
            bystander.visit()
            most = max(most, memory(worker))
            now = time.monotonic()
            assert now < began + WRITE_TIMEOUT_SECONDS + LATENESS_SECONDS, (
                "clients that do not read are still connected"
            )
            for name, clients in waiting.items():
                _, answer, deadline = PHASES[name]
                closed = [client for client in clients if client.is_closed()]
                for client in closed:
                    assert client.received.startswith(answer)
                    assert bool(client.received) == bool(answer), name
                waiting[name] = [client for client in clients if client not in closed]
                last = deadline + LATENESS_SECONDS
                assert all(now < client.began + last for client in waiting[name]), (
                    f"{name}: still connected"
                )
        assert bystander.number > visits + 20
        assert time.monotonic() > began + WRITE_TIMEOUT_SECONDS - 1, (
            "clients that do not read were disconnected too early"
        )

        # A client that does not read may cost a buffer, but not the 2.5 MB of the list.
        assert most - before < 0.7 * len(unread), f"{most - before:.0f} MB"
        assert memory(worker) - before < 0.5 * len(unread), f"{memory(worker) - before:.0f} MB"
        bystander.assert_in_time()
        assert_log_is_sound(service.stderr(), ["busy: "])
        until(lambda: service.stderr().count(" 408 ") == 2 * each + UPLOAD.of_address)


def test_sigterm_does_not_wait_for_stalled_clients(tmp_path: Path) -> None:
    """The service ends within 5 seconds, with exit code 0, long before the clients have to be gone."""
    with Service(tmp_path / "a.db") as service, ExitStack() as stack:
        fill(tmp_path / "a.db", ROWS)
        worker = service.worker
        files = open_files(worker)
        everyone = [*(data for data, _, _ in PHASES.values()), *READERS] * 10
        for data in everyone:
            connected(service, stack, data)
        until(lambda: open_files(worker) >= files + len(everyone))
        began = time.monotonic()
        assert service.stop() == 0
        assert time.monotonic() - began < GRACEFUL_SHUTDOWN_SECONDS + CLOSING_SECONDS + 0.5


def buffered_megabytes() -> float:
    """Return the size of the kernel's buffers of all TCP connections of this computer."""
    words = Path("/proc/net/sockstat").read_text("utf-8").partition("TCP: ")[2].split()
    return int(words[words.index("mem") + 1]) * 4096 / 1e6


@pytest.mark.torture
def test_clients_that_do_not_read_take_little_of_the_kernels_memory(tmp_path: Path) -> None:
    """The kernel holds at most 2 MB of the answer to each of them, and the service holds the page once."""
    with Service(tmp_path / "a.db") as service, ExitStack() as stack:
        fill(tmp_path / "a.db", PAGE_MAX_RECORDS - 100)
        worker = service.worker
        with Line(service.port) as line:
            assert len(line.get("/").body) > 3_000_000
        held, before = memory(worker), buffered_megabytes()
        for _ in range(50):
            client = connected(service, stack, BIG_LIST)
            assert client.recv(12, socket.MSG_PEEK | socket.MSG_WAITALL) == b"HTTP/1.1 200"
        assert buffered_megabytes() - before < 50 * 2
        assert memory(worker) - held < 20


# ---- for long
CLIENTS, VISITS, NIMS = 4, 2500, 50
"""All clients together make these visits, each of up to seven requests. Each changes a few NIMs again and again."""
