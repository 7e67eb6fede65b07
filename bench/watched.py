"""Reads the processor time and the memory of a process and its descendants from /proc."""

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path


class Watched:
    """A process and its descendants."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def processes(self) -> list[int]:
        """Return the ids of the process and its descendants."""
        found = [self.pid]
        for pid in found:
            with contextlib.suppress(OSError):
                for task in Path(f"/proc/{pid}/task").iterdir():
                    found += map(int, (task / "children").read_text().split())
        return found

    def processor_seconds(self) -> float:
        """Return the processor time of its processes so far, including children that have ended."""
        ticks = sum(int(field) for pid in self.processes() for field in _stat(pid)[11:15])
        return ticks / os.sysconf("SC_CLK_TCK")

    def peak_memory(self) -> float:
        """Return the peak resident memory (VmHWM) of its largest process, in MB."""
        return max((_kilobytes(f"/proc/{pid}/status", "VmHWM:") for pid in self.processes()), default=0) * 1024 / 1e6

    def memory(self) -> float:
        """Return the proportional memory (PSS) of all its processes together, in MB."""
        return sum(_kilobytes(f"/proc/{pid}/smaps_rollup", "Pss:") for pid in self.processes()) * 1024 / 1e6

    @contextlib.contextmanager
    def watched_memory(self) -> Iterator[list[float]]:
        """Sample `memory` every 20 ms during the block."""
        samples: list[float] = []
        finished = threading.Event()

        def watch() -> None:
            while not finished.wait(0.02):
                samples.append(self.memory())

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield samples
        finally:
            finished.set()
            thread.join()


def socket_buffers() -> float:
    """Return the memory that the kernel has reserved for the buffers of all TCP sockets of the machine, in MB."""
    words = Path("/proc/net/sockstat").read_text().partition("TCP: ")[2].split()
    return int(words[words.index("mem") + 1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def started_at(pid: int) -> int:
    """Return the start time of a process, or 0 if it has ended."""
    return int(_stat(pid)[19])


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat after the process name, or zeros if the process has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return ["0"] * 50


def _kilobytes(path: str, field: str) -> int:
    with contextlib.suppress(OSError):
        for line in Path(path).read_text().splitlines():
            if line.startswith(field):
                return int(line.split()[1])
    return 0
