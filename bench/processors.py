"""Chooses the processors of server and load generator, and waits until other programs do not use them."""

import os
import time
from pathlib import Path

_allowed = sorted(os.sched_getaffinity(0))
SERVER = _allowed[0]
LOAD = _allowed[min(1, len(_allowed) - 1)]

_TICK = 1 / os.sysconf("SC_CLK_TCK")
_waiting_seconds_left = 60.0


def used() -> float:
    """Return the seconds that both processors were busy so far, including time that a hypervisor took (steal)."""
    total = 0
    for line in Path("/proc/stat").read_text().splitlines():
        name, *fields = line.split()
        if name in (f"cpu{SERVER}", f"cpu{LOAD}"):
            user, nice, system, _idle, _wait, irq, softirq, steal = map(int, fields[:8])
            total += user + nice + system + irq + softirq + steal
    return total * _TICK


def wait_for_calm() -> None:
    """Wait until both processors are idle, but at most 5 seconds, and at most a minute in a whole run."""
    global _waiting_seconds_left  # noqa: PLW0603 - the limit of a whole run
    give_up = time.monotonic() + min(_waiting_seconds_left, 5)
    while time.monotonic() < give_up:
        started, before = time.monotonic(), used()
        time.sleep(0.1)  # the interval over which the use of the processors is measured
        length = time.monotonic() - started
        if used() - before < 0.1 * length:
            break
        _waiting_seconds_left -= length
