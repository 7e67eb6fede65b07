"""Reads a workbook in a child process, whose memory and time are bounded. `workbook_child` has its messages."""

import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, TypeAlias

from mahasiswa import wording
from mahasiswa.sheets.cells import SheetRow, from_json
from mahasiswa.sheets.limits import Choice, ReadLimits
from mahasiswa.sheets.sheet_errors import SheetError, Stopped, TooBig

READ_BYTES = 1 << 16
STOP_INTERVAL_SECONDS = 0.2  # between two checks whether the caller has set `stop`

# The child parses files of strangers, so it gets only the variables that Python needs to start, and no password.
_CHILD_VARIABLES = (
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONDONTWRITEBYTECODE",
    "PATH",
    "LD_LIBRARY_PATH",
)


Rows: TypeAlias = tuple[str, Iterator[SheetRow]]  # the name of a sheet and its rows
# The names of the sheets that are to be read, and of the others; and the sheets, each of which must be read before the next.
Workbook: TypeAlias = tuple[Sequence[str], Sequence[str], Iterator[Rows]]


@contextmanager
def read_workbook(
    file: BinaryIO, limits: ReadLimits, choice: Choice, stop: threading.Event
) -> Iterator[Workbook]:
    """The rows of an xlsx, xls, ods or HTML file, which must have a file descriptor.

    The child process ends with this context, or soon after `stop` is set. `limits.seconds` limits only the time in which
    it is waited for. Raises SheetError, at once or while the rows are read, and Stopped after `stop` was set.
    """
    # -P: take no module from the directory in which the service was started.
    command = (sys.executable, "-P", "-m", "mahasiswa.sheets.workbook_child")
    limited = (limits.memory_bytes, int(limits.seconds) + 1, limits.keeps_all_cells)
    arguments = json.dumps([*limited, list(choice.sheets), choice.nim_only])
    environment = {name: os.environ[name] for name in _CHILD_VARIABLES if name in os.environ}
    with subprocess.Popen(  # noqa: S603 - our own module, with JSON
        (*command, arguments),
        stdin=file.fileno(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    ) as process:
        try:
            messages = _messages(process, limits, stop)
            head = next(messages)
            yield head["names"], head["others"], ((name, _rows(messages)) for name in messages)
        finally:
            process.kill()


def _messages(
    process: subprocess.Popen[bytes], limits: ReadLimits, stop: threading.Event
) -> Iterator[Any]:
    """The child's messages before "end". Its error is raised here."""
    for line in _lines(process, limits, stop):
        message = json.loads(line)
        if message == "end":
            return
        if isinstance(message, dict) and "error" in message:
            raise (TooBig if message["too_big"] else SheetError)(message["error"])
        yield message
    code = process.wait()
    if code >= 0:
        raise RuntimeError(f"the process that reads workbooks did not work: exit code {code}")
    raise TooBig(wording.TOO_HEAVY)  # the system killed the child because of its memory or time


def _lines(
    process: subprocess.Popen[bytes], limits: ReadLimits, stop: threading.Event
) -> Iterator[bytearray]:
    """The lines of the child. Raises Stopped, and TooBig if there are too many bytes or they take too long."""
    pipe = process.stdout
    assert pipe is not None  # noqa: S101 - because of stdout=PIPE
    poll = select.poll()  # select.select() refuses descriptors above 1023
    poll.register(pipe, select.POLLIN)
    unfinished = bytearray()
    total, waited = 0, 0.0
    while True:
        began = time.monotonic()
        is_readable = poll.poll(STOP_INTERVAL_SECONDS * 1000)
        waited += time.monotonic() - began
        if stop.is_set():
            raise Stopped
        if waited > limits.seconds:
            raise TooBig(wording.TOO_HEAVY)
        if not is_readable:
            continue
        piece = os.read(pipe.fileno(), READ_BYTES)
        if not piece:
            return
        total += len(piece)
        unfinished += piece
        if limits.output_bytes is not None and total > limits.output_bytes:
            raise TooBig(wording.TOO_HEAVY)
        if b"\n" in piece:
            *lines, unfinished = unfinished.split(b"\n")
            yield from lines


def _rows(messages: Iterator[Any]) -> Iterator[SheetRow]:
    while batch := next(messages):
        for number, cells in batch:
            yield number, from_json(cells)
