"""The cluster of docs/deploy.md survives the loss of a host: no acknowledged change is lost, and no page is stale.

The table that is printed at the end has a row for each fault.
"""

import os
import random
import re
import shutil
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from html import unescape
from itertools import pairwise
from typing import NamedTuple

import cluster as faults
import httpx
import pytest
from cluster import DATABASE_HOSTS, PASSWORD, PROGRAMS, Cluster, Host
from linearizability import Operation, first_violation
from processes import running
from visitor import Page, Site

PACKAGES = "patroni python3-etcd etcd-server etcd-client haproxy postgresql-15 iproute2"

pytestmark = [
    pytest.mark.torture,
    pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root on Linux may make namespaces"),
    pytest.mark.skipif(
        not all(map(shutil.which, PROGRAMS)), reason=f"apt-get install --no-install-recommends {PACKAGES}"
    ),
]

PAUSE_SECONDS = 0.03
"""Pause of each client after a request, so that the list stays small and the cluster gets most of the machine."""

SHARED_NIMS = tuple(f"shared-{number}" for number in range(12))
UNCERTAIN = "Belum dapat dipastikan"

HAPROXY = f"postgresql://mahasiswa:{PASSWORD}@127.0.0.1/mahasiswa"
HOSTS = f"postgresql://mahasiswa:{PASSWORD}@{','.join(DATABASE_HOSTS)}/mahasiswa?target_session_attrs=read-write"

Fault = Callable[[Cluster, Host], AbstractContextManager[None]]


class Row(NamedTuple):
    """A row of the table: the cost of a fault. `gap` is the longest time in which an instance acknowledged nothing."""

    fault: str
    address: str
    additions: int
    pages: int
    lost: int
    stale: int
    gap: float


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start the cluster once. Every test leaves it whole. The test runs in the network of its switch."""
    with Cluster(tmp_path_factory.mktemp("cluster")) as cluster, cluster.on_the_switch():
        yield cluster


@pytest.fixture(scope="module")
def table(request: pytest.FixtureRequest) -> Iterator[list[Row]]:
    """Collect the rows, and print them after the last test."""
    rows: list[Row] = []
    yield rows
    lines = ["| fault | address | additions | pages | lost | stale | gap |", "| --- " * 7 + "|"]
    lines += ["| " + " | ".join([*map(str, row[:-1]), f"{row.gap:.1f} s"]) + " |" for row in rows]
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print("", *lines, sep="\n")  # noqa: T201


class Ledger:
    """Clients of all instances, every change that was acknowledged to them, and every page that lacked one.

    Writers add records with a nim of their own, and delete some. Others add, edit, delete and read a few shared nims;
    `histories` has what they did. Readers get the whole list and compare it with both.
    """

    def __init__(self, urls: list[str]) -> None:
        self.urls = urls
        self.pages = [0] * len(urls)
        self.stale: list[set[str]] = []
        self.acknowledged: list[list[float]] = [[] for _ in urls]
        self.histories: dict[str, list[Operation]] = defaultdict(list)
        self._added: set[str] = set()
        self._begun: set[str] = set()
        self._deleted: set[str] = set()
        self._deletions_begun: set[str] = set()
        self._over = threading.Event()
        self._failures: list[BaseException] = []
        works = [(self._write, 2), (self._contend, 2), (self._read, 1)]
        self._threads = [
            threading.Thread(target=self._repeat, args=(work, instance, number))
            for work, count in works
            for instance in range(len(urls))
            for number in range(count)
        ]

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the clients during the block, then read the list of each instance once more."""
        with running(self._threads, self._over):
            yield
        assert not self._failures, self._failures

    def wait_for(self, more: int) -> None:
        """Wait until each instance has acknowledged `more` changes from now on."""
        enough = [len(moments) + more for moments in self.acknowledged]
        deadline = time.monotonic() + 60
        while any(len(moments) < count for moments, count in zip(self.acknowledged, enough, strict=True)):
            assert time.monotonic() < deadline, "changes are no longer acknowledged"
            assert not self._failures, self._failures
            time.sleep(0.01)

    def gap(self) -> float:
        """Return the longest time in seconds in which an instance acknowledged nothing."""
        return max(later - earlier for moments in self.acknowledged for earlier, later in pairwise(moments))

    def lost(self) -> set[str]:
        """Return the nims whose acknowledged addition or deletion is not in the list of some instance."""
        lost = set()
        for url in self.urls:
            with Site(url) as site:
                shown = rows(site.get("/"))
            lost |= self._added - self._deletions_begun - shown.keys()
            lost |= self._deleted & shown.keys()
            assert shown.keys() <= self._begun | set(SHARED_NIMS)
        return lost

    def _repeat(self, work: Callable[[Site, int, str, random.Random], None], instance: int, number: int) -> None:
        name = f"{work.__name__}-{instance}-{number}"
        dice = random.Random(name)
        round_ = 0
        try:
            while not self._over.is_set():
                with Site(self.urls[instance]) as site:
                    site.client.timeout = 10
                    with suppress(httpx.TransportError):
                        while not self._over.wait(PAUSE_SECONDS):
                            round_ += 1
                            work(site, instance, f"{name}-{round_}", dice)
        except BaseException as failure:  # noqa: BLE001 - the test raises it
            self._failures.append(failure)

    def _write(self, site: Site, instance: int, nim: str, dice: random.Random) -> None:
        """Add a record until it is certain that it is stored, then perhaps delete it."""
        self._begun.add(nim)
        while (status := site.add(nim, "Siti", "Solo").status_code) not in {302, 409}:  # 409: an earlier one was stored
            assert status == 503
            if self._over.wait(PAUSE_SECONDS):
                return
        self._added.add(nim)
        self.acknowledged[instance].append(time.monotonic())
        if dice.random() < 0.2:
            self._deletions_begun.add(nim)
            if site.delete(nim).status_code == 302:
                self._deleted.add(nim)

    def _contend(self, site: Site, _instance: int, text: str, dice: random.Random) -> None:
        """Add, edit, delete or read a shared record, and record the answer."""
        nim = dice.choice(SHARED_NIMS)
        began = time.monotonic()
        kind = dice.choice(("add", "add", "edit", "edit", "delete", "read", "read"))
        try:
            match kind:
                case "add":
                    operation = Operation("add", text, began)
                    answer = site.add(nim, text, "Solo")
                case "edit":
                    operation = Operation("edit", text, began)
                    answer = site.edit(nim, text, "Solo")
                case "delete":
                    operation = Operation("delete", None, began)
                    answer = site.delete(nim)
                case _:
                    operation = Operation("read", None, began)
                    answer = site.get(f"/mahasiswa/edit/{nim}")
        except httpx.TransportError:
            self.histories[nim].append(operation)
            raise
        self.histories[nim] += answered(operation, answer)

    def _read(self, site: Site, instance: int, _name: str, _dice: random.Random) -> None:
        """Get the whole list. It must have every change that was acknowledged before."""
        added = self._added - self._deletions_begun
        deleted = self._deleted.copy()
        began = time.monotonic()
        answer = site.get("/")
        ended = time.monotonic()
        if answer.status_code == 503:
            return
        shown = rows(answer)
        self.pages[instance] += 1
        if wrong := (added - self._deletions_begun - shown.keys()) | (deleted & shown.keys()):
            self.stale.append(wrong)
        for nim in SHARED_NIMS:
            self.histories[nim].append(Operation("read", shown.get(nim), began, ended))


