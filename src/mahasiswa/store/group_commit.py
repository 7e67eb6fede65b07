"""Group commit: all changes that wait are made in one transaction, then answered together."""

import asyncio
import logging
import time
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


class Waiting(NamedTuple, Generic[T]):
    """A change in the queue, until `deadline` by time.monotonic()."""

    change: T
    answer: asyncio.Future[None]
    deadline: float


class GroupCommit(Generic[T]):
    """A queue of changes, and one group of them at a time on its way to the disk.

    `commit` makes a group's changes durable and tells the outcome of each. Whatever it raises, nothing was done.
    """

    def __init__(self, commit: Callable[[Sequence[Waiting[T]]], Awaitable[Sequence[StoreError | Fate]]]) -> None:
        self._commit = commit
        self._queue: list[Waiting[T]] = []
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
        while group := self._queue:
            self._queue = []
            try:
                outcomes = await self._commit(group)
            except Exception as error:
                log.exception("%d changes were not stored", len(group))
                outcomes = [Unavailable(str(error))] * len(group)
            left = []
            for waiting, outcome in zip(group, outcomes, strict=True):
                if outcome is Fate.NOT_YET:
                    left.append(waiting)
                elif waiting.answer.done():  # its client went away
                    continue
                elif outcome is Fate.STORED:
                    waiting.answer.set_result(None)
                else:
                    waiting.answer.set_exception(outcome)
            self._queue[:0] = left
        self._running = None
