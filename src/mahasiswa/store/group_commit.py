"""Group commit: a queue of changes that are committed in groups, one transaction and one disk sync per group."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from mahasiswa.store import PART_RECORDS
from mahasiswa.store.store_errors import Locked, StoreError, Unavailable
from mahasiswa.work import STEP_TIMEOUT_SECONDS, Slots

log = logging.getLogger(__name__)

T = TypeVar("T")
R = TypeVar("R")


class QueuedChange(NamedTuple, Generic[T]):
    """A change and the future that its caller waits for. `deadline` is in seconds of time.monotonic()."""

    change: T
    answer: asyncio.Future[Any]
    deadline: float


@dataclass
class GroupCommit(Generic[T, R]):
    """Collects changes while one group is written to the disk; they become the next groups.

    `commit` makes a group durable. It returns for each change its result if it is stored, otherwise the error. If it
    raises, nothing was stored, and the error is that of each change. A change that is Locked is queued again until its
    deadline. A group has at most PART_RECORDS changes.
    """

    _slots: Slots
    _commit: Callable[[Sequence[QueuedChange[T]]], Awaitable[Sequence[R | StoreError]]]
    _queue: list[QueuedChange[T]] = field(default_factory=list)
    _running: asyncio.Task[None] | None = None

    async def write(self, change: T, timeout_seconds: float = STEP_TIMEOUT_SECONDS) -> R:
        """Queue a change, wait until it is on disk, return its result; raise Busy, or the StoreError of `commit` for it."""
        self._slots.count_changes(1)
        answer: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._queue.append(QueuedChange(change, answer, time.monotonic() + timeout_seconds))
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        try:
            return await answer
        finally:
            del answer  # for the same reason as in work.ended

    async def close(self) -> None:
        if self._running:
            await self._running

    async def _run(self) -> None:
        while self._queue:
            group = self._queue[:PART_RECORDS]
            del self._queue[:PART_RECORDS]
            for queued, outcome in zip(group, await self._outcomes(group), strict=True):
                if isinstance(outcome, Locked) and queued.deadline > time.monotonic():
                    self._queue.append(queued)
                    continue
                self._slots.count_changes(-1)
                if queued.answer.done():  # cancelled: its client has disconnected
                    continue
                if isinstance(outcome, StoreError):
                    # Its traceback refers to the frames that hold this group.
                    queued.answer.set_exception(outcome.with_traceback(None))
                else:
                    queued.answer.set_result(outcome)
        self._running = None

    async def _outcomes(self, group: Sequence[QueuedChange[T]]) -> Sequence[R | StoreError]:
        try:
            return await self._commit(group)
        except StoreError as error:
            return [error] * len(group)
        except Exception as error:
            log.exception("%d changes were not stored", len(group))
            return [Unavailable(str(error))] * len(group)
