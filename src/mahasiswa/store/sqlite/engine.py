"""The functions of `store.engines` for an SQLite file. An import and `forget` have a connection of their own."""

import time
from collections.abc import Iterable
from contextlib import closing
from functools import partial
from pathlib import Path

import apsw

from mahasiswa.record import Incoming
from mahasiswa.store import commands
from mahasiswa.store.engines import Merged
from mahasiswa.store.sqlite import sqlite_sql as sql
from mahasiswa.store.sqlite.backup import backup, backup_files, backup_into  # noqa: F401 - `engines` calls them here
from mahasiswa.store.sqlite.connection import batch, connect, refusal, savepoint, transaction
from mahasiswa.store.sqlite.doctor import backups_that_hold, examine, examine_backup  # noqa: F401 - as above
from mahasiswa.store.sqlite.restore import restore  # noqa: F401 - as above
from mahasiswa.store.sqlite.sqlite_schema import migrate  # noqa: F401 - as above
from mahasiswa.store.sqlite.store import open_store  # noqa: F401 - as above
from mahasiswa.store.store_errors import TextsRemain, Unavailable

CHECKPOINT_TIMEOUT_SECONDS = 10  # maximum wait for the readers of the write-ahead log after a record was forgotten
CHECKPOINT_INTERVAL_SECONDS = 0.1


def merge(path: Path, rows: Iterable[Incoming], *, update: bool, dry_run: bool) -> Merged:
    """See `engines.merge`. The file is locked only after all rows were read."""
    try:
        with closing(connect(path)) as db:
            with savepoint(db):
                db.execute(sql.CREATE_INCOMING)
                db.executemany(sql.ADD_INCOMING, rows)
            with transaction(db):
                began = time.monotonic()
                merged = commands.merge(db, partial(batch, db), update=update, dry_run=dry_run)
            return merged._replace(seconds=time.monotonic() - began)
    except apsw.ConstraintError as error:
        raise refusal(error) from error
    except apsw.Error as error:
        raise Unavailable(str(error)) from error


def forget(path: Path, nim: str) -> bool:
    try:
        with closing(connect(path)) as db:
            with transaction(db):
                was_known = commands.forget(db, partial(batch, db), sql.SHARED, nim)
            try:
                _erase_traces(db)
            except apsw.Error as error:
                raise TextsRemain(
                    f"the record and its history are removed, but {path} and {path}-wal still hold the texts ({error});"
                    " stop every program that has the file open, such as Litestream, then run the command again"
                ) from error
    except apsw.Error as error:
        raise Unavailable(str(error)) from error
    return was_known


def _erase_traces(db: apsw.Connection) -> None:
    """Rewrite the file without its free space, and empty the write-ahead log; raise apsw.Error if that is prevented.

    Other programs may have removed texts without secure_delete. These texts are still in the free space.
    """
    db.execute("VACUUM")
    # Many short attempts: other writers wait for as long as one attempt takes.
    db.set_busy_timeout(int(CHECKPOINT_INTERVAL_SECONDS * 1000))
    deadline = time.monotonic() + CHECKPOINT_TIMEOUT_SECONDS
    while True:
        try:
            db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(CHECKPOINT_INTERVAL_SECONDS)
        else:
            return
