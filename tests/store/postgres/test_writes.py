"""PostgreSQL: locks, deadlocks, concurrent changes, and the wait for the disks."""

import asyncio
import time

import psycopg
import pytest
from postgres import Server, awaited_locks
from processes import until
from stores import SITI, execute, merge, opened, read_all

from mahasiswa.record import Mahasiswa, Write, digest
from mahasiswa.store import Store
from mahasiswa.store.postgres.postgres_sql import LOCK_TIMEOUT_SECONDS
from mahasiswa.store.store_errors import Changed, Locked, Unavailable
from mahasiswa.work import RECORD, STEP_TIMEOUT_SECONDS


async def test_a_change_waits_four_seconds_for_another_program_and_delays_no_one(
    url: str, store: Store
) -> None:
    """Then it is refused as locked, and nothing was done. Other additions, and pages of records, do not wait for it.

    A command waits as long.
    """
    await store.add(*SITI)
    with psycopg.connect(url) as other:
        other.execute("INSERT INTO mahasiswa VALUES ('1', 'Ina', 'Solo')")
        began = time.monotonic()
        waiting = asyncio.ensure_future(store.add("1", "Ani", "Solo"))
        await asyncio.to_thread(until, lambda: awaited_locks(url))
        await store.add("2", "Ani", "Solo")
        other.execute("SELECT FROM mahasiswa WHERE nim = '0001' FOR UPDATE")
        edits = [asyncio.ensure_future(store.update(SITI.nim, f"{n}", "Solo")) for n in range(20)]
        assert await store.reader(RECORD).get("9") is None
        commanded = time.monotonic()
        assert commanded - began < LOCK_TIMEOUT_SECONDS
        command = asyncio.ensure_future(asyncio.to_thread(merge, url, ("1", "Ani", "Solo")))
        with pytest.raises(Locked):
            await waiting
        assert time.monotonic() - began < STEP_TIMEOUT_SECONDS
        with pytest.raises(Unavailable):
            await command
        assert time.monotonic() - commanded > LOCK_TIMEOUT_SECONDS
        other.rollback()
    await asyncio.gather(*edits, return_exceptions=True)
    assert [record.nim for record in await read_all(store)] == [SITI.nim, "2"]


async def test_of_two_who_write_the_same_records_one_is_told_that_they_changed(
    url: str, store: Store
) -> None:
    """They do not deadlock if their orders differ; repeating the successful write is no error."""
    async with opened(url) as second:
        for number in range(8):
            old: list[Mahasiswa | None] = [None] * 6
            for names in (("Siti", "Ani"), ("Budi", "Ina")):
                wanted = [
                    [Mahasiswa(f"{number}{letter}", name, "Solo") for letter in "abcdef"]
                    for name in names
                ]
                versions = [record and digest(record) for record in old]
                writes = [list(map(Write, records, versions)) for records in wanted]
                sent = (
                    store.write_all("import", writes[0]),
                    second.write_all("import", writes[1][::-1]),
                )
                answers = await asyncio.gather(*sent, return_exceptions=True)
                assert {type(answer) for answer in answers} == {type(None), Changed}, answers
                winner = answers.index(None)
                await store.write_all("import", writes[winner])
                old = [await second.reader(RECORD).get(record.nim) for record in wanted[0]]
                assert old == wanted[winner]


async def test_a_transaction_that_a_deadlock_ended_is_made_again(url: str, store: Store) -> None:
    """Another program locks records in another order, so PostgreSQL ends our transaction."""
    records = [Mahasiswa(letter, "Siti", "Solo") for letter in "ab"]
    await store.write_all("import", [Write(record, None) for record in records])
    with psycopg.connect(url) as other:
        other.execute("SET deadlock_timeout = '60s'")
        other.execute("SELECT FROM mahasiswa WHERE nim = 'b' FOR UPDATE")
        writes = [Write(record._replace(nama="Budi"), digest(record)) for record in records]
        writing = asyncio.ensure_future(store.write_all("import", writes))
        await asyncio.to_thread(until, lambda: awaited_locks(url))
        # This waits for our lock, and we wait for its lock: it proceeds when our transaction is rolled back.
        await asyncio.to_thread(other.execute, "SELECT FROM mahasiswa WHERE nim = 'a' FOR UPDATE")
        assert not writing.done()
    await writing
    assert {record.nama for record in await read_all(store)} == {"Budi"}


REFUSE = """
CREATE SEQUENCE attempts;
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  PERFORM nextval('attempts'); RAISE EXCEPTION 'refused' USING ERRCODE = '40001'; END $$;
CREATE TRIGGER refuse BEFORE INSERT OR DELETE ON mahasiswa FOR EACH STATEMENT EXECUTE FUNCTION refuse()
"""


async def test_a_transaction_that_always_collides_is_given_up(url: str, store: Store) -> None:
    """At the deadline the write fails, and nothing was done."""
    execute(url, REFUSE)
    with pytest.raises(Unavailable):
        await store.add(*SITI)
    assert execute(url, "SELECT last_value > 5 FROM attempts") == [(True,)]


# ---- settings by which a crash would lose acknowledged changes
LOG_THE_SETTING = """
CREATE TABLE settings (value text);
CREATE FUNCTION log_setting() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO settings VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$;
CREATE TRIGGER log_setting AFTER INSERT OR UPDATE OR DELETE ON mahasiswa FOR EACH ROW EXECUTE FUNCTION log_setting()
"""


STRONGER = "remote_apply"


@pytest.mark.parametrize("setting", ["off", "remote_write", STRONGER])
async def test_every_write_waits_for_the_disks_whatever_the_role_says(
    server: Server, url: str, setting: str
) -> None:
    """So no crash loses an acknowledged change. A weaker setting is replaced in each transaction, and a stronger one stays."""
    execute(url, LOG_THE_SETTING)
    execute(server.url, f"ALTER ROLE postgres SET synchronous_commit = {setting}")
    ina = SITI._replace(nama="Ina")
    used = STRONGER if setting == STRONGER else "on"
    try:
        async with opened(url) as store:
            await store.add(*SITI)
            await store.update(*ina)
            await store.rename(SITI.nim, "2")
            await store.delete("2")
            await store.write_all("import", [Write(SITI, None)])
            await store.write_all("import", [Write(ina, digest(SITI))])
            await store.write_all("delete", removals=[SITI.nim])
            for nama in ("Ani", "Ina"):
                merge(url, (SITI.nim, nama, "Solo"))
    finally:
        execute(server.url, "ALTER ROLE postgres RESET synchronous_commit")
    assert execute(url, "SELECT DISTINCT value, count(*) OVER () FROM settings") == [(used, 10)]
