"""The primary database server is killed, its standby takes over, and no acknowledged change is lost."""

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
    """Writers that add and delete records until they are stopped, and what the services acknowledged to them.

    `uncertain` holds the nims of changes that a service did not acknowledge.
    """

    def __init__(self, services: list[Service]) -> None:
        self.added: dict[str, float] = {}
        self.deleted: set[str] = set()
        self.uncertain: set[str] = set()
        self.services = services
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(number,)) for number in range(WRITERS)]

    def _write(self, name: int) -> None:
        dice = random.Random(name)
        number = 0
        while not self._over.is_set():
            number += 1
            nim = f"{name}-{number}"
            self.uncertain.add(nim)
            with suppress(httpx.TransportError):
                self._add(nim, name)
                if dice.random() < 0.2:
                    self._delete(nim, name)

    def _add(self, nim: str, name: int) -> None:
        # Repeated until it is certain: a 409 says that an earlier attempt was stored.
        with self._client(name) as client:
            while not self._over.is_set():
                answer = client.post("/mahasiswa/add", data={"nim": nim, "nama": "Siti", "alamat": "Solo"})
                assert answer.status_code in (302, 409, 503), answer.text
                if answer.status_code != 503:
                    self.added[nim] = time.monotonic()
                    self.uncertain.discard(nim)
                    return

    def _delete(self, nim: str, name: int) -> None:
        self.uncertain.add(nim)
        with self._client(name) as client:
            if client.post(f"/mahasiswa/delete/{nim}").status_code == 302:
                self.deleted.add(nim)
                self.uncertain.discard(nim)

    def _client(self, name: int) -> httpx.Client:
        """Return a client of one of the instances that are left, as a load balancer would choose it."""
        return httpx.Client(base_url=self.services[name % len(self.services)].url, timeout=30)

    def wait_for(self, more: int) -> float:
        """Wait until `more` additions were acknowledged; return the time of the first of them."""
        before = set(self.added)
        deadline = time.monotonic() + 60
        while len(self.added) < len(before) + more:
            assert time.monotonic() < deadline, "additions are no longer acknowledged"
            assert all(thread.is_alive() for thread in self._threads)
            time.sleep(0.005)
        return min(moment for nim, moment in self.added.copy().items() if nim not in before)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the writers during the block."""
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in self._threads:
                thread.join()

    def check(self, nims: list[str]) -> None:
        """Compare a list with what was acknowledged; only uncertain changes may be in it or not."""
        assert len(nims) == len(set(nims))
        certain = self.added.keys() - self.deleted - self.uncertain
        assert certain <= set(nims)
        assert not self.deleted & set(nims)
        assert set(nims) <= certain | self.uncertain


def test_no_acknowledged_change_is_lost_with_the_primary(rounds: Callable[[int, int], int]) -> None:
    """Two instances write when the primary is killed; the standby is promoted, and both continue within 5 seconds.

    Then one of the instances is killed too, and the other continues.
    """
    for _ in range(rounds(1, 40)):
        with ExitStack() as stack:
            lose_the_primary(stack)


def lose_the_primary(stack: ExitStack) -> None:
    """Make one round with new servers and new services."""
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
        time.sleep(random.uniform(0, 0.5))  # so that the kill may meet any moment of a transaction
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
