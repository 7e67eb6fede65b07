"""Ending: after a signal the service finishes the requests in flight, and ends soon."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from pathlib import Path

import pytest
from harness import START_SECONDS, URL_ENCODED, Service, free_port, is_free
from processes import COMMAND, started, until

END_SECONDS = 5.0
"""The service promises to end within this time after SIGTERM or Ctrl-C."""

Send = Callable[[int, int], None]


@pytest.mark.parametrize(
    ("send", "number"), [(os.kill, signal.SIGTERM), (os.killpg, signal.SIGINT)]
)
def test_a_request_in_flight_is_finished_before_the_end(
    tmp_path: Path, send: Send, number: int
) -> None:
    """After the signal, new connections are refused, and a form whose body is incomplete is still stored and answered."""
    with Service(tmp_path / "mahasiswa.db", {"LOG_LEVEL": "warning"}) as service:
        with a_form_half_sent(service) as connection:
            send(service.pid, number)
            until(lambda: is_free(service.port))
            # Slowly, so that the service handles the signal before the end of the form.
            for letter in "&alamat=Solo":
                connection.sendall(letter.encode())
                time.sleep(0.05)
            assert connection.recv(65536).startswith(b"HTTP/1.1 302 ")
        assert service.process.wait(END_SECONDS) == 0
        assert service.stderr() == ""
        service.restart()
        with service.site() as site:
            assert site.list().rows == [("1", "0001", "Siti", "Solo")]


def starting(
    database: Path, port: int, workers: int = 1
) -> AbstractContextManager[subprocess.Popen[bytes]]:
    environment = {"HOST": "127.0.0.1", "PORT": f"{port}", "WORKERS": f"{workers}"}
    return started(
        *COMMAND, env={**os.environ, **environment, "DATABASE_URL": f"sqlite:///{database}"}
    )


@pytest.mark.parametrize("workers", [1, 2])
def test_sigterm_ends_a_service_that_has_just_started(tmp_path: Path, workers: int) -> None:
    """The address is printed when requests are accepted. SIGTERM is not lost then, nor while the workers start."""
    port = free_port()
    with starting(tmp_path / "a.db", port, workers) as process:
        assert process.stdout
        assert process.stdout.readline().startswith(b"mahasiswa ")
        with socket.create_connection(("127.0.0.1", port), END_SECONDS) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert connection.recv(12) == b"HTTP/1.1 200"
        process.terminate()
        assert process.wait(END_SECONDS) == 0
    # This time without waiting for the address: the signal comes while the worker starts.
    with starting(tmp_path / "a.db", port, workers) as process:
        until(lambda: not is_free(port))
        process.terminate()
        assert process.wait(END_SECONDS) in (0, -signal.SIGTERM)


def a_form_half_sent(service: Service) -> closing[socket.socket]:
    """Send a form without its alamat, and wait until the application reads the body; return the connection."""
    connection = socket.create_connection(("127.0.0.1", service.port), START_SECONDS)
    # The answer "100 Continue" is sent when the application starts to read the body.
    head = (
        "POST /mahasiswa/add HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Type: {URL_ENCODED}\r\nContent-Length: 30\r\nExpect: 100-continue\r\n\r\n"
    )
    connection.sendall(head.encode())
    assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
    connection.sendall(b"nim=0001&nama=Siti")
    return closing(connection)
