"""Group commit: a queue of changes that are committed in groups, one transaction and one disk sync per group."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from mahasiswa.store import PART_RECORDS, T
from mahasiswa.store.history_items import OLEH
from mahasiswa.store.reader import Begin
from mahasiswa.store.store_errors import Locked, StoreError
from mahasiswa.work import CHANGE, STEP_TIMEOUT_SECONDS, Busy


class QueuedChange(NamedTuple):
    """The steps of a change, the person who makes it, and the future that its caller waits for.

    `deadline` is in seconds of time.monotonic().
    """

    steps: Begin[Any]
    oleh: str | None
    answer: asyncio.Future[Any]
    deadline: float


@dataclass
class GroupCommit:
    """Collects changes while one group is written to the disk; they become the next groups.

    `commit` makes a group durable. It returns for each change its result if it is stored, otherwise the StoreError. A
    change that is Locked is queued again until its deadline. A group has at most PART_RECORDS changes.
    """

    _commit: Callable[[Sequence[QueuedChange]], Awaitable[Sequence[object]]]
    _queue: list[QueuedChange] = field(default_factory=list)
    _running: asyncio.Task[None] | None = None

    async def write(self, steps: Begin[T]) -> T:
        """Queue a change, wait until it is on disk, return its result; raise Busy, or the StoreError of `commit` for it."""
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
        if self._running:
            await self._running

    async def _run(self) -> None:
        while self._queue:
            group = self._queue[:PART_RECORDS]
            del self._queue[:PART_RECORDS]
            for queued, outcome in zip(group, await self._commit(group), strict=True):
                if isinstance(outcome, Locked) and queued.deadline > time.monotonic():
                    self._queue.append(queued)
                    continue
                if queued.answer.done():  # cancelled: its client has disconnected
                    continue
                if isinstance(outcome, StoreError):
                    # Its traceback refers to the frames that hold this group.
                    queued.answer.set_exception(outcome.with_traceback(None))
                else:
                    queued.answer.set_result(outcome)
        self._running = None
