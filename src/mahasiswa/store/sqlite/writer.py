"""The only writer of an SQLite file: it commits queued changes in groups and answers when they are on disk."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import apsw

from mahasiswa.store.errors import Locked, StoreError, Unavailable
from mahasiswa.store.group_commit import GroupCommit, QueuedChange
from mahasiswa.store.sqlite import sql
from mahasiswa.store.sqlite.connection import LOCK_TIMEOUT_SECONDS, connect, has_moved, refusal
from mahasiswa.work import RECORD, STEP_TIMEOUT_SECONDS, Busy

FINAL_CHECKPOINT_TIMEOUT_SECONDS = 1.0

log = logging.getLogger(__name__)

A = TypeVar("A")
T = TypeVar("T")

Change = Callable[[apsw.Connection], None]


class Writer:
    """One connection on one thread. If it is limited, its queue is bounded, and a change has the deadline of a step."""

    def __init__(self, path: Path, *, is_limited: bool) -> None:
        self._is_limited = is_limited
        self._db = connect(path)
        self._thread = ThreadPoolExecutor(1, "writer")
        self._changes = GroupCommit(self._commit)
        self._is_closed = False

    @property
    def waiting(self) -> int:
        """The number of changes for the next group."""
        return self._changes.waiting

    async def write(self, change: Change) -> None:
        """Make a change and wait until it is on disk; raise what `change` raised, Busy or Unavailable."""
        if self._is_limited and self.waiting >= RECORD.waiting:
            raise Busy(f"changes: {self.waiting} waiting")
        await self._changes.write(change, STEP_TIMEOUT_SECONDS if self._is_limited else LOCK_TIMEOUT_SECONDS)

    async def run_exclusive(self, work: Change) -> None:
        """Run work on the writer's connection between two groups, outside their transactions."""
        try:
            await self._in_thread(work, self._db)
        except apsw.Error as error:
            raise Unavailable(str(error)) from error

    async def close(self) -> None:
        """Make the queued changes, then close the connection."""
        await self._changes.close()
        # SQLite checkpoints at the last close, except for a file that was moved: its log would be left behind.
        if has_moved(self._db):
            with suppress(Unavailable):
                await self.run_exclusive(_checkpoint)
        self._is_closed = True
        self._thread.shutdown()
        self._db.close()

    async def _commit(self, group: Sequence[QueuedChange[Change]]) -> Sequence[StoreError | None]:
        try:
            return await self._in_thread(self._transact, group)
        except apsw.BusyError as error:
            return [Locked(str(error))] * len(group)
        except (apsw.Error, Unavailable) as error:
            log.error("%d changes were not stored: %s", len(group), error)  # noqa: TRY400 - no traceback needed
            return [Unavailable(str(error))] * len(group)

    def _in_thread(self, function: Callable[[A], T], argument: A) -> asyncio.Future[T]:
        if self._is_closed:  # while the caller did something else
            raise Unavailable("the file was replaced or removed")
        return asyncio.get_running_loop().run_in_executor(self._thread, function, argument)

    def _transact(self, group: Sequence[QueuedChange[Change]]) -> Sequence[StoreError | None]:
        """Make the group's changes in one transaction. If it raises, nothing was stored."""
        db = self._db
        left = min(queued.deadline for queued in group) - time.monotonic()
        db.set_busy_timeout(max(0, int(left * 1000)))
        db.execute("BEGIN IMMEDIATE")
        try:
            changes_before = db.total_changes()
            outcomes = self._make_changes(group)
            # Only with a change, because each purge is a new version of the list.
            if db.total_changes() != changes_before and db.execute(sql.HAS_EXPIRED).get:
                db.execute(sql.PURGE)
            db.execute("COMMIT")
        except BaseException as error:
            if db.in_transaction:
                db.execute("ROLLBACK")
            if isinstance(error, apsw.IOError):
                self._overwrite_failed_commit()
            raise
        return outcomes

    def _make_changes(self, group: Sequence[QueuedChange[Change]]) -> Sequence[StoreError | None]:
        if has_moved(self._db):
            raise Unavailable("the file was replaced or removed")
        return [self._attempt(queued.change) for queued in group]

    def _attempt(self, change: Change) -> StoreError | None:
        """Make one change. SQLite takes back a refused statement alone, so the rest of the group is not affected."""
        try:
            change(self._db)
        except StoreError as error:
            return error
        except apsw.ConstraintError as error:
            return refusal(error)
        return None

    def _overwrite_failed_commit(self) -> None:
        """Overwrite a transaction that is in the log but was not synced: a crash would bring it back."""
        with suppress(apsw.Error), self._db:  # if the disk still fails, the next successful commit overwrites it
            self._db.pragma("user_version", self._db.pragma("user_version"))


def _checkpoint(db: apsw.Connection) -> None:
    db.set_busy_timeout(int(FINAL_CHECKPOINT_TIMEOUT_SECONDS * 1000))
    db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_FULL)
