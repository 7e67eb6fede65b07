"""Helpers of the tests that attack the service: another user meanwhile, the memory, the records, and a check of its log."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial

import httpx
import psutil  # type: ignore[import-untyped]
from harness import Service
from processes import client_files, until, working

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


def at_once(count: int, work: Callable[[], object]) -> None:
    with ThreadPoolExecutor(count) as threads:
        list(threads.map(lambda _: work(), range(count)))


def assert_says_nothing_was_saved(answer: httpx.Response) -> None:
    """Check that the answer is a 503 page that says in Indonesian that nothing was saved."""
    assert (answer.status_code, "belum tersimpan" in answer.text) == (503, True)
