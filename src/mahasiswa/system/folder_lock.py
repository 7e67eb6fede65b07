"""Locks a folder against other processes of this program."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def folder_lock(folder: Path, flags: int = fcntl.LOCK_EX) -> Iterator[None]:
    """Lock a folder against other processes of this program. `flags` are those of flock(2); raise OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, flags)
        yield
    finally:
        os.close(descriptor)
