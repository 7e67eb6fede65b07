"""Lets all callers that wait for the same result share one running task."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class SharedTask(Generic[T]):
    """Calls `work` for all callers together, one call at a time.

    A caller never receives the result of a call that began before its own. A caller that is cancelled does not cancel
    the work of the others.
    """

    def __init__(self, work: Callable[[], Awaitable[T]]) -> None:
        self._work = work
        self._running: asyncio.Task[T] | None = None
        self._next: asyncio.Task[T] | None = None

    @property
    def is_active(self) -> bool:
        """Whether a call is running or planned."""
        return self._next is not None or (self._running is not None and not self._running.done())

    async def result(self) -> T:
        """Return the result, or raise what `work` raises."""
        if self._next is None:
            self._next = asyncio.create_task(self._work_after(self._running))
            self._next.add_done_callback(_retrieve_exception)
        return await asyncio.shield(self._next)

    async def _work_after(self, previous: asyncio.Task[T] | None) -> T:
        if previous:
            await asyncio.wait([previous])
        self._running, self._next = self._next, None  # a later caller needs another call
        return await self._work()


def _retrieve_exception(task: asyncio.Task[T]) -> None:
    # asyncio logs an exception that is never retrieved, as if all callers were cancelled.
    if not task.cancelled():
        task.exception()
