"""Clients of several instances of the service, which compare every page with the changes that were acknowledged."""

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial

import httpx
from processes import until, working
from visitor import Site, page_of

CLIENTS = 5
"""The number of clients of each instance."""

PAUSE_SECONDS = 0.001

UNCERTAIN = "Belum dapat dipastikan"

ADDED, DELETED = 1, 3
"""The first and the last step of a record. Its texts are the number of its step: 1 if it was added, 2 if it was edited."""


class Ledger:
    """Clients of all instances, and the steps of every record.

    Each record has one writer. `_reached` is the last step that was acknowledged or that a page has shown. A page that is
    requested later shows it or a later one, but none that was not sent.
    """

    def __init__(self, *urls: str) -> None:
        self.acknowledged = dict.fromkeys(urls, 0)
        """The number of additions that each instance has acknowledged."""
        self._sent: dict[str, int] = {}
        self._reached: dict[str, int] = {}
        self._lock = threading.Lock()
        self._over = threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Change and read the list during the block. Fail if a page was stale, or if an acknowledged change is lost."""
        clients = [
            partial(self._work, url, f"{instance}-{number}")
            for instance, url in enumerate(self.acknowledged)
            for number in range(CLIENTS)
        ]
        with working(clients, self._over):
            yield
        for url in self.acknowledged:
            with Site(url) as site:
                assert self._read(site)

    def wait_for(self, more: int) -> None:
        """Wait until each instance has acknowledged `more` additions from now on."""
        before = self.acknowledged.copy()
        until(
            lambda: all(self.acknowledged[url] >= before[url] + more for url in before),
            60,
        )

    def _work(self, url: str, name: str) -> None:
        """Change a record and read the list, again and again. Connect anew for each record, also after a fault."""
        for number in itertools.count():
            with suppress(httpx.TransportError), Site(url) as site:
                site.timeout = 10
                self._write(site, url, f"{name}-{number}", is_kept=number % 4 == 0)
                self._read(site)
            if self._over.wait(PAUSE_SECONDS):
                return

    def _write(self, site: Site, url: str, nim: str, *, is_kept: bool) -> None:
        """Add a record, edit it, and delete it if it is not kept. Stop if an answer does not tell whether the change is stored."""
        changes = [
            partial(site.add, nim, "1", "1"),
            partial(site.edit, nim, "2", "2"),
            partial(site.delete, nim),
        ]
        for step, change in enumerate(changes[: DELETED - is_kept], ADDED):
            self._sent[nim] = step
            while (answer := change()).status_code != 302:
                assert answer.status_code == 503, answer.text
                if UNCERTAIN in answer.text or self._over.wait(PAUSE_SECONDS):
                    return
            self._reach(nim, step)
            if step == ADDED:
                self.acknowledged[url] += 1
                assert site.add(nim, "0", "0").status_code in (409, 503)

    def _read(self, site: Site) -> bool:
        """Compare a page of the list with the steps before its request. Return whether the service could read it."""
        reached = self._reached.copy()
        answer = site.get("/")
        if answer.status_code == 503:
            return False
        shown: dict[str, int] = {}
        for nim, nama, alamat in page_of(answer).records:
            assert nama == alamat, "the texts are of two changes"
            assert nim not in shown
            shown[nim] = int(nama)
        for nim in reached.keys() | shown.keys():
            least, step = reached.get(nim, 0), shown.get(nim, DELETED)
            assert least <= step <= self._sent[nim], f"{nim}: {step} was shown after {least}"
            self._reach(nim, step)
        return True

    def _reach(self, nim: str, step: int) -> None:
        with self._lock:
            self._reached[nim] = max(self._reached.get(nim, 0), step)
