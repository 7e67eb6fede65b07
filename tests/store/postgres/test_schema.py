"""PostgreSQL: the table is created, upgraded or refused when the service starts."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from harness import Service, StartError
from postgres import RELEASE_1_0_0, Server, describe, execute
from stores import BUDI, SITI, opened, read_all, refusal

from mahasiswa.record import Mahasiswa
from mahasiswa.settings import PostgresURL, parse_database_url
from mahasiswa.store import Query, Store, adopt, migrate
from mahasiswa.store.errors import Unusable
from mahasiswa.store.postgres import schema

BEFORE = {"an empty schema": "SELECT 1", "the table of release 1.0.0": RELEASE_1_0_0}


@pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE)
def test_ten_processes_that_start_at_once_all_find_the_table(address: str, before: str) -> None:
    """One of them creates or upgrades the table; the others wait for it, and none fails."""
    execute(address, before)
    script = (
        "import sys; from mahasiswa.store import migrate; from mahasiswa.settings import PostgresURL;"
        f"sys.stdin.readline(); migrate(PostgresURL({address!r}))"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(10)
    ]
    for process in processes:  # each waits for its line
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    outcomes = [(process.communicate(timeout=60)[1], process.returncode) for process in processes]
    assert outcomes == [("", 0)] * 10
    assert execute(address, "SELECT count(*) FROM mahasiswa") == [(0,)]


@pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE)
def test_threads_that_race_for_the_table_all_find_it(address: str, before: str) -> None:
    """Threads start closer together than processes, so the race is repeated with them."""
    for _ in range(5):
        execute(address, before)
        barrier = threading.Barrier(8)

        def start(barrier: threading.Barrier = barrier) -> None:
            barrier.wait()
            migrate(PostgresURL(address))

        with ThreadPoolExecutor(8) as threads:
            for started in [threads.submit(start) for _ in range(8)]:
                started.result()
        execute(address, "DROP TABLE mahasiswa")


REFUSED_INSERTS = {
    "nim_too_long": (f"INSERT INTO mahasiswa VALUES ('{'9' * 256}', 'Ani', 'Solo')"),
    "nim_unaddressable": "INSERT INTO mahasiswa VALUES ('..', 'Ani', 'Solo')",
    "nim_duplicate": "INSERT INTO mahasiswa VALUES ('0001', 'Ani', 'Solo'), ('0001', 'Ani', 'Solo')",
    "nim": "INSERT INTO mahasiswa (nama, alamat) VALUES ('Ani', 'Solo')",
    "nama": "INSERT INTO mahasiswa (nim, alamat) VALUES ('0001', 'Solo')",
    "alamat": "INSERT INTO mahasiswa (nim, nama) VALUES ('0001', 'Ani')",
}


@pytest.mark.parametrize(("named", "statement"), REFUSED_INSERTS.items(), ids=REFUSED_INSERTS)
def test_the_table_itself_refuses_what_other_programs_write(url: PostgresURL, named: str, statement: str) -> None:
    """The error names the constraint, or the column of a missing text."""
    with pytest.raises(psycopg.IntegrityError) as error:
        execute(url.conninfo, statement)
    assert (error.value.diag.constraint_name if "_" in named else error.value.diag.column_name) == named


async def test_the_table_of_release_1_0_0_is_upgraded_at_the_start(address: str) -> None:
    """Its records stay, and it becomes the same as a new table."""
    execute(address, RELEASE_1_0_0)
    execute(address, "INSERT INTO mahasiswa VALUES ('0001', 'Siti Aminah', 'Jalan Kaliurang 5'), ('é', '', E'\\t')")
    migrate(PostgresURL(address))
    upgraded = describe(address)
    async with opened(PostgresURL(address)) as store:
        assert await read_all(store) == [SITI, ("é", "", "\t")]
        assert await refusal(store.add("..", "Ani", "Solo")) == ("nim", "unaddressable")
        assert await refusal(store.add("0001", "Ani", "Solo")) == ("nim", "duplicate")
    execute(address, "DROP TABLE mahasiswa")
    migrate(PostgresURL(address))
    assert upgraded == describe(address)


def test_starting_again_needs_no_lock_on_the_table(url: PostgresURL) -> None:
    """If the schema is current, a start makes no step, so it does not wait for a long import."""
    before = describe(url.conninfo)
    with psycopg.connect(url.conninfo) as other:
        other.execute("LOCK TABLE mahasiswa IN ACCESS EXCLUSIVE MODE")
        migrate(url)
    assert describe(url.conninfo) == before


async def test_a_user_without_ddl_rights_can_start_and_write(clerk: str, url: PostgresURL) -> None:
    """An administrator created the table; the service's own role needs SELECT, INSERT, UPDATE and DELETE only."""
    migrate(PostgresURL(clerk))
    async with opened(PostgresURL(clerk)) as store, opened(url) as other:
        await store.add(*SITI)
        merged = await store.merge([[(1, *BUDI), (2, SITI.nim, "Siti", None)]], update=True, dry_run=False)
        assert merged[:4] == (1, 1, 0, [])
        await store.delete(BUDI.nim)
        assert await read_all(other) == [SITI._replace(nama="Siti")]


