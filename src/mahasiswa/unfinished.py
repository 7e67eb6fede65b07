"""Private folders for files that are not complete yet, and the folders that killed programs have left behind."""

import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

PREFIX = ".mahasiswa-"
LOCK = "lock"  # the file in the folder that is locked while the folder is in use

LEFT_SECONDS = 3600
"""Minimum age of a folder that is removed although no process holds its lock, because it is locked after it was made."""


@contextmanager
def unfinished(folder: Path) -> Iterator[Path]:
    """Make a private folder inside `folder`, on the same disk, and remove it with its files at the end; raise OSError.

    Its lock says that it is in use. Folders that killed programs have left are removed first.
    """
    remove_leftovers(folder)
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=folder) as name, Path(name, LOCK).open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield Path(name)


def remove_leftovers(folder: Path) -> None:
    """Remove the folders that killed programs have left, with their files; raise OSError."""
    for left in leftovers(folder):
        if time.time() - left.stat().st_mtime > LEFT_SECONDS:
            shutil.rmtree(left)


def leftovers(folder: Path) -> Sequence[Path]:
    """The folders of `unfinished` whose program was killed. They may hold copies of all records. Raise OSError."""
    return sorted(entry for entry in folder.glob(f"{PREFIX}*") if _is_left(entry))


def _is_left(entry: Path) -> bool:
    status = entry.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        return False
    try:
        with Path(entry, LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except FileNotFoundError:  # it was killed before it made the lock
        return True
    return True
