"""PostgreSQL: lost connections, a server that stops, a connection pooler, and the version of the data."""

import asyncio
import random
import re
import shutil
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import (
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    nullcontext,
    suppress,
)
from datetime import UTC, datetime
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest
from faults.clients import changing
from harness import Service, free_port, led_to, visited
from install.installed import do_what_staff_do
from postgres import AS_SERVER_USER, Server
from processes import started, until
from sockets import CLOSE, get, post
from stores import BUDI, EXPIRE, SITI, engine_at, execute, merge, migrate, opened, read_all

from mahasiswa.shared_task import SharedTask
from mahasiswa.store import Store
from mahasiswa.store.store_errors import Refused, Unavailable, Uncertain
from mahasiswa.work import SEARCH, STEP_TIMEOUT_SECONDS

LATENESS_SECONDS = 5.0  # how much later a busy machine may be


def test_nothing_is_lost_and_no_page_is_stale_when_connections_are_ended(
    server: Server, url: str
) -> None:
    """Two services share a database. An administrator ends every session three times, and no read is lost."""
    with Service(url) as first, Service(url) as second:
        with changing(first.url, second.url) as wait_for:
            for _ in range(3):
                execute(
                    server.url,
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()",
                )
                wait_for(10)
        for service in (first, second):
            assert not re.search(r"GET .* 503", service.stderr())


ASKED = [
    *(get(target) for target in ("/", "/", "/?cari=Siti", "/mahasiswa/edit/0001")),
    *(post("/mahasiswa/add", b"nama=Budi&alamat=Solo&nim=%d" % nim, CLOSE) for nim in (2, 3)),
    post("/mahasiswa/edit/0001", b"nama=Budi&alamat=Solo", CLOSE),
    post("/mahasiswa/delete/0001", b"", CLOSE),
]


@contextmanager
def stopped(server: Server) -> Iterator[None]:
    server.stop()
    try:
        yield
    finally:
        server.start()


@contextmanager
def frozen(server: Server) -> Iterator[None]:
    """Suspend all processes of the server. It accepts connections but answers nothing."""
    # First, so that it starts no other one meanwhile.
    (postmaster := psutil.Process(server.process.pid)).suspend()
    processes = [*postmaster.children(recursive=True), postmaster]
    for process in processes:
        process.suspend()
    try:
        yield
    finally:
        # The postmaster is last, because it frees the ids of children that have ended.
        for process in processes:
            process.resume()


@pytest.mark.torture
@pytest.mark.parametrize("without", [stopped, frozen])
def test_without_its_database_the_service_answers_503_and_recovers(
    server: Server, url: str, without: Callable[[Server], AbstractContextManager[None]]
) -> None:
    """Every page and form is answered at the deadline of a step, and works again as soon as the database is back."""

    def ask(request: bytes) -> None:
        began = time.monotonic()
        answer = service.raw(request, 30)
        assert time.monotonic() - began < STEP_TIMEOUT_SECONDS + LATENESS_SECONDS, request
        assert answer.startswith(b"HTTP/1.1 503 "), request
        assert answer.rstrip().endswith(b"</html>"), request

    with Service(url) as service, service.site() as site:
        led_to(site.add(*SITI))
        assert site.nims == ["0001"]
        with without(server), ThreadPoolExecutor(len(ASKED)) as threads:
            list(threads.map(ask, ASKED))
        began = time.monotonic()
        led_to(site.add("0004", "Ani", "Klaten"))
        assert site.nims == ["0001", "0004"]
        assert time.monotonic() - began < LATENESS_SECONDS
        assert re.search("error connecting .* connection (failed|timeout)", service.stderr())


