"""The processes of the service: faults around them end no service, and with WORKERS above 1 each is replaced."""

import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from harness import Service
from operators import COMMAND
from processes import children, is_running, until
from sockets import Line

EXEC = "os.execv(sys.executable, [sys.executable, '-m', 'mahasiswa'])"

FAULTS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "a standard output on a full disk": ("os.dup2(os.open('/dev/full', os.O_WRONLY), 1);", {}),
    "no standard output": ("os.close(1);", {}),
    "a standard output whose reader has ended": ("r, w = os.pipe(); os.dup2(w, 1); os.close(r);", {}),
    "a standard error on a full disk": ("os.dup2(os.open('/dev/full', os.O_WRONLY), 2);", {}),
    "no standard error": ("os.close(2);", {}),
    "systemd does not listen": ("", {"NOTIFY_SOCKET": "/tidak/ada"}),
    "ends of processes are ignored": ("import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN);", {}),
}  # fmt: skip


@pytest.mark.parametrize(("code", "environment"), FAULTS.values(), ids=FAULTS)
def test_a_fault_around_the_service_does_not_end_it(
    tmp_path: Path, code: str, environment: Mapping[str, str]
) -> None:
    """The back-up is made, a record is stored, and SIGTERM ends the service."""
    command = (sys.executable, "-c", f"import os, sys\n{code}{EXEC}")
    folder = tmp_path / "cadangan"
    folder.mkdir()
    given = {"BACKUP_DIR": str(folder), **environment}
    with Service(tmp_path / "a.db", given, command=command) as service:
        until(lambda: [*folder.glob("*.db")])
        with service.site() as site:
            site.stores("1", "Siti", "Solo")
        assert service.stop() == 0


def test_a_worker_that_ends_is_replaced(tmp_path: Path) -> None:
    with Service(tmp_path / "a.db", {"WORKERS": "2"}) as service:
        killed = workers(service)[0]
        os.kill(killed, signal.SIGKILL)
        until(lambda: len({*workers(service)} - {killed}) == 2, 30)
        with service.site() as site:
            site.stores("1", "Siti", "Solo")
        assert service.stop() == 0


SLOW_START = "import sys, time\ntime.sleep(7 * ('--multiprocessing-fork' in sys.orig_argv))\n"


def test_a_worker_that_starts_slowly_is_not_replaced(tmp_path: Path) -> None:
    """A slow machine needs some seconds to load the program."""
    (tmp_path / "sitecustomize.py").write_text(SLOW_START)
    given = {"WORKERS": "2", "PYTHONPATH": str(tmp_path)}
    with Service(tmp_path / "a.db", given, command=COMMAND) as service:
        until(service.stdout, 20)
        assert service.stop() == 0


def test_no_worker_outlives_a_killed_parent(tmp_path: Path) -> None:
    with Service(tmp_path / "a.db", {"WORKERS": "2"}) as service:
        running = workers(service)
        os.kill(service.pid, signal.SIGKILL)
        until(lambda: not any(map(is_running, running)))


FROZEN = """
import time
from mahasiswa.server import worker
from mahasiswa.web import monitoring
worker.SILENT_SECONDS = 3.0
async def freeze(*_: object) -> None:
    __import__("time").sleep(60)
monitoring.health.__code__ = freeze.__code__
from mahasiswa.commands.cli import main
main()
"""


def test_a_process_whose_event_loop_stands_still_ends_itself(tmp_path: Path) -> None:
    """It says where it stood, and systemd or the container starts it again."""
    command = (sys.executable, "-c", FROZEN)
    with Service(tmp_path / "a.db", command=command) as service:
        with Line(service.port) as line:
            line.socket.sendall(b"GET /sehat HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert service.process.wait(30) == 1
        assert "Timeout (0:00:03)!" in service.stderr()
        assert "in freeze" in service.stderr()


def test_a_standard_error_that_nobody_reads_stops_nothing(tmp_path: Path) -> None:
    """Lines without room are dropped. Every request is answered, and the service ends."""
    os.mkfifo(tmp_path / "log")
    reader = os.open(tmp_path / "log", os.O_RDONLY | os.O_NONBLOCK)
    code = f"import os, sys\nos.dup2(os.open({str(tmp_path / 'log')!r}, os.O_WRONLY), 2);{EXEC}"
    try:
        with Service(tmp_path / "a.db", command=(sys.executable, "-c", code)) as service:
            with Line(service.port) as line:
                assert {line.get("/tidak/ada").status for _ in range(2500)} == {404}
            assert service.stop() == 0
        assert b" WARNING GET /tidak/ada 404 " in os.read(reader, 1000)
    finally:
        os.close(reader)


def workers(service: Service) -> list[int]:
    """Return the ids of the workers. Python's tracker of resources is another child."""
    return [pid for pid in children(service.pid) if b"spawn_main" in command_of(pid)]


def command_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()
