"""Clients of several instances of the service, which compare every page with the changes that were acknowledged."""

import itertools
import random
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from html import unescape

import httpx
from processes import until, working
from visitor import Site

PAUSE_SECONDS = 0.03
"""Pause of each client after a request, so that the list stays small."""

UNCERTAIN = "Belum dapat dipastikan"


class Ledger:
    """Clients of all instances, every change that was acknowledged to them, and every page that lacked one.

    Each record has one writer, so the order of its texts is known: `_steps`, with None if there is no record. `_reached`
    is the last step that was acknowledged or that a page has shown. A page that is requested later shows it or a later one.
    """

    def __init__(self, urls: Sequence[str], pause_seconds: float = PAUSE_SECONDS) -> None:
        self.urls = urls
        self._pause_seconds = pause_seconds
        self.stale: list[str] = []
        self.acknowledged = [0] * len(urls)
        """The number of additions that each instance has acknowledged."""
        self._steps: dict[str, list[str | None]] = {"none": [None]}
        self._reached = {"none": 0}
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._has_ended: Callable[[], bool] = self._over.is_set

    @contextmanager
    def running(self) -> Iterator[None]:
        works = [*[self._write] * 4, self._read_list]
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

    def lost(self) -> set[str]:
        """Return the nims whose acknowledged change is not in the list of some instance."""
        lost = set()
        for url in self.urls:
            with Site(url) as site:
                shown = rows(site.get("/"))
            lost |= {
                nim
                for nim, step in self._reached.items()
                if shown.get(nim) not in self._steps[nim][step:]
            }
        return lost

    def check(self) -> None:
        assert not self.lost(), self.lost()
        assert not self.stale, self.stale[:5]

    def _repeat(
        self, work: Callable[[Site, int, str, random.Random], None], instance: int, name: str
    ) -> None:
        dice = random.Random(name)
        numbers = itertools.count()
        while not self._over.is_set():
            with Site(self.urls[instance]) as site, suppress(httpx.TransportError):
                site.client.timeout = 10
                while not self._over.wait(self._pause_seconds):
                    work(site, instance, f"{name}-{next(numbers)}", dice)

    def _write(self, site: Site, instance: int, nim: str, dice: random.Random) -> None:
        """Add a record, edit it, and perhaps delete it. Leave it if an answer does not tell whether a change is stored."""
        self._steps[nim], self._reached[nim] = [None], 0
        texts: list[str | None] = [*map(str, range(dice.randint(1, 3)))]
        texts += [None] * (dice.random() < 0.3)
        for step, text in enumerate(texts, 1):
            self._steps[nim].append(text)
            while (answer := change(site, nim, text, is_new=step == 1)).status_code != 302:
                assert answer.status_code == 503, answer.text
                if UNCERTAIN in answer.text or self._over.wait(self._pause_seconds):
                    return
            with self._lock:
                self._reached[nim] = step
            if step == 1:
                self.acknowledged[instance] += 1
                assert site.add(nim, "ditolak", "ditolak").status_code in (409, 503)

    def _read_list(self, site: Site, _instance: int, _name: str, _dice: random.Random) -> None:
        reached = self._reached.copy()
        answer = site.get("/")
        if answer.status_code == 503:
            return
        shown = rows(answer)
        assert shown.keys() <= self._steps.keys()
        for nim, step in reached.items():
            self._compare(nim, step, shown.get(nim))

    def _compare(self, nim: str, reached: int, shown: str | None) -> None:
        """Check that a page shows the step `reached` before its request, or a later step."""
        with self._lock:
            steps = [
                step
                for step, text in enumerate(self._steps[nim])
                if step >= reached and text == shown
            ]
            if steps:
                self._reached[nim] = max(self._reached[nim], steps[0])
            else:
                self.stale.append(f"{nim}: {shown}, but {self._steps[nim][reached:]} was reached")


def change(site: Site, nim: str, text: str | None, *, is_new: bool) -> httpx.Response:
    if text is None:
        return site.delete(nim)
    return site.add(nim, text, text) if is_new else site.edit(nim, text, text)


def rows(answer: httpx.Response) -> dict[str, str]:
    """Return nim and nama of each row of a long list page. Fail if nama and alamat of a row are of two changes."""
    assert answer.status_code == 200
    found = re.findall(r"<tr><td>\d+</td><td>(.*?)</td><td>(.*?)</td><td>(.*?)</td>", answer.text)
    assert all(nama == alamat for _, nama, alamat in found)
    shown = {unescape(nim): unescape(nama) for nim, nama, _ in found}
    assert len(shown) == len(found)
    return shown
