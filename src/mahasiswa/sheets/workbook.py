"""Reads a workbook in a child process, so that a malicious one can neither fill the memory nor take the time."""

import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple

from mahasiswa import wording
from mahasiswa.sheets import errors
from mahasiswa.sheets.columns import BadCell, Cell, Raw

_LONGEST_LINE = 8 << 20
_ERRORS = {
    kind.__name__: kind
    for kind in (
        errors.Empty,
        errors.NotASpreadsheet,
        errors.PasswordProtected,
        errors.NoColumns,
        errors.TooHeavy,
        errors.TooManyRows,
    )
}


class Workbook(NamedTuple):
    """The rows of the one sheet that is read."""

    rows: Iterator[Raw]
    sheet: str
    others: list[str]  # the sheets that are not read


@contextmanager
def read_workbook(
    file: BinaryIO, *, memory: int, seconds: float, most_rows: int | None, most_characters: int | None
) -> Iterator[Workbook]:
    """The rows of an xlsx, xls or ods file. The child dies with this context.

    `memory` is in bytes; `seconds` counts only the time in which the child is waited for. Raises, at once or while the rows
    are read, Empty, NotASpreadsheet, PasswordProtected, NoColumns, TooHeavy, TooManyRows.
    """
    with _as_real_file(file) as real, _child(real, memory, seconds, most_rows) as process:
        said = _said(process, seconds, most_characters)
        head = next(said)
        yield Workbook(_rows(said), head["sheet"], head["others"])


@contextmanager
def _as_real_file(file: BinaryIO) -> Iterator[BinaryIO]:
    """The file itself where the system knows it, else a copy on disk without a name."""
    try:
        file.flush()
        file.fileno()
    except (AttributeError, OSError, io.UnsupportedOperation):
        with tempfile.TemporaryFile() as copy:
            file.seek(0)
            shutil.copyfileobj(file, copy)
            copy.flush()
            yield copy
    else:
        yield file


@contextmanager
def _child(file: BinaryIO, memory: int, seconds: float, most_rows: int | None) -> Iterator[subprocess.Popen[bytes]]:
    limits = (str(memory), str(int(seconds) + 1), str(most_rows or 0))
    # -P: no module is taken from the directory in which the service happens to run.
    command = (sys.executable, "-P", "-m", "mahasiswa.sheets.workbook_child", *limits)
    # Of the environment only what Python needs to start: the child that parses strangers' files learns no password.
    kept = ("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "PATH", "SYSTEMROOT", "LD_LIBRARY_PATH")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    with subprocess.Popen(  # noqa: S603 - our own module, with three numbers
        command, stdin=file.fileno(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _said(process: subprocess.Popen[bytes], seconds: float, most_characters: int | None) -> Iterator[Any]:
    """What the child says until it has said that this is the end."""
    pipe = process.stdout
    assert pipe is not None  # noqa: S101 - it was asked for
    left = seconds
    total = 0
    ready = False
    while True:
        # A timer and not a poll: Windows cannot wait for a pipe with a time limit.
        timer = threading.Timer(left, process.kill)
        before = time.monotonic()
        timer.start()
        try:
            line = pipe.readline(_LONGEST_LINE)
        finally:
            timer.cancel()
        left = max(0.0, left - (time.monotonic() - before))
        total += len(line)
        if not line:
            raise _why_it_ended(process, ready=ready)
        if not line.endswith(b"\n") or (most_characters is not None and total > most_characters):
            raise errors.TooHeavy(wording.TOO_HEAVY)
        value = json.loads(line)
        if value == "end":
            return
        if isinstance(value, dict) and "error" in value:
            raise _ERRORS[value["error"]](value["message"])
        if value == "ready":
            ready = True
        else:
            yield value


def _why_it_ended(process: subprocess.Popen[bytes], *, ready: bool) -> Exception:
    """What to raise for a child that fell silent."""
    code = process.wait()
    if code == 0 or (code == 1 and not ready):
        return RuntimeError(f"the process that reads workbooks did not work: exit code {code}")
    if code == 1 and os.name != "nt":
        # The parser itself gave up on what it read.
        return errors.NotASpreadsheet(wording.DAMAGED)
    # It was killed: by us for the time, or by the system for the memory.
    return errors.TooHeavy(wording.TOO_HEAVY)


def _rows(said: Iterator[Any]) -> Iterator[Raw]:
    for batch in said:
        for number, nim, nama, alamat in batch:
            if list in (type(nim), type(nama), type(alamat)):
                yield number, _cell(nim), _cell(nama), _cell(alamat)
            else:
                yield number, nim, nama, alamat


def _cell(value: Any) -> Cell:  # noqa: ANN401 - a value of JSON
    return BadCell(*value) if isinstance(value, list) else value
