"""The reports of the clock that runs inside each worker (clock/watch_interpreter.py), and the limit that they may reach."""

import json
import os
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

CLOCK = Path(__file__).with_name("clock")
STOPPED_MAX_MS = 50.0  # maximum processor time in which a worker cannot answer; the goal is 10 ms


class Report(NamedTuple):
    """A time in which a worker could do nothing else, in milliseconds of a processor, and what it did."""

    kind: str  # "lock" of the interpreter, or "loop" of the events
    ms: float
    ended: float  # the moment of time.monotonic()
    stack: tuple[str, ...]


@cache
def report_file() -> Path:
    """The file into which the workers of this test process write."""
    return Path(tempfile.mkdtemp(prefix="mahasiswa-clock-"), "reports")


def clocked() -> dict[str, str]:
    """The environment variables that start the clock in the workers of a service."""
    inherited = os.environ.get("PYTHONPATH")
    path = os.pathsep.join(filter(None, (str(CLOCK), inherited)))
    return {"PYTHONPATH": path, "MAHASISWA_CLOCK": str(report_file())}


class Reports:
    """Reads the reports that are new since the last look."""

    def __init__(self) -> None:
        self._offset = 0

    def new(self) -> list[Report]:
        file = report_file()
        if not file.exists():
            return []

        lines = file.read_bytes()[self._offset :]
        self._offset += len(lines)
        values = map(json.loads, lines.splitlines())
        return [Report(**{**value, "stack": tuple(value["stack"])}) for value in values]
