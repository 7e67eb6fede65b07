"""The table of slow and hostile clients: what each one gets, and when its connection ends. Others are answered meanwhile.

The table is in docs/decisions.md. To write it: WRITE_TABLE=1 .venv/bin/python -m pytest tests/faults/test_slow_clients.py
"""

import os
import re
import resource
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest
from faults.attack import attacked, client_files
from harness import Service
from processes import cannot, until
from sockets import CLOSE, FORM, HOST, connected, get
from spreadsheets import numbered
from stores import merge

from mahasiswa.server.http_protocol import (
    CHECK_SECONDS,
    HEAD_TIMEOUT_SECONDS,
    WRITE_TIMEOUT_SECONDS,
)
from mahasiswa.server.listener import UNSENT_MAX_BYTES
from mahasiswa.server.worker import CLOSING_SECONDS, GRACEFUL_SHUTDOWN_SECONDS
from mahasiswa.web.connection import MIN_BYTES_PER_SECOND
from mahasiswa.web.forms import BODY_TIMEOUT_SECONDS
from mahasiswa.web.list_cache import PAGE_MAX_RECORDS

pytestmark = [pytest.mark.torture, pytest.mark.alone]

DOCUMENT = Path(__file__).parents[2] / "docs" / "decisions.md"
TABLE = re.compile(r"(<!-- the table of slow clients, [^>]*-->\n).*?(?=<!-- end -->)", re.DOTALL)
SECONDS = re.compile(r"\d+ s(?= \|)")  # they are written, and not compared

STEP_SECONDS = 0.1
FAST = 1 << 20  # maximum bytes that a client reads in a step

GET = b"GET /mahasiswa/add HTTP/1.1\r\n"
POST = b"POST /mahasiswa/add HTTP/1.1\r\n" + HOST + FORM
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
LIST = get("/")

