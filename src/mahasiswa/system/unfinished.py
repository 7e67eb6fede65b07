"""Gives a file that is not complete yet a place beside its final one, in a private folder."""

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mahasiswa.system.folder_lock import folder_lock


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
    inner = folder / "copy"  # not locked itself, because an upgrade of the copy locks its folder
    copy = inner / final.name
    try:
        with folder_lock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB):
            shutil.rmtree(inner, ignore_errors=True)
            inner.mkdir()
            copy.touch(mode)
            try:
                yield copy
            finally:
                shutil.rmtree(folder)
    except BlockingIOError:
        raise BlockingIOError(errno.EAGAIN, "another program is writing it now") from None
