"""Checks an SQLite file and its back-ups for `mahasiswa doctor`."""

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import apsw

from mahasiswa.store.engines import Check
from mahasiswa.store.errors import StoreError
from mahasiswa.store.findings import Finding, good, wrong
from mahasiswa.store.sqlite import sql
from mahasiswa.store.sqlite.backup import check_integrity, reason
from mahasiswa.store.sqlite.connection import WAL_MAX_BYTES, connect
from mahasiswa.store.sqlite.restore import open_to_read
from mahasiswa.store.sqlite.schema import STEPS, known_version

FREE_SPACE_FACTOR = 3
"""Minimum free space, as a multiple of the database's size, for a restore or an upgrade."""


def examine(path: Path, check: Check) -> Iterator[Finding]:
    """Check the file, its folder and its disk."""
    path = path.resolve()
    if not path.parent.is_dir():
        yield wrong(f"The folder {path.parent} does not exist. Create it, or correct DATABASE_URL.")
        return
    if not os.access(path.parent, os.R_OK | os.W_OK | os.X_OK):
        yield wrong(
            f"This user may not write to {path.parent}. Run this command as the user of the service, or give the folder to"
            " that user: chown"
        )
        return
    try:
        yield _free_space(path)
        if not path.exists():
            yield wrong(f"{path} does not exist. Start the service for an empty list, or run: mahasiswa restore FILE")
            return
        yield _modes(path)
    except OSError as error:
        yield wrong(f"{path.parent} cannot be used: {error.strerror}. Check the disk.")
        return
    yield from _contents(path, check)


def backup_files(path: Path, folder: Path) -> Sequence[Path]:
    """The files of a folder that are named as back-ups, without the database itself, which may be there too."""
    files = (file for file in folder.iterdir() if file.suffix == ".db" and file.is_file())
    return [file for file in files if not (path.exists() and file.samefile(path))]


def examine_backup(file: Path, check: Check) -> Finding:
    """Check that a back-up can be restored."""
    if not os.access(file, os.R_OK):
        return wrong(f"This user may not read {file}. Run this command as the user of the service.")
    try:
        with closing(open_to_read(file)) as db:
            check_integrity(db, check)
            known_version(db, file)
            count = db.execute(sql.COUNT).get
    except (apsw.Error, StoreError) as error:
        why = str(error) if isinstance(error, StoreError) else f"{file} cannot be restored: {reason(error)}"
        return wrong(f"{why}. Make another back-up now: mahasiswa backup FILE")
    return good(f"{file} is sound and holds {count} records.")


def _contents(path: Path, check: Check) -> Iterator[Finding]:
    try:
        with closing(connect(path)) as db:
            check_integrity(db, check)
            version = known_version(db, path)
            count = db.execute(sql.COUNT).get
            yield good(f"{path} is sound and holds {count} records.")
            if version < len(STEPS):
                yield good(f"{path} is of an older version. The service upgrades it when it starts.")
    except (apsw.CorruptError, apsw.NotADBError) as error:
        yield wrong(f"{path} is damaged ({error}). Restore a back-up: mahasiswa restore FILE")
    except apsw.Error as error:
        yield wrong(f"{path} cannot be read: {error}. Check DATABASE_URL, or restore a back-up: mahasiswa restore FILE")
    except StoreError as error:
        yield wrong(f"{error}.")


def _free_space(path: Path) -> Finding:
    size = path.stat().st_size if path.exists() else 0
    needed = FREE_SPACE_FACTOR * size + WAL_MAX_BYTES
    free = shutil.disk_usage(path.parent).free
    text = f"{free >> 20} MB are free for {path.parent}"
    if free < needed:
        return wrong(f"Only {text}; a restore or an upgrade may need {needed >> 20} MB. Make room on that disk.")
    return good(f"{text}.")


def _modes(path: Path) -> Finding:
    files = [file for suffix in ("", "-wal", "-shm") if (file := Path(f"{path}{suffix}")).exists()]
    public = [str(file) for file in files if sys.platform != "win32" and file.stat().st_mode & 0o007]
    if public:
        return wrong(f"Every user of this computer has rights on {', '.join(public)}. Run: chmod o= {path}*")
    closed = [str(file) for file in files if not os.access(file, os.R_OK | os.W_OK)]
    if closed:
        return wrong(
            f"This user may not read and write {', '.join(closed)}. Run this command as the user of the service."
        )
    return good(f"Only the owner and its group have rights on {path}.")
