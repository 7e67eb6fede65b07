"""PostgreSQL: triggers write the history of every program's changes; rights on it, HISTORY_DAYS, and forgetting."""

import psycopg
import pytest
from postgres import DESCRIBE, Server
from stores import SITI, engine_at, execute, items, read_all

from mahasiswa.store import Store
from mahasiswa.store.store_errors import Unusable
from mahasiswa.system.administrator import command_name

ENTRIES = "SELECT nim, nama_before, alamat_before, nama_after, alamat_after FROM mahasiswa_history ORDER BY id"

UPSERT = """
INSERT INTO mahasiswa VALUES ('1', 'Ina', 'Klaten'), ('3', 'Ina', 'Solo'), ('2', 'Budi', 'Bantul')
ON CONFLICT (nim) DO UPDATE SET nama = excluded.nama, alamat = excluded.alamat"""
SAVEPOINT = "BEGIN; SAVEPOINT s; DELETE FROM mahasiswa; ROLLBACK TO s; DELETE FROM mahasiswa WHERE nim = '2'; COMMIT"
# Each case begins with the records 1 (Ani, Solo) and 2 (Budi, Bantul).
CASES: dict[str, tuple[str, list[tuple[object, ...]]]] = {
    "upsert": (UPSERT, [("1", "Ani", "Solo", "Ina", "Klaten"), ("3", None, None, "Ina", "Solo")]),
    "a savepoint that is rolled back": (SAVEPOINT, [("2", "Budi", "Bantul", None, None)]),
}


@pytest.mark.parametrize(("statement", "entries"), CASES.values(), ids=CASES)
def test_a_change_by_another_program_is_in_the_history(
    url: str, statement: str, entries: list[tuple[object, ...]]
) -> None:
    """Each changed record has one entry. The entries of one statement have any order."""
    execute(url, "INSERT INTO mahasiswa VALUES ('1', 'Ani', 'Solo'), ('2', 'Budi', 'Bantul')")
    execute(url, statement)
    assert sorted(execute(url, ENTRIES)[2:], key=repr) == sorted(entries, key=repr)


# ---- rights
FORGED = """
CREATE TEMP TABLE forged (nim text, nama text, alamat text);
CREATE TRIGGER forge AFTER INSERT ON forged REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION mahasiswa_history_write()
"""
REPLACED = """
CREATE TEMP TABLE mahasiswa_history (id bigint, moment timestamptz, batch bigint, nim text, nama_after text, alamat_after text);
INSERT INTO mahasiswa VALUES ('1', 'Ani', 'Solo'); SELECT count(*) FROM mahasiswa_history
"""


def test_a_role_that_may_only_insert_can_insert_and_forge_nothing(server: Server, url: str) -> None:
    """The triggers write the entry with the rights of the table's owner, into the table of the owner."""
    schema = url.rpartition("search_path%3D")[2]
    registrar = url.replace("//postgres@", "//registrar@")
    execute(server.url, "CREATE ROLE registrar LOGIN")
    try:
        execute(
            server.url,
            f"GRANT USAGE ON SCHEMA {schema} TO registrar; GRANT INSERT ON {schema}.mahasiswa TO registrar",
        )
        assert execute(registrar, REPLACED) == [(0,)]
        for statement in (
            "TABLE mahasiswa_history",
            "INSERT INTO mahasiswa_history (moment) VALUES (now())",
            FORGED,
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="mahasiswa_history"):
                execute(registrar, statement)
    finally:
        execute(server.url, "DROP OWNED BY registrar; DROP ROLE registrar")
    assert execute(url, ENTRIES) == [("1", None, None, "Ani", "Solo")]


# ---- triggers
OTHER_RELEASE = """
DROP TRIGGER mahasiswa_history_delete ON mahasiswa;
CREATE OR REPLACE FUNCTION mahasiswa_history_write() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
COMMENT ON FUNCTION mahasiswa_nim_refuse IS 'another digest'"""


def test_the_start_creates_missing_and_changed_triggers_again(url: str) -> None:
    """Another program removed one, and a function is of another release. The triggers refuse TRUNCATE."""
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="use DELETE FROM mahasiswa"):
        execute(url, "TRUNCATE mahasiswa")
    before = execute(url, DESCRIBE)
    execute(url, OTHER_RELEASE)
    engine_at(url).migrate(30)
    assert execute(url, DESCRIBE) == before


SINGLE_CHANGE_FIRST = """
SET statement_timeout = '10s';
INSERT INTO mahasiswa SELECT n, 'Ani', 'Solo' FROM generate_series(1, 30000) AS n;
UPDATE mahasiswa SET nama = 'Ina' WHERE nim = '1';
UPDATE mahasiswa SET nama = 'Budi'"""


def test_a_change_of_all_records_is_fast_on_a_connection_that_made_a_single_change(
    url: str,
) -> None:
    """The connection keeps the plan of the trigger's first call. With a nested loop, 30,000 records would take half a minute."""
    execute(url, SINGLE_CHANGE_FIRST)


async def test_forgetting_does_not_wait_long_for_another_program(url: str, store: Store) -> None:
    """It reads the table. The record and its history are removed all the same, and the texts later."""
    await store.add(*SITI)
    with psycopg.connect(url) as other:
        other.execute("SELECT FROM mahasiswa")
        assert engine_at(url).forget(SITI.nim)[0]
        with pytest.raises(Unusable, match=r"another program has locked.* run: VACUUM \(FULL\)"):
            engine_at(url).rewrite()
        assert await read_all(store) == []
        assert [item.oleh for item in await items(store)] == [command_name()]
    assert not engine_at(url).forget(SITI.nim)[0]
    engine_at(url).rewrite()


async def test_another_program_can_make_its_changes_one_batch(url: str, store: Store) -> None:
    """It names the kind of the batch in its transaction. The next transaction of its connection is no batch."""
    with psycopg.connect(url, autocommit=True) as other:
        with other.transaction():
            other.execute("SET LOCAL mahasiswa.batch = 'delete'")
            other.execute("INSERT INTO mahasiswa VALUES ('1', 'Ani', 'Solo')")
            other.execute("INSERT INTO mahasiswa VALUES ('2', 'Ina', 'Solo')")
        other.execute("INSERT INTO mahasiswa VALUES ('3', 'Ina', 'Solo')")
    single, batch = await items(store)
    assert single.kind == "add"
    assert batch.kind == "delete"
    assert batch.rows == 2
