"""Bounds the resources of a child process, which reads files of strangers or writes workbooks for a worker."""

import os
import resource
from contextlib import suppress
from pathlib import Path

from mahasiswa.system.parent import end_with

# The processor serves other requests first. If memory is short, the kernel ends a child first.
NICENESS = 10
OOM_SCORE = "1000"
DESCRIPTORS_MAX = 32


def bound(memory_bytes: int, processor_seconds: int, file_bytes: int) -> None:
    """Limit this process for the rest of its life, and end it when its parent ends."""
    end_with(os.getppid())
    limits = {
        resource.RLIMIT_AS: memory_bytes,
        resource.RLIMIT_CPU: processor_seconds,
        resource.RLIMIT_FSIZE: file_bytes,
        resource.RLIMIT_NOFILE: DESCRIPTORS_MAX,
        resource.RLIMIT_CORE: 0,
    }
    for limited, limit in limits.items():
        with suppress(ValueError):  # the system's limit is lower
            resource.setrlimit(limited, (limit, limit))
    os.nice(NICENESS)
    with suppress(OSError):  # only Linux has it
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE, "ascii")
