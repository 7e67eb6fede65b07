"""PostgreSQL: the table is created, upgraded or refused when the service starts."""

import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.operators import Operator
from faults.attack import at_once
from harness import Service, led_to, visited
from postgres import DESCRIBE, Server, locked
from stores import SITI, engine_at, execute, migrate

from mahasiswa.settings import parse_database_url
from mahasiswa.store.postgres import postgres_schema as schema
from mahasiswa.store.store_errors import Locked, Unavailable

SECOND_STEP = "ALTER TABLE mahasiswa ADD COLUMN kelas text; GRANT SELECT ON mahasiswa TO PUBLIC"


def test_of_many_starts_one_creates_the_table(database: str) -> None:
    """The others wait for it, and none fails."""
    barrier = threading.Barrier(8)

    def start() -> None:
        barrier.wait()
        migrate(database)

    at_once(8, start)
    assert execute(database, "SELECT count(*) FROM mahasiswa") == [(0,)]


@pytest.fixture
def clerk(server: Server, database: str) -> Iterator[str]:
    """Return the same address for a role of its own, which may create tables in the schema."""
    schema = database.rpartition("search_path%3D")[2]
    execute(server.url, f"CREATE ROLE clerk LOGIN; GRANT ALL ON SCHEMA {schema} TO clerk")
    try:
        yield database.replace("//postgres@", "//clerk@")
    finally:
        execute(server.url, "DROP OWNED BY clerk; DROP ROLE clerk")


def test_a_role_that_does_not_own_the_tables_gets_the_sql_that_gives_it_them(
    clerk: str, url: str, tmp_path: Path
) -> None:
    """The service ends with one line. When the owner has run its SQL, the service starts, and staff can use it."""
    (line,) = Operator(tmp_path).failed(code=2, DATABASE_URL=clerk)
    assert "the role clerk does not own the table mahasiswa" in line
    execute(url, line.partition("must run: ")[2])
    with visited(Service(clerk)) as site:
        led_to(site.add(*SITI))
        assert site.records == [SITI]
        assert engine_at(clerk).forget(SITI.nim)[0]
        engine_at(clerk).rewrite()


def test_a_start_waits_two_seconds_for_the_table_if_it_needs_its_lock(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests queue behind it. If the schema is current, a start makes no step, so it does not wait for a long import."""
    before = execute(url, DESCRIBE)
    with locked(url):
        migrate(url)
        monkeypatch.setattr(schema, "UPGRADES", (*schema.UPGRADES, SECOND_STEP))
        with pytest.raises(Locked, match="another program has locked the table"):
            migrate(url)
    assert execute(url, DESCRIBE) == before


# ---- tables that are refused
NEWER = "the table mahasiswa has schema version 7, and this release knows only up to 1: use a newer release"
FOREIGN = r"no release made the table mahasiswa; export it as CSV with its own program, .* sudo mahasiswa import FILE"
TABLE = "CREATE TABLE mahasiswa (nim text PRIMARY KEY, nama text NOT NULL, alamat text NOT NULL)"
REFUSED = {
    "a newer schema": ("COMMENT ON TABLE mahasiswa IS 'schema 7 of mahasiswa'", NEWER),
    "another program": (f"DROP TABLE mahasiswa; {TABLE}", FOREIGN),
}


@pytest.mark.parametrize(("statements", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_table_that_is_not_of_this_version_is_refused_in_one_line(
    url: str, tmp_path: Path, statements: str, reason: str
) -> None:
    """The service ends with exit code 2, the line says what to do, and nothing changes."""
    execute(url, statements)
    before = execute(url, DESCRIBE)
    settings = {"DATABASE_URL": url, "MAHASISWA_COMMAND": "sudo mahasiswa"}
    (line,) = Operator(tmp_path).failed(code=2, **settings)
    assert re.fullmatch(f"mahasiswa: {reason}", line)
    assert execute(url, DESCRIBE) == before


# ---- the server
@pytest.mark.parametrize("hosts", ["127.0.0.1:1,127.0.0.1:2", "nowhere.invalid"])
def test_the_password_is_in_no_message(hosts: str) -> None:
    """Neither a wrong address nor an unreachable server makes an error show it."""
    address = f"postgresql://u:rahasia@{hosts}/d"
    with pytest.raises(Unavailable) as unavailable:
        migrate(address)
    assert not re.search(r"rah|asia|\n", f"{unavailable.value}{parse_database_url(address)!r}")
