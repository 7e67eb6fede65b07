"""The cost of reads and writes of the SQLite store: linear, bounded, with deadlines, and stopped when cancelled."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import pytest
from spreadsheets import numbered
from stores import engine_at, execute, merge

from mahasiswa.store import Query
from mahasiswa.store.sqlite.store import SQLiteStore
from mahasiswa.store.store_errors import TookTooLong
from mahasiswa.work import (
    LIST,
    SEARCH,
    STEP_TIMEOUT_SECONDS,
    Slots,
)

pytestmark = [pytest.mark.torture, pytest.mark.alone]

STOP_SECONDS = 2.0
"""Maximum time in which cancelled work must stop: the promise is one second, and the machine may be busy."""


@pytest.fixture
def slots() -> Slots:
    return Slots()


@pytest.fixture
async def store(path: Path, slots: Slots) -> AsyncIterator[SQLiteStore]:
    store = await engine_at(path).open_store(slots)
    assert isinstance(store, SQLiteStore)
    yield store
    await store.close()


def many(count: int) -> list[tuple[str, str, str]]:
    return numbered(count, "Siti Aminah {}", "Jalan Kaliurang 5, Yogyakarta", nim="{:07}")


def endless(db: apsw.Connection) -> object:
    """Run a query that ends only when it is interrupted."""
    return db.execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    ).get


def count(db: apsw.Connection) -> object:
    """Run a query that ends at once, and returns the number of records."""
    return db.execute("SELECT count(*) FROM mahasiswa").get


async def test_the_cost_of_a_search_grows_with_the_list_and_hardly_with_its_texts(
    path: Path, store: SQLiteStore
) -> None:
    """Eight times the records take less than 24 times the processor time, also with long texts and near matches."""

    async def seconds(query: Query, offset: int = 0) -> float:
        taken = []
        for _ in range(3):
            began = time.process_time()  # of all threads
            await store.reader(SEARCH).search(query, offset, 50)
            taken.append(time.process_time() - began)
        return min(taken)

    merge(path, *many(80_000))
    whole = await seconds(Query("5", "nama"), 10_000)
    await asyncio.to_thread(execute, path, "DELETE FROM mahasiswa WHERE nim >= '0010000'")
    assert whole < 24 * await seconds(Query("5", "nama"), 1_000)
    usual = await seconds(Query("siti"))
    assert await seconds(Query("s i t a m j l k u 5")) < 4 * usual
    merge(path, *numbered(100, "aéÀßđ’b中" * 8_000, "a" * 64_000, nim="x{}"))
    for cari in ("siti", "a" * 254 + "b", "b" + "a" * 254, "ñ" * 127 + "a" * 127 + "É"):
        assert await seconds(Query(cari)) < 4 * usual


async def test_a_query_that_takes_too_long_is_interrupted(store: SQLiteStore, slots: Slots) -> None:
    """The deadline includes the time in the queue. The thread and the connection can be used again."""
    began = time.monotonic()
    async with slots.slot(LIST):
        late = asyncio.create_task(store.query(endless, LIST))
        await asyncio.sleep(STOP_SECONDS)
    waiting = asyncio.create_task(store.query(count, LIST))
    with pytest.raises(TookTooLong, match="interrupted"):
        await late
    assert STEP_TIMEOUT_SECONDS <= time.monotonic() - began < STEP_TIMEOUT_SECONDS + STOP_SECONDS
    assert await waiting == 0


async def stop(task: "asyncio.Task[object]") -> None:
    began = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - began < STOP_SECONDS


async def test_cancelled_queries_stop_and_free_their_threads(store: SQLiteStore) -> None:
    """When every thread of a kind runs an endless query and all are cancelled, the next queries run at once."""
    begun = threading.Semaphore(0)

    def begin(db: apsw.Connection) -> object:
        begun.release()
        return endless(db)

    for _ in range(3):
        running = [asyncio.create_task(store.query(begin, SEARCH)) for _ in range(SEARCH.running)]
        for _ in running:
            assert await asyncio.to_thread(begun.acquire, timeout=30)
        for task in running:
            await stop(task)
    assert (
        await asyncio.gather(*(store.query(count, SEARCH) for _ in range(SEARCH.running)))
        == [0] * SEARCH.running
    )
