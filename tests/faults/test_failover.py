"""A standby takes over from a primary that was killed or goes on running, and no acknowledged change is lost."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import httpx
import pytest
from harness import Service, Site
from postgres import Server
from processes import running

pytestmark = pytest.mark.torture

WRITERS = 4


class Ledger:
    """Writers that add and delete records until they are stopped, and the changes that the services acknowledged.

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
        with running(self._threads, self._over):
            yield

    def check(self, nims: list[str]) -> None:
        """Compare a list with the acknowledged changes; only uncertain changes may be in it or not."""
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
    primary, standby = start_pair(stack)
    services = [stack.enter_context(Service(address(primary, standby))) for _ in range(2)]
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


def start_pair(stack: ExitStack) -> tuple[Server, Server]:
    """Start a primary that waits for its synchronous standby, and the standby."""
    primary = stack.enter_context(Server())
    standby = stack.enter_context(Server(standby_of=primary))
    primary.execute("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
    primary.execute("SELECT pg_reload_conf()")
    while primary.execute("SELECT sync_state FROM pg_stat_replication") != [("sync",)]:
        time.sleep(0.01)
    return primary, standby


def address(first: Server, second: Server, user: str = "postgres") -> str:
    """Return an address with both hosts, in this order."""
    hosts = f"127.0.0.1:{first.port},127.0.0.1:{second.port}"
    return f"postgresql://{user}@{hosts}/postgres?target_session_attrs=read-write"


@pytest.mark.parametrize("user", ["postgres", "clerk"], ids=["an administrator", "an ordinary role"])
def test_no_instance_answers_from_a_deposed_primary_that_goes_on_running(user: str) -> None:
    """The standby is promoted and the old primary left alone. Each page has every change that any instance acknowledged.

    Writes are acknowledged again within 5 seconds, also by an instance that starts afterwards.
    """
    with ExitStack() as stack:
        primary, standby = start_pair(stack)
        services = [stack.enter_context(Service(address(primary, standby)))]
        primary.execute("CREATE ROLE clerk LOGIN; GRANT ALL ON ALL TABLES IN SCHEMA public TO clerk")
        services += [
            stack.enter_context(Service(url))
            for url in (address(primary, standby, user), address(standby, primary, user))
        ]
        sites = [stack.enter_context(service.site()) for service in services]
        for number, site in enumerate(sites):
            site.client.timeout = 30
            add(site, f"before-{number}")
            site.list()  # so that the page is kept
        standby.promote()
        promoted = time.monotonic()
        added = {f"before-{number}" for number in range(len(sites))}
        for number in range(30):
            add(sites[-number % len(sites)], f"after-{number}")
            added.add(f"after-{number}")
            if number == 0:
                assert time.monotonic() - promoted < 10
            for site in sites:
                assert added <= set(site.list().nims)
                assert site.page(f"/mahasiswa/edit/after-{number}").record_form.values["nim"] == f"after-{number}"
        assert primary.execute("SELECT pg_is_in_recovery()") == [(False,)]
        with Service(address(primary, standby, user)) as late, late.site() as site:
            assert added <= set(site.list().nims)
            add(site, "late")
        assert "was promoted" in services[0].stderr()


def add(site: Site, nim: str) -> None:
    """Send an addition until it is certain that it was stored: a 409 says that an earlier attempt was."""
    deadline = time.monotonic() + 20
    while site.add(nim, "Siti", "Solo").status_code not in (302, 409):
        assert time.monotonic() < deadline, "additions are no longer acknowledged"


def test_a_primary_whose_standby_is_away_is_read_as_before() -> None:
    """No other host takes writes, so its pages are the latest. Additions get 503, because nothing acknowledges them."""
    with ExitStack() as stack:
        primary, standby = start_pair(stack)
        service = stack.enter_context(Service(address(primary, standby)))
        site = stack.enter_context(service.site())
        site.client.timeout = 30
        add(site, "before")
        standby.stop()
        began = time.monotonic()
        for _ in range(20):
            assert site.list().nims == ["before"]
        assert time.monotonic() - began < 8
        assert site.add("after", "Siti", "Solo").status_code == 503


def test_an_ordinary_role_is_told_once_that_it_cannot_see_the_standbys() -> None:
    """The line names the right that the role needs, and is not repeated for every request."""
    with ExitStack() as stack:
        primary, standby = start_pair(stack)
        with Service(address(primary, standby)):
            primary.execute("CREATE ROLE clerk LOGIN; GRANT ALL ON ALL TABLES IN SCHEMA public TO clerk")
        service = stack.enter_context(Service(address(primary, standby, "clerk"), {"WORKERS": "1"}))
        site = stack.enter_context(service.site())
        for _ in range(5):
            site.list()
        assert service.stderr().count("GRANT pg_monitor TO clerk") == 1
