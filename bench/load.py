"""Sends requests to a server: load by wrk, timed single requests, and requests that check its answers."""

import contextlib
import gzip
import html
import http.client
import json
import re
import resource
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from bench import processors
from bench.prepare import BENCH
from bench.servers import HOST, Failed, Server
from bench.stores import Row

FORM = "application/x-www-form-urlencoded"
_CELL = re.compile(r"<td[^>]*>(.*?)</td>", re.DOTALL)


class Shares(NamedTuple):
    """The processor use of servers, load generator, PostgreSQL and other programs; 1 is one full processor."""

    server_busy: float
    load_busy: float
    database_busy: float
    others_busy: float
    server_seconds: float
    """The processor time of the servers, all threads."""


def shares(*servers: Server) -> Callable[[], Shares]:
    """Start measuring the processor use; the returned function ends the measurement."""
    databases = {server.database for server in servers if server.database}

    def clocks() -> tuple[float, ...]:
        usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        own = sum(usage.ru_utime + usage.ru_stime for usage in usages)
        watched = (sum(each.processor_seconds() for each in family) for family in (servers, databases))
        return time.monotonic(), own, processors.used(), *watched

    before = clocks()

    def ended() -> Shares:
        length, own, used, server, database = (new - old for old, new in zip(before, clocks(), strict=True))
        others = max(0, used - server - database - own)
        return Shares(server / length, own / length, database / length, others / length, server)

    return ended


class Load(NamedTuple):
    """The results of wrk."""

    requests: int
    seconds: float
    redirects: int
    p50_ms: float
    p99_ms: float
    shares: Shares

    @property
    def rate(self) -> float:
        """Requests a second."""
        return self.requests / self.seconds

    @property
    def processor_us(self) -> float:
        """The server's processor time per answered request, in microseconds."""
        return self.shares.server_seconds / self.requests * 1e6


def wrk(server: Server, mode: str, connections: int, seconds: int, *arguments: str) -> Load:
    """Load a server in one of the modes of wrk.lua; raise Failed if any answer was an error."""
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "-s", str(BENCH / "wrk.lua")]
    command += [f"http://{HOST}:{server.port}/", "--", mode, *arguments]
    processors.wait_for_calm()
    ended = shares(server)
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds + 60)
    busy = ended()
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        raise Failed(f"wrk failed: {done.stdout[-500:]}{done.stderr[-500:]}")
    seen = json.loads(lines[-1])
    if seen["refused"] or seen["broken"] or not seen["requests"]:
        raise Failed(f"{seen['refused']} error answers, {seen['broken']} broken, of {seen['requests']}")
    return Load(seen["requests"], seen["seconds"], seen["redirects"], seen["p50_ms"], seen["p99_ms"], busy)


class Answer(NamedTuple):
    """One answer, decompressed, with the seconds from the request to its first and last byte as it was sent."""

    status: int
    body: bytes
    first: float
    last: float


class Client:
    """One kept-alive connection with little overhead, so that the measured time is that of the server."""

    def __init__(self, server: Server) -> None:
        self._port = server.port
        self._buffer = bytearray(64 << 20)
        self._connect()

    def _connect(self) -> None:
        self._socket = socket.create_connection((HOST, self._port), 30)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._used = time.monotonic()

    def get(self, path: str = "/", *headers: str) -> Answer:
        """Request a page; raise Failed if the answer has no Content-Length."""
        if time.monotonic() - self._used > 1:  # a server closes an idle connection after some seconds
            self.close()
            self._connect()
        view = memoryview(self._buffer)
        request = "\r\n".join([f"GET {path} HTTP/1.1", f"Host: {HOST}:{self._port}", *headers, "", ""]).encode()
        started = time.perf_counter()
        self._socket.sendall(request)
        received = self._receive(view)
        first = time.perf_counter() - started
        while (end := self._buffer.find(b"\r\n\r\n", 0, received)) < 0:
            received += self._receive(view[received:])
        head = bytes(view[:end]).decode("latin-1")
        length = re.search(r"(?im)^content-length: *(\d+)", head)
        if not length:
            raise Failed("the answer has no Content-Length")
        whole = end + 4 + int(length[1])
        while received < whole:
            received += self._receive(view[received:])
        last = time.perf_counter() - started
        self._used = time.monotonic()
        body = bytes(view[end + 4 : whole])
        if re.search(r"(?im)^content-encoding: *gzip", head):
            body = gzip.decompress(body)
        return Answer(int(head.split(" ", 2)[1]), body, first, last)

    def _receive(self, view: memoryview) -> int:
        received = self._socket.recv_into(view)
        if not received:
            raise Failed("the connection was closed in the middle of an answer")
        return received

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


