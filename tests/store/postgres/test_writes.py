"""PostgreSQL: batches of additions, locks, deadlocks and concurrent changes."""

import asyncio
import gc
import time
from collections.abc import Sequence

import psycopg
import pytest
from postgres import execute, until
from stores import SITI, attempt, attempt_all, opened, read_all

from mahasiswa.record import Mahasiswa, Write, digest
from mahasiswa.settings import PostgresURL
from mahasiswa.store import Store
from mahasiswa.store.errors import Changed, Refused, Unavailable
from mahasiswa.store.postgres.pool import MAX_ATTEMPTS
from mahasiswa.work import RECORD

SOMEONE_WAITS_FOR_A_LOCK = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"


@pytest.mark.parametrize("refused", [[0], [63], [31, 32], [0, 5, 6, 40, 63], range(64)], ids=str)
async def test_refused_additions_in_a_batch_leave_their_neighbours(store: Store, refused: Sequence[int]) -> None:
    """Each of 64 additions has its own outcome, wherever the refused ones stand."""
    faults = [("..", "Ani", "Solo"), ("9" * 256, "Ani", "Solo"), ("x", None, "Solo"), ("x", "Ani", None)]
    reasons = [("nim", "unaddressable"), ("nim", "too_long"), ("nama", "missing"), ("alamat", "missing")]
    good = [Mahasiswa(f"{number:02}", "Ani", "Solo") for number in range(64)]
    writes = [faults[number % 4] if number in refused else good[number] for number in range(64)]
    answers = await attempt_all(*(store.add(*write) for write in writes))
    assert answers == [reasons[number % 4] if number in refused else None for number in range(64)]
    assert await read_all(store) == [good[number] for number in range(64) if number not in refused]


async def test_of_equal_nims_in_a_batch_with_a_refused_addition_the_first_is_stored(store: Store) -> None:
    """Isolating the refused addition keeps the order in which the others came."""
    answers = await attempt_all(
        store.add("1", None, "Solo"),
        store.add("1", "Ani", "Solo"),
        store.add("2", "Siti", "Solo"),
        store.add("1", "Ina", "Solo"),
        store.add("2", "Siti", "Solo"),
    )
    assert answers == [("nama", "missing"), None, None, ("nim", "duplicate"), ("nim", "duplicate")]
    assert await read_all(store) == [("1", "Ani", "Solo"), ("2", "Siti", "Solo")]


async def test_a_constraint_that_someone_added_later_refuses_a_record_alone(url: PostgresURL, store: Store) -> None:
    """The program has no message for it, so the record is answered like a failure; its neighbours are stored."""
    execute(url.address, "ALTER TABLE mahasiswa ADD CONSTRAINT nama_terisi CHECK (nama <> '')")
    writes = [store.add("1", "Ani", "Solo"), store.add("2", "", "Solo"), store.add("3", "Ina", "Solo")]
    assert await attempt_all(*writes) == [None, "unavailable", None]
    assert [record.nim for record in await read_all(store)] == ["1", "3"]


async def test_a_refused_addition_does_not_make_its_neighbours_wait_for_locks_of_others(
    url: PostgresURL, store: Store
) -> None:
    """The refused addition and a good one are answered at once, and the locked ones wait together, not in turn."""
    began = time.monotonic()
    seconds: dict[str, float] = {}

    async def add(nim: str) -> None:
        try:
            await store.add(nim, "Ani", "Solo")
        except Unavailable:
            assert nim.startswith("z")
        except Refused:
            assert nim == ".."
        seconds[nim] = time.monotonic() - began

    with psycopg.connect(url.address) as other:
        for number in range(5):
            other.execute("INSERT INTO mahasiswa VALUES (%s, 'Ina', 'Solo')", [f"z{number}"])
        await asyncio.gather(*map(add, ["a", "..", *(f"z{number}" for number in range(5))]))
    assert max(seconds["a"], seconds[".."]) < 4
    assert max(seconds.values()) < 10
    assert [record.nim for record in await read_all(store)] == ["a", *(f"z{number}" for number in range(5))]


async def test_a_lock_delays_a_write_for_a_few_seconds_at_most(url: PostgresURL, store: Store) -> None:
    """If a program locks the table, the write fails and nothing was done; reads are not delayed."""
    with psycopg.connect(url.address) as other:
        other.execute("LOCK TABLE mahasiswa IN SHARE MODE")
        began = time.monotonic()
        adding = asyncio.ensure_future(store.add(*SITI))
        assert await read_all(store) == []
        with pytest.raises(Unavailable, match="lock timeout"):
            await adding
        assert time.monotonic() - began < 10
    assert await read_all(store) == []
    await store.add(*SITI)


