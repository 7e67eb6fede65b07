"""Ending: after a signal the service finishes the requests in flight, ends soon, and loses no acknowledged change."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from subprocess import Popen
from threading import Event

import httpx
import pytest
from attack import is_free, until
from harness import START_SECONDS, URL_ENCODED, Service, free_port
from processes import children, is_running
from stores import other_program

from mahasiswa.server import SHUTDOWN_SECONDS, SILENT_SECONDS

END_SECONDS = 5.0
"""The service promises to end within this time after SIGTERM or Ctrl-C."""

# A terminal sends its signals to the whole process group.
ENDINGS = {"SIGTERM": (os.kill, signal.SIGTERM), "the terminal is closed": (os.killpg, signal.SIGHUP)}
Send = Callable[[int, int], None]


@pytest.mark.parametrize(("send", "number"), ENDINGS.values(), ids=ENDINGS)
def test_a_request_in_flight_is_finished_before_the_end(tmp_path: Path, send: Send, number: int) -> None:
    """After the signal, new connections are refused, and a form whose body is incomplete is still stored and answered."""
    with Service(tmp_path / "mahasiswa.db", {"LOG_LEVEL": "warning"}) as service:
        with a_form_half_sent(service) as connection:
            send(service.pid, number)
            until(lambda: is_free(service.port))
            connection.sendall(b"&alamat=Solo")
            assert connection.recv(65536).startswith(b"HTTP/1.1 302 ")
            assert ended_with(service) == 0
        assert service.stderr() == ""
        service.restart()
        with service.site() as site:
            assert site.list().rows == [("1", "0001", "Siti", "Solo")]


def test_stalled_clients_do_not_delay_the_end(tmp_path: Path) -> None:
    """The service ends in time with code 0 despite clients that send nothing, send half, or read nothing."""
    with ExitStack() as stack:
        services = []
        for name, ending in ENDINGS.items():
            service = stack.enter_context(Service(tmp_path / f"{name}.db"))
            for data in (
                b"",
                b"GET / HTT",
                b"GET / HTTP/1.1\r\nHost: x\r\n",
                b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 50,
            ):
                stalled = stack.enter_context(socket.create_connection(("127.0.0.1", service.port)))
                stalled.sendall(data)
            stack.enter_context(a_form_half_sent(service))
            services.append((service, *ending))
        began = time.monotonic()
        for service, send, number in services:
            send(service.pid, number)
        for service, _, _ in services:
            assert ended_with(service, began) == 0
            assert is_free(service.port)


def test_a_second_ctrl_c_does_not_cut_off_requests(tmp_path: Path) -> None:
    """A request in flight is finished even if Ctrl-C is pressed twice."""
    with Service(tmp_path / "mahasiswa.db") as service:
        with a_form_half_sent(service) as connection:
            os.killpg(service.pid, signal.SIGINT)
            until(lambda: is_free(service.port))
            os.killpg(service.pid, signal.SIGINT)
            connection.sendall(b"&alamat=Solo")
            assert connection.recv(65536).startswith(b"HTTP/1.1 302 ")
            assert ended_with(service) == 0
        service.restart()
        with service.site() as site:
            assert site.list().nims == ["0001"]


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_acknowledged_addition_is_lost_at_the_end(tmp_path: Path, number: int, workers: str) -> None:
    """If the service is ended or killed during additions, every addition with the answer 302 is stored."""
    answered: list[str] = []
    enough = Event()
    with Service(tmp_path / "mahasiswa.db", {"WORKERS": workers}) as service:

        def add(name: int) -> None:
            with service.site() as site:
                for count in range(100_000):
                    nim = f"{name}/{count}"
                    try:
                        status = site.add(nim, "Siti", "Solo").status_code
                    except httpx.HTTPError:
                        return  # the service has ended
                    assert status == 302
                    answered.append(nim)
                    if len(answered) >= 100:
                        enough.set()

        with ThreadPoolExecutor(4) as clients:
            running = [clients.submit(add, name) for name in range(4)]
            assert enough.wait(START_SECONDS)
            os.killpg(service.pid, number)
            code = ended_with(service)
            for client in running:
                client.result(START_SECONDS)
        assert code == (-signal.SIGKILL if number == signal.SIGKILL else 0)
        service.restart()
        with service.site() as site:
            stored = set(site.list().nims)
    assert set(answered) <= stored
    assert len(stored) <= len(answered) + 4  # each client may have one addition that was stored but not answered


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_end_with_their_parent(tmp_path: Path, workers: int) -> None:
    """If the main process is killed, its workers end too, and the service can start again on the same port."""
    with Service(tmp_path / "mahasiswa.db", {"WORKERS": str(workers)}) as service:
        orphans = children(service.pid)
        assert len(orphans) == workers
        os.kill(service.pid, signal.SIGKILL)
        until(lambda: is_free(service.port))
        until(lambda: not any(is_running(pid) for pid in orphans))
        assert ended_with(service) == -signal.SIGKILL
        service.restart()


def test_a_worker_that_is_killed_is_replaced(tmp_path: Path) -> None:
    """The main process replaces a killed worker, and the new one shows all records."""
    with Service(tmp_path / "mahasiswa.db") as service:
        with service.site() as site:
            site.add("0001", "Siti", "Solo")
        (killed,) = children(service.pid)
        os.kill(killed, signal.SIGKILL)
        until(lambda: children(service.pid) not in ([], [killed]))
        until(lambda: not is_free(service.port))
        with service.site() as site:
            assert site.add("0002", "Budi", "Bantul").status_code == 302
            assert site.list().nims == ["0001", "0002"]
        assert service.stop() == 0


def test_sigterm_ends_a_service_that_has_just_started(tmp_path: Path) -> None:
    """The address is printed when requests are accepted. SIGTERM is not lost then, nor while the workers start."""
    environment = {
        **os.environ,
        "HOST": "127.0.0.1",
        "PORT": str(free_port()),
        "DATABASE_URL": f"sqlite:///{tmp_path}/a.db",
    }
    for workers in ("1", "2", "1", "2"):
        started = Popen(
            [sys.executable, "-m", "mahasiswa"], env=environment | {"WORKERS": workers}, stdout=subprocess.PIPE
        )
        with started as process:
            assert process.stdout
            assert process.stdout.readline().startswith(b"mahasiswa ")
            with socket.create_connection(("127.0.0.1", int(environment["PORT"])), 1) as connection:
                connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                assert connection.recv(12) == b"HTTP/1.1 200"
            process.terminate()
            assert process.wait(SHUTDOWN_SECONDS - 1) == 0
        # This time without waiting for the address: the signal comes while the worker starts.
        with Popen([sys.executable, "-m", "mahasiswa"], env=environment, stderr=subprocess.PIPE) as process:
            until(lambda pid=process.pid: not is_free(int(environment["PORT"])) and bool(children(pid)))  # type: ignore[misc]
            process.terminate()
            assert process.wait(SHUTDOWN_SECONDS - 1) in (0, -signal.SIGTERM)


@pytest.mark.torture
def test_a_worker_that_does_not_answer_is_replaced(tmp_path: Path) -> None:
    """The main process kills a worker whose event loop has stood for 30 seconds. If both stood, it kills none."""
    with Service(tmp_path / "mahasiswa.db", {"WORKERS": "2"}) as service:
        workers = set(children(service.pid))
        os.killpg(service.pid, signal.SIGSTOP)
        time.sleep(SILENT_SECONDS + 5)  # the time is the subject of this test
        os.killpg(service.pid, signal.SIGCONT)
        time.sleep(5)
        assert set(children(service.pid)) == workers
        stopped = min(workers)
        os.kill(stopped, signal.SIGSTOP)
        began = time.monotonic()
        until(lambda: len(set(children(service.pid)) - {stopped}) == 2, SILENT_SECONDS + 10)
        assert time.monotonic() - began > SILENT_SECONDS - 5
        assert "is killed" in service.stderr()
        assert service.stop() == 0


@pytest.mark.parametrize(("send", "number"), [(os.kill, signal.SIGTERM), (os.killpg, signal.SIGINT)])
def test_a_signal_ends_a_service_that_waits_for_a_locked_database(tmp_path: Path, send: Send, number: int) -> None:
    """While another program holds a lock, SIGTERM or Ctrl-C ends the start at once, silently, and leaves no process."""
    path = tmp_path / "mahasiswa.db"
    with other_program(path) as execute:
        execute("BEGIN EXCLUSIVE")
        environment = {**os.environ, "HOST": "127.0.0.1", "PORT": str(free_port()), "DATABASE_URL": f"sqlite:///{path}"}
        with subprocess.Popen(
            [sys.executable, "-m", "mahasiswa"], env=environment, stderr=subprocess.PIPE, start_new_session=True
        ) as process:
            until(lambda: bool(children(process.pid)))
            waiting = children(process.pid)
            send(process.pid, number)
            assert process.wait(END_SECONDS) == -number
            until(lambda: not any(map(is_running, waiting)))
            assert process.stderr
            assert process.stderr.read() == b""


def a_form_half_sent(service: Service) -> closing[socket.socket]:
    """Send a form without its alamat, and wait until the application reads the body; return the connection."""
    connection = socket.create_connection(("127.0.0.1", service.port), START_SECONDS)
    # The answer "100 Continue" is sent when the application starts to read the body.
    connection.sendall(
        b"POST /mahasiswa/add HTTP/1.1\r\nHost: localhost\r\n"
        b"Content-Type: " + URL_ENCODED.encode() + b"\r\nContent-Length: 30\r\nExpect: 100-continue\r\n\r\n"
    )
    assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
    connection.sendall(b"nim=0001&nama=Siti")
    return closing(connection)


def ended_with(service: Service, began: float | None = None) -> int:
    """Wait until the service ends, and return its exit code. Fail if it takes longer than END_SECONDS."""
    began = time.monotonic() if began is None else began
    return service._process.wait(max(0.0, began + END_SECONDS - time.monotonic()))
