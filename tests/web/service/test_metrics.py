"""`/metrics`: counters for Prometheus, only with METRICS=1."""

import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

import httpx
import pytest
from harness import Service, Site, free_port, visited
from processes import run, started, until
from spreadsheets import Database

from mahasiswa.work import KINDS, RECORD

SAMPLE = re.compile(
    r'(?:mahasiswa_)?([a-z_]+)\{worker="(\d+)"((?:,[a-z]+="[^"\\\n]*")*)\} ([0-9.e+-]+)'
)
PROCESS = "cpu_seconds_total open_fds max_fds resident_memory_bytes virtual_memory_bytes start_time_seconds"
PROMETHEUS = """
global: {{scrape_interval: 1s}}
scrape_configs: [{{job_name: mahasiswa, static_configs: [{{targets: ["127.0.0.1:{port}"]}}]}}]
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service(tmp_path_factory.mktemp("metrics") / "a.db", {"METRICS": "1"}) as service:
        yield service


def samples(site: Site) -> dict[str, float]:
    """Return every sample by its name and its labels, without the worker. Each other line must describe a metric."""
    answer = site.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = {}
    described = re.findall(
        r"(?m)^# HELP (\w+) [A-Z1].{9,}\.\n# TYPE (\w+) (?:counter|gauge|histogram)$", answer.text
    )
    assert (
        len(described)
        == len(set(described))
        == answer.text.count("# TYPE ")
        == answer.text.count("# HELP ")
    )
    for line in answer.text.splitlines():
        if not line.startswith("# "):
            match = SAMPLE.fullmatch(line)
            assert match, line
            assert match[1] + match[3] not in found, line
            found[match[1] + match[3]] = float(match[4])
    return found


def test_requests_are_counted_by_route_method_and_status(site: Site) -> None:
    """Also a list page from memory. No series names a record or an unknown path. Buckets hold those before them."""
    site.get("/tidak/ada/0")
    before = samples(site)
    site.add("0001", "Siti", "Solo")
    site.add("0001", "Siti", "Bantul")
    for nim in ("0001", "0002", "0003"):
        site.get(f"/mahasiswa/edit/{nim}")
        site.get(f"/tidak/ada/{nim}")
    for _ in range(7):
        site.get("/")
    after = samples(site)
    counted = {
        name: after[name] - before.get(name, 0)
        for name in after
        if name.startswith("requests_total")
    }
    assert {name.partition(",")[2]: count for name, count in counted.items() if count} == {
        'route="/mahasiswa/add",method="POST",status="302"': 1, 'route="/mahasiswa/add",method="POST",status="409"': 1,
        'route="/mahasiswa/edit/:nim",method="GET",status="200"': 1,
        'route="/mahasiswa/edit/:nim",method="GET",status="404"': 2, 'route="/",method="GET",status="200"': 7,
        'route="/metrics",method="GET",status="200"': 1, 'route="other",method="GET",status="404"': 3,
    }  # fmt: skip
    assert {series for series in after if "other" in series} == {
        series for series in before if "other" in series
    }
    route = 'route="/mahasiswa/edit/:nim"'
    buckets = [
        count for name, count in after.items() if name.startswith(f"request_seconds_bucket,{route}")
    ]
    assert buckets == sorted(buckets)
    assert buckets[-1] == after[f"request_seconds_count,{route}"] == 3
    assert 0 < after[f"request_seconds_sum,{route}"] < 20
    seconds = 'request_seconds_sum,route="/"'
    assert after[seconds] - before.get(seconds, 0) < 6, "six of the lists were sent from memory"


def test_the_slots_and_the_queue_of_each_kind_of_work_are_shown(
    service: Service, site: Site
) -> None:
    """With their maximum, without this request. A first group commit waits for a lock, and additions for the next."""
    found = samples(site)
    for kind in KINDS:
        assert found[f'work_running_max,kind="{kind.name}"'] == kind.running
        assert found[f'work_waiting_max,kind="{kind.name}"'] == kind.waiting
        assert (
            found[f'work_running,kind="{kind.name}"']
            == found[f'work_waiting,kind="{kind.name}"']
            == 0
        )
    assert found["request_bodies_bytes"] == 0
    waiting, maximum = 'work_waiting,kind="changes"', 'work_waiting_max,kind="changes"'
    assert (found[waiting], found[maximum]) == (0, RECORD.waiting)

    def add(number: int) -> int:
        with service.site() as client:
            return client.add(f"baru {number}", "Siti", "Solo").status_code

    with ThreadPoolExecutor(100) as clients:
        additions: list[Future[int]] = []

        def does_one_more_wait() -> bool:
            additions.append(clients.submit(add, len(additions)))
            return samples(site)[waiting] > 0

        assert isinstance(service.database, Path)
        with Database(service.database, "BEGIN IMMEDIATE"):
            until(does_one_more_wait)
        assert {addition.result() for addition in additions} == {302}
    assert samples(site)[waiting] == 0


def test_the_age_of_the_list_page_begins_anew_when_it_is_rendered(site: Site) -> None:
    site.get("/")
    older = samples(site)["list_page_age_seconds"]
    assert samples(site)["list_page_age_seconds"] > older
    site.add("umur", "Siti", "Solo")
    waited = samples(site)["list_page_age_seconds"]
    site.get("/")
    assert samples(site)["list_page_age_seconds"] < waited


def test_sizes_the_age_of_the_newest_backup_and_the_state_of_the_database_are_gauges(
    tmp_path: Path,
) -> None:
    """A monitor warns before the disk is full, and if back-ups stop. A database that cannot be read is shown as down.

    A back-up that the service could not make is counted.

    With WORKERS=2, an answer shows one worker, and the label of each series names it.
    """
    kept = {"METRICS": "1", "BACKUP_DIR": str(tmp_path / "kept"), "WORKERS": "2"}
    seen: set[str] = set()
    with Service(tmp_path / "a.db", kept) as two_workers, two_workers.site() as site:

        def are_both_seen() -> bool:
            with two_workers.site() as visitor:  # a new connection, which either worker may accept
                seen.update(match[2] for match in SAMPLE.finditer(visitor.get("/metrics").text))
            return len(seen) == 2

        until(are_both_seen)
        site.add("1", "Siti", "Solo")
        until(lambda: "newest_backup_age_seconds" in samples(site))
        found = samples(site)
        assert found["database_bytes"] == (tmp_path / "a.db").stat().st_size
        assert found["database_wal_bytes"] == (tmp_path / "a.db-wal").stat().st_size > 0
        assert found["disk_free_bytes"] > 1 << 20
        assert found["newest_backup_age_seconds"] < 60
        until(lambda: "backup_last_success_timestamp_seconds" in samples(site))
        assert 0 < time.time() - samples(site)["backup_last_success_timestamp_seconds"] < 60
        assert samples(site)["backup_failures_total"] == 0
        assert found["database_up"] == 1
        (tmp_path / "a.db").rename(tmp_path / "away")
        assert samples(site)["database_up"] == 0
    (tmp_path / "no folder").touch()
    failing = {"METRICS": "1", "BACKUP_DIR": f"{tmp_path}/no folder"}
    with visited(tmp_path / "b.db", failing) as site:
        until(lambda: samples(site).get("backup_failures_total") == 1)
        assert "backup_last_success_timestamp_seconds" not in samples(site)


def test_prometheus_reads_the_counters_and_each_alert_fires_if_its_fault_is_there(
    tmp_path: Path,
) -> None:
    """Promtool finds no fault, and a real Prometheus scrapes the service by its address, also with SAME_ORIGIN_ONLY.

    The version, and the families that dashboards expect of each process, are among the series. The rules of
    packaging/prometheus pass their own tests, and the service has every series that they read.
    """
    if not (shutil.which("prometheus") and shutil.which("promtool")):
        pytest.skip("prometheus is not installed")
    folder = Path(__file__).parents[3] / "packaging" / "prometheus"
    run("promtool", "test", "rules", "mahasiswa.test.yml", cwd=folder)
    named = set(re.findall(r"mahasiswa_\w+", (folder / "mahasiswa.rules.yml").read_text("utf-8")))
    closed = {
        "METRICS": "1",
        "SAME_ORIGIN_ONLY": "1",
        "BASE_URL": "https://a.id",
        "BACKUP_DIR": str(tmp_path),
    }
    with Service(tmp_path / "a.db", closed) as service, service.client() as monitor:
        assert monitor.get("/").status_code == 403
        checked = subprocess.run(
            ["promtool", "check", "metrics"],
            input=monitor.get("/metrics").content,
            capture_output=True,
            check=False,
        )
        assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")
        (tmp_path / "prometheus.yml").write_text(PROMETHEUS.format(port=service.port), "ascii")
        address = f"127.0.0.1:{free_port()}"
        options = (
            "--config.file=prometheus.yml",
            "--storage.tsdb.path=tsdb",
            f"--web.listen-address={address}",
        )

        def scraped() -> dict[str, dict[str, str]]:
            with suppress(httpx.TransportError):
                answer = httpx.get(
                    f"http://{address}/api/v1/query", params={"query": '{job="mahasiswa"}'}
                )
                series = answer.json()["data"]["result"] if answer.status_code == 200 else []
                return {one["metric"]["__name__"]: one["metric"] for one in series}
            return {}

        with started(
            "prometheus",
            *options,
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ):
            until(lambda: {"mahasiswa_build_info", *named} <= scraped().keys(), 60)
            found = scraped()
    assert found["mahasiswa_build_info"]["version"] == version("mahasiswa")
    assert found.keys() > {f"process_{name}" for name in PROCESS.split()}
