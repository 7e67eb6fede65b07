"""PostgreSQL: settings of the server by which a crash would lose acknowledged changes."""

import re
import signal

import pytest
from harness import Service
from postgres import Server, execute
from stores import BUDI, SITI, opened, read_all

from mahasiswa.record import Write, digest
from mahasiswa.settings import PostgresURL
from mahasiswa.store import Store, migrate
from mahasiswa.store.engines import merge

LOG_THE_SETTING = """
CREATE TABLE settings (operation text, value text);
CREATE FUNCTION log_setting() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO settings VALUES (TG_OP, current_setting('synchronous_commit')); RETURN NULL; END $$;
CREATE TRIGGER log_setting AFTER INSERT OR UPDATE OR DELETE ON mahasiswa FOR EACH ROW EXECUTE FUNCTION log_setting()
"""


async def write_in_every_way(store: Store, url: PostgresURL) -> None:
    """Add, edit, delete, confirm and import."""
    await store.add(*SITI)
    await store.add(*BUDI)
    await store.update(SITI.nim, "Ani", "Solo")
    await store.delete(BUDI.nim)
    changed = SITI._replace(nama="Ani", alamat="Solo")
    await store.write_all("import", [Write(changed._replace(nama="Ina"), digest(changed)), Write(BUDI, None)])
    merge(url, [(1, "3", "Ina", "Solo"), (2, *BUDI)], update=True, dry_run=False)


async def test_acknowledged_changes_survive_a_crash_although_the_role_commits_asynchronously() -> None:
    """The server is ended at once, as by `pg_ctl stop -m immediate`, and started again."""
    # The WAL writer must not write the changes to the disk by chance.
    with Server({"autovacuum": "off", "wal_writer_delay": "10s"}) as server:
        server.execute("ALTER ROLE postgres SET synchronous_commit = off")
        url = PostgresURL(server.url())
        migrate(url)
        async with opened(url) as store:
            await write_in_every_way(store, url)
            expected = await read_all(store)
            server.stop(signal.SIGQUIT)
            server.start()
            assert await read_all(store) == expected
            assert len(expected) == 3


@pytest.mark.parametrize(
    ("setting", "used"),
    [("off", "on"), ("local", "on"), ("remote_write", "on"), ("on", "on"), ("remote_apply", "remote_apply")],
)
async def test_every_write_waits_for_the_disks_whatever_the_role_says(
    server: Server, url: PostgresURL, setting: str, used: str
) -> None:
    """A weaker setting is replaced in each transaction, and a stronger one stays."""
    execute(url.address, LOG_THE_SETTING)
    server.execute(f"ALTER ROLE postgres SET synchronous_commit = {setting}")
    try:
        async with opened(url) as store:
            await write_in_every_way(store, url)
    finally:
        server.execute("ALTER ROLE postgres RESET synchronous_commit")
    assert set(execute(url.address, "SELECT operation, value FROM settings")) == {
        ("INSERT", used),
        ("UPDATE", used),
        ("DELETE", used),
    }


@pytest.mark.parametrize(
    ("settings", "warned"),
    [({"fsync": "off", "full_page_writes": "off"}, ["fsync", "full_page_writes"]), ({}, [])],
    ids=["unsafe", "safe"],
)
def test_the_service_warns_at_its_start_of_a_server_that_a_crash_can_destroy(
    settings: dict[str, str], warned: list[str]
) -> None:
    """Each setting is one line, and the service starts. A server with safe settings is not warned of."""
    with Server(settings) as server, Service(server.url(), {"WORKERS": "2"}) as service, service.site() as site:
        assert site.add(*SITI).status_code == 302
        assert re.findall(r"WARNING PostgreSQL runs with (\w+) = off", service.stderr()) == warned
