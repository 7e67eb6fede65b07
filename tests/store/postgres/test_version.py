"""PostgreSQL: the version of the data, across instances, standbys and servers that cannot tell it."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import AsyncExitStack

import pytest
from harness import Service, Site
from postgres import QUICK, Server, at_port, execute, until
from proxy import Proxy
from stores import BUDI, SITI, age_history, opened

from mahasiswa.settings import PostgresURL
from mahasiswa.store import Store, migrate
from mahasiswa.store.errors import Unavailable
from mahasiswa.work import LIST, SEARCH

Step = tuple[Callable[[], object], str | None]


def test_an_acknowledged_write_is_on_the_next_page_of_every_instance(url: PostgresURL) -> None:
    """Two services share a database; four clients write through one and read through both at the same time."""
    failures: list[str] = []

    def write_and_read(name: str, here: Site, there: Site) -> None:
        with here, there:
            for number in range(15):
                nim = f"{name}-{number}"
                steps: list[Step] = [
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

    with Service(url.address) as first, Service(url.address) as second:
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


async def test_a_caller_never_receives_a_version_that_was_read_before_its_call(
    server: Server, url: PostgresURL, store: Store
) -> None:
    """A hundred callers who come while a query is running share the next query, and it finds the latest version."""
    proxy = Proxy(server.port)
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(proxy.listening())
        delayed = await stack.enter_async_context(opened(PostgresURL(at_port(url.address, port))))
        before = await delayed.version()
        proxy.sent = b""
        proxy.hold(on=True)
        first = asyncio.ensure_future(read_version(delayed))
        await until(lambda: b"pg_current_snapshot" in proxy.sent)
        await store.add(*SITI)
        later = [asyncio.ensure_future(read_version(delayed)) for _ in range(100)]
        await asyncio.sleep(0)
        proxy.hold(on=False)
        assert {await version for version in later} == {await store.version()} != {before}
        assert await first is not None
        assert proxy.sent.count(b"pg_current_snapshot") == 2


async def read_version(store: Store) -> object:
    """Return the version. A task needs a coroutine, and the protocol promises an awaitable only."""
    return await store.version()


@pytest.mark.usefixtures("url")
def test_a_service_without_the_right_to_read_its_version_asks_for_every_page(server: Server, clerk: str) -> None:
    """Its list is right and is not cached."""
    server.execute("REVOKE EXECUTE ON FUNCTION pg_control_checkpoint() FROM PUBLIC")
    try:
        with Service(clerk) as service, service.site() as site:
            assert site.add(*SITI).status_code == 302
            assert site.list().nims == ["0001"]
            assert "etag" not in site.get("/").headers
    finally:
        server.execute("GRANT EXECUTE ON FUNCTION pg_control_checkpoint() TO PUBLIC")


async def test_a_standby_can_be_read_without_a_version_and_not_written(server: Server, url: PostgresURL) -> None:
    """It may lag behind, and its snapshots do not tell by how much. It keeps the days of its primary and purges nothing."""
    execute(url.address, "INSERT INTO mahasiswa VALUES ('0001', 'Siti Aminah', 'Jalan Kaliurang 5')")
    await asyncio.to_thread(age_history, url, 31)
    with Server(QUICK, standby_of=server) as standby:
        standby_url = PostgresURL(at_port(url.address, standby.port))
        migrate(standby_url, 7)
        async with opened(standby_url) as store:
            assert await store.version() is None
            snapshot = await store.reader(LIST).snapshot(10)
            assert snapshot[:3] == (None, 1, ["\0".join(SITI).encode()])
            assert snapshot.last
            await store.purge()
            assert (await store.reader(SEARCH).history("", None, 0, 10)).total == 1
            with pytest.raises(Unavailable, match="read-only"):
                await store.add(*BUDI)
