"""The schema of an SQLite file: created, upgraded from release 1.0.0, and refused if it is not this program's."""

import shutil
import stat
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from harness import Service, StartError
from stores import RELEASE_1_0_0, ask, contents, run_script

from mahasiswa.settings import SQLiteURL
from mahasiswa.store import migrate
from mahasiswa.store.errors import Unusable

RECORDS = [("", "", ""), ("0001", "Siti Nur'aini", "Jalan\r\nKaliurang"), ("20/2", "Zoë 🎓", "NULL")]

FOREIGN = {
    "without the rules": "CREATE TABLE mahasiswa (nim TEXT PRIMARY KEY, nama TEXT NOT NULL, alamat TEXT NOT NULL)",
    "a column too few": "CREATE TABLE mahasiswa (nim TEXT PRIMARY KEY, nama TEXT)",
    "a column too many": "CREATE TABLE mahasiswa (nim TEXT PRIMARY KEY, nama TEXT, alamat TEXT, kelas TEXT)",
    "number as key": "CREATE TABLE mahasiswa (nim INTEGER PRIMARY KEY, nama TEXT, alamat TEXT)",
    "release 1.0.0 and a column": f"{RELEASE_1_0_0}; ALTER TABLE mahasiswa ADD COLUMN kelas TEXT",
    "another case": 'CREATE TABLE "Mahasiswa" (nim TEXT PRIMARY KEY, nama TEXT, alamat TEXT)',
    "a view": "CREATE TABLE m (nim TEXT, nama TEXT, alamat TEXT); CREATE VIEW mahasiswa AS SELECT * FROM m",
    "a view of nothing": "CREATE VIEW mahasiswa AS SELECT * FROM nowhere",
    "an index": "CREATE TABLE m (nim TEXT, nama TEXT, alamat TEXT); CREATE INDEX mahasiswa ON m (nama)",
    "a version of another program": "CREATE TABLE mahasiswa (nim TEXT PRIMARY KEY); PRAGMA user_version = 1",
}

