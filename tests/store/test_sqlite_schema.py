"""The schema of an SQLite file: created, upgraded, and refused if it is not this program's."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from harness import Service, led_to
from stores import execute, migrate

from mahasiswa.store.sqlite import sqlite_schema as schema
from mahasiswa.store.store_errors import Unusable

# Written out here, so that a test fails if the program's own copy is changed.
TABLE = """\
CREATE TABLE mahasiswa (
  nim TEXT NOT NULL PRIMARY KEY
    CONSTRAINT nim_nul CHECK (instr(nim, char(0)) = 0)
    CONSTRAINT nim_too_long CHECK (length(nim) <= 255)
    CONSTRAINT nim_unaddressable CHECK (nim NOT IN ('.', '..')),
  nama TEXT NOT NULL
    CONSTRAINT nama_nul CHECK (instr(nama, char(0)) = 0),
  alamat TEXT NOT NULL
    CONSTRAINT alamat_nul CHECK (instr(alamat, char(0)) = 0)
) STRICT, WITHOUT ROWID"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "mahasiswa.db"


# ---- the steps of an upgrade
# A step of a later release, which alters a table and copies records. It fails if a record has the nim "rusak".
SECOND_STEP = """
ALTER TABLE mahasiswa_history ADD COLUMN lain TEXT;
CREATE TABLE mahasiswa_kelas (nim TEXT PRIMARY KEY);
INSERT INTO mahasiswa_kelas
SELECT iif(nim = 'rusak', NULL + abs(-9223372036854775808), nim) FROM mahasiswa"""


def test_a_file_is_upgraded_by_the_steps_that_it_lacks(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step is made once and raises the version. A step that fails changes nothing. A file of no bytes has no step."""
    path.touch()
    migrate(path)
    assert execute(path, "PRAGMA user_version") == [(1,)]
    assert execute(path, "SELECT sql FROM sqlite_schema WHERE name = 'mahasiswa'") == [(TABLE,)]
    execute(path, "INSERT INTO mahasiswa VALUES ('rusak', 'Siti', 'Solo')")
    monkeypatch.setattr(schema, "UPGRADES", (*schema.UPGRADES, SECOND_STEP))
    with pytest.raises(Unusable, match="integer overflow"):
        migrate(path)
    assert execute(path, "PRAGMA user_version") == [(1,)]
    assert execute(path, "SELECT name FROM sqlite_schema WHERE name = 'mahasiswa_kelas'") == []
    for copy in path.parent.glob("mahasiswa.db.before-*"):
        copy.unlink()  # the next one may get the same second in its name
    execute(path, "DELETE FROM mahasiswa; INSERT INTO mahasiswa VALUES ('1', 'Siti', 'Solo')")
    for _ in range(2):
        migrate(path)
    assert execute(path, "PRAGMA user_version") == [(2,)]
    assert execute(path, "SELECT nim FROM mahasiswa_kelas") == [("1",)]
    migrate(path.with_name("new.db"))
    assert execute(path.with_name("new.db"), "PRAGMA user_version") == [(2,)]


def test_two_services_that_start_at_once_create_the_tables_once(path: Path) -> None:
    """Each of them shows a record that the other one stores."""
    with ExitStack() as stack:
        with ThreadPoolExecutor() as threads:
            services = [*map(stack.enter_context, threads.map(Service, [path] * 2))]
        for number, service in enumerate(services):
            with service.site() as site:
                led_to(site.add(f"{number}", "Siti", "Solo"))
                assert site.nims == [f"{n}" for n in range(number + 1)]
