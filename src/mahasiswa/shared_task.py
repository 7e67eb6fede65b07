"""Lets all callers that wait for the same result share one running task."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class SharedTask(Generic[T]):
    """Calls `work` for all callers together, one call at a time.

    A caller never receives the result of work that began before the caller asked. If a caller is
    cancelled, the work goes on for the other callers.
    """

    def __init__(self, work: Callable[[], Awaitable[T]]) -> None:
        self._work = work
        self._lock = asyncio.Lock()
        self._next: asyncio.Task[T] | None = None

    async def result(self) -> T:
        """Return the result, or raise what `work` raises."""
        if self._next is None:
            self._next = asyncio.create_task(self._work_after_others())
            # All callers may be gone. Then asyncio would log that the exception was never read.
            self._next.add_done_callback(lambda task: task.cancelled() or task.exception())
        return await asyncio.shield(self._next)

    async def _work_after_others(self) -> T:
        async with self._lock:
            self._next = None  # a later caller needs another call
            return await self._work()