class Proxy:
    """Forwards connections to a port of 127.0.0.1.

    `sent` holds every byte that clients have sent. `cut` makes the next COMMIT break every connection: "question" before
    the server receives it, "answer" after the server has committed. Answers wait while `flowing` is not set.
    """

    def __init__(self, target: int) -> None:
        self.sent = b""
        self.cut = ""
        self.flowing = asyncio.Event()
        self.flowing.set()
        self._target = target
        self._writers: list[asyncio.StreamWriter] = []
        self._running: list[asyncio.Task[None]] = []

    @asynccontextmanager
    async def before(self, url: str) -> AsyncIterator[Store]:
        """Listen on a free port, and open a store whose connections go there."""
        server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        try:
            async with server, opened(url.replace(f":{self._target}/", f":{port}/")) as store:
                yield store
        finally:
            self._end()
            await asyncio.gather(*self._running)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if task := asyncio.current_task():
            self._running.append(task)
        answers, questions = await asyncio.open_connection("127.0.0.1", self._target)
        self._writers += [writer, questions]
        await asyncio.gather(
            self._forward("question", reader, questions), self._forward("answer", answers, writer)
        )

    async def _forward(
        self, kind: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with suppress(OSError):
            while piece := await reader.read(65536):
                if kind == "question":
                    self.sent += piece
                else:
                    await self.flowing.wait()
                if self.cut == kind and b"COMMIT\0" in piece:
                    self.cut = ""
                    self._end()
                writer.write(piece)
                await writer.drain()
        writer.close()

    def _end(self) -> None:
        for writer in self._writers:
            writer.transport.abort()


@pytest.mark.parametrize("lost", ["question", "answer"])
async def test_a_connection_lost_at_the_commit_makes_the_write_uncertain(
    server: Server, url: str, lost: str
) -> None:
    """If the same addition is repeated, it is stored, or refused because the first attempt was stored."""
    proxy = Proxy(server.port)
    async with proxy.before(url) as store:
        for write in (
            store.add(*SITI),
            store.update("0002", "Ani", "Klaten"),
            store.delete("0003"),
        ):
            proxy.cut = lost
            with pytest.raises(Uncertain):
                await write
        with pytest.raises(Refused, match="nim: duplicate") if lost == "answer" else nullcontext():
            await store.add(*SITI)
        assert await read_all(store) == [SITI]


@pytest.fixture
def pooled(server: Server, tmp_path: Path) -> Iterator[str]:
    """Return an address of PgBouncer in transaction mode, which has fewer connections than the store's pool."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if not program:
        pytest.skip("pgbouncer is not installed")
    name = f"pooled_{random.getrandbits(32):x}"
    execute(server.url, f"CREATE DATABASE {name}")
    port = free_port()
    (tmp_path / "pgbouncer.ini").write_text(
        f"[databases]\n{name} = host=127.0.0.1 port={server.port} user=postgres\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        "auth_type = any\npool_mode = transaction\ndefault_pool_size = 3\n"
    )
    command = [*AS_SERVER_USER, program, str(tmp_path / "pgbouncer.ini")]
    with (tmp_path / "log").open("wb") as log, started(*command, stdout=log, stderr=log):
        until(lambda: (tmp_path / "log").read_text().count("listening on"))
        yield f"postgresql://postgres@127.0.0.1:{port}/{name}"
    execute(server.url, f"DROP DATABASE {name} WITH (FORCE)")


def test_every_operation_works_through_a_pooler_in_transaction_mode(pooled: str) -> None:
    """Each transaction may reach another session of the server, while clients work at the same time, and for all that staff do."""
    migrate(pooled)
    with Service(pooled) as service, changing(service.url) as wait_for:
        wait_for(50)
    execute(pooled, "DELETE FROM mahasiswa")
    with visited(Service(pooled)) as site:
        do_what_staff_do(site)
    for number in range(3):
        assert merge(pooled, (f"x{number}", "Ani", "Klaten")).new == 1


# ---- settings of the role
SETTINGS = {
    "client_min_messages": "error",
    "DateStyle": "SQL,DMY",
    "TimeZone": "Pacific/Chatham",
    "standard_conforming_strings": "off",
    "bytea_output": "escape",
    "default_transaction_isolation": "serializable",
    "default_transaction_read_only": "on",
}


def test_the_service_depends_on_no_setting_of_the_role(database: str) -> None:
    """Neither do the commands: it sets what it needs. All of these settings hold for each of its sessions."""
    settings = "".join(f"%20-c{name}%3D{value}" for name, value in SETTINGS.items())
    url = f"{database}{settings}"
    with visited(Service(url)) as site:
        led_to(site.add("1\\", "Ani 'x'", "Solo\\n"))
        assert "Solo\\n" in site.get("/?cari=ani+solo").text
        today = f"{datetime.now(UTC):%Y-%m-%d}"
        assert f'datetime="{today}' in site.get("/mahasiswa/riwayat").text
        assert site.delete("1\\").status_code == 302
        assert merge(url, SITI).new == 1
        assert site.records == [SITI]


# ---- the version of the data
async def test_a_caller_never_receives_a_version_that_was_read_before_its_call(
    server: Server, url: str, store: Store
) -> None:
    """A hundred callers who come while a query is running share the next query, and it finds the latest version.

    A caller that is cancelled does not cancel it for the others.
    """
    proxy = Proxy(server.port)
    async with proxy.before(url) as delayed:
        before = await delayed.version()
        versions = SharedTask(delayed.version)
        proxy.sent = b""
        proxy.flowing.clear()
        first = asyncio.ensure_future(versions.result())
        await asyncio.to_thread(until, lambda: b"pg_current_snapshot" in proxy.sent)
        await store.add(*SITI)
        later = [asyncio.ensure_future(versions.result()) for _ in range(100)]
        await asyncio.sleep(0)
        later.pop().cancel()
        proxy.flowing.set()
        assert {await version for version in later} == {await store.version()} != {before}
        assert await first is not None
        assert proxy.sent.count(b"pg_current_snapshot") == 2


@pytest.mark.torture
async def test_a_standby_can_be_read_without_a_version_and_not_written(
    server: Server, url: str
) -> None:
    """It may lag behind, and its snapshots do not tell by how much. It keeps the days of its primary, and a purge is refused."""
    execute(url, "INSERT INTO mahasiswa VALUES ('0001', 'Siti Aminah', 'Jalan Kaliurang 5')")
    execute(url, EXPIRE)
    with Server(server) as standby:
        standby_url = url.replace(f":{server.port}/", f":{standby.port}/")
        engine_at(standby_url).migrate(7)
        async with opened(standby_url) as store:
            assert await store.version() is None
            snapshot = await store.snapshot(10)
            packed = "\0".join(SITI).encode()
            assert snapshot[:2] == (1, packed)
            assert snapshot.last
            assert (await store.reader(SEARCH).history("", 0, 10)).total == 1
            said = "read-write mode during recovery"
            for change in (store.purge(), store.add(*BUDI)):
                with pytest.raises(Unavailable, match=said):
                    await change
        with pytest.raises(Unavailable, match=said):
            engine_at(standby_url).forget(SITI.nim)
