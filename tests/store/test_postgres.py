"""What only PostgreSQL has: other programs' tables, poolers, lost connections, standbys, several instances."""

import asyncio
import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path

import psycopg
import pytest
from harness import Service, Site, free_port
from postgres import QUICK, Server, own_schema, start_as_server_user
from proxy import Proxy
from stores import BUDI, SITI, attempt_all, opened, outcomes, read_all, refusal

from mahasiswa.record import Mahasiswa, Write, digest
from mahasiswa.settings import PostgresURL, parse_database_url
from mahasiswa.store import Query, Store, migrate
from mahasiswa.store.errors import Changed, Unavailable, Uncertain, Unusable
from mahasiswa.store.postgres import schema as postgres_schema
from mahasiswa.store.postgres.pool import MOST_ATTEMPTS
from mahasiswa.store.threads import copy


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Start a server of this module's own, to stop and start."""
    with Server({**QUICK, "deadlock_timeout": "300ms"}) as server:
        yield server


@pytest.fixture
def url(server: Server) -> Iterator[str]:
    """Return the address of an empty corner of that server where no table is made yet."""
    with own_schema(server.url()) as url:
        yield url


@pytest.fixture
def ready(url: str) -> str:
    """Return the same with the table made."""
    migrate(PostgresURL(url))
    return url


def execute(url: str, statement: str) -> list[tuple[object, ...]]:
    """Run a statement as another program and return its rows, if it has any."""
    with psycopg.connect(url, autocommit=True) as db:
        cursor = db.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


# --- The table ---


def test_ten_processes_start_at_once(url: str) -> None:
    """Each finds the table or makes it; none fails."""
    script = f"import sys; from mahasiswa.store import migrate; from mahasiswa.settings import *; sys.stdin.readline(); migrate(PostgresURL({url!r}))"
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
    assert execute(url, "SELECT count(*) FROM mahasiswa") == [(0,)]


