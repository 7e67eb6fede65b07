"""The processes of the service: faults around them end no service, and with WORKERS above 1 each is replaced."""

import fcntl
import os
import signal
import sys
from pathlib import Path

import httpx
import psutil  # type: ignore[import-untyped]
import pytest
from harness import Service, is_free, led_to
from processes import until

EXEC = "os.execv(sys.executable, [sys.executable, '-m', 'mahasiswa'])"


@pytest.mark.torture
def test_a_worker_that_ends_is_replaced(tmp_path: Path) -> None:
    with Service(tmp_path / "a.db", {"WORKERS": "2"}) as service:
        killed, _ = workers(service)
        killed.kill()
        until(lambda: len(workers(service) - {killed}) == 2)
        with service.site() as site:
            led_to(site.add("1", "Siti", "Solo"))
        assert service.stop() == 0


@pytest.mark.torture
def test_no_worker_outlives_a_killed_parent(tmp_path: Path) -> None:
    """It would keep the port and answer requests."""
    with Service(tmp_path / "a.db", {"WORKERS": "2"}) as service:
        os.kill(service.pid, signal.SIGKILL)
        until(lambda: is_free(service.port))


FROZEN = """
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
        with pytest.raises(httpx.RemoteProtocolError), service.site() as site:
            site.get("/sehat")
        assert service.process.wait(30) == 1
        assert "Timeout (0:00:03)!" in service.stderr()
        assert "in freeze" in service.stderr()


def test_a_standard_error_that_nobody_reads_stops_nothing(tmp_path: Path) -> None:
    """Lines without room are dropped. Every request is answered, and the service ends."""
    os.mkfifo(tmp_path / "log")
    reader = os.open(tmp_path / "log", os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
    code = f"import os, sys\nos.dup2(os.open({str(tmp_path / 'log')!r}, os.O_WRONLY), 2);{EXEC}"
    try:
        with Service(tmp_path / "a.db", command=(sys.executable, "-c", code)) as service:
            with service.site() as site:
                statuses = {site.get("/tidak/ada").status_code for _ in range(1200)}
                assert statuses == {404}
            assert service.stop() == 0
        assert b" WARNING GET /tidak/ada 404 " in os.read(reader, 1000)
    finally:
        os.close(reader)


def workers(service: Service) -> set[psutil.Process]:
    """Return the workers. Python's tracker of resources is another child."""
    children = psutil.Process(service.pid).children()
    # The command of a process that has ended is None.
    return {child for child in children if "spawn_main" in str(child.as_dict(["cmdline"]))}
