"""A store's records for code that runs in a thread: exports, and the copy from one database to another."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from itertools import islice
from typing import TypeVar

from mahasiswa.record import Incoming, Mahasiswa
from mahasiswa.store import Merged, Query, Store
from mahasiswa.store.errors import Unusable

COPY_BATCH_ROWS = 5000

Item = TypeVar("Item")
T = TypeVar("T")


async def with_records(store: Store, query: Query, work: Callable[[Iterator[Mahasiswa]], T]) -> T:
    """Call `work` in a thread with every record that `query` finds at one moment, in bounded memory. See `in_thread`."""
    return await in_thread(store.chunks(query), work)


async def in_thread(chunks: AsyncGenerator[Sequence[Item]], work: Callable[[Iterator[Item]], T]) -> T:
    """Call `work` in a thread with the items of all chunks, one after the other.

    The thread is started after the first read, so the store's slots also bound the number of threads. If the caller
    is cancelled, `work` gets CancelledError instead of its next item, and its thread has ended on return.
    """
    loop = asyncio.get_running_loop()
    reading: asyncio.Task[Sequence[Item]] | None = None
    is_cancelled = False

    async def next_chunk() -> Sequence[Item]:
        nonlocal reading
        if is_cancelled:
            raise asyncio.CancelledError
        reading = asyncio.current_task()
        return await anext(chunks, [])  # an empty tuple makes Python 3.11 raise SystemError

    def items(chunk: Sequence[Item]) -> Iterator[Item]:
        while chunk:
            yield from chunk
            chunk = asyncio.run_coroutine_threadsafe(next_chunk(), loop).result()

    # Close at once if `work` raises: the read transaction must not stay open until garbage collection.
    async with aclosing(chunks):
        first: Sequence[Item] = await anext(chunks, [])
        thread = ThreadPoolExecutor(1, "records")
        working = loop.run_in_executor(thread, lambda: work(items(first)))
        thread.shutdown(wait=False)
        try:
            await asyncio.wait([working])
        finally:
            while not working.done():
                is_cancelled = True
                if reading:
                    reading.cancel()
                with suppress(asyncio.CancelledError):  # the thread must have ended before the caller goes on
                    await asyncio.wait([working])
            working.exception()  # asyncio logs an exception that is never retrieved
        return working.result()


async def copy(
    source: Store, target: Store, watched: Callable[[Iterator[Mahasiswa]], Iterator[Mahasiswa]] = iter
) -> int:
    """Copy every record in one transaction and return their number. Raise Unusable if the target holds records.

    In a target with records, the copied records could not be told from the others. `watched` sees every record; if it
    raises, none is copied.
    """
    if await target.after(None, 1):
        raise Unusable("the database to copy to holds records already")
    loop = asyncio.get_running_loop()

    def merge(records: Iterator[Mahasiswa]) -> Merged:
        rows = ((number, *record) for number, record in enumerate(watched(records), 1))
        merging = target.merge(rows, update=False, dry_run=False)
        return asyncio.run_coroutine_threadsafe(merging, loop).result()

    return (await with_records(source, Query(), merge)).new


def batches(rows: Iterable[Incoming]) -> Iterator[Sequence[Incoming]]:
    """The same rows, COPY_BATCH_ROWS at a time."""
    rows = iter(rows)
    while batch := list(islice(rows, COPY_BATCH_ROWS)):
        yield batch
