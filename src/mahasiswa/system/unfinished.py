"""Private folders for files that are not complete yet, and the folders that killed programs have left behind."""

import fcntl
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from mahasiswa.system.lookout import listed

NAME = re.compile(r"\.mahasiswa-[0-9a-f]{32}")  # so long that no folder of a person has such a name
LOCK = "lock"  # the file in the folder that is locked while the folder is in use
# A folder without a lock is removed if it is older. A younger one may not have its lock yet.
LEFT_SECONDS = 3600


@contextmanager
def unfinished(folder: Path) -> Iterator[Path]:
    """Make a private folder inside `folder`, on the same disk, and remove it with its files at the end; raise OSError.

    Its lock says that it is in use. Folders that killed programs have left are removed first.
    """
    remove_leftovers(folder)
    private = folder / f".mahasiswa-{secrets.token_hex(16)}"
    private.mkdir(mode=0o700)
    try:
        with (private / LOCK).open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield private
    finally:
        _remove(private)


def remove_leftovers(folder: Path) -> None:
    """Remove the folders that killed programs have left, with their files; raise OSError."""
    for left in leftovers(folder, LEFT_SECONDS):
        _remove(left)


def leftovers(folder: Path, min_age_seconds: float = 0.0) -> Sequence[Path]:
    """The folders of `unfinished` whose program was killed. They may hold copies of all records. Raise OSError."""
    found = [entry for entry in listed(folder) if NAME.fullmatch(entry.name)]
    return sorted(entry for entry in found if _is_left(entry, min_age_seconds))


def _is_left(entry: Path, min_age_seconds: float) -> bool:
    try:
        status = entry.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
            return False
        # A program that was killed early has made no lock.
        with suppress(FileNotFoundError), Path(entry, LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, FileNotFoundError):  # its program runs, or has just ended
        return False
    return time.time() - status.st_mtime >= min_age_seconds


def _remove(private: Path) -> None:
    with suppress(FileNotFoundError):  # another program may remove an old one at the same time
        shutil.rmtree(private)
