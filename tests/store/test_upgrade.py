"""This release uses databases that version 1 made. A later release changes the table `mahasiswa`, and upgrades them."""

import re
import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest
from cli.operators import Operator, records_of
from engines import ENGINES
from postgres import DESCRIBE, new_schema
from stores import SITI, Place, engine_at, execute, items, migrate, opened, read_all

from mahasiswa.record import Mahasiswa
from mahasiswa.store.postgres import postgres_schema
from mahasiswa.store.sqlite import sqlite_schema
from mahasiswa.store.store_errors import NeedsRepair, Refused

VERSION_1 = Path(__file__).with_name("version_1")
RECORDS = [
    ("20/456839/TK/50663", "Nur'aini É", "Sleman"),
    ("2300018001", "Siti Aminah", "Bantul"),
    ("3", "Budi", "Solo"),
]
SHORTER_NIM = """
CREATE TABLE shorter (
  nim TEXT NOT NULL PRIMARY KEY CONSTRAINT nim_too_long CHECK (length(nim) <= 64),
  nama TEXT NOT NULL,
  alamat TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO shorter SELECT * FROM mahasiswa;
DROP TABLE mahasiswa;
ALTER TABLE shorter RENAME TO mahasiswa"""
SHORTER_NIM_POSTGRES = """
ALTER TABLE mahasiswa DROP CONSTRAINT nim_too_long,
  ADD CONSTRAINT nim_too_long CHECK (length(nim) <= 64)"""


@pytest.fixture(params=ENGINES)
def places(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Place, Place]:
    """Return the place of a database of version 1, and that of a database that does not exist yet."""
    if request.param == "sqlite":
        shutil.copy(VERSION_1 / "mahasiswa.db", tmp_path)
        return tmp_path / "mahasiswa.db", tmp_path / "new.db"
    server = request.getfixturevalue("postgres")
    old = new_schema(server)
    schema = old.rpartition("search_path%3D")[2]
    execute(old, (VERSION_1 / "postgres.sql").read_text("utf-8").replace("version_1", schema))
    return old, new_schema(server)


def parts(place: Place) -> list[str]:
    """Return the definition of each table, column, rule, index, function and trigger, and the version."""
    if isinstance(place, Path):
        version = execute(place, "PRAGMA user_version")
        found = execute(place, "SELECT type, name, sql FROM sqlite_schema") + version
        return sorted(map(repr, found))
    schema = place.rpartition("search_path%3D")[2]
    return [repr(part).replace(schema, "") for part in execute(place, DESCRIBE)]


@pytest.mark.parametrize("version", [1, 2])
async def test_a_database_of_version_1_gets_what_a_new_database_has(
    places: tuple[Place, Place], monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """Its records and its history stay, and changes can be undone. Version 2 has another rule for the records."""
    if version == 2:
        make_version_2(monkeypatch)
    old, new = places
    for place in places:
        migrate(place)
    assert parts(old) == parts(new)
    async with opened(old) as store:
        assert await read_all(store) == RECORDS
        deletion, batch, edit, *additions = await items(store)
        assert len(additions) == 2
        for item in (deletion, edit, batch):
            await store.undo(item.key)
        restored = [Mahasiswa(*RECORDS[0]), ("2300018001", "Siti Aminah", "Jalan Kaliurang 5")]
        assert await read_all(store) == restored
        assert len(await items(store)) == 8
        with pytest.raises(Refused, match="nim: too_long") if version == 2 else nullcontext():
            await store.add("9" * 65, "Siti", "Solo")


async def test_the_version_before_an_upgrade_goes_on_with_the_copy_of_the_upgrade(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It refuses the newer tables. On PostgreSQL an operator restores a dump (docs/cluster.md)."""
    caplog.set_level("INFO")
    path = Path(shutil.copy(VERSION_1 / "mahasiswa.db", tmp_path))
    with monkeypatch.context() as newer:
        make_version_2(newer)
        migrate(path)
    with pytest.raises(NeedsRepair, match="newer release"):
        migrate(path)
    (copy,) = re.findall(r"(\S+) is the list before the upgrade", caplog.text)
    engine_at(path).restore(Path(copy))
    async with opened(path) as store:
        assert await read_all(store) == RECORDS


def test_an_upgrade_without_room_for_the_copy_changes_nothing(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With room again, it is made."""
    make_version_2(monkeypatch)
    database = small_disk / "mahasiswa.db"
    shutil.copy(VERSION_1 / "mahasiswa.db", database)
    filler = small_disk / "filler"
    filler.write_bytes(bytes(shutil.disk_usage(small_disk).free - database.stat().st_size // 2))
    with pytest.raises(NeedsRepair, match="could not be copied before its upgrade: "):
        migrate(database)
    assert execute(database, "PRAGMA user_version") == [(1,)]
    endings = {path.suffix for path in small_disk.iterdir()}
    assert endings <= {".db", "", ".db-wal", ".db-shm"}
    filler.unlink()
    migrate(database)
    assert execute(database, "PRAGMA user_version") == [(2,)]


def test_a_backup_of_version_1_is_restored(tmp_path: Path) -> None:
    """Into a list that does not exist, and into one with a record."""
    operator = Operator(tmp_path)
    file = str(VERSION_1 / "mahasiswa.db")
    assert "3 records restored" in operator.done("restore", file)
    operator.fill([SITI])
    assert "3 added, 0 changed, 1 removed" in operator.done("restore", file)
    assert records_of(operator.database) == RECORDS


def make_version_2(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this release know a second version, whose table has another rule."""
    upgrades = (*postgres_schema.UPGRADES, SHORTER_NIM_POSTGRES)
    monkeypatch.setattr(postgres_schema, "UPGRADES", upgrades)
    monkeypatch.setattr(sqlite_schema, "UPGRADES", (*sqlite_schema.UPGRADES, SHORTER_NIM))
