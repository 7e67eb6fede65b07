"""The one writer of an SQLite file: changes that wait are committed together, and answered when they are on disk."""

import asyncio
import logging
import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import cast

import apsw

from mahasiswa.store import statements
from mahasiswa.store.errors import Locked, Reason, Refused, StoreError, Unavailable
from mahasiswa.store.group_commit import GroupCommit, QueuedChange
from mahasiswa.store.sqlite.connection import PATIENCE, connect, has_moved

log = logging.getLogger(__name__)

Change = Callable[[apsw.Connection], None]


class Writer:
    """One connection on one thread."""

    def __init__(self, path: Path) -> None:
        self._db = connect(path)
        self._db.execute(statements.REFUSE_INSERT)
        self._db.execute(statements.REFUSE_UPDATE)
        self._thread = ThreadPoolExecutor(1, "writer")
        self._changes = GroupCommit(self._commit)

    async def write(self, change: Change) -> None:
        """Make a change and wait until it is on disk; raise what `change` raised, or Unavailable."""
        await self._changes.write(change, PATIENCE)

    async def run_exclusive(self, work: Change) -> None:
        """Do something on the writer's connection that is no part of any group."""
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, work, self._db)
        except apsw.Error as error:
            raise Unavailable(str(error)) from error

    async def close(self) -> None:
        """Let the changes that wait be made, then let go of the file."""
        await self._changes.close()
        if has_moved(self._db):  # SQLite leaves the log as it is then, and it no longer lies beside the file
            with suppress(Unavailable):
                await self.run_exclusive(_fold)
        self._thread.shutdown()
        self._db.close()

    async def _commit(self, group: Sequence[QueuedChange[Change]]) -> Sequence[StoreError | None]:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._transact, group)
        except apsw.BusyError as error:
            return [Locked(str(error))] * len(group)
        except (apsw.Error, Unavailable) as error:
            log.error("%d changes were not stored: %s", len(group), error)  # noqa: TRY400 - it says it all
            return [Unavailable(str(error))] * len(group)

    def _transact(self, group: Sequence[QueuedChange[Change]]) -> Sequence[StoreError | None]:
        """Make the group's changes in one transaction. Whatever is raised, nothing was done."""
        db = self._db
        patience = min(waiting.deadline for waiting in group) - time.monotonic()
        db.set_busy_timeout(max(0, int(patience * 1000)))
        db.execute("BEGIN IMMEDIATE")
        try:
            outcomes = self._make(group)
            db.execute("COMMIT")
        except BaseException as error:
            if db.in_transaction:
                db.execute("ROLLBACK")
            if isinstance(error, apsw.IOError):
                self._take_back()
            raise
        return outcomes

    def _take_back(self) -> None:
        """Write over what a commit that could not be synced left in the log: a crash would bring it back."""
        with suppress(apsw.Error):  # nothing can be written then; the next change that can does the same
            self._db.pragma("user_version", self._db.pragma("user_version"))

    def _make(self, group: Sequence[QueuedChange[Change]]) -> Sequence[StoreError | None]:
        if has_moved(self._db):
            raise Unavailable("the file was replaced or removed")
        return [self._attempt(waiting.change) for waiting in group]

    def _attempt(self, change: Change) -> StoreError | None:
        """Make one change. A refused statement rolls back alone and leaves its neighbours in the transaction."""
        try:
            change(self._db)
        except StoreError as error:
            return error
        except apsw.ConstraintError as error:
            if not self._db.in_transaction:
                raise
            return _refusal(error)
        except apsw.SQLError as error:  # in a trigger of the table's own
            log.error("a change was not stored: %s", error)  # noqa: TRY400 - it says it all
            return Unavailable(str(error))
        return None


def _fold(db: apsw.Connection) -> None:
    """Bring what stands in the log alone into the file."""
    db.set_busy_timeout(1000)
    db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_FULL)


def _refusal(error: apsw.ConstraintError) -> Refused:
    text = str(error)
    if ours := re.fullmatch(r"(nim|nama|alamat) (missing|unaddressable|too_long|nul)", text):
        return Refused(ours[1], cast("Reason", ours[2]))
    column = re.search(r"mahasiswa\.(nim|nama|alamat)$", text.lower())
    if column and text.startswith("NOT NULL"):
        return Refused(column[1], "missing")
    if column and column[1] == "nim":
        return Refused("nim", "duplicate")
    return Refused("nim", "nul")