async def test_an_addition_with_time_left_is_tried_again_when_its_batch_has_run_out_of_time(
    url: PostgresURL, store: Store
) -> None:
    """The oldest addition of a batch ends the batch; a younger one is stored when the lock is released."""
    with psycopg.connect(url.address) as other:
        other.execute("LOCK TABLE mahasiswa IN SHARE MODE")
        first = asyncio.ensure_future(store.add("1", "Ani", "Solo"))
        await until(lambda: execute(url.address, SOMEONE_WAITS_FOR_A_LOCK))
        oldest = asyncio.ensure_future(store.add("2", "Ani", "Solo"))
        await asyncio.sleep(2)  # so that the next addition has a later deadline
        youngest = asyncio.ensure_future(store.add("3", "Ani", "Solo"))
        for failed in (first, oldest):
            with pytest.raises(Unavailable):
                await failed
        assert not youngest.done()
    await youngest
    assert await read_all(store) == [("3", "Ani", "Solo")]


async def test_of_two_who_write_the_same_records_one_is_told_that_they_changed(url: PostgresURL, store: Store) -> None:
    """They do not deadlock if their orders differ; repeating the successful write is no error."""
    async with opened(url) as second:
        for number in range(20):
            old: list[Mahasiswa | None] = [None] * 6
            for names in (("Siti", "Ani"), ("Budi", "Ina")):
                writes = [
                    [
                        Write(Mahasiswa(f"{number}{letter}", name, "Solo"), digest(record) if record else None)
                        for letter, record in zip("abcdef", old, strict=True)
                    ]
                    for name in names
                ]
                answers = await asyncio.gather(
                    store.write_all("import", writes[0]),
                    second.write_all("import", writes[1][::-1]),
                    return_exceptions=True,
                )
                assert {type(answer) for answer in answers} == {type(None), Changed}, answers
                await store.write_all("import", writes[answers.index(None)])
                old = [await second.reader(RECORD).get(f"{number}{letter}") for letter in "abcdef"]
                assert {record.nama for record in old if record} == {names[answers.index(None)]}


async def test_a_transaction_that_a_deadlock_ended_is_made_again(url: PostgresURL, store: Store) -> None:
    """Another program locks records in another order, so PostgreSQL ends our transaction."""
    records = [Mahasiswa(letter, "Siti", "Solo") for letter in "ab"]
    await store.write_all("import", [Write(record, None) for record in records])
    with psycopg.connect(url.address) as other:
        other.execute("SET deadlock_timeout = '60s'")
        other.execute("SELECT FROM mahasiswa WHERE nim = 'b' FOR UPDATE")
        writes = [Write(record._replace(nama="Budi"), digest(record)) for record in records]
        writing = asyncio.ensure_future(store.write_all("import", writes))
        await until(lambda: execute(url.address, SOMEONE_WAITS_FOR_A_LOCK))
        # This waits for our lock, and we wait for its lock: it proceeds when our transaction is rolled back.
        await asyncio.to_thread(other.execute, "SELECT FROM mahasiswa WHERE nim = 'a' FOR UPDATE")
        assert not writing.done()
    await writing
    assert {record.nama for record in await read_all(store)} == {"Budi"}


@pytest.mark.parametrize("code", ["40001", "40P01"])
async def test_a_transaction_that_always_collides_is_given_up(url: PostgresURL, store: Store, code: str) -> None:
    """After MAX_ATTEMPTS serialization failures or deadlocks, the write fails and nothing was done."""
    execute(
        url.address,
        "CREATE SEQUENCE attempts; CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        f" PERFORM nextval('attempts'); RAISE EXCEPTION 'again' USING ERRCODE = '{code}'; END $$;"
        " CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON mahasiswa FOR EACH ROW EXECUTE FUNCTION refuse()",
    )
    with pytest.raises(Unavailable):
        await store.add(*SITI)
    assert execute(url.address, "SELECT last_value FROM attempts") == [(MAX_ATTEMPTS,)]


async def test_a_write_that_fails_after_its_client_has_gone_is_no_noise_in_the_log(
    url: PostgresURL, caplog: pytest.LogCaptureFixture
) -> None:
    """The write runs to its end. No caller is left to get its error, so asyncio would log it."""
    execute(
        url.address,
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " PERFORM pg_sleep(0.3); RAISE EXCEPTION 'refused'; END $$;"
        " CREATE TRIGGER refuse BEFORE DELETE ON mahasiswa FOR EACH STATEMENT EXECUTE FUNCTION refuse()",
    )
    async with opened(url) as store:
        deleting = asyncio.ensure_future(attempt(store.delete("1")))
        await until(lambda: execute(url.address, "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'"))
        deleting.cancel()
    gc.collect()
    assert deleting.cancelled()
    assert "never retrieved" not in caplog.text
