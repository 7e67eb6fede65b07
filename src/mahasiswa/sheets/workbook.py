"""Reads a workbook in a child process, so that a malicious one can exhaust neither memory nor time.

`workbook_child` describes the messages of the child process.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple

from mahasiswa import wording
from mahasiswa.sheets.cells import RawRow, cell_from_json
from mahasiswa.sheets.errors import SheetError, Stopped, TooBig
from mahasiswa.sheets.limits import Choice, ReadLimits

LINE_MAX_BYTES = 8 << 20

STOP_INTERVAL_SECONDS = 0.2

# The child parses files of strangers, so it gets only the variables that Python needs to start, and no password.
_CHILD_VARIABLES = ("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "PATH", "SYSTEMROOT", "LD_LIBRARY_PATH")


class Workbook(NamedTuple):
    """The sheets of a workbook by their names: those that are to be read come first."""

    names: list[str]
    other_names: list[str]
    sheets: Iterator[tuple[str, Iterator[RawRow]]]  # each must be read before the next


@contextmanager
def read_workbook(file: BinaryIO, limits: ReadLimits, choice: Choice, stop: threading.Event) -> Iterator[Workbook]:
    """The rows of an xlsx, xls, ods or HTML file, which must have a file descriptor.

    The child process ends with this context, or soon after `stop` is set. `limits.seconds` limits only the time in which
    it is waited for. Raises SheetError, at once or while the rows are read, and Stopped after `stop` was set.
    """
    with (
        _child(file, limits, choice) as process,
        _line_reader(process, limits.seconds, stop) as read_line,
    ):
        messages = _messages(process, read_line, limits.output_bytes, stop)
        head = next(messages)
        yield Workbook(head["names"], head["others"], ((name, _rows(messages)) for name in messages))


@contextmanager
def _child(file: BinaryIO, limits: ReadLimits, choice: Choice) -> Iterator[subprocess.Popen[bytes]]:
    wanted = json.dumps([limits.keeps_all_cells, list(choice.sheets), choice.nim_only])
    # -P: take no module from the directory in which the service was started.
    command = (sys.executable, "-P", "-m", "mahasiswa.sheets.workbook_child")
    arguments = (str(limits.memory_bytes), str(int(limits.seconds) + 1), wanted)
    environment = {name: os.environ[name] for name in _CHILD_VARIABLES if name in os.environ}
    with subprocess.Popen(  # noqa: S603 - our own module, with two numbers and JSON
        command + arguments, stdin=file.fileno(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def _line_reader(
    process: subprocess.Popen[bytes], seconds: float, stop: threading.Event
) -> Iterator[Callable[[], bytes]]:
    """A function that waits for the next line of the child.

    The child is killed when `stop` is set, or when its answer takes too long. This ends its output, so the wait ends too.
    """
    pipe = process.stdout
    assert pipe is not None  # noqa: S101 - because of stdout=PIPE
    finished = threading.Event()
    waited = began = 0.0

    def watch() -> None:
        # A poll, because Windows cannot wait for a pipe with a timeout.
        while not finished.wait(STOP_INTERVAL_SECONDS):
            if stop.is_set() or waited + (began and time.monotonic() - began) > seconds:
                process.kill()
                return

    def read_line() -> bytes:
        nonlocal waited, began
        began = time.monotonic()
        line = pipe.readline(LINE_MAX_BYTES)
        waited, began = waited + time.monotonic() - began, 0.0
        return line

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield read_line
    finally:
        finished.set()
        watcher.join()


def _messages(
    process: subprocess.Popen[bytes], read_line: Callable[[], bytes], output_bytes: int | None, stop: threading.Event
) -> Iterator[Any]:
    """The child's messages between "ready" and "end". Its error is raised here."""
    total = 0
    ready = False
    while True:
        line = read_line()
        total += len(line)
        if stop.is_set():
            raise Stopped
        if not line:
            raise _error_of_ended(process, ready=ready)
        if not line.endswith(b"\n") or (output_bytes is not None and total > output_bytes):
            raise TooBig(wording.TOO_HEAVY)
        message = json.loads(line)
        if message == "end":
            return
        if isinstance(message, dict) and "error" in message:
            raise (TooBig if message["too_big"] else SheetError)(message["error"])
        if message == "ready":
            ready = True
        else:
            yield message


def _error_of_ended(process: subprocess.Popen[bytes], *, ready: bool) -> Exception:
    """The error of a child that ended without a message."""
    code = process.wait()
    if code == 0 or (code == 1 and not ready):
        return RuntimeError(f"the process that reads workbooks did not work: exit code {code}")
    if code == 1 and os.name != "nt":
        # The parser failed on the file.
        return SheetError(wording.DAMAGED)
    # It was killed: by us because of the time, or by the system because of the memory.
    return TooBig(wording.TOO_HEAVY)


def _rows(messages: Iterator[Any]) -> Iterator[RawRow]:
    while batch := next(messages):
        for number, cells in batch:
            yield number, list(map(cell_from_json, cells))
