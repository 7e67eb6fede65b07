"""Hands the records of an asynchronous read to code that runs in a thread: exports and long pages."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import TypeVar

from mahasiswa.work import Threads, ended

Item = TypeVar("Item")
T = TypeVar("T")


async def in_thread(
    chunks: AsyncGenerator[Sequence[Item]], work: Callable[[Iterator[Item]], T]
) -> T:
    """Call `work` in a thread with the items of all chunks, one after the other.

    The thread is started after the first read, so the store's slots also bound the number of threads. Raise Busy if it
    cannot start. If the caller is cancelled, `work` gets CancelledError instead of its next item, and its thread has ended on return.
    """
    loop = asyncio.get_running_loop()
    reading: asyncio.Task[Sequence[Item]] | None = None
    is_cancelled = False

    async def next_chunk() -> Sequence[Item]:
        nonlocal reading
        if is_cancelled:
            raise asyncio.CancelledError
        reading = asyncio.current_task()
        try:
            return await anext(chunks, [])  # an empty tuple makes Python 3.11 raise SystemError
        finally:
            reading = None  # whose exception refers to this function

    def items(chunk: Sequence[Item]) -> Iterator[Item]:
        while chunk:
            yield from chunk
            chunk = asyncio.run_coroutine_threadsafe(next_chunk(), loop).result()

    def stop() -> None:
        nonlocal is_cancelled
        is_cancelled = True
        if reading:
            reading.cancel()

    # Close at once if `work` raises: the read transaction must not stay open until garbage collection.
    async with aclosing(chunks):
        first: Sequence[Item] = await anext(chunks, [])
        thread = Threads(1, "records")
        working = loop.run_in_executor(thread, lambda: work(items(first)))
        thread.shutdown(wait=False)
        return await ended(working, stop)
