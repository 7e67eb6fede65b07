"""Helpers of the tests that attack the service: another user meanwhile, the memory, the records, and a check of its log."""

import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import httpx
import psutil  # type: ignore[import-untyped]
from harness import Service
from processes import client_files, until, working
from spreadsheets import numbered
from stores import Database

# The only lines that the service may write to standard error: one for each change and each refused request, and warnings.
LOG_LINE = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d "
    r"(?:(?P<level>INFO|WARNING|ERROR) (?P<method>[!#$%&'*+.^_`|~0-9A-Za-z-]+) (?P<path>[!-~]*)"
    r'(?: (?P<nim>"[ -~]*"))? (?P<status>\d{3}) (?P<took>\d+\.\d) ms (?P<address>[0-9a-f:.]+|-) (?P<number>\d{8})'
    r"|(?:WARNING|ERROR) (?P<other>[ -~]+))"
)

CONTROL = re.compile("[\0-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]")
"""Characters that start a new line or control a terminal, except the line feed that ends a line of the log."""

BYSTANDER_SECONDS, FACTOR = 1.0, 10
"""Maximum time of an answer to somebody else during an attack; on a busy machine FACTOR times the slowest of ten visits
before it, or longer by the number of programs that wait for each processor."""

MEMORY_MAX_BYTES = 400 << 20
"""Maximum memory of a worker, whatever clients do."""

RELEASE_SECONDS = 35.0
"""Maximum time after an attack until its connections and temporary files are closed."""


class Bystander:
    """Another user, who looks at a page, adds, edits and deletes a record, and probes the service, one after the other.

    `slowest` are the seconds of the slowest answer with the page, and of the slowest other answer.
    """

    def __init__(self, service: Service, page: str) -> None:
        self.service, self.page = service, page
        self.slowest = [0.0, 0.0]

    def visit(self) -> None:
        """Every answer must be right."""
        nim = f"tamu-{time.monotonic_ns()}"
        with self.service.site() as site:
            self._time(0, 200, site.get, self.page)
            self._time(1, 302, site.add, nim, "Siti", "Solo")
            self._time(1, 302, site.edit, nim, "Siti", "Bantul")
            self._time(1, 200, site.get, "/sehat")
            self._time(1, 302, site.delete, nim)

    def _time(
        self, kind: int, status: int, ask: Callable[..., httpx.Response], *arguments: str
    ) -> None:
        began = time.monotonic()
        answer = ask(*arguments)
        assert answer.status_code == status, answer.headers
        self.slowest[kind] = max(self.slowest[kind], time.monotonic() - began)


@contextmanager
def attacked(service: Service, page: str = "/") -> Iterator[None]:
    """Attack the service in the block: others are answered in time, memory is bounded, and files are closed afterwards.

    `page` is what the bystander looks at, if the list is so long that a busy machine needs minutes to send it.
    """
    usual, bystander = Bystander(service, page), Bystander(service, page)
    for _ in range(10):
        usual.visit()
    files, over = client_files(service.pid), threading.Event()
    process, sizes = psutil.Process(service.pid), [0]

    def visit() -> None:
        bystander.visit()
        while not over.is_set():
            bystander.visit()

    def measure() -> None:
        while not over.wait(0.02):
            sizes.append(process.memory_info().rss)

    with working([visit, measure], over):
        yield
    # If other programs wait for the processors too, each of them takes longer.
    limit = BYSTANDER_SECONDS * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    for worst, before in zip(bystander.slowest, usual.slowest, strict=True):
        assert worst < max(limit, FACTOR * before), (worst, before)
    assert max(sizes) < MEMORY_MAX_BYTES
    until(lambda: client_files(service.pid) <= files, RELEASE_SECONDS + FACTOR * max(usual.slowest))
    assert service.process.poll() is None


@contextmanager
def additions(service: Service, clients: int = 4) -> Iterator[tuple[dict[str, float], set[str]]]:
    """Add records during the block; yield when each nim was acknowledged, and all nims that may be stored."""
    stop = threading.Event()
    acknowledged: dict[str, float] = {}
    sent: set[str] = set()

    def work(name: int) -> None:
        while not stop.is_set():
            with suppress(httpx.TransportError), service.site() as site:
                for _ in range(5):
                    nim = f"{name}/{time.monotonic_ns()}"
                    sent.add(nim)
                    if site.add(nim, "Siti", "x" * 200).status_code == 302:
                        acknowledged[nim] = time.time()

    with working([partial(work, name) for name in range(clients)], stop):
        yield acknowledged, sent


def holds(database: Path) -> dict[str, tuple[str, str]]:
    """Return every record of a database as another program reads it. Fail if its integrity check does."""
    with Database(database) as other:
        assert other.run("PRAGMA integrity_check") == [("ok",)]
        return {nim: (nama, alamat) for nim, nama, alamat in other.run("SELECT * FROM mahasiswa")}


def fill(database: Path, count: int, alamat: str = "Alamat") -> None:
    """Replace all records by `count` others. Each takes about 300 bytes of the list page."""
    with Database(database) as other:
        other.fill(numbered(count, "Nama {}", alamat, nim="{:08}"))


def at_once(count: int, work: Callable[[], object]) -> None:
    with ThreadPoolExecutor(count) as threads:
        for job in [threads.submit(work) for _ in range(count)]:
            job.result()


def assert_log_is_sound(text: str, allowed: Sequence[str] = ()) -> None:
    """Check each line: the service writes such lines, or it is about malformed HTTP, or it has an `allowed` word."""
    assert not CONTROL.search(text)
    assert not text or text.endswith("\n")
    known = ("not valid HTTP", "not read: ", "not saved: ", "stop the service", *allowed)
    for line in text.splitlines():
        found = LOG_LINE.fullmatch(line)
        assert found, line[:300]
        assert len(line) < 4500, len(line)
        assert not found["other"] or any(word in line for word in known), line[:300]
        assert found["status"] not in ("500", "501", "502"), line[:300]


def assert_says_nothing_was_saved(answer: httpx.Response) -> None:
    """Check that the answer is a 503 page that says in Indonesian that nothing was saved."""
    assert (answer.status_code, "belum tersimpan" in answer.text) == (503, True)
