"""PostgreSQL: lost connections, a server that stops, and a connection pooler."""

import asyncio
import random
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator

import httpx
import pytest
from harness import Service, Site, free_port
from postgres import Server, at_port, start_as_server_user, until
from proxy import Proxy
from stores import SITI, attempt, opened, read_all, records_of

from mahasiswa.record import Mahasiswa, Write, digest
from mahasiswa.settings import PostgresURL
from mahasiswa.store import Query, Store, migrate
from mahasiswa.store.engines import merge
from mahasiswa.store.errors import Uncertain
from mahasiswa.work import EXPORT, LIST, RECORD, SEARCH, STEP_TIMEOUT_SECONDS

LATENESS_SECONDS = 5.0
"""How much later a busy machine may be."""


async def test_no_read_or_acknowledged_write_is_lost_when_connections_are_ended(server: Server, store: Store) -> None:
    """An administrator ends every session twenty times; the pool replaces the connections."""
    added: list[str] = []
    uncertain: list[str] = []
    done = asyncio.Event()

    async def add(name: str) -> None:
        number = 0
        while not done.is_set():
            number += 1
            nim = f"{name}-{number}"
            try:
                await store.add(nim, "Siti", "Solo")
                added.append(nim)
            except Uncertain:
                uncertain.append(nim)

    async def read() -> None:
        while not done.is_set():
            before = set(added)
            assert before <= {record.nim for record in await read_all(store)}

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
    assert set(added) <= stored <= set(added) | set(uncertain)


@pytest.mark.parametrize("how", ["stopped", "frozen"])
def test_without_its_database_the_service_answers_503_and_recovers(server: Server, url: PostgresURL, how: str) -> None:
    """Every page and form is answered at the deadline of a step, and works again as soon as the database is back."""
    with Service(url.address) as service:
        with service.site() as site:
            assert site.add(*SITI).status_code == 302
            assert site.list().nims == ["0001"]
        frozen = server.freeze() if how == "frozen" else []
        if how == "stopped":
            server.stop()
        try:
            answers: list[tuple[int, float, str]] = []

            def ask(question: Callable[[Site], httpx.Response]) -> None:
                with service.site() as site:
                    site.client.timeout = 30
                    began = time.monotonic()
                    answer = question(site)
                    answers.append((answer.status_code, time.monotonic() - began, answer.text))

            questions: list[Callable[[Site], httpx.Response]] = [
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
                time.sleep(0.05)  # so that some requests arrive while others wait
            for thread in threads:
                thread.join()
        finally:
            for process in frozen:
                process.resume()
            if how == "stopped":
                server.start()
        assert [status for status, _, _ in answers] == [503] * len(questions)
        assert max(seconds for _, seconds, _ in answers) < STEP_TIMEOUT_SECONDS + LATENESS_SECONDS
        assert all("</html>" in text for _, _, text in answers)
        began = time.monotonic()
        with service.site() as site:
            assert site.add("0004", "Ani", "Klaten").status_code == 302
            assert site.list().nims == ["0001", "0004"]
        assert time.monotonic() - began < LATENESS_SECONDS
        reason = "Connection refused" if how == "stopped" else "timeout"
        assert re.search(rf"the database cannot be reached: .*{reason}", service.stderr())


@pytest.mark.parametrize("lost", ["question", "answer"])
async def test_a_connection_lost_at_the_commit_makes_the_write_uncertain(
    server: Server, url: PostgresURL, lost: str
) -> None:
    """If the same addition is repeated, it is stored, or refused because the first attempt was stored."""
    proxy = Proxy(server.port)
    async with proxy.listening() as port, opened(PostgresURL(at_port(url.address, port))) as store:
        for write in (store.add(*SITI), store.update("0002", "Ani", "Klaten"), store.delete("0003")):
            proxy.cut = "question" if lost == "question" else "answer"
            with pytest.raises(Uncertain):
                await write
        assert await attempt(store.add(*SITI)) == (("nim", "duplicate") if lost == "answer" else None)
        assert await read_all(store) == [SITI]


@pytest.fixture
def pooled(server: Server) -> Iterator[PostgresURL]:
    """Return an address of PgBouncer in transaction mode, which has fewer connections than the store's pool."""
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
        yield PostgresURL(f"postgresql://postgres@127.0.0.1:{port}/{name}")
    finally:
        process.terminate()
        process.wait()
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")


async def test_every_operation_works_through_a_pooler_in_transaction_mode(pooled: PostgresURL) -> None:
    """Each transaction may reach another session of the server; two stores work at the same time."""
    migrate(pooled)
    async with opened(pooled) as first, opened(pooled) as second:
        stores = [first, second]
        records = [Mahasiswa(f"{number:04}", "Siti", "Solo") for number in range(400)]
        await asyncio.gather(*(stores[number % 2].add(*record) for number, record in enumerate(records)))

        async def work(number: int) -> None:
            store = stores[number % 2]
            nim = records[number].nim
            await store.update(nim, "Budi", "Solo")
            assert await store.reader(RECORD).get(nim) == (nim, "Budi", "Solo")
            assert await attempt(store.add(nim, "x", "x")) == ("nim", "duplicate")
            assert await attempt(store.add(f"x{nim}", None, "x")) == ("nama", "missing")
            snapshot = await store.reader(LIST).snapshot(1000)
            assert snapshot.version
            assert (nim, "Budi", "Solo") in records_of(snapshot)
            assert [record async for chunk in store.reader(EXPORT).chunks(Query(nim)) for record in chunk] == [
                (nim, "Budi", "Solo")
            ]
            assert len((await store.reader(SEARCH).search(Query("S"), 10, 20)).records) == 20
            await store.write_all(
                "import", [Write(Mahasiswa(nim, "Ani", "Solo"), digest(Mahasiswa(nim, "Budi", "Solo")))]
            )
            await store.delete(nim)

        await asyncio.gather(*(work(number) for number in range(0, 400, 10)))
        left = [record.nim for record in records if int(record.nim) % 10]
        assert [record.nim for record in await read_all(first)] == left
        for number in range(3):
            merged = merge(pooled, [(1, f"x{number}", "Ani", "Klaten")], update=True, dry_run=False)
            assert merged[:4] == (1, 0, 0, [])
