"""Checks an SQLite file and its back-ups for `mahasiswa doctor`."""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path

import apsw

from mahasiswa.store.errors import StoreError
from mahasiswa.store.findings import Finding, good, wrong
from mahasiswa.store.sqlite import sql
from mahasiswa.store.sqlite.backup import check_integrity, reason
from mahasiswa.store.sqlite.connection import WAL_MAX_BYTES, connect
from mahasiswa.store.sqlite.restore import open_to_read
from mahasiswa.store.sqlite.schema import STEPS, known_version

FREE_SPACE_FACTOR = 3
"""Minimum free space, as a multiple of the database's size, for a restore or an upgrade."""

SYNC_MAX_SECONDS = 0.2
"""Maximum time for one sync of the disk. Each change waits for one."""

SYNC_ATTEMPTS = 5

CLOCK_TOLERANCE_SECONDS = 60


def examine(path: Path) -> Iterator[Finding]:
    """Check the file, its folder and its disk."""
    path = path.resolve()
    if not path.parent.is_dir():
        yield wrong(f"The folder {path.parent} does not exist. Create it, or correct DATABASE_URL.")
        return
    try:
        yield _free_space(path)
        yield _sync(path.parent)
        if not path.exists():
            yield wrong(f"{path} does not exist. Start the service for an empty list, or run: mahasiswa restore FILE")
            return
        yield _modes(path)
    except OSError as error:
        yield wrong(f"{path.parent} cannot be used: {error.strerror}. Give it to the user of the service: chown")
        return
    yield from _contents(path)


def examine_backup(file: Path) -> Finding:
    """Check that a back-up can be restored."""
    try:
        with closing(open_to_read(file)) as db:
            check_integrity(db)
            known_version(db, file)
            count = db.execute(sql.count("")).get
    except (apsw.Error, StoreError) as error:
        why = str(error) if isinstance(error, StoreError) else f"{file} cannot be restored: {reason(error)}"
        return wrong(f"{why}. Make another back-up now: mahasiswa backup FILE")
    return good(f"{file} is sound and holds {count} records.")


def _contents(path: Path) -> Iterator[Finding]:
    try:
        with closing(connect(path)) as db:
            check_integrity(db)
            version = known_version(db, path)
            count = db.execute(sql.count("")).get
            yield good(f"{path} is sound and holds {count} records.")
            if version < len(STEPS):
                yield good(f"{path} is of an older version. The service upgrades it when it starts.")
                return
            yield _clock(path, db.execute(sql.LAST_MOMENT).get)
    except (apsw.CorruptError, apsw.NotADBError) as error:
        yield wrong(f"{path} is damaged ({error}). Restore a back-up: mahasiswa restore FILE")
    except (apsw.Error, StoreError) as error:
        yield wrong(f"{path} cannot be read: {error}.")


def _free_space(path: Path) -> Finding:
    size = path.stat().st_size if path.exists() else 0
    needed = FREE_SPACE_FACTOR * size + WAL_MAX_BYTES
    free = shutil.disk_usage(path.parent).free
    text = f"{free >> 20} MB are free for {path.parent}"
    if free < needed:
        return wrong(f"Only {text}; a restore or an upgrade may need {needed >> 20} MB. Make room on that disk.")
    return good(f"{text}.")


def _sync(folder: Path) -> Finding:
    """Measure the shortest of some syncs, because another program may delay a single one."""
    times = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(SYNC_ATTEMPTS):
            file.write(bytes(4096))
            file.flush()
            began = time.monotonic()
            os.fsync(file.fileno())
            times.append(time.monotonic() - began)
    text = f"{min(times) * 1000:.1f} ms"
    if min(times) > SYNC_MAX_SECONDS:
        return wrong(f"A sync of the disk takes {text}, and each change waits for one. Check or replace the disk.")
    return good(f"A sync of the disk takes {text}.")


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


def _clock(path: Path, last_change: str | None) -> Finding:
    latest = max(path.stat().st_mtime, datetime.fromisoformat(last_change).timestamp() if last_change else 0.0)
    if latest > time.time() + CLOCK_TOLERANCE_SECONDS:
        return wrong(
            f"The clock says {datetime.now().astimezone():%F %T %z}, and the last change was made later,"
            f" at {datetime.fromtimestamp(latest).astimezone():%F %T}. Set the clock: timedatectl set-ntp true",
        )
    return good(f"The clock says {datetime.now().astimezone():%F %T %z}, which is after the last change.")
