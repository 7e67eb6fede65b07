"""PostgreSQL: deadlines, cancelled reads, a commit that waits for a standby, and bounded memory."""

import asyncio
import time
import tracemalloc
from collections.abc import Awaitable, Callable

import pytest
from postgres import Server, awaited_locks, locked
from processes import until
from stores import execute

from mahasiswa.store import Query, Store
from mahasiswa.store.store_errors import TookTooLong, Uncertain
from mahasiswa.work import RECORD, SEARCH, STEP_TIMEOUT_SECONDS

Read = Callable[[Store], Awaitable[object]]

READS: dict[str, Read] = {
    "get": lambda store: store.reader(RECORD).get("1"),
    "snapshot": lambda store: store.snapshot(10),
    "search": lambda store: store.reader(SEARCH).search(Query("Siti"), 0, 10),
}


async def test_a_read_that_takes_too_long_is_interrupted_on_the_server(
    server: Server, url: str, store: Store
) -> None:
    """It raises TookTooLong within 5 seconds, and the server does not go on with it."""
    with locked(url):
        began = time.monotonic()
        reads = [read(store) for read in READS.values()]
        reads.append(store.export(Query("Siti"), list))
        ended = await asyncio.gather(*reads, return_exceptions=True)
        assert [type(error) for error in ended] == [TookTooLong] * len(reads)
        assert time.monotonic() - began < STEP_TIMEOUT_SECONDS
        assert not awaited_locks(server.url)


async def test_a_read_whose_client_has_gone_stops_on_the_server_within_a_second(
    server: Server, url: str, store: Store
) -> None:
    """The cancelled task cancels its statement, and its connection and its slot are free again."""
    with locked(url):
        for read in [*READS.values()] * 5:  # more often than any kind of work has slots
            reading = asyncio.ensure_future(read(store))
            await asyncio.to_thread(until, lambda: awaited_locks(server.url))
            reading.cancel()
            began = time.monotonic()
            with pytest.raises(asyncio.CancelledError):
                await reading
            await asyncio.to_thread(until, lambda: not awaited_locks(server.url))
            assert time.monotonic() - began < 3


@pytest.mark.torture
async def test_a_commit_that_waits_for_the_standby_is_not_interrupted(
    server: Server, url: str, store: Store
) -> None:
    """The deadline makes the change uncertain. The server must go on waiting: no one sees a commit on one host only."""
    server.alter("SET synchronous_standby_names = 'nobody'")
    try:
        await asyncio.to_thread(
            until, lambda: execute(server.url, "SHOW synchronous_standby_names") == [("nobody",)]
        )
        nims = map(str, range(1000))

        # The server's checkpointer reads the setting a moment later.
        async def add_until_one_waits() -> None:
            for nim in nims:
                await store.add(nim, "Siti", "Solo")

        with pytest.raises(Uncertain):
            await add_until_one_waits()
        added = int(next(nims)) - 1
        assert execute(server.url, "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
        assert execute(url, "SELECT count(*) FROM mahasiswa") == [(added,)]
    finally:
        server.alter("RESET synchronous_standby_names")


async def test_a_snapshot_of_long_texts_is_given_up_before_they_are_read(
    url: str, store: Store
) -> None:
    """Records with 40 MB of texts take no memory of the service."""
    execute(
        url,
        "INSERT INTO mahasiswa SELECT i, repeat('a', 50000), '' FROM generate_series(1, 800) AS i",
    )
    tracemalloc.start()
    try:
        assert (await store.snapshot(10_000)).packed is None
        assert tracemalloc.get_traced_memory()[1] < 10 * 1024 * 1024
    finally:
        tracemalloc.stop()
