"""Runs the service as a real process for a test: `Service`. The classes that read its pages are in visitor.py."""

import os
import random
import re
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from processes import COMMAND, Closing, until
from visitor import URL_ENCODED, Form, Page, Site, led_to, page_of

# Most tests need both a service and a visitor, so they import all of it from here.
__all__ = ["URL_ENCODED", "Form", "Page", "Service", "Site", "led_to", "page_of", "visited"]
START_SECONDS = 30.0
STOP_SECONDS = 10.0
SHOWN_CHARACTERS = 5_000  # of the log of a service
# The system gives none of these ports to another program by itself.
PORTS = iter(random.sample(range(10_000, 32_000), 5_000))


# The only lines that the service may write to standard error: one for each change and each refused request, and warnings.
MOMENT = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d "
LOG_LINE = re.compile(
    MOMENT
    + r"(?P<level>INFO|WARNING|ERROR) (?P<method>[!#$%&'*+.^_`|~0-9A-Za-z-]+) (?P<path>[!-~]*)"
    r'(?: (?P<nim>"[ -~]*"))? (?P<status>\d{3}) (?P<took>\d+\.\d) ms (?P<address>[0-9a-f:.]+|-) (?P<number>\d{8})'
)
WARNING_LINE = re.compile(MOMENT + "(?:WARNING|ERROR) [ -~]+")
USUAL_WARNINGS = ("not valid HTTP", "not read: ", "not saved: ", "stop the service")


class Service(Closing):
    """The program, or another command, on a free port of 127.0.0.1, in a process group of its own.

    `database` is the path of an SQLite file or a whole DATABASE_URL. `environment` sets further variables; an empty one
    is unset, so that the service uses its default.
    """

    def __init__(
        self,
        database: Path | str,
        environment: Mapping[str, str] | None = None,
        command: Sequence[str] = COMMAND,
    ) -> None:
        self.database = database
        url = f"sqlite:///{database.absolute()}" if isinstance(database, Path) else database
        usual = {"HOST": "127.0.0.1", "PORT": str(free_port()), "DATABASE_URL": url}
        self.environment = {**os.environ, **usual, **(environment or {})}
        self.port = int(self.environment["PORT"] or 3000)
        prefix = urlsplit(self.environment.get("BASE_URL", "")).path.rstrip("/")
        self.url = f"http://127.0.0.1:{self.port}{prefix}"
        self._command = command
        # Files, because a pipe that is not read fills up and blocks the process that writes to it.
        self._folder = tempfile.TemporaryDirectory()
        self._stdout, self._stderr = (Path(self._folder.name, name) for name in ("out", "err"))
        self.begin_log()
        self._start()

    @property
    def pid(self) -> int:
        """The id of the main process, which is also the id of the process group."""
        return self.process.pid

    def site(self) -> Site:
        return Site(self.url)

    def raw(self, data: bytes, seconds: float = 15.0) -> bytes:
        """Send bytes unchanged; return everything received. Raise TimeoutError unless the service closes the connection."""
        received = bytearray()
        with socket.create_connection(("127.0.0.1", self.port), seconds) as connection:
            with suppress(ConnectionError):
                connection.sendall(data)
            with suppress(ConnectionError):
                while part := connection.recv(65536):
                    received += part
        return bytes(received)

    def stdout(self) -> str:
        return self._stdout.read_bytes().decode("utf-8", "replace")

    def stderr(self) -> str:
        return self._stderr.read_bytes().decode("utf-8", "replace")

    def begin_log(self) -> None:
        """Remove the lines that are written by now from `stderr`."""
        self._stderr.write_bytes(b"")

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

    def restart(self) -> None:
        """Start the service again on the same port and database. Stop it first if it still runs."""
        self.stop()
        self._start()

    def close(self) -> None:
        """Kill the service if it still runs, show the end of its log, and remove the files of its output."""
        if self.process.poll() is None:
            self.kill()
        print(self.stderr()[-SHOWN_CHARACTERS:])  # noqa: T201 - pytest shows it if the test fails
        self._folder.cleanup()

    def _start(self) -> None:
        """Start the program. Fail unless it says that it accepts requests."""
        until(lambda: is_free(self.port), STOP_SECONDS)  # workers may end after the main process
        self._stdout.write_bytes(b"")
        with self._stdout.open("ab") as stdout, self._stderr.open("ab") as stderr:
            self.process = subprocess.Popen(
                self._command,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        try:
            until(self._is_ready, START_SECONDS)
        except BaseException:
            self.close()
            raise

    def _is_ready(self) -> bool:
        assert self.process.poll() is None, self.stderr()
        return "The records are in " in self.stdout()


def assert_log_is_sound(text: str, allowed: Sequence[str] = ()) -> None:
    """Check each line: it is about a request that did not fail, or a usual warning, or it has an `allowed` word."""
    for line in text.splitlines():
        assert len(line) < 4500
        if found := LOG_LINE.fullmatch(line):
            assert found["status"] not in ("500", "501", "502"), line
        else:
            assert WARNING_LINE.fullmatch(line), line[:300]
            assert any(word in line for word in (*USUAL_WARNINGS, *allowed)), line[:300]


@contextmanager
def visited(service: Service) -> Iterator[Site]:
    """Visit a service, and close it at the end of the block."""
    with service, service.site() as site:
        yield site


def is_free(port: int, address: str = "127.0.0.1") -> bool:
    with suppress(OSError), socket.create_connection((address, port), 5):
        return False
    return True


def free_port() -> int:
    """Return a port that was not returned before."""
    return next(filter(is_free, PORTS))
