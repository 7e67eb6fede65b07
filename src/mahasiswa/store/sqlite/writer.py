"""The only writer of an SQLite file: it commits queued changes in groups and answers when they are on disk."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import apsw

from mahasiswa.store.errors import Locked, StoreError, Unavailable
from mahasiswa.store.group_commit import GroupCommit, QueuedChange
from mahasiswa.store.history import OLEH
from mahasiswa.store.sqlite import sql
from mahasiswa.store.sqlite.connection import connect, has_moved, refusal, transaction
from mahasiswa.work import Slots

FINAL_CHECKPOINT_TIMEOUT_SECONDS = 1.0

log = logging.getLogger(__name__)

Change = Callable[[apsw.Connection], None]


class Writer:
    """One connection on one thread. A change has the deadline of a step, which includes its time in the queue."""

    def __init__(self, path: Path, slots: Slots) -> None:
        self._db = connect(path)
        self._thread = ThreadPoolExecutor(1, "writer")
        self._changes = GroupCommit(slots, self._commit)
        self._oleh: str | None = None  # the name that the database has for the next changes
        self._is_closed = False

    async def write(self, change: Change) -> None:
        """Make a change and wait until it is on disk; raise what `change` raised, Busy or Unavailable."""
        await self._changes.write((change, OLEH.get()))

    async def close(self) -> None:
        """Make the queued changes, then close the connection."""
        await self._changes.close()
        self._is_closed = True
        await asyncio.to_thread(self._thread.shutdown)
        # SQLite checkpoints at the last close, except for a file that was moved: its log would be left behind.
        if has_moved(self._db):
            with suppress(apsw.Error):
                self._db.set_busy_timeout(int(FINAL_CHECKPOINT_TIMEOUT_SECONDS * 1000))
                self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_FULL)
        self._db.close()

    async def _commit(self, group: Sequence[QueuedChange[tuple[Change, str | None]]]) -> Sequence[StoreError | None]:
        if self._is_closed:  # while the change waited in the queue
            raise Unavailable("the file was replaced or removed")
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._transact, group)
        except apsw.BusyError as error:
            return [Locked(str(error))] * len(group)
        except (apsw.Error, Unavailable) as error:
            log.error("%d changes were not stored: %s", len(group), error)  # noqa: TRY400 - no traceback needed
            return [Unavailable(str(error))] * len(group)

    def _transact(self, group: Sequence[QueuedChange[tuple[Change, str | None]]]) -> Sequence[StoreError | None]:
        """Make the group's changes in one transaction. If it raises, nothing was stored."""
        db = self._db
        left = min(queued.deadline for queued in group) - time.monotonic()
        db.set_busy_timeout(max(0, int(left * 1000)))
        with transaction(db):
            self._oleh = None
            changes_before = db.total_changes()
            outcomes = [self._attempt(*queued.change) for queued in group]
            self._set_oleh(None)
            # Only with a change, because each purge is a new version of the list.
            if db.total_changes() != changes_before and db.execute(sql.HAS_EXPIRED).get:
                db.execute(sql.PURGE)
        return outcomes

    def _set_oleh(self, oleh: str | None) -> None:
        if oleh != self._oleh:
            self._db.execute(sql.SET_OLEH, (oleh,))
        self._oleh = oleh

    def _attempt(self, change: Change, oleh: str | None) -> StoreError | None:
        """Make one change. SQLite takes back a refused statement alone, so the rest of the group is not affected."""
        self._set_oleh(oleh)
        try:
            change(self._db)
        except StoreError as error:
            return error
        except apsw.ConstraintError as error:
            return refusal(error)
        return None
