"""Coalesces queries: one query answers all callers that wait for the same answer."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


def retrieve_exception(task: asyncio.Task[Any]) -> None:
    """Retrieve the exception of a task whose callers may all be gone; otherwise asyncio logs it."""
    if not task.cancelled():
        task.exception()


class Coalesced(Generic[T]):
    """Calls `ask` for all callers together, one call at a time.

    A caller never receives an answer to a call that began before its own. `ask` is given a deadline in seconds of
    time.monotonic(), which counts from the first of its callers.
    """

    def __init__(self, ask: Callable[[float], Awaitable[T]], timeout_seconds: float) -> None:
        self._ask = ask
        self._timeout_seconds = timeout_seconds
        self._running: asyncio.Task[T] | None = None
        self._next: asyncio.Task[T] | None = None

    async def get(self) -> T:
        """Return the answer, or raise what `ask` raises."""
        if self._next is None:
            deadline = time.monotonic() + self._timeout_seconds
            self._next = asyncio.create_task(self._ask_after(self._running, deadline))
            self._next.add_done_callback(retrieve_exception)
        return await asyncio.shield(self._next)

    async def close(self) -> None:
        """Wait for the calls that are running or planned."""
        if tasks := [task for task in (self._running, self._next) if task]:
            await asyncio.wait(tasks)

    async def _ask_after(self, previous: asyncio.Task[T] | None, deadline: float) -> T:
        if previous:
            await asyncio.wait([previous])
        self._running, self._next = self._next, None  # a later caller needs another call
        return await self._ask(deadline)
