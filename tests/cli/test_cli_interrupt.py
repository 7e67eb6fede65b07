"""Ctrl-C while a command runs: one line, exit code 130, and nothing was changed unless it was committed."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.operators import Operator
from postgres import new_schema
from processes import COMMAND, started, until
from spreadsheets import HEADER, csv, numbered
from stores import execute

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has other terminals")


def has_log(log: Path) -> bool:
    return log.exists() and log.stat().st_size > 0


def has_begun(folder: Path) -> bool:
    return any(file.stat().st_size for file in folder.glob(".*.unfinished/copy/*"))


def long_file() -> bytes:
    return csv(HEADER, *numbered(50_000, "Siti Aminah", "Jalan Kaliurang {}", nim="x{:07}"))


# The command, and the moment of Ctrl-C, by the folder.
COMMANDS: dict[str, Callable[[Path], bool]] = {
    "import b.csv": lambda folder: has_log(folder / "mahasiswa.db-wal"),  # its rows are written
    "export keluar.csv": has_begun,
    "backup b.db": has_begun,
    "restore cadangan.db": lambda folder: (
        any(folder.glob("mahasiswa.db.before-*")) and not any(folder.glob(".*.before.unfinished"))
    ),
}


INTERRUPTED = b"mahasiswa: interrupted. Look before you repeat the command\n"


def interrupt(operator: Operator, command: str, at: Callable[[], bool]) -> None:
    """Run a command and press Ctrl-C when `at` says so."""
    arguments = (*COMMAND, *command.split())
    with started(*arguments, cwd=operator.folder, env=operator.environment) as process:
        until(lambda: process.poll() is not None or at(), 60)
        os.killpg(process.pid, signal.SIGINT)  # a terminal signals each process of the command
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert output == b""
    assert errors.endswith(INTERRUPTED)


@pytest.mark.parametrize("command", COMMANDS)
def test_an_interrupted_command_changes_nothing(operator: Operator, command: str) -> None:
    """No unfinished file is left."""
    operator.fill(numbered(200_000, "Nama {}", "Jalan Kaliurang {}"))
    if command.startswith("import"):
        operator.write(command.split()[1], long_file())
    elif "restore" in command:
        operator.done("backup", "cadangan.db")
        operator.sql("UPDATE mahasiswa SET nama = 'Ani'")
    operator.write("keluar.csv", b"yang lama")
    names, records = operator.names(), operator.records()
    interrupt(operator, command, lambda: COMMANDS[command](operator.folder))
    assert operator.records() == records
    assert (operator.folder / "keluar.csv").read_bytes() == b"yang lama"
    # The copy of the list from before a restore may stay.
    left = {name for name in operator.names() if ".before-" not in name}
    assert left == names


def test_an_import_into_postgresql_that_is_interrupted_while_it_merges_changes_nothing(
    operator: Operator, postgres: str
) -> None:
    """Ctrl-C comes when it has locked the table."""
    locked = "SELECT 1 FROM pg_locks WHERE relation = to_regclass('mahasiswa') AND mode = 'ExclusiveLock'"
    url = new_schema(postgres)
    operator.environment["DATABASE_URL"] = url
    operator.write("a.csv", long_file())
    interrupt(operator, "import a.csv", lambda: bool(execute(url, locked)))
    assert execute(url, "SELECT count(*) FROM mahasiswa") == [(0,)]