def test_a_user_who_may_not_upgrade_gets_the_script_for_the_owner(clerk: str, address: str) -> None:
    """Nothing changes until the owner runs the script; then the user can start."""
    execute(address, RELEASE_1_0_0)
    before = describe(address)
    with pytest.raises(Unusable, match="belongs to postgres, who must run this SQL:") as unusable:
        migrate(PostgresURL(clerk))
    assert describe(address) == before
    execute(address, str(unusable.value).partition("SQL:")[2])
    migrate(PostgresURL(clerk))


def test_a_newer_schema_is_refused(url: PostgresURL) -> None:
    """An older release names both versions in one line and changes nothing."""
    execute(url.conninfo, "COMMENT ON TABLE mahasiswa IS 'mahasiswa schema version 7'")
    before = describe(url.conninfo)
    for start in (migrate, adopt):
        with pytest.raises(Unusable, match=r"newer release .* schema version is 7, and this release knows") as unusable:
            start(url)
        assert "\n" not in str(unusable.value)
    assert describe(url.conninfo) == before


TABLES_OF_OTHERS = {
    "no key": "CREATE TABLE mahasiswa (nim text, nama text, alamat text)",
    "a key": "CREATE TABLE mahasiswa (nim text PRIMARY KEY, nama text NOT NULL, alamat text NOT NULL)",
    "more columns": "CREATE TABLE mahasiswa (nim text PRIMARY KEY, nama text, alamat text, x int)",
    "fewer columns": "CREATE TABLE mahasiswa (nim text PRIMARY KEY, nama text)",
    "a number": "CREATE TABLE mahasiswa (nim int PRIMARY KEY, nama text, alamat text)",
    "release 1.0.0 and an index": f"{RELEASE_1_0_0}; CREATE INDEX ON mahasiswa (nama)",
    "release 1.0.0 and a check": f"{RELEASE_1_0_0}; ALTER TABLE mahasiswa ADD CHECK (nama <> '')",
    "release 1.0.0 without its check": f"{RELEASE_1_0_0}; ALTER TABLE mahasiswa DROP CONSTRAINT mahasiswa_nim_check",
}


@pytest.mark.parametrize("table", TABLES_OF_OTHERS.values(), ids=TABLES_OF_OTHERS)
def test_a_table_of_another_program_is_refused_at_the_start(address: str, table: str) -> None:
    """One line names the command that converts it, and nothing changes."""
    execute(address, table)
    before = describe(address)
    with pytest.raises(Unusable, match=r"another program made the table mahasiswa; .* run: mahasiswa adopt$"):
        migrate(PostgresURL(address))
    assert describe(address) == before