def rows(answer: httpx.Response) -> dict[str, str]:
    """Return nim and nama of each row of the list page. It has thousands of rows, so no HTML parser reads it."""
    assert answer.status_code == 200
    found = re.findall(r"<tr><td>\d+</td><td>(.*?)</td><td>(.*?)</td>", answer.text)
    shown = {unescape(nim): unescape(nama) for nim, nama in found}
    assert len(shown) == len(found)
    return shown


def answered(operation: Operation, answer: httpx.Response) -> list[Operation]:
    """Return the operation with the result in its answer, or none if the answer says that nothing was done."""
    done = operation._replace(ended=time.monotonic())
    match operation.kind, answer.status_code:
        case _, 503:
            return [operation] if UNCERTAIN in answer.text else []
        case "read", 200:
            return [done._replace(text=Page(answer.text, "").record_form.values["nama"])]
        case "read", 404:
            return [done]
        case "add", 409:
            return [done._replace(kind="refused add")]
        case _, 302:
            return [done]
    raise AssertionError(answer.text)


FAULTS: dict[str, Fault] = {
    "the primary's host is killed": faults.killed,
    "the primary's host is unplugged": faults.unplugged,
    "the primary is cut off from etcd and its peers": faults.partitioned,
    "everything on the primary's host freezes, later thaws": faults.frozen,
    "Patroni alone freezes, PostgreSQL goes on": faults.without_patroni,
    "planned switchover": faults.switched_over,
}


@pytest.mark.parametrize("address", [HAPROXY, HOSTS], ids=["HAProxy", "hosts"])
@pytest.mark.parametrize("name", FAULTS)
def test_nothing_is_lost_and_no_page_is_stale(cluster: Cluster, table: list[Row], name: str, address: str) -> None:
    """Two instances are written and read by clients during the fault and until the host is back.

    The instances reach the primary through HAProxy, or by an address with all hosts, when the service itself must
    notice that a primary was deposed.
    """
    primary = cluster.wait_until_whole()
    cluster.create_database(primary)
    urls = cluster.start_services(address)
    try:
        ledger = Ledger(urls)
        with ledger.running():
            ledger.wait_for(50)
            with FAULTS[name](cluster, primary):
                cluster.wait_for_another(primary)
                ledger.wait_for(100)
            cluster.wait_until_whole()
            ledger.wait_for(50)
        lost = ledger.lost()
    finally:
        cluster.stop_services()
    additions = sum(map(len, ledger.acknowledged))
    way = "HAProxy" if address == HAPROXY else "all hosts"
    table.append(Row(name, way, additions, sum(ledger.pages), len(lost), len(ledger.stale), ledger.gap()))
    assert not lost
    assert not ledger.stale
    assert {
        nim: violation for nim, history in ledger.histories.items() if (violation := first_violation(history))
    } == {}
