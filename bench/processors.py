"""Chooses the processors of server and load generator, and reads processor time and memory of processes from /proc."""

import contextlib
import os
import re
from pathlib import Path

_allowed = sorted(os.sched_getaffinity(0))
SERVER = _allowed[0]
"""The processor of the measured server or command."""
LOAD = _allowed[min(1, len(_allowed) - 1)]
"""The processor of the load generator, and of PostgreSQL."""


def family(pid: int) -> list[int]:
    """Return the ids of a process and its descendants."""
    found = [pid]
    for parent in found:
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{parent}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
    return found


def processor_seconds(pid: int) -> float:
    """Return the processor time of a process and its descendants so far, in steps of 10 ms."""
    ticks = 0
    for member in family(pid):
        with contextlib.suppress(OSError):
            # The name of the process, in brackets, is the second field and may hold spaces.
            fields = Path(f"/proc/{member}/stat").read_text().rpartition(") ")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def peak_memory_mb(pid: int) -> float:
    """Return the peak resident memory (VmHWM) of the largest process of a family, in MB."""
    peaks = [0.0]
    for member in family(pid):
        with contextlib.suppress(OSError):
            status = Path(f"/proc/{member}/status").read_text()
            peaks += [
                int(kilobytes) * 1024 / 1e6 for kilobytes in re.findall(r"VmHWM:\s+(\d+)", status)
            ]
    return max(peaks)