def test_the_service_does_not_start_on_a_table_of_another_program(address: str) -> None:
    """It ends with exit code 1 and one line that names the command."""
    execute(address, TABLES_OF_OTHERS["a key"])
    with pytest.raises(StartError) as refused:
        Service(address)
    assert refused.value.code == 1
    assert refused.value.stderr.count("\n") == 1
    assert "mahasiswa adopt" in refused.value.stderr


OTHER_OBJECTS = {
    "a view": "CREATE VIEW mahasiswa AS SELECT '1' AS nim, '2' AS nama, '3' AS alamat",
    "a partitioned table": "CREATE TABLE mahasiswa (nim text PRIMARY KEY, nama text, alamat text) PARTITION BY HASH (nim)",
    "an unlogged table": "CREATE UNLOGGED TABLE mahasiswa (nim text PRIMARY KEY, nama text, alamat text)",
    "a materialized view": "CREATE MATERIALIZED VIEW mahasiswa AS SELECT '1' AS nim, '2' AS nama, '3' AS alamat",
}


@pytest.mark.parametrize(("kind", "statement"), OTHER_OBJECTS.items(), ids=OTHER_OBJECTS)
def test_an_object_that_is_not_an_ordinary_table_is_refused(address: str, kind: str, statement: str) -> None:
    """The line names the kind of the object; `adopt` refuses it too."""
    execute(address, statement)
    for start in (migrate, adopt):
        with pytest.raises(Unusable, match=rf"^mahasiswa is {kind} in this database; it must be a table$"):
            start(PostgresURL(address))


@pytest.mark.parametrize(
    "address_of_others",
    [
        "u:rah%asia@127.0.0.1/d",
        "u:rah@asia@127.0.0.1/d",
        "u:rah/asia@127.0.0.1/d",
        "u:ra?h@asia@127.0.0.1/d",
        "u:rahasia@127.0.0.1:1/d",
        "u:rahasia@127.0.0.1:1,127.0.0.1:2/d",
        "u:rahasia@nowhere.invalid/d",
        "u:rahasia@127.0.0.1:x/d",
    ],
)
def test_the_password_is_in_no_message(monkeypatch: pytest.MonkeyPatch, address_of_others: str) -> None:
    """Neither a wrong address nor an unreachable server makes an error show it."""
    monkeypatch.setattr(schema, "START_TIMEOUT_SECONDS", 0.1)
    url = parse_database_url(f"postgresql://{address_of_others}")
    with pytest.raises(Unusable) as unusable:
        migrate(url)
    for text in (str(unusable.value), repr(url)):
        assert "rah" not in text
        assert "asia" not in text
        assert "\n" not in text


def test_a_server_that_is_starting_is_waited_for(server: Server, address: str) -> None:
    """The service and its database may start at the same time."""
    server.stop()
    with ThreadPoolExecutor() as threads:
        migrating = threads.submit(migrate, PostgresURL(address))
        with pytest.raises(TimeoutError):
            migrating.result(0.5)
        server.start()
        migrating.result()
    assert execute(address, "SELECT count(*) FROM mahasiswa") == [(0,)]


async def test_records_keep_their_order_and_search_in_an_upgraded_table(address: str) -> None:
    """The upgrade changes the collation of nama and alamat, but not the order of a page."""
    execute(address, RELEASE_1_0_0)
    records = [Mahasiswa(nim, nim.swapcase(), nim * 2) for nim in ("B", "a", "b", "é", "É", "Z")]
    for record in records:
        execute(address, f"INSERT INTO mahasiswa VALUES {tuple(record)}")
    migrate(PostgresURL(address))
    async with opened(PostgresURL(address)) as store:
        assert [record.nim for record in await read_all(store)] == ["B", "Z", "a", "b", "É", "é"]
        assert await found(store, "b") == ["B", "b"]
        assert await found(store, "é") == ["é", "É"]


async def found(store: Store, cari: str) -> list[str]:
    """Return the nims that a search finds, ordered by nama."""
    return [record.nim for record in (await store.search(Query(cari, "nama"), 0, 10)).records]
