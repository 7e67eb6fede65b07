"""Runs the service as a real process for a test: `Service`. The classes that read its pages are in visitor.py."""

import os
import re
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from processes import Closing, Forked, until
from visitor import URL_ENCODED, Form, Page, Site, led_to, page_of

from mahasiswa.settings import Settings

# Most tests need both a service and a visitor, so they import all of it from here.
__all__ = [
    "URL_ENCODED",
    "Form",
    "Page",
    "Service",
    "Site",
    "StartError",
    "free_port",
    "led_to",
    "page_of",
    "visited",
]
SETTINGS = tuple(variable for variable, _ in Settings.declared())
START_SECONDS = 30.0
STOP_SECONDS = 10.0
SHOWN_CHARACTERS = 5_000  # of the log of a service
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
# Each run has its own start.
PORTS = iter(range(10_000 + (37 * os.getppid() + 3000 * WORKER) % 20_000, 32_000))


# The only lines that the service may write to standard error: one for each change and each refused request, and warnings.
LOG_LINE = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d "
    r"(?:(?P<level>INFO|WARNING|ERROR) (?P<method>[!#$%&'*+.^_`|~0-9A-Za-z-]+) (?P<path>[!-~]*)"
    r'(?: (?P<nim>"[ -~]*"))? (?P<status>\d{3}) (?P<took>\d+\.\d) ms (?P<address>[0-9a-f:.]+|-) (?P<number>\d{8})'
    r"|(?:WARNING|ERROR) (?P<other>[ -~]+))"
)

CONTROL = re.compile("[\0-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]")
"""Characters that start a new line or control a terminal, except the line feed that ends a line of the log."""


class StartError(Exception):
    """The service ended before it answered a request. `code` is its exit code, `stderr` its standard error."""

    def __init__(self, code: int, stderr: str) -> None:
        super().__init__(
            f"the service ended with exit code {code} before it answered; standard error:\n{stderr}"
        )
        self.code = code
        self.stderr = stderr


