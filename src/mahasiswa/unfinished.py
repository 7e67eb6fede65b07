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

NAME = re.compile(r"\.mahasiswa-[0-9a-f]{32}")  # so long that no folder of a person has such a name
LOCK = "lock"  # the file in the folder that is locked while the folder is in use
# Minimum age of a folder without a lock that is removed: a younger one may not have it yet.
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
        shutil.rmtree(private)


def remove_leftovers(folder: Path) -> None:
    """Remove the folders that killed programs have left, with their files; raise OSError."""
    for left in leftovers(folder):
        if time.time() - left.stat().st_mtime > LEFT_SECONDS:
            shutil.rmtree(left)


def leftovers(folder: Path) -> Sequence[Path]:
    """The folders of `unfinished` whose program was killed. They may hold copies of all records. Raise OSError."""
    return sorted(
        entry for entry in folder.iterdir() if NAME.fullmatch(entry.name) and _is_left(entry)
    )


def _is_left(entry: Path) -> bool:
    status = entry.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        return False
    try:
        # Killed early, it has made no lock.
        with suppress(FileNotFoundError), Path(entry, LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
