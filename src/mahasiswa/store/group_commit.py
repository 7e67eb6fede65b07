"""Group commit: all changes that wait are made in one transaction, then answered together."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from typing import Generic, NamedTuple, TypeVar

from mahasiswa.store import StoreError, Unavailable

log = logging.getLogger(__name__)

T = TypeVar("T")


class Fate(Enum):
    """What became of a change that was not refused."""

    STORED = 1
    NOT_YET = 2
    """Nothing of the group was stored, and there is time left."""
    ALONE = 3
    """Nor was it, over one of them: each is to be a group of its own."""


class Waiting(NamedTuple, Generic[T]):
    """A change in the queue, until `deadline` by time.monotonic()."""

    change: T
    answer: asyncio.Future[None]
    deadline: float


class GroupCommit(Generic[T]):
    """A queue of changes, and one group of them at a time on its way to the disk.

    `commit` makes a group's changes durable and tells the outcome of each. Whatever it raises, nothing was done. A
    change is not begun any more once its deadline has passed.
    """

    def __init__(self, commit: Callable[[Sequence[Waiting[T]]], Awaitable[Sequence[StoreError | Fate]]]) -> None:
        self._commit = commit
        self._queue: list[Waiting[T]] = []
        self._alone: deque[Waiting[T]] = deque()
        self._running: asyncio.Task[None] | None = None

    async def write(self, change: T, patience: float) -> None:
        """Wait until a change is on disk; raise its outcome if that is an error. `patience` in seconds."""
        answer = asyncio.get_running_loop().create_future()
        self._queue.append(Waiting(change, answer, time.monotonic() + patience))
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        await answer

    async def close(self) -> None:
        """Let the changes that wait be made."""
        if self._running:
            await self._running

    async def _run(self) -> None:
        while group := self._next():
            for waiting, outcome in zip(group, await self._outcomes(group), strict=True):
                if outcome is Fate.NOT_YET:
                    self._queue.append(waiting)
                elif outcome is Fate.ALONE:
                    self._alone.append(waiting)
                elif waiting.answer.done():  # its client went away
                    continue
                elif outcome is Fate.STORED:
                    waiting.answer.set_result(None)
                else:
                    waiting.answer.set_exception(outcome)
        self._running = None

    def _next(self) -> Sequence[Waiting[T]]:
        if self._alone:
            return [self._alone.popleft()]
        group, self._queue = self._queue, []
        return group

    async def _outcomes(self, group: Sequence[Waiting[T]]) -> Sequence[StoreError | Fate]:
        now = time.monotonic()
        in_time = [waiting for waiting in group if waiting.deadline > now]
        try:
            outcomes = iter(await self._commit(in_time) if in_time else ())
        except Exception as error:
            log.exception("%d changes were not stored", len(in_time))
            outcomes = iter([Unavailable(str(error))] * len(in_time))
        return [next(outcomes) if waiting.deadline > now else Unavailable("no time was left") for waiting in group]
