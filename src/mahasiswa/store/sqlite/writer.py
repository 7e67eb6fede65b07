"""Makes the changes of the SQLite file: they wait in a queue, and are committed in groups, with one disk sync per group."""

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, cast

import apsw

from mahasiswa.store import PART_RECORDS, T
from mahasiswa.store.history_items import OLEH
from mahasiswa.store.reader import Begin
from mahasiswa.store.sqlite import sqlite_sql as sql
from mahasiswa.store.sqlite.connection import connect, savepoint, transaction
from mahasiswa.store.sqlite.sqlite_errors import translate
from mahasiswa.store.sqlite.sqlite_reader import take
from mahasiswa.store.store_errors import StoreError
from mahasiswa.work import CHANGE, STEP_TIMEOUT_SECONDS, Busy

FINAL_CHECKPOINT_TIMEOUT_MILLISECONDS = 1000


class QueuedChange(NamedTuple):
    """The steps of a change, the person who makes it, and the future that its caller waits for.

    `deadline` is in seconds of time.monotonic().
    """

    steps: Begin[Any]
    oleh: str | None
    answer: asyncio.Future[Any]
    deadline: float


class Writer:
    """The one connection that writes, with its thread. Changes that wait while a group is committed are the next group.

    `check` raises Unavailable for a bad file. A group waits for the lock of another program until its last deadline.
    """

    def __init__(self, path: Path, check: Callable[[], object]) -> None:
        self._check = check
        self._db = connect(path)
        self._queue: list[QueuedChange] = []
        self._running: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, "writer")
        # The thread starts now. A change that finds no thread would be refused, but it would stay
        # in the queue of the executor, and a later change would carry it out.
        self._thread.submit(int).result()

    async def write(self, steps: Begin[T]) -> T:
        """Queue a change, wait until it is on disk, return its result; raise Busy or the StoreError of the change."""
        if len(self._queue) >= CHANGE.waiting:
            raise Busy(CHANGE.name)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        deadline = time.monotonic() + STEP_TIMEOUT_SECONDS
        self._queue.append(QueuedChange(steps, OLEH.get(), answer, deadline))
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        try:
            return cast("T", await answer)
        finally:
            del answer  # for the same reason as in work.ended

    async def close(self) -> None:
        """Make all changes that wait, and close the connection."""
        if self._running:
            await self._running
        await asyncio.to_thread(self._thread.shutdown)
        # SQLite makes a checkpoint at the last close, but not if the file was moved. A kill would
        # lose a log that was removed.
        with suppress(apsw.Error):
            self._db.set_busy_timeout(FINAL_CHECKPOINT_TIMEOUT_MILLISECONDS)
            self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_FULL)
        self._db.close()

    async def _run(self) -> None:
        while self._queue:
            group = self._queue[:PART_RECORDS]
            del self._queue[:PART_RECORDS]
            for queued, outcome in zip(group, await self._outcomes(group), strict=True):
                if queued.answer.done():  # cancelled: its client has disconnected
                    continue
                if isinstance(outcome, StoreError):
                    # Its traceback refers to the frames that hold this group.
                    queued.answer.set_exception(outcome.with_traceback(None))
                else:
                    queued.answer.set_result(outcome)
        self._running = None

    async def _outcomes(self, group: Sequence[QueuedChange]) -> Sequence[object]:
        """Commit a group; return the result of each change if it is stored, otherwise the StoreError."""
        try:
            self._check()
            return await asyncio.wrap_future(self._thread.submit(self._transact, group))
        except Exception as error:  # noqa: BLE001 - translate logs those that it does not know
            return [translate(error)] * len(group)

    def _transact(self, group: Sequence[QueuedChange]) -> Sequence[object]:
        """Make the group's changes in one transaction. If it raises, nothing was stored."""
        left = group[-1].deadline - time.monotonic()
        self._db.set_busy_timeout(max(0, int(left * 1000)))
        with transaction(self._db):
            outcomes = list(map(self._attempt, group))
            self._db.execute(sql.SET_OLEH, {"oleh": None})
        return outcomes

    def _attempt(self, queued: QueuedChange) -> object:
        """Make one change; return its result. If it is refused, it is rolled back alone; return the error."""
        self._db.execute(sql.SET_OLEH, {"oleh": queued.oleh})
        try:
            with savepoint(self._db):
                return take(self._db, queued.steps())
        except (apsw.ConstraintError, StoreError) as error:
            return translate(error)
