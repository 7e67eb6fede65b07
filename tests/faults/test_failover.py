"""The database server is lost, a standby takes over, and nothing that was acknowledged is gone."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import httpx
from harness import Service
from postgres import Server

WRITERS = 4


class Ledger:
    """What was acknowledged, and when last; writers who go on until they are stopped, each with its own instance."""

    def __init__(self, services: list[Service]) -> None:
        self.added: dict[str, float] = {}
        self.deleted: set[str] = set()
        self.open: set[str] = set()
        self.services = services
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(number,)) for number in range(WRITERS)]

    def _write(self, name: int) -> None:
        dice = random.Random(name)
        number = 0
        while not self._over.is_set():
            number += 1
            nim = f"{name}-{number}"
            self.open.add(nim)
            with suppress(httpx.TransportError):
                self._add(nim, name)
                if dice.random() < 0.2:
                    self._delete(nim, name)

    def _add(self, nim: str, name: int) -> None:
        # Repeated until it is known: a 409 says that an addition of unknown outcome had been made.
        with self._client(name) as client:
            while not self._over.is_set():
                answer = client.post("/mahasiswa/add", data={"nim": nim, "nama": "Siti", "alamat": "Solo"})
                assert answer.status_code in (302, 409, 503), answer.text
                if answer.status_code != 503:
                    self.added[nim] = time.monotonic()
                    self.open.discard(nim)
                    return

    def _delete(self, nim: str, name: int) -> None:
        self.open.add(nim)
        with self._client(name) as client:
            if client.post(f"/mahasiswa/delete/{nim}").status_code == 302:
                self.deleted.add(nim)
                self.open.discard(nim)

    def _client(self, name: int) -> httpx.Client:
        """A client of the instances in turn, as behind a load balancer, of those that are left."""
        return httpx.Client(base_url=self.services[name % len(self.services)].url, timeout=30)

    def wait_for(self, more: int) -> float:
        """Wait until so many more additions were acknowledged; return when the first of them was."""
        before = set(self.added)
        deadline = time.monotonic() + 60
        while len(self.added) < len(before) + more:
            assert time.monotonic() < deadline, "nothing is acknowledged any more"
            assert all(thread.is_alive() for thread in self._threads)
            time.sleep(0.005)
        return min(moment for nim, moment in self.added.copy().items() if nim not in before)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Write meanwhile."""
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in self._threads:
                thread.join()

    def check(self, nims: list[str]) -> None:
        """All that was acknowledged is there, or gone where that was; no more than what is still open may be unclear."""
        assert len(nims) == len(set(nims))
        surely = self.added.keys() - self.deleted - self.open
        assert surely <= set(nims)
        assert not self.deleted & set(nims)
        assert set(nims) <= surely | self.open


def test_nothing_acknowledged_is_lost_with_the_primary(rounds: Callable[[int, int], int]) -> None:
    """SIGKILL at any moment, under load from two instances; the standby is promoted, and both go on by themselves.

    Then one of the instances is killed too, and the other goes on.
    """
    for _ in range(rounds(1, 40)):
        with ExitStack() as stack:
            lose_the_primary(stack)


def lose_the_primary(stack: ExitStack) -> None:
    """One round, with everything new."""
    primary = stack.enter_context(Server())
    standby = stack.enter_context(Server(standby_of=primary))
    primary.execute("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
    primary.execute("SELECT pg_reload_conf()")
    while primary.execute("SELECT sync_state FROM pg_stat_replication") != [("sync",)]:
        time.sleep(0.01)
    url = (
        f"postgresql://postgres@127.0.0.1:{primary.port},127.0.0.1:{standby.port}/postgres"
        "?target_session_attrs=read-write"
    )
    services = [stack.enter_context(Service(url)) for _ in range(2)]
    ledger = Ledger(services)
    with ledger.running():
        ledger.wait_for(50)
        time.sleep(random.uniform(0, 0.5))  # at any moment, also of a transaction
        primary.kill()
        standby.promote()
        promoted = time.monotonic()
        assert ledger.wait_for(50) - promoted < 5
        for service in services:
            with service.site() as site:
                site.client.timeout = 30
                assert site.list().nims
        ledger.services = services[1:]
        services[0].kill()
        ledger.wait_for(50)
    with services[1].site() as site:
        ledger.check(site.list().nims)
