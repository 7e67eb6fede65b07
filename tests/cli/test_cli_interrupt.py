"""Ctrl-C while a command runs: one line, exit code 130, and nothing was written."""

import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from operators import (
    COMMAND,
    COMMAND_SECONDS,
    MANY,
    Operator,
    records_of,
)
from spreadsheets import HEADER, by_xlsxwriter, csv
from stores import run_script

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has other terminals")

BEGUN = re.compile(rb"\b[1-9]\d?%")
"""A progress bar that is neither at its begin nor at its end."""


def interrupted(
    operator: Operator, arguments: list[str], is_time: Callable[[bytes], object]
) -> tuple[int, list[bytes]]:
    """Press Ctrl-C in a command when `is_time` says so of all that it has drawn on its terminal.

    Return its exit code and the lines of the terminal, without the progress bar.
    """
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    drawn = b""
    deadline = time.monotonic() + COMMAND_SECONDS
    with subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=operator.folder,
        env=operator.environment | {"TERM": "xterm"},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,  # a terminal signals each process of the command, and a child reads workbooks
    ) as process:
        os.close(theirs)
        sent = False
        while process.poll() is None:
            assert time.monotonic() < deadline, drawn
            with suppress(OSError):  # nothing new, or the command has ended
                drawn += os.read(ours, 65536)
            if not sent and is_time(drawn):
                os.killpg(process.pid, signal.SIGINT)
                sent = True
            time.sleep(0.001)
        assert sent, drawn
        with suppress(OSError):
            drawn += os.read(ours, 65536)
    os.close(ours)
    lines = re.sub(rb"\x1b\[\?25[hl]", b"", drawn).splitlines()
    return process.returncode, [line for line in lines if line and not (b"%" in line or line.startswith(b"database: "))]


def exists(folder: Path, pattern: str) -> Callable[[bytes], bool]:
    """Return a condition for `interrupted`: that a file with such a name exists."""
    return lambda _: any(folder.glob(pattern))


@pytest.mark.parametrize("name", ["a.csv", "a.xlsx"])
def test_an_interrupted_import_writes_nothing(operator: Operator, name: str) -> None:
    """Also while a child process reads a workbook, which gets the signal too."""
    operator.fill([("1", "Ani", "Solo")])
    if name == "a.csv":
        rows = ((f"{n:07}", f"Nama {n}", f"Jalan Kaliurang {n}") for n in range(MANY))
        operator.write(name, csv(HEADER, *rows))
    else:
        operator.write(name, by_xlsxwriter(HEADER, *((f"{n:07}", "Nama", "Solo") for n in range(50_000))))
    is_time = BEGUN.search if name == "a.csv" else re.compile(b"Import").search
    code, lines = interrupted(operator, ["import", name], is_time)
    assert (code, lines) == (130, [b"mahasiswa: interrupted; nothing was written"])
    assert operator.records() == [("1", "Ani", "Solo")]
    assert operator.done("import", operator.write("b.csv", csv(HEADER, ("2", "Budi", "Solo")))).startswith(
        "written: 1 "
    )


def test_an_interrupted_export_leaves_the_old_file(filled: Operator) -> None:
    """No unfinished file is left either."""
    filled.write("a.csv", b"yang lama")
    code, lines = interrupted(filled, ["export", "a.csv"], BEGUN.search)
    assert (code, lines) == (130, [b"mahasiswa: interrupted; nothing was written"])
    assert (filled.folder / "a.csv").read_bytes() == b"yang lama"
    assert filled.names() == {"a.csv"}


def test_an_interrupted_export_to_standard_output_says_that_it_is_incomplete(filled: Operator) -> None:
    """The line is on standard error."""
    with subprocess.Popen(
        [*COMMAND, "export", "-"], env=filled.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        records = len(process.stdout.readlines())
        said = process.stderr.readlines()[-1]
    assert (process.returncode, said) == (130, b"mahasiswa: interrupted; the output is incomplete\n")
    assert records < MANY


def test_an_interrupted_copy_writes_nothing(filled: Operator) -> None:
    """The target has no records then, so the same command can be run again."""
    code, lines = interrupted(filled, ["copy", "--to", "sqlite:///lain.db"], BEGUN.search)
    assert (code, lines) == (130, [b"mahasiswa: interrupted; nothing was written"])
    assert records_of(filled.folder / "lain.db") == []


def test_an_interrupted_backup_leaves_no_file(filled: Operator) -> None:
    """It is interrupted while it copies or verifies."""
    code, lines = interrupted(filled, ["backup", "cadangan.db"], exists(filled.folder, ".mahasiswa-*"))
    assert (code, lines) == (130, [b"mahasiswa: interrupted; nothing was written"])
    assert filled.names() == set()


def test_an_interrupted_restore_changes_nothing(filled: Operator) -> None:
    """It is interrupted while it replaces the records. Its back-up file of the old ones is removed."""
    filled.done("backup", "cadangan.db")
    run_script(filled.database, "UPDATE mahasiswa SET nama = 'Ani'")
    records = filled.records()
    begun = exists(filled.folder, "mahasiswa.db.before-*")
    code, lines = interrupted(filled, ["restore", "cadangan.db"], begun)
    assert (code, lines) == (130, [b"mahasiswa: interrupted; nothing was changed"])
    assert filled.records() == records
    assert filled.names() == {"cadangan.db"}
