"""`/metrics`: counters for Prometheus, only with METRICS=1."""

import math
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import Service, Site, visited
from processes import run, until

SAMPLE = re.compile(
    r'mahasiswa_([a-z_]+)\{worker="(\d+)"((?:,[a-z]+="[^"\\\n]*")*)\} ([0-9.e+-]+|inf)'
)


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
        r"(?m)^# HELP (\w+) [A-Z1].{9,}\.\n# TYPE (\w+) (?:counter|gauge)$", answer.text
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


def test_requests_are_counted_by_route_and_status(site: Site) -> None:
    """Also a list page from memory. No series names a record or an unknown path."""
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
        name.partition(",")[2]: after[name] - before.get(name, 0)
        for name in after
        if name.startswith("requests_total")
    }
    assert {labels: count for labels, count in counted.items() if count} == {
        'route="/mahasiswa/add",status="302"': 1, 'route="/mahasiswa/add",status="409"': 1,
        'route="/mahasiswa/edit/:nim",status="200"': 1, 'route="/mahasiswa/edit/:nim",status="404"': 2,
        'route="/",status="200"': 7, 'route="/metrics",status="200"': 1, 'route="other",status="404"': 3,
    }  # fmt: skip


def test_the_state_of_the_database_and_of_its_files_is_shown(tmp_path: Path) -> None:
    """A monitor warns before the disk is full, and if back-ups stop. A database that cannot be read is shown as down.

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
        until(lambda: samples(site)["newest_backup_age_seconds"] < 60)
        found = samples(site)
        assert found["database_up"] == 1
        assert found["disk_free_bytes"] > 1 << 20
        errors = found["errors_total"]
        (tmp_path / "a.db").rename(tmp_path / "away")
        assert site.get("/").status_code == 503
        found = samples(site)
        assert found["database_up"] == 0
        assert found["errors_total"] == errors + 1
    (tmp_path / "no folder").touch()
    failing = {"METRICS": "1", "BACKUP_DIR": f"{tmp_path}/no folder"}
    with visited(Service(tmp_path / "b.db", failing)) as site:
        assert samples(site)["newest_backup_age_seconds"] == math.inf


def test_prometheus_reads_the_counters_and_each_alert_has_its_series(tmp_path: Path) -> None:
    """Promtool finds no fault in the answer. The rules of packaging/prometheus pass their own tests.

    A monitor asks by the address of the computer, also with SAME_ORIGIN_ONLY.
    """
    if not shutil.which("promtool"):
        pytest.skip("prometheus is not installed")
    folder = Path(__file__).parents[3] / "packaging" / "prometheus"
    run("promtool", "test", "rules", "mahasiswa.test.yml", cwd=folder)
    rules = (folder / "mahasiswa.rules.yml").read_text("utf-8")
    named = set(re.findall(r"mahasiswa_\w+", rules))
    closed = {"SAME_ORIGIN_ONLY": "1", "BASE_URL": "https://a.id", "BACKUP_DIR": str(tmp_path)}
    with visited(Service(tmp_path / "a.db", {"METRICS": "1", **closed})) as monitor:
        assert monitor.get("/").status_code == 403
        answer = monitor.get("/metrics")
    assert named <= set(re.findall(r"mahasiswa_\w+", answer.text))
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=answer.content, capture_output=True, check=False
    )
    assert checked.returncode == 0
    assert checked.stdout == b""
    assert checked.stderr == b""
