"""`/metrics`: counters for Prometheus, only with METRICS=1."""

import re
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from attack import Hold, until
from harness import Page, Service, Site

from mahasiswa.work import KINDS, RECORD

SAMPLE = re.compile(r'mahasiswa_([a-z_]+)\{worker="(\d+)"((?:,[a-z]+="[^"\\\n]*")*)\} ([0-9.e+-]+)')


@pytest.fixture(scope="module", name="database")
def path_of_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of the database of the module's service."""
    return tmp_path_factory.mktemp("metrics") / "a.db"


@pytest.fixture(scope="module", name="measured")
def service_with_metrics(database: Path) -> Iterator[Site]:
    """Visit a service with counters."""
    with Service(database, {"METRICS": "1"}) as service, service.site() as site:
        yield site


def samples(site: Site) -> dict[str, float]:
    """Return every sample by its name and its labels, without the worker. Each line must be one sample."""
    answer = site.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = {}
    types = re.findall(r"(?m)^# TYPE mahasiswa_([a-z_]+) (?:counter|gauge|histogram)$", answer.text)
    assert len(types) == len(set(types))
    for line in answer.text.splitlines():
        if line.startswith("# TYPE "):
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        found[match[1] + match[3]] = float(match[4])
    assert len(found) + len(types) == len(answer.text.splitlines())
    return found


def test_without_the_setting_there_is_no_such_page(service: Service) -> None:
    """As with every unknown path: 404 with a page."""
    with service.site() as site:
        answer = site.get("/metrics")
        assert answer.status_code == 404
        assert Page(answer.text, service.url).title == "Program Input Data Mahasiswa"


def test_requests_are_counted_by_route_method_and_status(measured: Site) -> None:
    """A list page that is sent from memory is counted too. No time series names a record or an unknown path."""
    measured.get("/tidak/ada/0")
    before = samples(measured)
    measured.add("0001", "Siti", "Solo")
    measured.add("0001", "Siti", "Bantul")
    for nim in ("0001", "0002", "0003"):
        measured.get(f"/mahasiswa/edit/{nim}")
        measured.get(f"/tidak/ada/{nim}")
    for _ in range(7):
        measured.get("/")
    after = samples(measured)
    counted = {name: after[name] - before.get(name, 0) for name in after if name.startswith("requests_total")}
    assert {name.partition(",")[2]: count for name, count in counted.items() if count} == {
        'route="/mahasiswa/add",method="POST",status="302"': 1,
        'route="/mahasiswa/add",method="POST",status="409"': 1,
        'route="/mahasiswa/edit/:nim",method="GET",status="200"': 1,
        'route="/mahasiswa/edit/:nim",method="GET",status="404"': 2,
        'route="/",method="GET",status="200"': 7,
        'route="/metrics",method="GET",status="200"': 1,
        'route="other",method="GET",status="404"': 3,
    }
    assert {series for series in after if "other" in series} == {series for series in before if "other" in series}


def test_the_durations_are_a_histogram(measured: Site) -> None:
    """Each bucket holds the ones before it. The last one, and the count, are the number of requests."""
    for number in range(20):
        measured.delete(f"{number}")
    found = samples(measured)
    route = 'route="/mahasiswa/delete/:nim"'
    buckets = [count for name, count in found.items() if name.startswith(f"request_seconds_bucket,{route}")]
    assert buckets == sorted(buckets)
    assert buckets[-1] == found[f"request_seconds_count,{route}"] == 20
    assert 0 < found[f"request_seconds_sum,{route}"] < 20


def test_each_worker_has_time_series_of_its_own(tmp_path: Path) -> None:
    """With WORKERS=2, an answer shows one worker, and the label of each series names it."""
    seen: set[str] = set()

    def are_both_seen() -> bool:
        with service.site() as site:  # a new connection, which either worker may accept
            seen.update(match[2] for match in SAMPLE.finditer(site.get("/metrics").text))
        return len(seen) == 2

    with Service(tmp_path / "a.db", {"METRICS": "1", "WORKERS": "2"}) as service:
        until(are_both_seen)


def test_the_slots_and_the_queue_of_each_kind_of_work_are_shown(measured: Site) -> None:
    """With their maximum. This request itself is not among them."""
    found = samples(measured)
    for kind in KINDS:
        assert found[f'work_running_max,kind="{kind.name}"'] == kind.running
        assert found[f'work_waiting_max,kind="{kind.name}"'] == kind.waiting
        assert found[f'work_running,kind="{kind.name}"'] == found[f'work_waiting,kind="{kind.name}"'] == 0
    assert found["request_bodies_bytes"] == 0


def test_the_changes_that_wait_for_the_next_group_commit_are_shown(measured: Site, database: Path) -> None:
    """While another program holds the lock, the first group waits for it, and later additions wait for the next group."""
    waiting, maximum = 'work_waiting,kind="changes"', 'work_waiting_max,kind="changes"'

    def add(number: int) -> int:
        with Site(measured.origin) as site:
            return site.add(f"baru {number}", "Siti", "Solo").status_code

    with ThreadPoolExecutor(100) as clients:
        assert (samples(measured)[waiting], samples(measured)[maximum]) == (0, RECORD.waiting)
        additions: list[Future[int]] = []

        def does_one_more_wait() -> bool:
            additions.append(clients.submit(add, len(additions)))
            return samples(measured)[waiting] > 0

        with Hold(database, "BEGIN IMMEDIATE"):
            until(does_one_more_wait)
        assert {addition.result() for addition in additions} == {302}
        assert samples(measured)[waiting] == 0


def test_the_age_of_the_list_page_begins_anew_when_it_is_rendered(measured: Site) -> None:
    measured.get("/")
    older = samples(measured)["list_page_age_seconds"]
    assert samples(measured)["list_page_age_seconds"] > older
    measured.add("umur", "Siti", "Solo")
    waited = samples(measured)["list_page_age_seconds"]
    measured.get("/")
    assert samples(measured)["list_page_age_seconds"] < waited


def test_the_database_is_shown_as_down_while_it_cannot_be_read(tmp_path: Path) -> None:
    """The answer is 200 all the same, so that the other counters can be read."""
    with Service(tmp_path / "a.db", {"METRICS": "1"}) as service, service.site() as site:
        assert samples(site)["database_up"] == 1
        (tmp_path / "a.db").rename(tmp_path / "away")
        assert samples(site)["database_up"] == 0


def test_sizes_and_the_age_of_the_newest_backup_are_gauges(tmp_path: Path) -> None:
    """A monitor warns before the disk is full, and if back-ups stop."""
    kept = tmp_path / "kept"
    with Service(tmp_path / "a.db", {"METRICS": "1", "BACKUP_DIR": str(kept)}) as service, service.site() as site:
        site.add("1", "Siti", "Solo")
        until(lambda: "newest_backup_age_seconds" in samples(site))
        found = samples(site)
        assert found["database_bytes"] == (tmp_path / "a.db").stat().st_size
        assert found["database_wal_bytes"] == (tmp_path / "a.db-wal").stat().st_size > 0
        assert found["disk_free_bytes"] > 1 << 20
        assert found["newest_backup_age_seconds"] < 60
