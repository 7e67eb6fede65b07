"""The two processors that are used, and whether other programs leave them to us."""

import os
import time
from pathlib import Path

_allowed = sorted(os.sched_getaffinity(0))
SERVER = _allowed[0]
LOAD = _allowed[min(1, len(_allowed) - 1)]

_TICK = 1 / os.sysconf("SC_CLK_TCK")
_patience = 60.0


def used() -> float:
    """Seconds that these processors have worked for anyone up to now; those a hypervisor took away count too."""
    total = 0
    for line in Path("/proc/stat").read_text().splitlines():
        name, *fields = line.split()
        if name in (f"cpu{SERVER}", f"cpu{LOAD}"):
            user, nice, system, _idle, _wait, irq, softirq, steal = map(int, fields[:8])
            total += user + nice + system + irq + softirq + steal
    return total * _TICK


def wait_for_calm() -> None:
    """Wait until other programs let go of the processors: a few seconds at most, and a minute in a whole run."""
    global _patience  # noqa: PLW0603 - one run has one patience
    give_up = time.monotonic() + min(_patience, 5)
    while time.monotonic() < give_up:
        started, before = time.monotonic(), used()
        time.sleep(0.1)
        length = time.monotonic() - started
        if used() - before < 0.1 * length:
            break
        _patience -= length