class Service(Closing):
    """The program, or another command, on a free port of 127.0.0.1, in a process group of its own.

    `database` is the path of an SQLite file or a whole DATABASE_URL. `environment` sets further variables; the value
    None removes a variable, so that the service uses its default. Raises `StartError` if the process ends before it
    answers.
    """

    def __init__(
        self,
        database: Path | str,
        environment: Mapping[str, str | None] | None = None,
        *,
        cwd: Path | None = None,
        command: Sequence[str] = (),
    ) -> None:
        self.database = database
        url = f"sqlite:///{database.absolute()}" if isinstance(database, Path) else database
        usual = {"HOST": "127.0.0.1", "PORT": str(free_port()), "DATABASE_URL": url}
        chosen = {
            name: value
            for name, value in {**usual, **(environment or {})}.items()
            if value is not None
        }
        self.port = int(chosen.get("PORT", "3000"))
        self._prefix = urlsplit(chosen.get("BASE_URL", "")).path.rstrip("/")
        self.url = f"http://127.0.0.1:{self.port}{self._prefix}"
        self.socket = chosen.get("HOST", "").partition("unix:")[2]
        self.environment = without_settings() | chosen
        self._cwd, self._command = cwd or Path.cwd(), command
        # Files, because a pipe that is not read fills up and blocks the process that writes to it.
        self._stdout = tempfile.NamedTemporaryFile()  # noqa: SIM115 - until `close`
        self._stderr = tempfile.NamedTemporaryFile()  # noqa: SIM115 - until `close`
        self._log_begin = 0
        self._start()

    @property
    def pid(self) -> int:
        """The id of the main process, which is also the id of the process group."""
        return self.process.pid

    def site(self) -> Site:
        return Site(self.url, self.socket)

    def raw(self, data: bytes, seconds: float = 15.0) -> bytes:
        """Send bytes unchanged; return everything received. Raise TimeoutError unless the service closes the connection."""
        received = []
        with socket.socket(socket.AF_UNIX if self.socket else socket.AF_INET) as connection:
            connection.settimeout(seconds)
            connection.connect(self.socket or ("127.0.0.1", self.port))
            with suppress(ConnectionError):
                connection.sendall(data)
            with suppress(ConnectionError):
                while part := connection.recv(65536):
                    received.append(part)
        return b"".join(received)

    def stdout(self) -> str:
        return _written(self._stdout)

    def stderr(self) -> str:
        return _written(self._stderr)[self._log_begin :]

    def begin_log(self) -> None:
        """Leave the lines that are written by now out of `stderr`."""
        self._log_begin = len(_written(self._stderr))

    def says(self, text: str, count: int = 1) -> None:
        """Wait until the log has a text so often."""
        until(lambda: self.stderr().count(text) >= count)

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(STOP_SECONDS)

    def kill(self) -> None:
        """End the service and all its workers with SIGKILL, as abruptly as a power failure does."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()
        self._wait_for_workers()

    def restart(self) -> None:
        """Start the service again on the same port and database. Stop it first if it still runs."""
        self.stop()
        self._wait_for_workers()
        self._start()

    def close(self) -> None:
        """Kill the service if it still runs, show the end of its log, and close the files of its output."""
        if self.process.poll() is None:
            self.kill()
        print(self.stderr()[-SHOWN_CHARACTERS:])  # noqa: T201 - pytest shows it if the test fails
        self._stdout.close()
        self._stderr.close()

    def _wait_for_workers(self) -> None:
        """Workers may end after the main process."""
        until(lambda: can_listen(self.port), STOP_SECONDS)

    def _start(self) -> None:
        is_taken = not is_free(self.port)
        self.process: Forked | subprocess.Popen[bytes] = self._run()
        try:
            # If another program has the port, its answer would look like ours.
            if is_taken:
                self.process.wait(START_SECONDS)
            until(self._answers, START_SECONDS)
        except BaseException:
            self.close()
            raise

    def _run(self) -> Forked | subprocess.Popen[bytes]:
        if not self._command:
            output, errors = self._stdout.name, self._stderr.name
            return Forked(cwd=self._cwd, env=self.environment, output=output, errors=errors)
        return subprocess.Popen(
            self._command,
            cwd=self._cwd,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=self._stdout,
            stderr=self._stderr,
            start_new_session=True,
        )

    def _answers(self) -> bool:
        code = self.process.poll()
        if code is not None:
            raise StartError(code, self.stderr())
        request = f"GET {self._prefix}/ HTTP/1.0\r\nHost: 127.0.0.1:{self.port}\r\n\r\n"
        with suppress(OSError):
            return self.raw(request.encode()).startswith(b"HTTP/")
        return False


def assert_log_is_sound(text: str, allowed: Sequence[str] = ()) -> None:
    """Check each line: the service writes such lines, or it is about malformed HTTP, or it has an `allowed` word."""
    assert not CONTROL.search(text)
    assert not text or text.endswith("\n")
    known = ("not valid HTTP", "not read: ", "not saved: ", "stop the service", *allowed)
    for line in text.splitlines():
        found = LOG_LINE.fullmatch(line)
        assert found, line[:300]
        assert len(line) < 4500, len(line)
        assert not found["other"] or any(word in line for word in known), line[:300]
        assert found["status"] not in ("500", "501", "502"), line[:300]


@contextmanager
def visited(
    database: Path | str,
    environment: Mapping[str, str | None] | None = None,
    **options: Any,  # noqa: ANN401 - those of `Service`
) -> Iterator[Site]:
    """Start the service for the block, and visit it."""
    with Service(database, environment, **options) as service, service.site() as site:
        yield site


def without_settings() -> dict[str, str]:
    """Return the environment variables of this process that are no settings of the service."""
    return {name: value for name, value in os.environ.items() if name not in SETTINGS}


def is_free(port: int, address: str = "127.0.0.1") -> bool:
    with suppress(OSError), socket.create_connection((address, port), 5):
        return False
    return True


def can_listen(port: int) -> bool:
    with suppress(OSError), socket.create_server(("127.0.0.1", port)):
        return True
    return False


def free_port() -> int:
    """Return a port that was not returned before. The system gives none of PORTS to another program by itself."""
    return next(filter(can_listen, PORTS))


def _written(file: IO[bytes]) -> str:
    # The child process shares the file's offset: a seek here would change the place that it writes to.
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode("utf-8", "replace")
