"""A verified copy of the SQLite file, taken while the service runs and writes."""

import os
import sys
from pathlib import Path

import apsw

from mahasiswa.store.errors import Unusable
from mahasiswa.store.sqlite import sql


def backup(source: Path, target: Path) -> None:
    """Copy the database as it is at one moment to a new file that only its owner can read; raise Unusable.

    The target gets its name only when the copy is verified and on disk. An existing file is never replaced.
    """
    if target.exists():
        raise Unusable(f"{target} exists already; a backup never replaces another")
    if not target.parent.is_dir():
        raise Unusable(f"the folder {target.parent} does not exist")
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        unfinished.touch(mode=0o600, exist_ok=False)
        _copy(source, unfinished)
        _verify(unfinished)
        # Unlike a rename, a hard link fails if another program has created the target meanwhile.
        os.link(unfinished, target)
        _sync_folder(target.parent)
    except (apsw.Error, OSError) as error:
        raise Unusable(f"{source} was not backed up: {error}") from error
    finally:
        unfinished.unlink(missing_ok=True)


def _copy(source: Path, target: Path) -> None:
    origin = apsw.Connection(str(source.absolute()), flags=apsw.SQLITE_OPEN_READWRITE)
    copy = apsw.Connection(str(target.absolute()))
    try:
        # In a single step the copy is of one moment. With a write-ahead log it blocks no writer.
        with copy.backup("main", origin, "main") as work:
            work.step(-1)
        copy.execute("PRAGMA synchronous = FULL; PRAGMA journal_mode = DELETE")
    finally:
        copy.close()
        origin.close()


def _verify(path: Path) -> None:
    db = apsw.Connection(str(path.absolute()), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        result = db.execute("PRAGMA integrity_check").get
        if result != "ok":
            raise apsw.CorruptError(f"the copy is damaged: {result}")
        db.execute(sql.count("")).get  # noqa: B018 - fails if the table is missing
    finally:
        db.close()


def _sync_folder(folder: Path) -> None:
    if sys.platform != "win32":  # it cannot open a folder
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
