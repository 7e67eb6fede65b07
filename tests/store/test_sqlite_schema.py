"""The schema of an SQLite file: created, upgraded, and refused if it is not this program's."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw
import pytest
from harness import Service, StartError
from stores import ask, contents, in_shell, run_script

from mahasiswa.settings import SQLiteURL
from mahasiswa.store import migrate
from mahasiswa.store.errors import Unusable
from mahasiswa.store.sqlite import schema

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

# Before 1.0.0, the versions 1 to 3 had no history or another one.
DEVELOPMENT = {
    1: TABLE,
    2: f"{TABLE}; CREATE TABLE mahasiswa_history (id INTEGER PRIMARY KEY, moment TEXT NOT NULL, nim TEXT) STRICT",
    3: f"{TABLE}; CREATE TABLE mahasiswa_history (id INTEGER PRIMARY KEY, nim TEXT); CREATE TABLE mahasiswa_cari (nim TEXT)",
}

FOREIGN = {
    "without the rules": "CREATE TABLE mahasiswa (nim TEXT PRIMARY KEY, nama TEXT NOT NULL, alamat TEXT NOT NULL)",
    "a column too few": "CREATE TABLE mahasiswa (nim TEXT PRIMARY KEY, nama TEXT)",
    "a column too many": "CREATE TABLE mahasiswa (nim TEXT PRIMARY KEY, nama TEXT, alamat TEXT, kelas TEXT)",
    "number as key": "CREATE TABLE mahasiswa (nim INTEGER PRIMARY KEY, nama TEXT, alamat TEXT)",
    "our table and a column": f"{TABLE}; ALTER TABLE mahasiswa ADD COLUMN kelas TEXT",
    "another case": 'CREATE TABLE "Mahasiswa" (nim TEXT PRIMARY KEY, nama TEXT, alamat TEXT)',
    "a view": "CREATE TABLE m (nim TEXT, nama TEXT, alamat TEXT); CREATE VIEW mahasiswa AS SELECT * FROM m",
    "a view of nothing": "CREATE VIEW mahasiswa AS SELECT * FROM nowhere",
    "an index": "CREATE TABLE m (nim TEXT, nama TEXT, alamat TEXT); CREATE INDEX mahasiswa ON m (nama)",
    "a version of another program": "CREATE TABLE mahasiswa (nim TEXT PRIMARY KEY); PRAGMA user_version = 1",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where a database may be created."""
    return tmp_path / "mahasiswa.db"


def refusal_line(path: Path) -> str:
    """Start the service, which must refuse the file in one line; return the line."""
    with pytest.raises(StartError) as ended:
        Service(path)
    assert ended.value.code == 1
    (line,) = ended.value.stderr.splitlines()
    return line


# ---- a new file


def test_a_new_file_gets_the_table_and_its_version(path: Path) -> None:
    """The version stands in user_version, and the journal is the write-ahead log."""
    migrate(SQLiteURL(path))
    assert contents(path) == []
    assert ask(path, "PRAGMA user_version") == [(1,)]
    assert ask(path, "SELECT sql FROM sqlite_schema WHERE name = 'mahasiswa'") == [(TABLE,)]
    assert ask(path, "PRAGMA journal_mode") == [("wal",)]


def test_an_empty_file_becomes_a_database(path: Path) -> None:
    """A file of no bytes, as `touch` or a mount makes it, is an SQLite database without tables."""
    path.touch()
    migrate(SQLiteURL(path))
    assert contents(path) == []


def test_other_tables_in_the_file_are_left_alone(path: Path) -> None:
    """The service adds its table to a file that holds other tables."""
    run_script(path, "CREATE TABLE dosen (nip TEXT PRIMARY KEY); INSERT INTO dosen VALUES ('1')")
    with Service(path) as service, service.site() as site:
        assert site.add("0001", "Siti", "Solo").status_code == 302
    assert ask(path, "SELECT * FROM dosen") == [("1",)]
    assert contents(path) == [("0001", "Siti", "Solo")]


