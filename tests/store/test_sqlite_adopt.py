"""`mahasiswa adopt` on SQLite: which tables of other programs it rebuilds, and which it refuses."""

import os
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from harness import Service
from stores import ask, contents, run_script

from mahasiswa.settings import SQLiteURL
from mahasiswa.store import migrate

RECORDS = [("0001", "Siti", "Solo"), ("20/2", "Zoë 🎓\r\n", "")]
INSERT = (
    "INSERT INTO mahasiswa (nim, nama, alamat) VALUES ('20/2', 'Zoë 🎓' || char(13, 10), ''), ('0001', 'Siti', 'Solo')"
)
NULLABLE = "CREATE TABLE mahasiswa (nim TEXT PRIMARY KEY, nama TEXT, alamat TEXT)"
UNTYPED = "CREATE TABLE mahasiswa (nim, nama, alamat)"

ADOPTED = {
    "a rowid table": "CREATE TABLE mahasiswa (nim TEXT PRIMARY KEY, nama TEXT NOT NULL, alamat TEXT NOT NULL)",
    "varchar": "CREATE TABLE mahasiswa (nim VARCHAR(20) PRIMARY KEY, nama VARCHAR(50) NOT NULL, alamat VARCHAR(9))",
    "nullable columns": NULLABLE,
    "untyped columns": UNTYPED,
    "a number type that holds texts": "CREATE TABLE mahasiswa (nim TEXT PRIMARY KEY, nama DATE, alamat INTEGER)",
    "another order of columns": "CREATE TABLE mahasiswa (alamat TEXT, nama TEXT, nim CHARACTER(8) PRIMARY KEY)",
    "names in another case": 'CREATE TABLE "Mahasiswa" (NIM TEXT PRIMARY KEY, Nama TEXT, "ALAMAT" TEXT)',
    "a NOCASE key": "CREATE TABLE mahasiswa (nim TEXT PRIMARY KEY COLLATE NOCASE, nama TEXT, alamat TEXT)",
    "a unique nim": "CREATE TABLE mahasiswa (nim TEXT, nama TEXT, alamat TEXT, CONSTRAINT satu UNIQUE (nim))",
    "no key": "CREATE TABLE mahasiswa (nim TEXT, nama TEXT, alamat TEXT)",
    "a key of two columns": "CREATE TABLE mahasiswa (nim TEXT, nama TEXT, alamat TEXT, PRIMARY KEY (nama, nim)) WITHOUT ROWID",
    "own rules": "CREATE TABLE mahasiswa (nim TEXT PRIMARY KEY ON CONFLICT REPLACE CHECK (length(nim) < 9), nama TEXT, alamat TEXT DEFAULT 'Solo')",
    "a write-ahead log": f"PRAGMA journal_mode = WAL; {NULLABLE}",
    "a version of another program": f"PRAGMA user_version = 1; {NULLABLE}",
}

REFUSED_RECORDS = {
    "NULL as nim": (NULLABLE, "NULL, 'a', 'b'", "NIM NULL: nim is NULL"),
    "NULL as nama": (NULLABLE, "'2', NULL, 'b'", "NIM '2': nama is NULL"),
    "NULL as alamat": (NULLABLE, "'2', 'a', NULL", "NIM '2': alamat is NULL"),
    "a blob": (NULLABLE, "'2', x'416e69', 'b'", "NIM '2': nama is of type blob, not text"),
    "a whole number": (UNTYPED, "2, 'a', 'b'", "NIM '2': nim is of type integer, not text"),
    "another number": (UNTYPED, "'2', 'a', 2.50", "NIM '2': alamat is of type real, not text"),
    "not UTF-8": (NULLABLE, "'2', CAST(x'41ff' AS TEXT), 'b'", "NIM '2': nama is not UTF-8"),
    "a nim that is not UTF-8": (NULLABLE, "CAST(x'41ff' AS TEXT), 'a', 'b'", "NIM 'A\\ufffd': nim is not UTF-8"),
    "a dot": (NULLABLE, "'.', 'a', 'b'", "NIM '.': no link can reach it"),
    "two dots": (NULLABLE, "'..', 'a', 'b'", "NIM '..': no link can reach it"),
    "NUL in nim": (NULLABLE, "'2' || char(0), 'a', 'b'", "NIM '2\\x00': nim contains a NUL character"),
    "NUL in alamat": (NULLABLE, "'2', 'a', char(0)", "NIM '2': alamat contains a NUL character"),
    "a long nim": (NULLABLE, "printf('%0256d', 2), 'a', 'b'", "it has more than 255 characters"),
    "the same nim again": (UNTYPED, "'0001', 'a', 'b'", "NIM '0001': it occurs more than once"),
}