class Download(NamedTuple):
    """The seconds to the first and last byte of a large page, and its size in bytes."""

    first: float
    last: float
    size: int


def download(server: Server) -> Download:
    """Read the list page on a connection of its own without keeping it; raise Failed if that breaks."""
    buffer = bytearray(1 << 20)
    request = f"GET / HTTP/1.1\r\nHost: {HOST}:{server.port}\r\nConnection: close\r\n\r\n".encode()
    try:
        with socket.create_connection((HOST, server.port), 120) as connection:
            started = time.perf_counter()
            connection.sendall(request)
            size = connection.recv_into(buffer)
            first = time.perf_counter() - started
            if not buffer.startswith(b"HTTP/1.1 200 "):
                raise Failed(f"answered {bytes(buffer[:40])!r}")
            while received := connection.recv_into(buffer):
                size += received
            return Download(first, time.perf_counter() - started, size)
    except OSError as error:
        raise Failed(f"the connection broke: {error}") from error


@contextlib.contextmanager
def stalled(server: Server, number: int) -> Iterator[None]:
    """Hold clients that have asked for the list page and read nothing; raise Failed unless each is being answered."""
    request = f"GET / HTTP/1.1\r\nHost: {HOST}:{server.port}\r\n\r\n".encode()
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(socket.socket()) for _ in range(number)]
        try:
            for client in clients:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # else the kernel takes most of the page
                client.settimeout(60)
                client.connect((HOST, server.port))
                client.sendall(request)
            starts = {client.recv(12, socket.MSG_PEEK | socket.MSG_WAITALL) for client in clients}
        except OSError as error:
            raise Failed(f"a connection broke: {error}") from error
        if starts != {b"HTTP/1.1 200"}:
            raise Failed(f"answered {starts}")
        yield


def count_rows(server: Server) -> int:
    """Read the list page without keeping it, and count its rows; raise Failed if the page is not complete."""
    connection = http.client.HTTPConnection(HOST, server.port, timeout=120)
    try:
        connection.request("GET", "/")
        answer = connection.getresponse()
        number, end = 0, b""
        while piece := answer.read(1 << 20):
            number += (end + piece).count(b"/mahasiswa/delete/") - end.count(b"/mahasiswa/delete/")
            end = (end + piece)[-64:]
    except (OSError, http.client.HTTPException) as error:
        raise Failed(f"the page could not be read: {error!r}") from error
    finally:
        connection.close()
    if answer.status != 200 or not end.rstrip().endswith(b"</html>"):
        raise Failed(f"answered {answer.status}, ending in {end!r}")
    return number


def check_page(server: Server, expected: Sequence[Row]) -> bytes:
    """Read the list page and compare all its rows with the records, in any order; return the page or raise Failed."""
    status, _, page = ask(server, "GET", "/")
    if status != 200 or not page.rstrip().endswith(b"</html>"):
        raise Failed(f"GET / answered {status}")
    numbers, shown = rows_of(page)
    if numbers != [str(number + 1) for number in range(len(expected))]:
        raise Failed(f"the rows of the list are not numbered from 1 to {len(expected)}")
    if sorted(shown) != sorted(expected):
        raise Failed("the list does not show the records of the store")
    return page


def rows_of(page: bytes) -> tuple[list[str], list[Row]]:
    """Return the row numbers and the records of a page."""
    cells = [html.unescape(re.sub(r"<[^>]*>", "", cell)) for cell in _CELL.findall(page.decode())]
    return cells[::5], [Row(*row) for row in zip(cells[1::5], cells[2::5], cells[3::5], strict=True)]


def check_redirect(server: Server, path: str, body: str) -> None:
    """Send a form; raise Failed if the answer is not a redirect to the list."""
    status, location, _ = ask(server, "POST", path, body)
    if (status, location) != (302, "/"):
        raise Failed(f"POST {path} answered {status}, location {location}")


def ask(server: Server, method: str, path: str, body: str | None = None) -> tuple[int, str | None, bytes]:
    """Send one request on a new connection; return status, Location and body."""
    connection = http.client.HTTPConnection(HOST, server.port, timeout=30)
    try:
        connection.request(method, path, body, {"Content-Type": FORM} if body else {})
        answer = connection.getresponse()
        return answer.status, answer.headers["Location"], answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise Failed(f"{method} {path}: {error!r}") from error
    finally:
        connection.close()