# ---- the steps of an upgrade


def with_a_second_step(db: apsw.Connection, _: Path) -> None:
    """A step of a later release, which also changes records. It fails if a record has the nim "rusak"."""
    db.execute("CREATE TABLE mahasiswa_kelas (nim TEXT PRIMARY KEY)")
    db.execute(
        "INSERT INTO mahasiswa_kelas SELECT iif(nim = 'rusak', NULL + abs(-9223372036854775808), nim) FROM mahasiswa"
    )


def test_a_file_is_upgraded_by_the_steps_that_it_lacks(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step is made once and raises the version. A step that fails changes nothing."""
    migrate(SQLiteURL(path))
    run_script(path, "INSERT INTO mahasiswa VALUES ('rusak', 'Siti', 'Solo')")
    with monkeypatch.context() as later:
        later.setattr(schema, "STEPS", (*schema.STEPS, with_a_second_step))
        with pytest.raises(Unusable, match="integer overflow"):
            migrate(SQLiteURL(path))
        assert ask(path, "PRAGMA user_version") == [(1,)]
        assert ask(path, "SELECT name FROM sqlite_schema WHERE name = 'mahasiswa_kelas'") == []
        run_script(path, "UPDATE mahasiswa SET nim = '1'")
        for _ in range(2):
            migrate(SQLiteURL(path))
        assert ask(path, "PRAGMA user_version") == [(2,)]
        assert ask(path, "SELECT nim FROM mahasiswa_kelas") == [("1",)]
        migrate(SQLiteURL(path.with_name("new.db")))
        assert ask(path.with_name("new.db"), "PRAGMA user_version") == [(2,)]
    assert "has schema version 2, and this release knows only up to 1: use a newer release" in refusal_line(path)


def test_two_services_that_start_at_once_create_the_tables_once(path: Path) -> None:
    """Both answer. Each of them shows a record that the other one stores."""
    with ThreadPoolExecutor() as threads:
        starting = [threads.submit(Service, path) for _ in range(2)]
    services = [start.result() for start in starting]
    try:
        for number, service in enumerate(services):
            with service.site() as site:
                assert site.add(f"{number}", "Siti", "Solo").status_code == 302
                assert site.list().nims == [f"{n}" for n in range(number + 1)]
    finally:
        for service in services:
            service.close()


# ---- refused files


def test_a_file_of_a_newer_release_is_refused(path: Path) -> None:
    """One line names both versions, and the file does not change."""
    migrate(SQLiteURL(path))
    run_script(path, "PRAGMA user_version = 99; PRAGMA wal_checkpoint(TRUNCATE)")
    before = path.read_bytes()
    line = refusal_line(path)
    assert "has schema version 99" in line
    assert "knows only up to 1" in line
    assert path.read_bytes() == before


def test_a_file_whose_table_was_dropped_is_refused(path: Path) -> None:
    """An empty list in place of the lost one would hide the loss."""
    migrate(SQLiteURL(path))
    run_script(path, "DROP TABLE mahasiswa")
    assert "its table mahasiswa is missing" in refusal_line(path)


@pytest.mark.parametrize("script", FOREIGN.values(), ids=FOREIGN)
def test_a_foreign_table_is_refused_with_the_way_to_import_it(path: Path, script: str) -> None:
    """One line says how, and the file does not change."""
    assert_unchanged(path, script, "; export it as CSV with its own program, then run: mahasiswa import")


@pytest.mark.parametrize("version", DEVELOPMENT)
def test_a_file_of_a_development_version_is_refused_with_the_way_to_import_it(path: Path, version: int) -> None:
    """Its number may be that of a released schema, so the definitions are compared."""
    said = " was made by a development version; export it as CSV with that version, then import it into a new file"
    assert_unchanged(path, f"{DEVELOPMENT[version]}; PRAGMA user_version = {version}", said)


def test_a_table_of_another_program_with_a_name_of_ours_is_refused(path: Path) -> None:
    """One line says how to go on, and the file does not change."""
    said = " holds a table mahasiswa_history that this program did not make; rename it"
    assert_unchanged(path, "CREATE TABLE mahasiswa_history (x)", said)


def assert_unchanged(path: Path, script: str, said: str) -> None:
    """Make a file by this script. It must be refused in one line that ends like this, and no byte may change."""
    run_script(path, script)
    before = path.read_bytes()
    with pytest.raises(Unusable) as refused:
        migrate(SQLiteURL(path))
    assert str(refused.value).endswith(said)
    assert "\n" not in str(refused.value)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["mahasiswa.db"]


def test_a_utf_16_file_is_refused(path: Path) -> None:
    """SQLite orders UTF-16 by its bytes, which is not the order of code points."""
    run_script(path, "PRAGMA encoding = 'UTF-16le'; CREATE TABLE dosen (nip TEXT)")
    assert "has the encoding UTF-16le; it must be UTF-8" in refusal_line(path)


# ---- Debian's sqlite3 shell, whose SQLite 3.40 is older than the service's


def test_the_sqlite3_shell_reads_and_writes_a_file_of_the_service(path: Path, tmp_path: Path) -> None:
    """It imports CSV, inserts, updates and deletes while the service runs, and the service shows every change."""
    (tmp_path / "baru.csv").write_text("0003,Ani,Klaten\n0004,Ina,Sleman\n")
    with Service(path) as service, service.site() as site:
        site.add("0001", "Siti", "Solo")
        site.add("0002", "Budi", "Bantul")
        script = (
            f".import --csv {tmp_path}/baru.csv mahasiswa\nINSERT INTO mahasiswa VALUES ('0005', 'Eka', 'Bogor');"
            "UPDATE mahasiswa SET nama = 'Siti Baru' WHERE nim = '0001'; DELETE FROM mahasiswa WHERE nim = '0002';"
        )
        assert in_shell(path, script).returncode == 0
        assert [row[1:] for row in site.list().rows] == [
            ("0001", "Siti Baru", "Solo"),
            ("0003", "Ani", "Klaten"),
            ("0004", "Ina", "Sleman"),
            ("0005", "Eka", "Bogor"),
        ]
        assert in_shell(path, "PRAGMA integrity_check;").stdout == "ok\n"


def test_the_service_starts_on_a_dump_of_the_sqlite3_shell(path: Path, tmp_path: Path) -> None:
    """`.dump` leaves user_version out, so the table is recognised by its definition."""
    with Service(path) as service, service.site() as site:
        site.add("0001", "Siti", "Solo")
        dump = in_shell(path, ".dump").stdout
    restored = tmp_path / "restored.db"
    assert in_shell(restored, dump).returncode == 0
    with Service(restored) as service, service.site() as site:
        assert [row[1:] for row in site.list().rows] == [("0001", "Siti", "Solo")]
        assert service.stderr() == ""


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ("NULL, 'Siti', 'Solo'", "mahasiswa.nim"),
        ("'0001', 'Siti', NULL", "mahasiswa.alamat"),
        ("'..', 'Siti', 'Solo'", "nim_unaddressable"),
        ("printf('%0256d', 7), 'Siti', 'Solo'", "nim_too_long"),
        ("'0001', 'Si' || char(0), 'Solo'", "nama_nul"),
        ("'0001', 'Siti', x'53'", "mahasiswa.alamat"),
    ],
)
def test_the_sqlite3_shell_cannot_break_a_rule(path: Path, values: str, rule: str) -> None:
    """The rules stand in the file, so they bind every program."""
    migrate(SQLiteURL(path))
    refused = in_shell(path, f"INSERT INTO mahasiswa VALUES ({values});")
    assert refused.returncode != 0
    assert rule in refused.stderr
    assert contents(path) == []