REFUSED_TABLES = {
    "an index": (f"{NULLABLE}; CREATE INDEX menurut_nama ON mahasiswa (nama)", "remove the index menurut_nama first"),
    "a partial index": (f"{NULLABLE}; CREATE UNIQUE INDEX i ON mahasiswa (nim) WHERE nama > ''", "remove the index i first"),
    "a unique nama": ("CREATE TABLE mahasiswa (nim TEXT PRIMARY KEY, nama TEXT UNIQUE, alamat TEXT)", "remove the UNIQUE constraint"),
    "a trigger": (f"{NULLABLE}; CREATE TRIGGER jaga BEFORE DELETE ON mahasiswa BEGIN SELECT 1; END", "the trigger jaga"),
    "a trigger on another table": (
        f"{NULLABLE}; CREATE TABLE t (x); CREATE TRIGGER u AFTER INSERT ON t BEGIN DELETE FROM Mahasiswa; END",
        "the trigger u",
    ),
    "a view of the table": (f"{NULLABLE}; CREATE VIEW jumlah AS SELECT count(*) FROM mahasiswa", "the view jumlah"),
    "a foreign key to another table": (
        "CREATE TABLE kota (nama TEXT); CREATE TABLE mahasiswa (nim TEXT, nama TEXT, alamat TEXT REFERENCES kota)",
        "the foreign key to kota",
    ),
    "a foreign key of another table": (f"{NULLABLE}; CREATE TABLE nilai (nim TEXT REFERENCES mahasiswa)", "the foreign key of nilai"),
    "a column too many": ("CREATE TABLE mahasiswa (nim TEXT PRIMARY KEY, nama TEXT, alamat TEXT, kelas TEXT)", "nim, nama, alamat, kelas"),
    "a generated column": ("CREATE TABLE mahasiswa (nim TEXT PRIMARY KEY, nama TEXT, alamat TEXT, n AS (lower(nama)))", "nim, nama, alamat, n;"),
    "a column too few": ("CREATE TABLE mahasiswa (nim TEXT PRIMARY KEY, nama TEXT)", "has the columns nim, nama;"),
    "a view": ("CREATE TABLE m (nim TEXT, nama TEXT, alamat TEXT); CREATE VIEW mahasiswa AS SELECT * FROM m", "is of type view"),
    "an index named mahasiswa": ("CREATE TABLE m (nim TEXT); CREATE INDEX mahasiswa ON m (nim)", "is of type index"),
    "no such table": ("CREATE TABLE dosen (nip TEXT)", "has no table mahasiswa"),
    "an empty file": ("", "has no table mahasiswa"),
    "a newer version": (f"{NULLABLE}; PRAGMA user_version = 7", "has user_version 7"),
    "UTF-16": (f"PRAGMA encoding = 'UTF-16le'; {NULLABLE}", "it must be UTF-8"),
}  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where another program may create a database."""
    return tmp_path / "mahasiswa.db"


def adopt(path: Path) -> subprocess.CompletedProcess[str]:
    """Run `mahasiswa adopt` on a file."""
    return subprocess.run(
        [sys.executable, "-m", "mahasiswa", "adopt"],
        env={**os.environ, "DATABASE_URL": f"sqlite:///{path}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


def refusal_line(path: Path) -> str:
    """Run `mahasiswa adopt`, which must refuse the file in one line; return the line."""
    ended = adopt(path)
    assert ended.returncode == 1
    assert ended.stdout == ""
    (line,) = ended.stderr.splitlines()
    return line


# ---- kept


@pytest.mark.parametrize("script", ADOPTED.values(), ids=ADOPTED)
def test_a_foreign_table_is_adopted_after_a_backup(path: Path, script: str) -> None:
    """Every text is kept, the back-up has the old table and is private, and the service starts on the file."""
    run_script(path, f"{script}; {INSERT}")
    old = ask(path, "SELECT sql FROM sqlite_schema WHERE type = 'table'")
    ended = adopt(path)
    assert ended.stderr == ""
    said, _, saved = ended.stdout.strip().partition(": ")
    assert said == "2 records adopted; the database as it was before"
    assert contents(Path(saved)) == RECORDS
    assert ask(Path(saved), "SELECT sql FROM sqlite_schema WHERE type = 'table'") == old
    assert stat.S_IMODE(Path(saved).stat().st_mode) == 0o600
    with Service(path) as service, service.site() as site:
        assert service.stderr() == ""
        assert [row[1:] for row in site.list().rows] == RECORDS
        assert site.add("0001", "Ani", "Klaten").status_code == 409
        assert site.add("A", "Ani", "Klaten").status_code == site.add("a", "Ani", "Klaten").status_code == 302
    assert ask(
        path, "SELECT name FROM sqlite_schema WHERE name NOT LIKE 'mahasiswa~_%' ESCAPE '~' AND name NOT LIKE 'sqlite%'"
    ) == [("mahasiswa",)]


def test_adopting_keeps_the_other_tables_of_the_file(path: Path) -> None:
    """Only the table mahasiswa is rebuilt."""
    run_script(path, f"{NULLABLE}; {INSERT}; CREATE TABLE dosen (nip TEXT); INSERT INTO dosen VALUES ('1')")
    assert adopt(path).returncode == 0
    assert ask(path, "SELECT * FROM dosen") == [("1",)]


# ---- refused


@pytest.mark.parametrize(("script", "values", "named"), REFUSED_RECORDS.values(), ids=REFUSED_RECORDS)
def test_a_record_that_breaks_a_rule_prevents_adoption(path: Path, script: str, values: str, named: str) -> None:
    """One line names the record and the rule. The file does not change, and no back-up file is left behind."""
    run_script(path, f"{script}; {INSERT}; INSERT INTO mahasiswa VALUES ({values})")
    before = path.read_bytes()
    line = refusal_line(path)
    assert "nothing was changed, invalid records: 1. " in line
    assert named in line
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["mahasiswa.db"]


def test_only_the_first_refused_records_are_named(path: Path) -> None:
    """The line names three records and says how many more there are."""
    run_script(path, f"{UNTYPED}; INSERT INTO mahasiswa SELECT value, 'a', 'b' FROM json_each('[5, 4, 3, 2, 1]')")
    line = refusal_line(path)
    assert "invalid records: 5. " in line
    assert line.count("NIM") == 3
    assert line.endswith("; and 2 more")


@pytest.mark.parametrize(("script", "named"), REFUSED_TABLES.values(), ids=REFUSED_TABLES)
def test_a_table_that_cannot_be_rebuilt_is_not_adopted(path: Path, script: str, named: str) -> None:
    """One line names the reason, and the file does not change."""
    path.touch()
    run_script(path, script)
    before = path.read_bytes()
    assert named in refusal_line(path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["mahasiswa.db"]


def test_a_table_of_this_program_is_not_adopted(path: Path) -> None:
    """One line says that there is nothing to do."""
    migrate(SQLiteURL(path))
    assert "is this program's own already" in refusal_line(path)


def test_a_missing_file_is_not_adopted(path: Path) -> None:
    """One line says so, and no file is created."""
    assert "does not exist" in refusal_line(path)
    assert not path.exists()


def test_the_backup_of_adopt_never_replaces_a_file(path: Path) -> None:
    """If a file has the back-up's name already, that file and the database stay unchanged."""
    run_script(path, f"{NULLABLE}; {INSERT}")
    now = datetime.now(UTC)
    names = [f"{path.name}.before-{now + timedelta(seconds=after):%Y%m%dT%H%M%SZ}" for after in range(40)]
    for name in names:
        path.with_name(name).write_text("penting")
    assert "never replaces another" in refusal_line(path)
    assert {path.with_name(name).read_text() for name in names} == {"penting"}
    assert contents(path) == RECORDS