def test_threads_that_race_for_the_table_all_get_it(url: str) -> None:
    """The same again and again, closer together than processes can be."""
    for _ in range(5):
        barrier = threading.Barrier(8)
        failures: list[BaseException] = []

        def start(barrier: threading.Barrier = barrier, failures: list[BaseException] = failures) -> None:
            barrier.wait()
            try:
                migrate(PostgresURL(url))
            except BaseException as error:  # noqa: BLE001 - told below
                failures.append(error)

        threads = [threading.Thread(target=start) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        execute(url, "DROP TABLE mahasiswa")


TABLES = {
    "varchar": "CREATE TABLE mahasiswa (nim varchar(300) PRIMARY KEY, nama varchar NOT NULL, alamat text NOT NULL)",
    "a unique index": "CREATE TABLE mahasiswa (alamat text, nama text, nim text);"
    "CREATE UNIQUE INDEX ON mahasiswa (nim) INCLUDE (nama)",
    "two keys": 'CREATE TABLE mahasiswa (nama text, nim text COLLATE "POSIX" UNIQUE, alamat text, UNIQUE (nama, alamat))',
    "partitions": "CREATE TABLE mahasiswa (nim text PRIMARY KEY, nama text, alamat text) PARTITION BY HASH (nim);"
    "CREATE TABLE part PARTITION OF mahasiswa FOR VALUES WITH (MODULUS 1, REMAINDER 0)",
    "a column that was dropped": "CREATE TABLE mahasiswa (nim text PRIMARY KEY, old int, nama text, alamat text);"
    "ALTER TABLE mahasiswa DROP old",
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_an_existing_table_is_used_as_it_is(url: str, table: str) -> None:
    """Its records are there; what is refused in a table of our own is refused in it too, whatever it would take."""
    execute(url, table)
    execute(url, "INSERT INTO mahasiswa (nim, nama, alamat) VALUES ('0002', 'Budi', 'Bantul')")
    before = execute(url, "SELECT count(*) FROM pg_attribute"), execute(url, "SELECT count(*) FROM pg_constraint")
    migrate(PostgresURL(url))
    assert before == (
        execute(url, "SELECT count(*) FROM pg_attribute"),
        execute(url, "SELECT count(*) FROM pg_constraint"),
    )

    async def use(store: Store) -> None:
        assert await read_all(store) == [BUDI]
        await store.add(*SITI)
        for nim, reason in [(".", "unaddressable"), ("..", "unaddressable"), ("9" * 256, "too_long"), ("a\0", "nul")]:
            assert await refusal(store.add(nim, "Ani", "Klaten")) == ("nim", reason)
        assert await refusal(store.add("3", None, "Klaten")) == ("nama", "missing")
        assert await refusal(store.update("0002", "Budi", None)) == ("alamat", "missing")
        assert await refusal(store.add("0002", "Ani", "Klaten")) == ("nim", "duplicate")
        with pytest.raises(Exception, match="too_long"):
            await store.merge([[(1, "9" * 256, "Ani", "Klaten")]], update=False, dry_run=False)
        merged = await store.merge([[(1, "a", "Ani", "Klaten"), (2, "0002", None, "Solo")]], update=True, dry_run=False)
        assert merged == (1, 1, 0, [])
        await store.delete("0001")
        assert await read_all(store) == [("0002", "Budi", "Solo"), ("a", "Ani", "Klaten")]

    run(url, use)


def test_rules_of_an_existing_table_refuse_a_record_alone(url: str) -> None:
    """What its constraints and triggers say is passed on, and neighbours in the same transaction are stored."""
    execute(
        url, "CREATE TABLE mahasiswa (nim varchar(5) PRIMARY KEY, nama text UNIQUE, alamat text CHECK (alamat <> 'x'))"
    )
    migrate(PostgresURL(url))

    async def use(store: Store) -> None:
        await store.add(*SITI)
        outcomes = await attempt_all(
            store.add("1", "Ani", "x"),
            store.add("2", "Ani", "Solo"),
            store.add("123456", "Ina", "Solo"),
            store.add("3", SITI.nama, "Solo"),
            store.add("0001", "Ina", "Solo"),
            store.update("0001", "Siti", "x"),
        )
        assert outcomes == [("", "rule"), None, ("", "rule"), ("", "rule"), ("nim", "duplicate"), ("", "rule")]
        assert await read_all(store) == [SITI, ("2", "Ani", "Solo")]

    run(url, use)


@pytest.mark.parametrize(
    ("code", "outcome"), [("P0002", ("", "rule")), ("44000", ("", "rule")), ("42501", "unavailable")]
)
def test_a_trigger_of_another_program_refuses_a_record_alone(
    ready: str, code: str, outcome: tuple[str, str] | str
) -> None:
    """Whatever code it fails with, as row-level security does with one of its own: neighbours are stored."""
    execute(
        ready,
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        f" IF NEW.alamat = 'x' THEN RAISE EXCEPTION 'no' USING ERRCODE = '{code}'; END IF; RETURN NEW; END $$;"
        " CREATE TRIGGER refuse BEFORE INSERT ON mahasiswa FOR EACH ROW EXECUTE FUNCTION refuse()",
    )

    async def use(store: Store) -> None:
        records = [Mahasiswa("1", "Ani", "Solo"), Mahasiswa("2", "Ani", "x"), Mahasiswa("3", "Ani", "Solo")]
        assert await outcomes(*(store.add(*record) for record in records)) == [None, outcome, None]
        assert await read_all(store) == [records[0], records[2]]

    run(ready, use)


ALTERED = {
    "blanks that a varchar takes off": (
        "CREATE TABLE mahasiswa (nim varchar(5) PRIMARY KEY, nama text, alamat text)",
        Mahasiswa("abcde ", "Ani", "Solo"),
    ),
    "a trigger that writes in upper case": (
        """
        CREATE TABLE mahasiswa (nim text PRIMARY KEY, nama text, alamat text);
        CREATE FUNCTION loud() RETURNS trigger LANGUAGE plpgsql AS
          $$ BEGIN NEW.nama := upper(NEW.nama); RETURN NEW; END $$;
        CREATE TRIGGER loud BEFORE INSERT ON mahasiswa FOR EACH ROW EXECUTE FUNCTION loud()
        """,
        Mahasiswa("abcde", "Ani", "Solo"),
    ),
}


@pytest.mark.parametrize(("table", "record"), ALTERED.values(), ids=ALTERED)
def test_a_table_that_would_keep_another_text_keeps_none(url: str, table: str, record: Mahasiswa) -> None:
    """A record is stored exactly as it came or refused, and its neighbours are stored."""
    execute(url, table)
    migrate(PostgresURL(url))

    async def use(store: Store) -> None:
        assert await attempt_all(store.add(*record), store.add("1", "SITI", "Solo")) == [("", "rule"), None]
        assert await read_all(store) == [Mahasiswa("1", "SITI", "Solo")]

    run(url, use)


def test_a_record_without_a_nim_stands_in_a_sorted_page(url: str) -> None:
    """Another program's table may take NULL."""
    execute(url, "CREATE TABLE mahasiswa (nim text UNIQUE, nama text, alamat text)")
    execute(url, "INSERT INTO mahasiswa VALUES (NULL, 'Ani', 'Solo'), (NULL, 'Ina', 'Solo'), ('1', 'Budi', 'Solo')")
    migrate(PostgresURL(url))

    async def use(store: Store) -> None:
        page = await store.page(Query(urut="nama"), 0, 100)
        assert [record.nama for record in page] == ["Ani", "Budi", "Ina"]

    run(url, use)


UNUSABLE = {
    "other columns": ("CREATE TABLE mahasiswa (nim text PRIMARY KEY, nama text)", "other columns: nim, nama"),
    "more columns": ("CREATE TABLE mahasiswa (nim text PRIMARY KEY, nama text, alamat text, x int)", "other columns"),
    "a number": ("CREATE TABLE mahasiswa (nim int PRIMARY KEY, nama text, alamat text)", "a column nim that is not"),
    "padded texts": ("CREATE TABLE mahasiswa (nim text PRIMARY KEY, nama char(9), alamat text)", "a column nama that"),
    "no key": ("CREATE TABLE mahasiswa (nim text, nama text, alamat text)", "not its key"),
    "a key of two": (
        "CREATE TABLE mahasiswa (nim text, nama text, alamat text, PRIMARY KEY (nim, nama))",
        "not its key",
    ),
    "a key of some": (
        "CREATE TABLE mahasiswa (nim text, nama text UNIQUE, alamat text); CREATE UNIQUE INDEX ON mahasiswa (nim) WHERE nama > ''",
        "not its key",
    ),
    "a key of lower case": (
        "CREATE TABLE mahasiswa (nim text, nama text, alamat text); CREATE UNIQUE INDEX ON mahasiswa (lower(nim))",
        "not its key",
    ),
    "a late key": (
        "CREATE TABLE mahasiswa (nim text UNIQUE DEFERRABLE INITIALLY DEFERRED, nama text, alamat text)",
        "not its key",
    ),
    "a view": ("CREATE VIEW mahasiswa AS SELECT '1' AS nim, '2' AS nama, '3' AS alamat", "no table"),
}


@pytest.mark.parametrize(("statement", "words"), UNUSABLE.values(), ids=UNUSABLE)
def test_a_table_of_another_kind_is_refused(url: str, statement: str, words: str) -> None:
    """One line says what is wrong, before anything is written."""
    execute(url, statement)
    with pytest.raises(Unusable, match=words) as unusable:
        migrate(PostgresURL(url))
    assert "\n" not in str(unusable.value)


@pytest.mark.parametrize(
    "address",
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
def test_the_password_is_in_no_message(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """However wrong the address is, or the server behind it."""
    monkeypatch.setattr(postgres_schema, "PATIENCE", 0.1)
    url = parse_database_url(f"postgresql://{address}")
    with pytest.raises(Unusable) as unusable:
        migrate(url)
    for text in (str(unusable.value), repr(url)):
        assert "rah" not in text
        assert "asia" not in text
        assert "\n" not in text


def test_a_server_that_starts_too_is_waited_for(server: Server, url: str) -> None:
    """Both may be started by the same hand at the same time."""
    server.stop()
    with ThreadPoolExecutor() as threads:
        preparing = threads.submit(migrate, PostgresURL(url))
        with pytest.raises(TimeoutError):
            preparing.result(0.5)
        server.start()
        preparing.result()
    assert execute(url, "SELECT count(*) FROM mahasiswa") == [(0,)]


# --- A pooler ---


@pytest.fixture
def pooled(server: Server) -> Iterator[str]:
    """Return an address that leads through PgBouncer in transaction mode, to fewer connections than a store has."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if not program:
        pytest.skip("pgbouncer is not installed")
    name = f"pooled_{random.getrandbits(32):x}"
    server.execute(f"CREATE DATABASE {name}")
    folder = server.folder / name
    folder.mkdir(mode=0o755)
    port = free_port()
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\n{name} = host=127.0.0.1 port={server.port} user=postgres\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        "auth_type = any\npool_mode = transaction\ndefault_pool_size = 3\n"
    )
    with (folder / "log").open("wb") as log:
        process = start_as_server_user(program, str(folder / "pgbouncer.ini"), log=log.fileno())
    try:
        yield f"postgresql://postgres@127.0.0.1:{port}/{name}"
    finally:
        process.terminate()
        process.wait()
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_a_pooler_in_transaction_mode_will_do(pooled: str) -> None:
    """Each transaction may come to another session of the server: everything works, under load, and all is there."""
    migrate(PostgresURL(pooled))

    async def use(first: Store, second: Store) -> None:
        stores = [first, second]
        records = [Mahasiswa(f"{number:04}", "Siti", "Solo") for number in range(400)]
        await asyncio.gather(*(stores[number % 2].add(*record) for number, record in enumerate(records)))

        async def work(number: int) -> None:
            store = stores[number % 2]
            nim = records[number].nim
            await store.update(nim, "Budi", "Solo")
            assert await store.get(nim) == (nim, "Budi", "Solo")
            assert await refusal(store.add(nim, "x", "x")) == ("nim", "duplicate")
            version, now = await store.snapshot(1000)
            assert version
            assert (nim, "Budi", "Solo") in (now or ())
            assert [record async for chunk in store.chunks(Query(nim)) for record in chunk] == [(nim, "Budi", "Solo")]
            assert len(await store.page(Query("S"), 10, 20)) == 20
            await store.write_all([Write(Mahasiswa(nim, "Ani", "Solo"), digest(Mahasiswa(nim, "Budi", "Solo")))])
            await store.delete(nim)

        await asyncio.gather(*(work(number) for number in range(0, 400, 10)))
        assert [record.nim for record in await read_all(first)] == [
            f"{number:04}" for number in range(400) if number % 10
        ]
        for number in range(3):
            merged = await first.merge([[(1, f"x{number}", "Ani", "Klaten")]], update=True, dry_run=False)
            assert merged == (1, 0, 0, [])

    run_two(pooled, pooled, use)


# --- Several instances ---


def test_a_write_is_in_the_next_page_of_every_instance(url: str) -> None:
    """Two services on one database, while others write and read too: what one acknowledges, the other shows."""
    failures: list[str] = []

    def write_and_read(name: str, here: Site, there: Site) -> None:
        with here, there:
            for number in range(40):
                nim = f"{name}-{number}"
                steps: list[tuple[Callable[[], object], str | None]] = [
                    (lambda nim=nim: here.add(nim, "sebelum", "Solo"), "sebelum"),  # type: ignore[misc]
                    (lambda nim=nim: there.edit(nim, "sesudah", "Solo"), "sesudah"),  # type: ignore[misc]
                    (lambda nim=nim: here.delete(nim), None),  # type: ignore[misc]
                ]
                for step, shown in steps:
                    step()
                    for site in (there, here):
                        page = site.get("/").text
                        if f"<td>{nim}</td><td>{shown}</td>" not in page if shown else f"<td>{nim}</td>" in page:
                            failures.append(f"{nim} {shown}")

    with Service(url) as first, Service(url) as second:
        pairs = [(first, second), (second, first), (first, second), (second, first)]
        threads = [
            threading.Thread(target=write_and_read, args=(f"{number}", here.site(), there.site()))
            for number, (here, there) in enumerate(pairs)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures


def test_a_question_that_is_on_its_way_answers_nobody_who_comes_later(server: Server, ready: str) -> None:
    """The version is asked once for all who wait, and never by a question older than the one who asks."""
    proxy = Proxy(server.port)

    async def use() -> None:
        async with AsyncExitStack() as stack:
            port = await stack.enter_async_context(proxy.listening())
            store = await stack.enter_async_context(opened(PostgresURL(at(ready, port))))
            other = await stack.enter_async_context(opened(PostgresURL(ready)))
            before = await store.version()
            proxy.sent = b""
            proxy.hold(on=True)
            first = asyncio.create_task(asked(store))
            await until(lambda: b"pg_current_snapshot" in proxy.sent)
            await other.add(*SITI)
            later = [asyncio.create_task(asked(store)) for _ in range(100)]
            await asyncio.sleep(0)
            proxy.hold(on=False)
            assert {await task for task in later} == {await other.version()} != {before}
            assert await first is not None
            assert proxy.sent.count(b"pg_current_snapshot") == 2

    asyncio.run(use())


def test_a_server_that_does_not_tell_its_version_has_none(server: Server, ready: str) -> None:
    """Where a right or a function lacks there is no cache, and all else works."""
    server.execute("CREATE ROLE petugas LOGIN")
    server.execute("GRANT ALL ON ALL TABLES IN SCHEMA " + schema(ready) + " TO petugas")
    server.execute("GRANT USAGE ON SCHEMA " + schema(ready) + " TO petugas")
    server.execute("REVOKE EXECUTE ON FUNCTION pg_control_checkpoint() FROM PUBLIC")
    url = ready.replace("postgres@", "petugas@")

    async def use(store: Store) -> None:
        await store.add(*SITI)
        assert await store.version() is None
        assert await store.snapshot(10) == (None, [SITI])

    try:
        run(url, use)
        with Service(url) as service, service.site() as site:
            assert site.add(*BUDI).status_code == 302
            assert site.list().nims == ["0001", "0002"]
            assert "etag" not in site.get("/").headers
    finally:
        server.execute("GRANT EXECUTE ON FUNCTION pg_control_checkpoint() TO PUBLIC")


def test_a_standby_has_no_version(server: Server, ready: str) -> None:
    """It may lag behind, and its snapshots do not tell: it is read, each time anew, and not written."""
    execute(ready, "INSERT INTO mahasiswa VALUES ('0001', 'Siti Aminah', 'Jalan Kaliurang 5')")
    with Server(QUICK, standby_of=server) as standby:
        url = at(ready, standby.port)
        migrate(PostgresURL(url))

        async def use(store: Store) -> None:
            assert await store.version() is None
            assert await store.snapshot(10) == (None, [SITI])
            with pytest.raises(Unavailable):
                await store.add(*BUDI)
            assert await read_all(store) == [SITI]

        run(url, use)


# --- What goes wrong ---


def test_connections_that_are_ended_are_replaced(server: Server, ready: str) -> None:
    """While an administrator ends every session again and again, no read fails, and no write that is said to be made."""

    async def use(store: Store) -> None:
        added: list[str] = []
        unknown: list[str] = []

        async def add(name: str) -> None:
            number = 0
            while not done.is_set():
                number += 1
                nim = f"{name}-{number}"
                try:
                    await store.add(nim, "Siti", "Solo")
                    added.append(nim)
                except Uncertain:
                    unknown.append(nim)

        async def read() -> None:
            while not done.is_set():
                before = set(added)
                assert before <= {record.nim for record in await read_all(store)}

        done = asyncio.Event()
        tasks = [asyncio.create_task(add(f"{number}")) for number in range(8)]
        tasks += [asyncio.create_task(read()) for _ in range(2)]
        for _ in range(20):
            await asyncio.to_thread(
                server.execute, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            )
            so_far = len(added)
            await until(lambda so_far=so_far: len(added) >= so_far + 20 or any(task.done() for task in tasks))  # type: ignore[misc]
            assert not any(task.done() for task in tasks)
        done.set()
        await asyncio.gather(*tasks)
        stored = {record.nim for record in await read_all(store)}
        assert set(added) <= stored <= set(added) | set(unknown)

    run(ready, use)


@pytest.mark.parametrize("how", ["stopped", "frozen"])
def test_without_its_database_the_service_says_so_and_recovers(server: Server, ready: str, how: str) -> None:
    """A 503 page within 5 seconds, whatever is asked; and as soon as the database is back, all is as before."""
    with Service(ready) as service:
        with service.site() as site:
            assert site.add(*SITI).status_code == 302
            assert site.list().nims == ["0001"]
        if how == "frozen":
            frozen = server.freeze()
        else:
            server.stop()
        try:
            answers: list[tuple[int, float, str]] = []

            def ask(question: Callable[[Site], object]) -> None:
                with service.site() as site:
                    site.client.timeout = 30
                    began = time.monotonic()
                    answer = question(site)
                    answers.append((answer.status_code, time.monotonic() - began, answer.text))  # type: ignore[attr-defined]

            questions: list[Callable[[Site], object]] = [
                lambda site: site.get("/"),
                lambda site: site.get("/"),
                lambda site: site.get("/?cari=Siti") if how == "stopped" else site.get("/"),
                lambda site: site.get("/mahasiswa/edit/0001"),
                lambda site: site.add("0002", "Budi", "Solo"),
                lambda site: site.add("0003", "Budi", "Solo"),
                lambda site: site.edit("0001", "Budi", "Solo"),
                lambda site: site.delete("0001"),
            ]
            threads = [threading.Thread(target=ask, args=(question,)) for question in questions]
            for thread in threads:
                thread.start()
                time.sleep(0.05)  # some come while others wait
            for thread in threads:
                thread.join()
        finally:
            if how == "frozen":
                for process in frozen:
                    process.resume()
            else:
                server.start()
        assert [status for status, _, _ in answers] == [503] * len(questions)
        assert max(seconds for _, seconds, _ in answers) < 5
        assert all("</html>" in text for _, _, text in answers)
        began = time.monotonic()
        with service.site() as site:
            assert site.add("0004", "Ani", "Klaten").status_code == 302
            assert site.list().nims == ["0001", "0004"]
        assert time.monotonic() - began < 5


@pytest.mark.parametrize("lost", ["question", "answer"])
def test_a_connection_lost_at_the_commit_leaves_it_open(server: Server, ready: str, lost: str) -> None:
    """It is told as what it is; the same addition again is stored, or refused where it had been."""
    proxy = Proxy(server.port)

    async def use() -> None:
        async with proxy.listening() as port, opened(PostgresURL(at(ready, port))) as store:
            for write in (store.add(*SITI), store.update("0002", "Ani", "Klaten"), store.delete("0003")):
                proxy.cut = "question" if lost == "question" else "answer"
                with pytest.raises(Uncertain):
                    await write
            again = await attempt_all(store.add(*SITI))
            assert again == [("nim", "duplicate") if lost == "answer" else None]
            assert await read_all(store) == [SITI]

    asyncio.run(use())


def test_a_wait_for_the_standby_that_is_cut_short_leaves_it_open(server: Server, ready: str) -> None:
    """The server then says that it has committed, with a warning: if it is lost now, so is the record."""
    server.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    server.execute("SELECT pg_reload_conf()")

    async def use(store: Store) -> None:
        adding = asyncio.ensure_future(store.add(*SITI))
        cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        await until(lambda: server.execute(cancel))
        with pytest.raises(Uncertain):
            await adding

    try:
        while server.execute("SHOW synchronous_standby_names") != [("nobody",)]:
            time.sleep(0.01)
        run(ready, use)
    finally:
        server.execute("ALTER SYSTEM RESET synchronous_standby_names")
        server.execute("SELECT pg_reload_conf()")


def test_of_two_that_write_the_same_both_have_an_answer(ready: str) -> None:
    """In whichever order each has the records: one writes them, the other is told that they have changed."""

    async def use(first: Store, second: Store) -> None:
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
                outcomes = await asyncio.gather(
                    first.write_all(writes[0]), second.write_all(writes[1][::-1]), return_exceptions=True
                )
                assert {type(outcome) for outcome in outcomes} == {type(None), Changed}, outcomes
                await first.write_all(writes[outcomes.index(None)])  # the same again, as by a double click
                old = [await second.get(f"{number}{letter}") for letter in "abcdef"]
                assert {record.nama for record in old if record} == {names[outcomes.index(None)]}

    run_two(ready, ready, use)


def test_one_of_two_that_wait_for_each_other_begins_anew(ready: str) -> None:
    """Another program that locks records in another order: PostgreSQL ends our transaction, which then is made again."""
    records = [Mahasiswa(letter, "Siti", "Solo") for letter in "ab"]

    async def use(store: Store) -> None:
        await store.write_all([Write(record, None) for record in records])
        with psycopg.connect(ready) as other:
            other.execute("SET deadlock_timeout = '60s'")
            other.execute("SELECT FROM mahasiswa WHERE nim = 'b' FOR UPDATE")
            writes = [Write(record._replace(nama="Budi"), digest(record)) for record in records]
            writing = asyncio.ensure_future(store.write_all(writes))
            waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            await until(lambda: execute(ready, waiting))
            # It would wait for ours, and ours waits for it: it gets the lock as ours is rolled back.
            await asyncio.to_thread(other.execute, "SELECT FROM mahasiswa WHERE nim = 'a' FOR UPDATE")
            assert not writing.done()
        await writing
        assert {record.nama for record in await read_all(store)} == {"Budi"}

    run(ready, use)


@pytest.mark.parametrize("code", ["40001", "40P01"])
def test_what_fails_for_others_is_tried_a_few_times(ready: str, code: str) -> None:
    """Then it is told that nothing was done."""
    execute(
        ready,
        "CREATE SEQUENCE attempts; CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        f" PERFORM nextval('attempts'); RAISE EXCEPTION 'again' USING ERRCODE = '{code}'; END $$;"
        " CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON mahasiswa FOR EACH ROW EXECUTE FUNCTION refuse()",
    )

    async def use(store: Store) -> None:
        with pytest.raises(Unavailable):
            await store.add(*SITI)
        assert execute(ready, "SELECT last_value FROM attempts") == [(MOST_ATTEMPTS,)]

    run(ready, use)


def test_a_lock_is_not_waited_for_without_end(ready: str) -> None:
    """A program that locks the table holds a write up for a few seconds; then nothing was done, and reads go on."""

    async def use(store: Store) -> None:
        with psycopg.connect(ready) as other:
            other.execute("LOCK TABLE mahasiswa IN SHARE MODE")
            began = time.monotonic()
            adding = asyncio.ensure_future(attempt_all(store.add(*SITI)))
            assert await read_all(store) == []
            with pytest.raises(Unavailable):
                await adding
            assert time.monotonic() - began < 6
        assert await read_all(store) == []
        await store.add(*SITI)

    run(ready, use)


def test_nobody_waits_longer_for_a_lock_because_others_did(ready: str) -> None:
    """Who adds while others wait has an answer in his own time, not after theirs."""

    async def use(store: Store) -> None:
        async def seconds(record: Mahasiswa) -> float:
            began = time.monotonic()
            with pytest.raises(Unavailable):
                await store.add(*record)
            return time.monotonic() - began

        with psycopg.connect(ready) as other:
            other.execute("LOCK TABLE mahasiswa IN SHARE MODE")
            first = asyncio.ensure_future(seconds(SITI))
            waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            await until(lambda: execute(ready, waiting))
            taken = await asyncio.gather(first, *(seconds(Mahasiswa(f"{n}", "Ani", "Solo")) for n in range(5)))
            assert max(taken) < 5.5
        assert await read_all(store) == []
        await store.add(*SITI)

    run(ready, use)


def test_one_that_is_refused_does_not_hold_up_its_neighbours(ready: str) -> None:
    """Where a group is tried one by one, each is told at once, and together they take no longer than one."""
    execute(ready, "ALTER TABLE mahasiswa ADD CHECK (alamat <> 'x')")

    async def use(store: Store) -> None:
        began = time.monotonic()
        done: dict[str, float] = {}

        async def attempt(nim: str, alamat: str) -> None:
            try:
                await attempt_all(store.add(nim, "Ani", alamat))
            except Unavailable:
                assert nim.startswith("z")
            done[nim] = time.monotonic() - began

        with psycopg.connect(ready) as other:
            for n in range(5):
                other.execute("INSERT INTO mahasiswa VALUES (%s, 'Ina', 'Solo')", [f"z{n}"])
            locked = [attempt(f"z{n}", "Solo") for n in range(5)]
            await asyncio.gather(attempt("a", "Solo"), attempt("b", "x"), *locked)
        assert done["a"] < 2
        assert max(done.values()) < 6
        assert [record.nim for record in await read_all(store)] == ["a", *(f"z{n}" for n in range(5))]

    run(ready, use)


# --- Copies ---


@pytest.mark.parametrize("direction", ["to postgres", "from postgres"])
def test_all_records_are_copied_to_another_engine(ready: str, tmp_path: Path, direction: str) -> None:
    """Every text to the byte; a target that holds a record is refused, and left as it is."""
    urls = [parse_database_url(f"sqlite:///{tmp_path}/a.db"), PostgresURL(ready)]
    for url in urls:
        migrate(url)
    source_url, target_url = urls if direction == "to postgres" else urls[::-1]
    records = [
        Mahasiswa(f"{number:05}/é🎓\t\\N", "Siti\r\n\\.", "" if number % 2 else "\x01") for number in range(12_000)
    ]

    async def use() -> None:
        async with opened(source_url) as source, opened(target_url) as target:
            await source.merge([[(1, *record)] for record in records[:1]], update=False, dry_run=False)
            rest = [(number, *record) for number, record in enumerate(records[1:])]
            await source.merge([rest], update=False, dry_run=False)
            assert await copy(source, target) == len(records)
            assert await target.count(Query()) == len(records)
            assert [record async for chunk in target.chunks(Query()) for record in chunk] == records
            await source.delete(records[0].nim)
            with pytest.raises(Unusable, match="holds records already"):
                await copy(source, target)
            assert await target.count(Query()) == len(records)

    asyncio.run(use())


def at(url: str, port: int) -> str:
    """Return the same address on another port."""
    head, _, rest = url.partition("@127.0.0.1:")
    return f"{head}@127.0.0.1:{port}/{rest.partition('/')[2]}"


def schema(url: str) -> str:
    """Return the schema that an address leads to."""
    return url.rpartition("search_path%3D")[2]


async def until(condition: Callable[[], object]) -> None:
    """Let others run until something holds."""
    while not condition():  # noqa: ASYNC110 - what is waited for happens in another process
        await asyncio.sleep(0.001)


async def asked(store: Store) -> object:
    """Ask for the version."""
    return await store.version()


def run(url: str, use: Callable[[Store], object]) -> None:
    """Open a store, use it and close it."""

    async def session() -> None:
        async with opened(PostgresURL(url)) as store:
            await use(store)  # type: ignore[misc]

    asyncio.run(session())


def run_two(first: str, second: str, use: Callable[[Store, Store], object]) -> None:
    """Open two stores, use them and close them."""

    async def session() -> None:
        async with opened(PostgresURL(first)) as one, opened(PostgresURL(second)) as two:
            await use(one, two)  # type: ignore[misc]

    asyncio.run(session())
