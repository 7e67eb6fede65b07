"""The cluster of docs/cluster.md survives the loss of a host: no acknowledged change is lost, and no page is stale."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial

import cluster as faults
import pytest
from cluster import PASSWORD, PROGRAMS, Cluster, Host
from ledger import Ledger
from processes import needs_namespaces

PACKAGES = "patroni python3-etcd etcd-server etcd-client haproxy postgresql-15 iproute2"

INSTALL = f"apt-get install --no-install-recommends {PACKAGES}"
pytestmark = [
    pytest.mark.torture,
    pytest.mark.skipif(not all(map(shutil.which, PROGRAMS)), reason=INSTALL),
]

HAPROXY = f"postgresql://mahasiswa:{PASSWORD}@127.0.0.1/mahasiswa"

Fault = Callable[[Cluster, Host], Callable[[], None]]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start the cluster once. Every test leaves it whole. The test runs in the network of its switch."""
    needs_namespaces("--net")
    with Cluster(tmp_path_factory.mktemp("cluster")) as cluster, cluster.on_the_switch():
        yield cluster


FAULTS: dict[str, Fault] = {
    "the primary's host is killed": faults.killed,
    "the primary's host is unplugged": faults.unplugged,
    "the primary is cut off from etcd and its peers": faults.partitioned,
    "everything on the primary's host freezes, later thaws": faults.frozen,
    "Patroni alone freezes, PostgreSQL goes on": partial(
        faults.frozen, program="/usr/bin/patroni "
    ),
    "planned switchover": faults.switched_over,
}


@pytest.mark.parametrize("name", FAULTS)
def test_nothing_is_lost_and_no_page_is_stale(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """Clients write and read meanwhile. The printed row has the longest time without an acknowledgement."""
    primary = cluster.wait_until_whole()
    cluster.create_database(primary)
    ledger = Ledger(cluster.start_services(HAPROXY))
    try:
        with ledger.running():
            ledger.wait_for(50)
            with ExitStack() as stack:
                stack.callback(FAULTS[name](cluster, primary))
                cluster.wait_for_another(primary)
                ledger.wait_for(100)
            cluster.wait_until_whole()
            ledger.wait_for(50)
        additions = sum(map(len, ledger.acknowledged))
        row = [
            name,
            additions,
            sum(ledger.pages),
            len(ledger.lost()),
            len(ledger.stale),
            f"{ledger.gap():.1f} s",
        ]
        with capsys.disabled():
            print("\n|", " | ".join(map(str, row)), "|")  # noqa: T201
        ledger.check()
    finally:
        cluster.stop_services()
