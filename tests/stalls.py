"""The times in which this machine ran nothing (clock/watch_machine.py). They do not count as time of the service."""

import json
import os
import subprocess
import sys
import threading
import time
from functools import cache

from clocks import CLOCK
from processes import Closing

LONG_SECONDS = 0.5
"""A wait that is shorter is never compared with the stalls of the machine."""


class Watchers(Closing):
    """Processes that note the stalls of each processor and of the disk, from now on."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.disk = _started("disk")
        self.processors = [*map(_started, map(str, os.sched_getaffinity(0)))]

    def stalled(self, began: float, ended: float, *, disk: bool) -> float:
        """Return the seconds between two moments of time.monotonic() in which a processor, or the disk, stood still."""
        asked = [self.disk] * disk + self.processors
        with self._lock:
            stalls = sorted(stall for process in asked for stall in _asked(process))
        seconds = 0.0
        for start, end in stalls:
            seconds += max(0.0, min(end, ended) - max(start, began))
            began = max(began, end)
        return seconds

    def close(self) -> None:
        for process in (self.disk, *self.processors):
            with process:
                process.communicate()


def _started(watched: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, CLOCK / "watch_machine.py", watched],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        start_new_session=True,
    )


def _asked(process: subprocess.Popen[bytes]) -> list[tuple[float, float]]:
    assert process.stdin
    assert process.stdout
    process.stdin.write(b"?")
    return [(start, end) for start, end in json.loads(process.stdout.readline())]


making = threading.Lock()


@cache
def _made() -> Watchers:
    return Watchers()


def watchers() -> Watchers:
    """The watchers of this process, from the first call on, which is that of the first service. They end with the process."""
    with making:  # two threads may start the first services
        return _made()


def waited_since(began: float) -> float:
    """Return the seconds since a moment of time.monotonic(), without the stalls of the machine."""
    now = time.monotonic()
    waited = now - began
    return waited if waited < LONG_SECONDS else waited - watchers().stalled(began, now, disk=True)
