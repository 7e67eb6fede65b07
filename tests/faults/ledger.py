"""Clients of several instances of the service, which compare every page with the changes that were acknowledged."""

import itertools
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial

import httpx
from processes import until, working
from visitor import Site, page_of

PAUSE_SECONDS = 0.03
"""Pause of each client after a request, so that the list stays small."""

UNCERTAIN = "Belum dapat dipastikan"

DELETED = 9
"""The last step of a record, after its addition (1) and its edits (2 and 3), whose texts are their numbers."""


class Ledger:
    """Clients of all instances, every change that was acknowledged to them, and every page that lacked one.

    Each record has one writer. `_reached` is the last step that was acknowledged or that a page has shown. A page that is
    requested later shows it or a later one.
    """

    def __init__(self, urls: Sequence[str], pause_seconds: float = PAUSE_SECONDS) -> None:
        self.urls = urls
        self.acknowledged = [0] * len(urls)
        """The number of additions that each instance has acknowledged."""
        self._pause_seconds = pause_seconds
        self._stale: list[str] = []
        self._reached: dict[str, int] = {}
        self._deletions: set[str] = set()
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._has_ended: Callable[[], bool] = self._over.is_set

    @contextmanager
    def running(self) -> Iterator[None]:
        works: list[Callable[..., None]] = [*[self._write] * 4, self._read]
        clients = [
            partial(self._repeat, work, instance, f"{instance}-{number}")
            for number, work in enumerate(works)
            for instance in range(len(self.urls))
        ]
        with working(clients, self._over) as self._has_ended:
            yield

    def wait_for(self, more: int) -> None:
        """Wait until each instance has acknowledged `more` additions from now on."""
        enough = [count + more for count in self.acknowledged]
        until(
            lambda: self._has_ended() or all(map(int.__le__, enough, self.acknowledged)),
            60,
        )

    def check(self) -> None:
        """Fail if a page was stale, or if an instance has lost an acknowledged change."""
        for url in self.urls:
            with Site(url) as site:
                self._read(site)
        assert not self._stale, self._stale[:5]

    def _repeat(self, work: Callable[..., None], instance: int, name: str) -> None:
        numbers = itertools.count()
        while not self._over.is_set():
            with Site(self.urls[instance]) as site, suppress(httpx.TransportError):
                site.client.timeout = 10
                while not self._over.wait(self._pause_seconds):
                    work(site, instance, f"{name}-{next(numbers)}")

    def _write(self, site: Site, instance: int, nim: str) -> None:
        """Add a record, edit it, and perhaps delete it. Leave it if an answer does not tell whether a change is stored."""
        dice = random.Random(nim)
        self._reached[nim] = 0
        for step in (1, *range(2, dice.randint(2, 4)), *[DELETED] * (dice.random() < 0.3)):
            if step == DELETED:
                self._deletions.add(nim)
            while (answer := take(step, site, nim)).status_code != 302:
                assert answer.status_code == 503, answer.text
                if UNCERTAIN in answer.text or self._over.wait(self._pause_seconds):
                    return
            self._reach(nim, step)
            if step == 1:
                self.acknowledged[instance] += 1
                assert site.add(nim, "0", "0").status_code in (409, 503)

    def _read(self, site: Site, *_: object) -> None:
        """Compare a page of the list with the steps that were reached before its request."""
        reached = self._reached.copy()
        answer = site.get("/")
        if answer.status_code == 503:
            return
        shown = rows(answer)
        assert shown.keys() <= self._reached.keys()
        for nim, least in reached.items():
            # A record that was added after the request is not shown either.
            is_deleted = least > 0 and nim in self._deletions
            step = shown.get(nim) or DELETED * is_deleted
            self._reach(nim, step)
            if step < least:
                self._stale.append(f"{nim}: {step} was shown after {least}")

    def _reach(self, nim: str, step: int) -> None:
        with self._lock:
            self._reached[nim] = max(self._reached[nim], step)


def take(step: int, site: Site, nim: str) -> httpx.Response:
    if step == DELETED:
        return site.delete(nim)
    return (site.add if step == 1 else site.edit)(nim, str(step), str(step))


def rows(answer: httpx.Response) -> dict[str, int]:
    """Return nim and step of each row of a long list page. Fail if nama and alamat of a row are of two changes."""
    records = page_of(answer).records
    assert all(nama == alamat for _, nama, alamat in records)
    shown = {nim: int(nama) for nim, nama, _ in records}
    assert len(shown) == len(records)
    return shown
