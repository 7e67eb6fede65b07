"""A store's records for code that runs in a thread: exports, and the copy from one database to another."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from itertools import islice
from typing import TypeVar

from mahasiswa.record import Incoming, Mahasiswa
from mahasiswa.store import Merged, Query, Store
from mahasiswa.store.errors import Unusable

COPY_BATCH_ROWS = 5000

T = TypeVar("T")


async def with_records(store: Store, query: Query, work: Callable[[Iterator[Mahasiswa]], T]) -> T:
    """Call `work` in a thread with every record that `query` finds at one moment, in bounded memory."""
    loop = asyncio.get_running_loop()
    chunks = store.chunks(query)

    async def next_chunk() -> Sequence[Mahasiswa]:
        return await anext(chunks, [])  # an empty tuple makes Python 3.11 raise SystemError

    def records() -> Iterator[Mahasiswa]:
        while chunk := asyncio.run_coroutine_threadsafe(next_chunk(), loop).result():
            yield from chunk

    # Close at once if `work` raises: the read transaction must not stay open until garbage collection.
    async with aclosing(chunks):
        return await asyncio.to_thread(work, records())


async def copy(
    source: Store, target: Store, watched: Callable[[Iterator[Mahasiswa]], Iterator[Mahasiswa]] = iter
) -> int:
    """Copy every record in one transaction and return their number. Raise Unusable if the target holds records.

    Otherwise nobody could tell the copied records from those that were there before. `watched` sees every record; if
    it raises, none is copied.
    """
    if await target.after(None, 1):
        raise Unusable("the database to copy to holds records already")
    loop = asyncio.get_running_loop()

    def merge(records: Iterator[Mahasiswa]) -> Merged:
        merging = target.merge(_batches(watched(records)), update=False, dry_run=False)
        return asyncio.run_coroutine_threadsafe(merging, loop).result()

    return (await with_records(source, Query(), merge)).new


def _batches(records: Iterator[Mahasiswa]) -> Iterator[Sequence[Incoming]]:
    rows = ((number, *record) for number, record in enumerate(records, 1))
    while batch := list(islice(rows, COPY_BATCH_ROWS)):
        yield batch
