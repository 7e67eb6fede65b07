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

from harness import Service
from processes import client_files, memory, until, working
from sockets import Answer, Line
from spreadsheets import Database, numbered

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
"""Maximum time of an answer to somebody else during an attack; on a busy machine FACTOR times the slowest of 30 visits
before it, or longer by the number of programs that wait for each processor."""

MEMORY_MAX_MB = 400.0
"""Maximum memory of a worker, whatever clients do."""

RELEASE_SECONDS = 35.0
"""Maximum time after an attack until its connections and temporary files are closed."""


def assert_waits_not_long(worst: float, usual: float) -> None:
    """Check the seconds of an answer. If other programs wait for the processors too, each of them takes longer."""
    busy = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    limit = max(BYSTANDER_SECONDS * busy, FACTOR * usual)
    assert worst < limit, f"{worst:.3f} s, usually {usual:.3f} s, limit {limit:.3f} s"


class Bystander:
    """Another user, who adds and edits records, looks at the list and probes the service, one after the other.

    `usual` and `worst` are the seconds of the slowest answer of all visits, and of the slowest list: without and during an
    attack.
    """

    def __init__(self, service: Service, page: str = "/") -> None:
        self.service = service
        self.page = page
        self.number = 0
        self.usual = self.worst = (0.0, 0.0)
        end = time.monotonic() + 10
        while self.number < 30 and time.monotonic() < end:
            self.usual = self._visit(self.usual)

    def visit(self) -> None:
        self.worst = self._visit(self.worst)

    def assert_in_time(self) -> None:
        for worst, usual in zip(self.worst, self.usual, strict=True):
            assert_waits_not_long(worst, usual)

    def _visit(self, slowest: tuple[float, float]) -> tuple[float, float]:
        """Return the seconds of the slowest answer and of the slowest list up to now; every answer must be right."""
        self.number += 1
        nim = f"tamu-{self.number}"
        times = []
        with Line(self.service.port) as line:
            for status, ask, *arguments in (
                (200, line.get, self.page),
                (302, line.add, nim, "Siti", "Solo"),
                (302, line.edit, nim, "Siti", "Bantul"),
                (200, line.get, "/sehat"),
                (302, line.delete, nim),
            ):
                began = time.monotonic()
                answer = ask(*arguments)
                assert answer.status == status, answer.headers
                times.append(time.monotonic() - began)
        return max(slowest[0], *times[1:]), max(slowest[1], times[0])


@contextmanager
def attacked(service: Service, page: str = "/") -> Iterator[Bystander]:
    """Attack the service in the block: others are answered in time, memory is bounded, and files are closed afterwards.

    Yield the bystander. `page` is what it looks at, if the list is so long that a busy machine needs minutes to send it.
    """
    worker = service.worker
    bystander = Bystander(service, page)
    files, over = client_files(worker), threading.Event()
    sizes: list[float] = []

    def repeat(work: Callable[[], None], pause: float) -> None:
        for _ in range(5):
            work()
        while not over.wait(pause):
            work()

    watch = partial(repeat, lambda: sizes.append(memory(worker)), 0.02)
    with working([partial(repeat, bystander.visit, 0), watch], over):
        yield bystander
    bystander.assert_in_time()
    assert max(sizes) < MEMORY_MAX_MB, f"{max(sizes):.0f} MB"
    until(
        lambda: client_files(worker) <= files,
        RELEASE_SECONDS + FACTOR * max(bystander.usual),
    )
    assert service.process.poll() is None


@contextmanager
def additions(service: Service, clients: int = 4) -> Iterator[tuple[dict[str, float], set[str]]]:
    """Add records during the block; yield when each nim was acknowledged, and all nims that may be stored."""
    stop = threading.Event()
    acknowledged: dict[str, float] = {}
    sent: set[str] = set()

    def work(name: int) -> None:
        while not stop.is_set():
            with suppress(OSError), Line(service.port) as line:
                for _ in range(5):
                    nim = f"{name}/{time.monotonic_ns()}"
                    sent.add(nim)
                    if line.add(nim, "Siti", "x" * 200).status == 302:
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


def assert_says_nothing_was_saved(answer: Answer) -> None:
    """Check that the answer is a 503 page that says in Indonesian that nothing was saved."""
    assert answer.status == 503
    assert b"belum tersimpan" in answer.body
