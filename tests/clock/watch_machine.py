"""A watcher: it notes when this machine ran nothing, because another one had its processor, or because its disk stood still.

It does next to nothing, so it is late only if everything else on its processor is late too. It answers each byte of its
standard input with all stalls that it has seen, and ends with its input.
"""

import json
import os
import select
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress

PROCESSOR_PAUSE_SECONDS, DISK_PAUSE_SECONDS = 0.02, 0.5
PROCESSOR_LATE_SECONDS, DISK_LATE_SECONDS = 0.03, 0.25


def watch_processor(processor: int) -> None:
    os.sched_setaffinity(0, {processor})
    with suppress(PermissionError):  # root's watcher waits for no other program
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    _watch(lambda: None, PROCESSOR_PAUSE_SECONDS, PROCESSOR_LATE_SECONDS)


def watch_disk() -> None:
    with tempfile.TemporaryFile() as file:

        def write() -> None:
            os.pwrite(file.fileno(), b"x", 0)
            os.fsync(file.fileno())

        _watch(write, DISK_PAUSE_SECONDS, DISK_LATE_SECONDS)


def _watch(step: Callable[[], None], pause: float, late: float) -> None:
    stalls: list[tuple[float, float]] = []
    while True:
        began = time.monotonic()
        is_asked = bool(select.select([0], [], [], pause)[0])
        step()
        ended = time.monotonic()
        if ended - began > pause + late:
            stalls.append((began + pause, ended))
        if is_asked:
            if not os.read(0, 1):
                return
            os.write(1, json.dumps(stalls).encode() + b"\n")


if __name__ == "__main__":
    watch_disk() if sys.argv[1] == "disk" else watch_processor(int(sys.argv[1]))
