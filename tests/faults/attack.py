"""Helpers of the tests that attack the service: another user meanwhile, the memory, the records, and a check of its log."""

import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import httpx
from harness import Service
from processes import client_files, until, working

BYSTANDER_SECONDS, FACTOR = 1.0, 10
"""Maximum time of an answer to somebody else during an attack; on a busy machine FACTOR times the slowest of ten visits
before it, or longer by the number of programs that wait for each processor."""

MEMORY_MAX_BYTES = 400 << 20
"""Maximum memory of a worker, whatever clients do."""

RELEASE_SECONDS = 35.0
"""Maximum time after an attack until its connections and temporary files are closed."""


def visit(service: Service, page: str) -> float:
    """Look at a page, add, edit and delete a record, and probe the service, one after the other; every answer must be right.

    Return the seconds of the slowest answer.
    """
    nim = f"tamu-{time.monotonic_ns()}"
    with service.site() as site:
        answers = [
            site.get(page),
            site.add(nim, "Siti", "Solo"),
            site.edit(nim, "Siti", "Bantul"),
            site.get("/sehat"),
            site.delete(nim),
        ]
    assert [answer.status_code for answer in answers] == [200, 302, 302, 200, 302]
    return max(answer.elapsed.total_seconds() for answer in answers)


@contextmanager
def attacked(service: Service, page: str = "/") -> Iterator[None]:
    """Attack the service in the block: others are answered in time, memory is bounded, and files are closed afterwards.

    `page` is what the bystander looks at. It must be short: the time that it usually takes is allowed to each answer.
    """
    usual = max(visit(service, page) for _ in range(10))
    meanwhile = []
    files, over = client_files(service.pid), threading.Event()

    def stand_by() -> None:
        meanwhile.append(visit(service, page))
        while not over.is_set():
            meanwhile.append(visit(service, page))

    with working([stand_by], over):
        yield
    # If other programs wait for the processors too, each of them takes longer.
    limit = BYSTANDER_SECONDS * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    assert max(meanwhile) < max(limit, FACTOR * usual)
    status = Path(f"/proc/{service.pid}/status").read_text()
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
    assert int(peak) << 10 < MEMORY_MAX_BYTES
    until(lambda: client_files(service.pid) <= files, RELEASE_SECONDS + FACTOR * usual)
    assert service.process.poll() is None


@contextmanager
def additions(service: Service) -> Iterator[tuple[dict[str, float], set[str]]]:
    """Add records during the block; yield when each nim was acknowledged, and all nims that may be stored."""
    stop = threading.Event()
    acknowledged: dict[str, float] = {}
    sent: set[str] = set()

    def work(name: str) -> None:
        while not stop.is_set():
            nim = f"{name}/{time.monotonic_ns()}"
            sent.add(nim)
            with suppress(httpx.TransportError), service.site() as site:
                if site.add(nim, "Siti", "x" * 200).status_code == 302:
                    acknowledged[nim] = time.time()

    with working([partial(work, name) for name in "ab"], stop):
        yield acknowledged, sent


def at_once(count: int, work: Callable[[], object]) -> None:
    with ThreadPoolExecutor(count) as threads:
        list(threads.map(lambda _: work(), range(count)))


def assert_says_nothing_was_saved(answer: httpx.Response) -> None:
    """Check that the answer is a 503 page that says in Indonesian that nothing was saved."""
    assert (answer.status_code, "belum tersimpan" in answer.text) == (503, True)