RULE_BREAKERS = {
    "NUL in nim": ("'a' || char(0), 'Siti', 'Solo'", "NIM 'a\\x00': nim contains a NUL"),
    "NUL in nama": ("'0002', char(0), 'Solo'", "NIM '0002': nama contains a NUL"),
    "NUL in alamat": ("'0002', 'Siti', 'So' || char(0) || 'lo'", "NIM '0002': alamat contains a NUL"),
    "long nim": ("printf('%0300d', 7), 'Siti', 'Solo'", "more than 255 characters"),
    "dot": ["'.', 'Siti', 'Solo'", "NIM '.': no link can reach it"],
    "two dots": ["'..', 'Siti', 'Solo'", "NIM '..': no link can reach it"],
    "not UTF-8": ("'0002', CAST(x'ff' AS TEXT), 'Solo'", "NIM '0002': nama is not UTF-8"),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where a database may be created."""
    return tmp_path / "mahasiswa.db"


def release_1_0_0(path: Path, records: Sequence[tuple[str, str, str]] = RECORDS) -> None:
    """Create a file as release 1.0.0 did: its table, and a write-ahead log."""
    rows = ", ".join(f"({', '.join(map(quoted, record))})" for record in records)
    run_script(path, f"PRAGMA journal_mode = WAL; {RELEASE_1_0_0}; INSERT INTO mahasiswa VALUES {rows}")


def quoted(text: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def backups(path: Path) -> list[Path]:
    """Return the back-up files that were written before the table was rebuilt."""
    return sorted(path.parent.glob(f"{path.name}.before-*"))


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
    assert ask(path, "PRAGMA user_version") == [(3,)]
    assert ask(path, "PRAGMA journal_mode") == [("wal",)]
    assert backups(path) == []


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


# ---- the upgrade from release 1.0.0


def test_a_file_of_release_1_0_0_is_upgraded_after_a_backup(path: Path) -> None:
    """Every text is kept, the rules apply to other programs too, and one line names the back-up file."""
    release_1_0_0(path)
    with Service(path) as service, service.site() as site:
        assert [row[1:] for row in site.list().rows] == RECORDS
        (saved,) = backups(path)
        (line,) = service.stderr().splitlines()
        assert line.endswith(f"a back-up is in {saved}")
        assert site.add("0003", "Ani", "Klaten").status_code == 302
        with pytest.raises(subprocess.CalledProcessError):
            run_script(path, "INSERT INTO mahasiswa VALUES ('.', 'Siti', 'Solo')")
    assert contents(path) == [*RECORDS[:2], ("0003", "Ani", "Klaten"), RECORDS[2]]
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600
    assert contents(saved) == RECORDS
    assert ask(saved, "PRAGMA user_version") == [(0,)]


def test_a_file_is_upgraded_only_once(path: Path) -> None:
    """The second start finds this release's schema and writes no further back-up."""
    release_1_0_0(path)
    for _ in range(2):
        migrate(SQLiteURL(path))
    assert len(backups(path)) == 1
    assert contents(path) == RECORDS


def test_two_services_that_start_at_once_upgrade_the_file_once(path: Path) -> None:
    """Both services answer with every record, and there is one back-up."""
    release_1_0_0(path)
    with ThreadPoolExecutor() as threads:
        starting = [threads.submit(Service, path) for _ in range(2)]
    services = [start.result() for start in starting]
    try:
        for service in services:
            with service.site() as site:
                assert [row[1:] for row in site.list().rows] == RECORDS
        assert len(backups(path)) == 1
    finally:
        for service in services:
            service.close()


def test_a_file_of_release_1_0_0_is_upgraded_under_the_running_service(path: Path, tmp_path: Path) -> None:
    """An old back-up takes the place of the file: it is upgraded and served without a restart."""
    release_1_0_0(tmp_path / "old.db")
    with Service(path) as service, service.site() as site:
        assert site.list().rows == []
        shutil.copy(tmp_path / "old.db", tmp_path / "copy.db")
        (tmp_path / "copy.db").replace(path)
        assert site.add("0003", "Ani", "Klaten").status_code == 302
        assert len(site.list().rows) == 4
    assert len(backups(path)) == 1


@pytest.mark.parametrize(("values", "named"), RULE_BREAKERS.values(), ids=RULE_BREAKERS)
def test_a_record_of_release_1_0_0_that_breaks_a_rule_prevents_the_upgrade(path: Path, values: str, named: str) -> None:
    """One line names the record and the rule. Nothing changes, and no back-up file is left behind."""
    release_1_0_0(path)
    run_script(path, f"INSERT INTO mahasiswa VALUES ({values})")
    before = ask(path, "SELECT hex(nim), hex(nama), hex(alamat) FROM mahasiswa")
    line = refusal_line(path)
    assert "nothing was changed, invalid records: 1. " in line
    assert named in line
    assert ask(path, "SELECT hex(nim), hex(nama), hex(alamat) FROM mahasiswa") == before
    assert ask(path, "SELECT sql FROM sqlite_schema") == [(RELEASE_1_0_0.replace("IF NOT EXISTS ", "").lstrip(),)]
    assert backups(path) == []


def test_an_upgrade_that_would_drop_an_index_is_refused(path: Path) -> None:
    """One line names the index, which someone added to the table of release 1.0.0."""
    release_1_0_0(path)
    run_script(path, "CREATE INDEX menurut_nama ON mahasiswa (nama)")
    assert "the index menurut_nama" in refusal_line(path)
    assert backups(path) == []


# ---- refused files


def test_a_file_of_a_newer_release_is_refused(path: Path) -> None:
    """One line names both versions, and the file does not change."""
    migrate(SQLiteURL(path))
    run_script(path, "PRAGMA user_version = 99; PRAGMA wal_checkpoint(TRUNCATE)")
    before = path.read_bytes()
    line = refusal_line(path)
    assert "has schema version 99" in line
    assert "knows only up to 3" in line
    assert path.read_bytes() == before


def test_a_file_whose_table_was_dropped_is_refused(path: Path) -> None:
    """An empty list in place of the lost one would hide the loss."""
    migrate(SQLiteURL(path))
    run_script(path, "DROP TABLE mahasiswa")
    assert "its table mahasiswa is missing" in refusal_line(path)


@pytest.mark.parametrize("script", FOREIGN.values(), ids=FOREIGN)
def test_a_foreign_table_is_refused_with_the_command_that_adopts_it(path: Path, script: str) -> None:
    """One line names the command, and the file does not change."""
    run_script(path, script)
    before = path.read_bytes()
    with pytest.raises(Unusable) as refused:
        migrate(SQLiteURL(path))
    assert str(refused.value).endswith("run: mahasiswa adopt")
    assert "\n" not in str(refused.value)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["mahasiswa.db"]


def test_a_utf_16_file_is_refused(path: Path) -> None:
    """SQLite orders UTF-16 by its bytes, which is not the order of code points."""
    run_script(path, "PRAGMA encoding = 'UTF-16le'; CREATE TABLE dosen (nip TEXT)")
    assert "has the encoding UTF-16le; it must be UTF-8" in refusal_line(path)


# ---- Debian's sqlite3 shell, whose SQLite 3.40 is older than the service's


@pytest.fixture
def shell() -> str:
    """Return the sqlite3 shell, or skip if it is not installed."""
    found = shutil.which("sqlite3")
    if found is None:
        pytest.skip("the sqlite3 shell is not installed")
    return found


def in_shell(shell: str, path: Path, *commands: str) -> str:
    """Run commands in the sqlite3 shell; return its output. It must end without an error."""
    return subprocess.run(
        [shell, "-bail", str(path)], input="\n".join(commands), capture_output=True, text=True, check=True
    ).stdout


def test_the_sqlite3_shell_reads_and_writes_a_file_of_the_service(path: Path, shell: str, tmp_path: Path) -> None:
    """It imports CSV, inserts, updates and deletes while the service runs, and the service shows every change."""
    (tmp_path / "baru.csv").write_text("0003,Ani,Klaten\n0004,Ina,Sleman\n")
    with Service(path) as service, service.site() as site:
        site.add("0001", "Siti", "Solo")
        site.add("0002", "Budi", "Bantul")
        in_shell(
            shell,
            path,
            f".import --csv {tmp_path}/baru.csv mahasiswa",
            "INSERT INTO mahasiswa VALUES ('0005', 'Eka', 'Bogor');",
            "UPDATE mahasiswa SET nama = 'Siti Baru' WHERE nim = '0001';",
            "DELETE FROM mahasiswa WHERE nim = '0002';",
        )
        assert [row[1:] for row in site.list().rows] == [
            ("0001", "Siti Baru", "Solo"),
            ("0003", "Ani", "Klaten"),
            ("0004", "Ina", "Sleman"),
            ("0005", "Eka", "Bogor"),
        ]
        assert in_shell(shell, path, "PRAGMA integrity_check;") == "ok\n"


def test_the_service_starts_on_a_dump_of_the_sqlite3_shell(path: Path, shell: str, tmp_path: Path) -> None:
    """`.dump` leaves user_version out, so the table is recognised by its definition."""
    with Service(path) as service, service.site() as site:
        site.add("0001", "Siti", "Solo")
        dump = in_shell(shell, path, ".dump")
    restored = tmp_path / "restored.db"
    in_shell(shell, restored, dump)
    with Service(restored) as service, service.site() as site:
        assert [row[1:] for row in site.list().rows] == [("0001", "Siti", "Solo")]
        assert service.stderr() == ""
    assert backups(restored) == []


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
def test_the_sqlite3_shell_cannot_break_a_rule(path: Path, shell: str, values: str, rule: str) -> None:
    """The rules stand in the file, so they bind every program."""
    migrate(SQLiteURL(path))
    with pytest.raises(subprocess.CalledProcessError) as refused:
        in_shell(shell, path, f"INSERT INTO mahasiswa VALUES ({values});")
    assert rule in refused.value.stderr
    assert contents(path) == []
