"""Helpers of the tests that attack the service: another user meanwhile, its memory and its open files."""

import os
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import httpx
from harness import Service
from processes import finished, repeating, until

BYSTANDER_SECONDS = 1.0
"""Maximum time of an answer to somebody else during an attack, for each program that waits for a processor."""

MEMORY_MAX_BYTES = 400 << 20
"""Maximum memory of a worker, whatever clients do."""

RELEASE_SECONDS = 45.0
"""Maximum time after an attack until its connections and temporary files are closed."""


def visit(service: Service, page: str) -> None:
    """Look at a page, add, edit and delete a record, and probe the service. Every answer must be right, and in time."""
    nim = f"tamu-{time.monotonic_ns()}"
    with service.site() as site:
        # The attack itself takes the processors, too.
        site.timeout = BYSTANDER_SECONDS * max(1, os.getloadavg()[0] / (os.cpu_count() or 1))
        answers = [
            site.get(page),
            site.add(nim, "Siti", "Solo"),
            site.edit(nim, "Siti", "Bantul"),
            site.get("/sehat"),
            site.delete(nim),
        ]
    assert [answer.status_code for answer in answers] == [200, 302, 302, 200, 302]


@contextmanager
def attacked(service: Service, page: str = "/") -> Iterator[None]:
    """Attack the service in the block: others are answered in time, memory is bounded, and files are closed afterwards.

    `page` is what the others look at. It must be short.
    """
    files = client_files(service)
    with repeating(partial(visit, service, page)):
        yield
    status = Path(f"/proc/{service.pid}/status").read_text()
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
    assert int(peak) << 10 < MEMORY_MAX_BYTES
    until(lambda: client_files(service) <= files, RELEASE_SECONDS)


def client_files(service: Service) -> int:
    """Return the number of sockets and temporary files of a service. Files of the database do not count."""
    files = finished("ls", "-l", f"/proc/{service.pid}/fd").stdout
    return files.count(" -> socket:") + files.count(" (deleted)\n")


def at_once(count: int, work: Callable[[], object]) -> None:
    with ThreadPoolExecutor(count) as threads:
        list(threads.map(lambda _: work(), range(count)))


def assert_says_nothing_was_saved(answer: httpx.Response) -> None:
    """Check that the answer is a 503 page that says in Indonesian that nothing was saved."""
    assert (answer.status_code, "belum tersimpan" in answer.text) == (503, True)
