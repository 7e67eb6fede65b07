"""Gives a file that is not complete yet a place beside its final one, in a private folder."""

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def unfinished(final: Path, mode: int = 0o600) -> Iterator[Path]:
    """Create an empty file of the same name in a hidden folder beside `final`. At the end the folder is removed.

    The files that a killed program has left there are removed first. Raise BlockingIOError if another program writes it
    now, and OSError.
    """
    folder = final.with_name(f".{final.name}.unfinished")
    try:
        folder.mkdir(0o700)
    except FileExistsError:
        if folder.lstat().st_uid != os.geteuid():  # another user could replace the file meanwhile
            raise
    inner = folder / "copy"
    copy = inner / final.name
    try:
        # A folder cannot be locked on NFS, where BACKUP_DIR may be.
        with (folder / "lock").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            try:
                shutil.rmtree(inner, ignore_errors=True)
                inner.mkdir()
                copy.touch(mode)
                yield copy
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    except BlockingIOError:
        raise BlockingIOError(errno.EAGAIN, "another program is writing it now") from None
    finally:
        with suppress(OSError):  # another program writes it now
            folder.rmdir()


def publish(copy: Path, final: Path) -> None:
    """Give a complete file its final name, also on the disk. It replaces a file of that name. Raise OSError."""
    copy.replace(final)
    folder = os.open(final.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
