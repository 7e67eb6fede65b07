"""A store's records for code that is not asynchronous: writers of files, which run in a thread."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from typing import TypeVar

from mahasiswa.record import Mahasiswa
from mahasiswa.store import Query, Store

T = TypeVar("T")


async def with_records(store: Store, query: Query, work: Callable[[Iterator[Mahasiswa]], T]) -> T:
    """Call `work` in a thread with all that a query finds, as it stands at one moment, in bounded memory."""
    loop = asyncio.get_running_loop()
    chunks = store.chunks(query)

    async def following() -> Sequence[Mahasiswa]:
        async for chunk in chunks:
            return chunk
        return ()

    def records() -> Iterator[Mahasiswa]:
        while chunk := asyncio.run_coroutine_threadsafe(following(), loop).result():
            yield from chunk

    # Closed here and now where `work` gives up: its read transaction must not wait for the garbage collector.
    async with aclosing(chunks):
        return await asyncio.to_thread(work, records())
