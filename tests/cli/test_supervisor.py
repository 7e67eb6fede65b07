"""Faults around the main process: its output, its forks and its notices end no supervision and block nothing."""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from harness import Service
from operators import until_idle
from processes import until
from sockets import Line

from mahasiswa.server.supervisor import RESTART_SECONDS

EXEC = "os.execv(sys.executable, [sys.executable, '-m', 'mahasiswa'])"

# The first two starts of the worker, the first one of the back-up, and that of the worker that replaces a killed one.
FAILED_FORKS = """
fork, calls = os.fork, itertools.count()
def fails_at_times():
    if next(calls) in (1, 2, 4, 6):
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
    return fork()
os.fork = fails_at_times
from mahasiswa.commands.cli import main
main()
"""

FAULTS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "a standard output on a full disk": ("os.dup2(os.open('/dev/full', os.O_WRONLY), 1);" + EXEC, {}),
    "no standard output": ("os.close(1);" + EXEC, {}),
    "a standard output whose reader has ended": ("r, w = os.pipe(); os.dup2(w, 1); os.close(r);" + EXEC, {}),
    "a standard error on a full disk": ("os.dup2(os.open('/dev/full', os.O_WRONLY), 2);" + EXEC, {}),
    "no standard error": ("os.close(2);" + EXEC, {}),
    "systemd does not listen": (EXEC, {"NOTIFY_SOCKET": "/tidak/ada"}),
    "ends of processes are ignored": ("import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN);" + EXEC, {}),
    "forks that fail": (FAILED_FORKS, {}),
}  # fmt: skip


@pytest.mark.parametrize(("code", "environment"), FAULTS.values(), ids=FAULTS)
def test_a_fault_around_the_main_process_ends_no_supervision(
    tmp_path: Path, code: str, environment: Mapping[str, str]
) -> None:
    """The back-up is made, a killed worker is replaced, and SIGTERM ends the service."""
    command = (sys.executable, "-c", f"import errno, itertools, os, sys\n{code}")
    folder = tmp_path / "cadangan"
    folder.mkdir()
    with Service(
        tmp_path / "a.db", {"BACKUP_DIR": str(folder), **environment}, command=command
    ) as service:
        until(lambda: [*folder.glob("*.db")])
        until_idle(service)
        service.lose_worker()
        with service.site() as site:
            site.stores("1", "Siti", "Solo")
        assert service.stop() == 0


def test_a_worker_that_cannot_be_started_is_started_later(tmp_path: Path) -> None:
    """The pause grows, because each attempt takes open files of the main process."""
    failed = range(1, 4)
    forks = FAILED_FORKS.replace("(1, 2, 4, 6)", str(failed)).replace(
        "    if next", "    os.write(2, b'fork at %f\\n' % time.monotonic())\n    if next"
    )
    command = (sys.executable, "-c", f"import errno, itertools, os, sys, time\n{forks}")
    with Service(tmp_path / "a.db", command=command) as service:
        log = service.stderr()
    assert log.count("ERROR a worker could not be started: Resource") == 3
    last_failure, start = map(float, re.findall("fork at (.+)", log)[failed[-1] : failed[-1] + 2])
    assert start - last_failure >= 4 * RESTART_SECONDS


def test_a_standard_error_that_nobody_reads_stops_nothing(tmp_path: Path) -> None:
    """Lines without room are dropped. Every request is answered, a killed worker is replaced, and the service ends."""
    os.mkfifo(tmp_path / "log")
    reader = os.open(tmp_path / "log", os.O_RDONLY | os.O_NONBLOCK)
    code = f"import os, sys\nos.dup2(os.open({str(tmp_path / 'log')!r}, os.O_WRONLY), 2);{EXEC}"

    def flood() -> None:
        with Line(service.port) as line:
            assert {line.get("/tidak/ada").status for _ in range(2500)} == {404}

    try:
        with Service(tmp_path / "a.db", command=(sys.executable, "-c", code)) as service:
            flood()
            service.lose_worker()
            flood()
            assert service.stop() == 0
        assert b" WARNING GET /tidak/ada 404 " in os.read(reader, 1000)
    finally:
        os.close(reader)
