"""Gives a file that is not complete yet a name of its own beside its final one."""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SIDE_FILES = ("", "-wal", "-shm", "-journal")  # of a database


@contextmanager
def unfinished(final: Path, mode: int = 0o600) -> Iterator[Path]:
    """Create an empty file beside `final`, and remove it at the end unless it was renamed.

    The file that a killed program has left is replaced. Raise BlockingIOError if another program
    writes it now, and OSError.
    """
    copy = final.with_name(f".{final.name}.unfinished")
    with suppress(FileNotFoundError):
        _remove_left(copy)
    descriptor = os.open(copy, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
    try:
        _lock(descriptor, copy)
        try:
            yield copy
        finally:
            if _is_at(copy, descriptor):
                _remove(copy)
    finally:
        os.close(descriptor)


def _remove_left(copy: Path) -> None:
    """Remove the file of a killed program. Refuse a symbolic link, because another user may have made it."""
    descriptor = os.open(copy, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        _lock(descriptor, copy)
        _remove(copy)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, copy: Path) -> None:
    busy = BlockingIOError(errno.EAGAIN, "another program is writing it now", str(copy))
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise busy from None
    if not _is_at(copy, descriptor):
        raise busy


def _is_at(copy: Path, descriptor: int) -> bool:
    """Whether an open file still has that name. Another program may have made the next one."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), copy.lstat())
    return False


def _remove(copy: Path) -> None:
    for suffix in SIDE_FILES:
        Path(f"{copy}{suffix}").unlink(missing_ok=True)
