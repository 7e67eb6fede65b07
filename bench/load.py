"""Sends requests to a server: load by wrk, timed single requests, forms as a browser sends them, and checks."""

import gzip
import html
import http.client
import itertools
import json
import re
import resource
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import httpx
from selectolax.lexbor import LexborHTMLParser, LexborNode

from bench.prepare import BENCH
from bench.processors import processor_seconds
from bench.servers import HOST, Failed, Server
from bench.stores import Row

FULL = 0.95
"""A processor that is busy for more than this share of the time counts as full."""

CHROME = "gzip, deflate, br, zstd"
"""The Accept-Encoding of Chrome."""


class Load(NamedTuple):
    """The results of wrk."""

    requests: int
    redirects: int
    rate: float
    """Requests a second."""
    processor_us: float
    """The server's processor time per request, in microseconds."""
    is_held: bool
    """Whether the processor of wrk was full and that of the server was not, so that the server could do more."""


def wrk(server: Server, connections: int, seconds: int, mode: str, tag: str = "") -> Load:
    """Load a server in one of the modes of wrk.lua; raise Failed if any answer was an error."""
    command = [
        "wrk",
        "-t1",
        f"-c{connections}",
        f"-d{seconds}s",
        "--timeout",
        "30s",
        "-s",
        str(BENCH / "wrk.lua"),
    ]
    before, own = processor_seconds(server.pid), _children_seconds()
    done = subprocess.run(
        [*command, server.url, "--", mode, tag], capture_output=True, text=True, check=False
    )
    used, own = processor_seconds(server.pid) - before, _children_seconds() - own
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        raise Failed(f"wrk failed: {done.stdout[-500:]}{done.stderr[-500:]}")
    seen = json.loads(lines[-1])
    number, length = seen["requests"], seen["seconds"]
    if seen["errors"] or not number:
        raise Failed(f"{server.peer.name}: {seen['errors']} errors in {number} requests")
    return Load(
        number,
        seen["redirects"],
        number / length,
        used / number * 1e6,
        own / length > FULL > used / length,
    )


def _children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class Answer(NamedTuple):
    """One answer, decompressed, with the seconds from the request to its first and last byte as it was sent."""

    status: int
    body: bytes
    first: float
    last: float


class Client:
    """One kept-alive connection with little overhead, so that the measured time is that of the server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._buffer = bytearray(64 << 20)
        self._numbers = itertools.count()
        self._connection: socket.socket | None = None

    def get(self, path: str = "/", *, encoding: str = "identity") -> Answer:
        """Request a page, with a header of its own; raise Failed if the answer has no Content-Length."""
        if not self._connection:
            self._connection = socket.create_connection((HOST, self._server.port), 30)
            self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        view = memoryview(self._buffer)
        request = (
            f"GET {path} HTTP/1.1\r\nHost: {HOST}:{self._server.port}\r\nAccept-Encoding: {encoding}\r\n"
            f"X-Request-Id: {next(self._numbers)}\r\n\r\n"
        )
        started = time.perf_counter()
        self._connection.sendall(request.encode())
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
        body = bytes(view[end + 4 : whole])
        if re.search(r"(?im)^content-encoding: *gzip", head):
            body = gzip.decompress(body)
        return Answer(int(head.split(" ", 2)[1]), body, first, last)

    def _receive(self, view: memoryview) -> int:
        assert self._connection
        received = self._connection.recv_into(view)
        if not received:
            raise Failed(
                f"{self._server.peer.name} closed the connection in the middle of an answer"
            )
        return received

    def close(self) -> None:
        """Close the connection, because servers end an idle one. The next request opens another."""
        if self._connection:
            self._connection.close()
            self._connection = None


def download(server: Server) -> tuple[float, int]:
    """Read the list page without keeping it; return the seconds to the first byte and the number of rows."""
    row = b"/mahasiswa/delete/"
    # A chunk may end in the middle of a row.
    connection = http.client.HTTPConnection(HOST, server.port, timeout=120)
    started = time.perf_counter()
    connection.request("GET", "/")
    response = connection.getresponse()
    first = time.perf_counter() - started
    number, end = 0, b""
    while piece := response.read(1 << 20):
        number += (end + piece).count(row) - end.count(row)
        end = (end + piece)[-64:]
    connection.close()
    return first, number


def import_by_forms(server: Server, page: str, file: Path, confirm: str) -> float:
    """Upload a spreadsheet on a page, and confirm its preview by the form of this selector; return the seconds.

    The time is that of all requests, to the last byte of their answers. Reading the forms does not count.
    """
    with httpx.Client(base_url=server.url, timeout=600, trust_env=False) as browser:
        form = _form(browser.get(page), "form:has(input[type=file])")
        field = form.css_first("input[type=file]")
        assert field
        files = {field.attributes["name"] or "": (file.name, file.read_bytes())}
        uploaded = browser.post(page, data=_fields(form), files=files, follow_redirects=True)
        form = _form(uploaded, confirm)
        confirmed = browser.post(form.attributes.get("action") or uploaded.url, data=_fields(form))
        if confirmed.status_code != 302:
            raise Failed(f"{server.peer.name} answered {confirmed.status_code} to the confirmation")
        answers = (*uploaded.history, uploaded, confirmed)
        return sum(answer.elapsed.total_seconds() for answer in answers)


def _form(answer: httpx.Response, selector: str) -> LexborNode:
    """Return the last form of a page that matches."""
    forms = LexborHTMLParser(answer.text).css(selector)
    if answer.status_code != 200 or not forms:
        raise Failed(
            f"{answer.request.method} {answer.url} answered {answer.status_code} without the form"
        )
    return forms[-1]


def _fields(form: LexborNode) -> dict[str, list[str]]:
    """Return the fields that a browser sends if nothing is typed and the main button is pressed."""
    fields: dict[str, list[str]] = {}
    pressed = form.css("button.btn-primary, input[type=submit]")[:1]
    for field in [*form.css("input[type=hidden], input[checked], select"), *pressed]:
        value = (
            field
            if field.tag != "select"
            else (field.css("option[selected]") or field.css("option"))[0]
        )
        if name := field.attributes.get("name"):
            fields.setdefault(name, []).append(value.attributes.get("value") or "")
    return fields


def check_page(server: Server, expected: Sequence[Row]) -> bytes:
    """Read the list page and compare all its rows with the records, in any order; return the page or raise Failed."""
    answer = httpx.get(server.url, timeout=60, trust_env=False)
    numbers, shown = rows_of(answer.content)
    if answer.status_code != 200 or not answer.content.rstrip().endswith(b"</html>"):
        raise Failed(f"{server.peer.name}: GET / answered {answer.status_code}")
    if numbers != [str(number + 1) for number in range(len(expected))] or sorted(shown) != sorted(
        expected
    ):
        raise Failed(f"{server.peer.name}: the list does not show the records of the store")
    return answer.content


def rows_of(page: bytes) -> tuple[list[str], list[Row]]:
    """Return the row numbers and the records of a page."""
    cells = [
        html.unescape(re.sub(r"<[^>]*>", "", cell))
        for cell in re.findall(
            r"<(?:td|th scope=.row.)[^>]*>(.*?)</t[dh]>", page.decode(), re.DOTALL
        )
    ]
    return cells[::5], [
        Row(*row) for row in zip(cells[1::5], cells[2::5], cells[3::5], strict=True)
    ]
