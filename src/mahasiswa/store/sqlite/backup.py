"""A copy of the SQLite file, taken while the service runs and writes."""

import os
import sys
from pathlib import Path

import apsw

from mahasiswa.store.errors import Unusable


def backup(source: Path, target: Path) -> None:
    """Copy one moment of the database to a new file, which gets its name only once it is verified and on disk."""
    if target.exists():
        raise Unusable(f"{target} exists already; a backup never replaces another")
    if not target.parent.is_dir():
        raise Unusable(f"the folder {target.parent} does not exist")
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        _copy(source, unfinished)
        _verify(unfinished)
        # A hard link fails where the name was taken meanwhile, which a rename would overwrite.
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
        # In one step: readers of a write-ahead log see one moment, and hold nobody up.
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
        db.execute("SELECT count(*) FROM mahasiswa").get  # noqa: B018 - the table is there and can be read
    finally:
        db.close()


def _sync_folder(folder: Path) -> None:
    if sys.platform != "win32":  # which has no such thing
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