# The first bytes of a client, those that it sends in each step, and how many it reads in each step.
CLIENTS: Mapping[str, tuple[bytes, bytes, int]] = {
    "silent head": (b"", b"", FAST),
    "dripping head": (GET + b"X: ", b"a", FAST),
    "body that stops": (POST + b"Content-Length: 50000\r\n\r\nnim=1", b"", FAST),
    "dripping body": (POST + b"Content-Length: 50000\r\n\r\nnim=1", b"a", FAST),
    "body in chunks that stops": (CHUNKED + b"ff\r\nnim=", b"", FAST),
    "reader that stops": (LIST, b"", 0),
    "reader of 512 bytes a second": (LIST, b"", 51),
    "reader of 1,300 bytes a second": (LIST, b"", 130),
    "reader of 6 KB a second": (LIST, b"", MIN_BYTES_PER_SECOND * 3 // 20),
    "idle after an answer": (GET + HOST + b"\r\n", b"", FAST),
    "100 KB of head": (GET + HOST + b"X: %b\r\n\r\n" % (b"a" * 100_000), b"", FAST),
    "200 headers": (GET + HOST + b"X: a\r\n" * 200 + b"\r\n", b"", FAST),
    "64 KB of path": (get("/" + "a" * 65_536), b"", FAST),
    "600 KB of trailers": (CHUNKED + b"0\r\n" + b"X: y\r\n" * 100_000, b"", FAST),
    "garbage in chunks": (CHUNKED + b"zz\r\nnim=1\r\n", b"", FAST),
    "two lengths": (POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nnim=1", b"", FAST),
    "length and chunks": (POST + b"Content-Length: 5\r\n" + CHUNKED[len(POST) :], b"", FAST),
    "two hosts": (GET + HOST * 2 + CLOSE + b"\r\n", b"", FAST),
    "no host": (GET + CLOSE + b"\r\n", b"", FAST),
    "bare LF": (b"GET / HTTP/1.1\nHost: a\n\n", b"", FAST),
    "NUL": (GET + HOST + b"X: \0\r\n\r\n", b"", FAST),
    "folded header": (GET + HOST + b"X: a\r\n b\r\n\r\n", b"", FAST),
}
IDLE, READERS, LISTS = 1000, 300, 20

# The bytes that the kernel holds for a reader, and those by which the reader may be late.
HELD_BYTES = UNSENT_MAX_BYTES + WRITE_TIMEOUT_SECONDS * MIN_BYTES_PER_SECOND
# When the service ends a connection at the latest, on a machine that does nothing else.
DEADLINES: Mapping[str, float] = {
    "silent head": HEAD_TIMEOUT_SECONDS,
    "body that stops": BODY_TIMEOUT_SECONDS,
    "reader that stops": WRITE_TIMEOUT_SECONDS,
    "reader of 1,300 bytes a second": HELD_BYTES / (MIN_BYTES_PER_SECOND - 1300),
}
LATENESS_SECONDS = 60.0  # of a busy machine


class Client:
    """A client with a small receive buffer."""

    def __init__(
        self, service: Service, stack: ExitStack, first: bytes, drip: bytes = b"", speed: int = FAST
    ) -> None:
        self.socket = connected(service, stack, first)
        self.socket.settimeout(0)
        self.drip = drip
        self.speed = speed
        self.began = time.monotonic()
        self.seconds = 0.0
        self.status = b""
        self.end = ""

    def step(self) -> None:
        """Read, or if there is nothing to read, send."""
        try:
            self.end = self._read()
        except BlockingIOError:
            if self.drip:
                self.socket.send(self.drip)
        except ConnectionError:
            self.end = "reset"
        self.seconds = time.monotonic() - self.began

    def _read(self) -> str:
        if not self.speed:
            failed = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            return "reset" if failed else ""
        part = self.socket.recv(self.speed)
        self.status = (self.status + part)[:12]
        return "" if part else "closed"

    @property
    def outcome(self) -> str:
        answer = self.status[9:].decode() or "nothing"
        return f"{answer}, {self.end or 'goes on'}"


def all_clients(service: Service, stack: ExitStack) -> Mapping[str, Sequence[Client]]:
    """Connect every client. Fifteen readers come after each change of the list; the other readers take the last one."""
    readers = []
    for number in range(LISTS):
        with service.site() as site:
            assert site.edit("00000001", f"{number}", "Solo").status_code == 302
        readers += [Client(service, stack, LIST, speed=0) for _ in range(READERS // LISTS)]
    clients = {name: [Client(service, stack, *client)] for name, client in CLIENTS.items()}
    half_closed = Client(service, stack, get("/mahasiswa/periksa"))
    half_closed.socket.shutdown(socket.SHUT_WR)
    clients["half-closed, before the answer"] = [half_closed]
    clients["1,000 idle"] = [Client(service, stack, b"") for _ in range(IDLE)]
    clients["300 readers of 20 lists"] = readers
    return clients


def test_each_slow_client_gets_what_the_table_says_and_others_are_answered(tmp_path: Path) -> None:
    """Others are answered in time, and the memory of the service is bounded."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most < 3000:
        cannot("open 3000 files", f"the limit is {most}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with Service(tmp_path / "a.db", {"LOG_LEVEL": "error"}) as service, ExitStack() as stack:
        merge(
            tmp_path / "a.db", *numbered(PAGE_MAX_RECORDS - 1000, "Nama {}", "x" * 100, nim="{:08}")
        )
        files = client_files(service)
        with attacked(service, "/?halaman=1"):
            clients = all_clients(service, stack)
            waiting = [one for name in clients for one in clients[name] if "6 KB" not in name]
            everyone = [one for ones in clients.values() for one in ones]
            while any(not one.end for one in waiting):
                for one in everyone:
                    if not one.end:
                        one.step()
                time.sleep(STEP_SECONDS)  # the pace of the clients
            clients["reader of 6 KB a second"][0].socket.close()
            # The others get a complete answer, so the service reads on for a while.
            late = WRITE_TIMEOUT_SECONDS + LATENESS_SECONDS
            until(lambda: client_files(service) <= files + 4, late)
    for name, deadline in DEADLINES.items():
        seconds = clients[name][0].seconds
        assert min(deadline, WRITE_TIMEOUT_SECONDS) - CHECK_SECONDS < seconds
        assert seconds < deadline + CHECK_SECONDS + LATENESS_SECONDS
    lines = ["| client | gets | after |", "| --- | --- | --- |"]
    for name, ones in clients.items():
        outcome = " or ".join(sorted({one.outcome for one in ones}))
        lines.append(f"| {name} | {outcome} | {max(one.seconds for one in ones):.0f} s |")
    table = "\n".join([*lines, ""])
    text = DOCUMENT.read_text("utf-8")
    if os.environ.get("WRITE_TABLE"):
        DOCUMENT.write_text(TABLE.sub(lambda old: old[1] + table, text), "utf-8")
    else:
        assert SECONDS.sub("", table) in SECONDS.sub("", text)


def test_sigterm_does_not_wait_for_slow_clients(tmp_path: Path) -> None:
    """The service ends within 5 seconds, with exit code 0, long before the clients have to be gone."""
    with Service(tmp_path / "a.db") as service, ExitStack() as stack:
        merge(
            tmp_path / "a.db", *numbered(PAGE_MAX_RECORDS - 1000, "Nama {}", "Alamat", nim="{:08}")
        )
        files = psutil.Process(service.pid).num_fds()
        slow = [first for name, (first, _, _) in CLIENTS.items() if name[:4] in ("body", "read")]
        for first in slow * 10:
            connected(service, stack, first)
        until(lambda: psutil.Process(service.pid).num_fds() >= files + 10 * len(slow))
        began = time.monotonic()
        assert service.stop() == 0
        took = time.monotonic() - began
        assert took < GRACEFUL_SHUTDOWN_SECONDS + CLOSING_SECONDS + 0.5
