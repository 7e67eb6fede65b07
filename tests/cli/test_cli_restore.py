"""`mahasiswa restore`: the back-ups that it restores and refuses, and the files that it leaves."""

import re
import shutil
import stat
from pathlib import Path

import pytest
from harness import Service
from operators import TWO, Operator, records_of
from spreadsheets import HEADER, Record, csv
from stores import ask, run_script

from mahasiswa.settings import SQLiteURL
from mahasiswa.store.engines import backup
from mahasiswa.store.history import command_name

NOW: list[Record] = [("1", "Ani", "Solo"), ("3", "Citra", "Bantul")]
RESTART = "Start or restart the service now: systemctl restart mahasiswa"
REMARK = "A person who was forgotten after that back-up is in the list again. Run mahasiswa forget again."

# A table that another program keeps by triggers, as a search does.
SIDE_TABLE = """
CREATE TABLE samping (nim TEXT PRIMARY KEY, nama TEXT);
INSERT INTO samping SELECT nim, nama FROM mahasiswa;
CREATE TRIGGER samping_insert AFTER INSERT ON mahasiswa BEGIN INSERT INTO samping VALUES (NEW.nim, NEW.nama); END;
CREATE TRIGGER samping_update AFTER UPDATE ON mahasiswa
BEGIN UPDATE samping SET nama = NEW.nama WHERE nim = OLD.nim; END;
CREATE TRIGGER samping_delete AFTER DELETE ON mahasiswa BEGIN DELETE FROM samping WHERE nim = OLD.nim; END;
"""


@pytest.fixture(name="changed")
def operator_with_a_backup(operator: Operator) -> Operator:
    """Run commands in a folder with a back-up of TWO, and a list that holds NOW since."""
    operator.fill([("1", "Ani", "Sleman"), TWO[1]])
    run_script(operator.database, "UPDATE mahasiswa SET alamat = 'Solo' WHERE nim = '1'")
    backup(SQLiteURL(operator.database), operator.folder / "cadangan.db", lambda: False)
    run_script(
        operator.database,
        """
        DELETE FROM mahasiswa WHERE nim = '2'; INSERT INTO mahasiswa VALUES ('3', 'C', 'D');
        UPDATE mahasiswa SET nama = 'Citra', alamat = 'Bantul' WHERE nim = '3'
        """,
    )
    assert operator.records() == NOW
    return operator


def saved_by(operator: Operator) -> Path:
    """Return the back-up file that a restore has written before it replaced the records."""
    (saved,) = operator.folder.glob("mahasiswa.db.before-*")
    return saved


def assert_refused(operator: Operator, line: str, file: str = "cadangan.db") -> None:
    """Check that the command ends with this line, changes no record and leaves no file."""
    names, records = operator.names(), operator.records()
    assert operator.failed("restore", file) == [f"mahasiswa: {line}"]
    assert (operator.names(), operator.records()) == (names, records)


def test_a_restore_brings_every_record_back(changed: Operator) -> None:
    """It says how many records differ, names the back-up of the replaced list, and says that a forgotten person is back."""
    first, second, third, fourth = changed.done("restore", "cadangan.db").splitlines()
    saved = saved_by(changed)
    assert first == "2 records restored from cadangan.db: 1 added, 0 changed, 1 removed"
    assert second == f"the list as it was before: {saved}"
    assert re.fullmatch(r"the list could not be changed for \d+\.\d s", third)
    assert fourth == REMARK
    assert changed.records() == TWO
    assert records_of(saved) == NOW
    assert changed.names() == {"cadangan.db", saved.name}
    # Taken back at once: a second back-up within a second gets a name of its own.
    changed.done("restore", str(saved))
    assert changed.records() == NOW
    assert records_of(*(set(changed.folder.glob("mahasiswa.db.before-*")) - {saved})) == TWO
    assert {stat.S_IMODE(path.stat().st_mode) for path in changed.folder.iterdir()} == {0o600}


def test_a_restore_is_one_line_of_the_history_which_stays(changed: Operator) -> None:
    """The entries before it are still there. The page names the restore and offers no undo of it."""
    before = ask(changed.database, "SELECT * FROM mahasiswa_history")
    changed.done("restore", "cadangan.db")
    after = ask(changed.database, "SELECT * FROM mahasiswa_history")
    assert after[:-1] == before
    assert after[-1][2:] == (None, "restore", 2, None, None, None, None, None, command_name())
    with Service(changed.database) as service, service.site() as site:
        assert "Terakhir: 2 mahasiswa dipulihkan dari cadangan" in site.get("/").text
        row = site.get("/mahasiswa/riwayat").text.partition("<tbody>")[2].partition("</tr>")[0]
        assert "Dipulihkan dari cadangan" in row
        assert "tidak dapat dikembalikan" in row
        assert "<form" not in row
        site.add("9", "Dewi", "Solo")
    assert ask(changed.database, "SELECT nim FROM mahasiswa_history ORDER BY id DESC LIMIT 1") == [("9",)]


def test_a_restore_of_an_equal_list_writes_nothing(changed: Operator) -> None:
    """No back-up file is written and no line of the history."""
    changed.done("backup", "sama.db")
    before = changed.database.read_bytes()
    assert changed.done("restore", "sama.db") == "2 records are as in sama.db; nothing was changed\n"
    assert changed.names() == {"cadangan.db", "sama.db"}
    assert changed.database.read_bytes() == before


def test_a_restore_keeps_the_tables_of_other_programs_right(changed: Operator) -> None:
    """Their rows stay, and their triggers fire for each record that is written."""
    run_script(changed.database, f"{SIDE_TABLE} CREATE TABLE lain (a); INSERT INTO lain VALUES (7)")
    version = ask(changed.database, "PRAGMA user_version")
    changed.done("restore", "cadangan.db")
    assert ask(changed.database, "SELECT nim, nama FROM samping ORDER BY nim") == [("1", "Ani"), ("2", "Budi")]
    assert ask(changed.database, "SELECT a FROM lain") == [(7,)]
    assert ask(changed.database, "PRAGMA user_version") == version


def test_a_restore_without_a_history_writes_none(changed: Operator) -> None:
    """HISTORY_DAYS=0 stays in force."""
    with Service(changed.database, {"HISTORY_DAYS": "0"}):
        pass
    changed.done("restore", "cadangan.db")
    assert changed.records() == TWO
    assert ask(changed.database, "SELECT count(*) FROM mahasiswa_history") == [(0,)]
    assert ask(changed.database, "SELECT count(*) FROM sqlite_schema WHERE name GLOB 'mahasiswa_history*_insert'") == [
        (0,)
    ]


def test_a_running_service_shows_the_restored_list(changed: Operator) -> None:
    """The next page and the next search show it, and changes go on."""
    with Service(changed.database) as service, service.site() as site:
        assert [row[1:] for row in site.list().rows] == NOW
        changed.done("restore", "cadangan.db")
        assert [row[1:] for row in site.list().rows] == TWO
        assert (site.page("/?cari=budi").nims, site.page("/?cari=citra").nims) == (["2"], [])
        assert site.add("4", "Dewi", "Solo").status_code == 302
        assert [row[1:] for row in site.list().rows] == [*TWO, ("4", "Dewi", "Solo")]
        assert service.stderr().count("\n") == 1


# ---- other back-ups than those of this release


def test_a_backup_with_another_page_size_is_restored(changed: Operator) -> None:
    run_script(changed.folder / "cadangan.db", "PRAGMA page_size = 8192; VACUUM")
    assert ask(changed.folder / "cadangan.db", "PRAGMA page_size") == [(8192,)]
    changed.done("restore", "cadangan.db")
    assert changed.records() == TWO
    assert ask(changed.database, "PRAGMA page_size") == [(4096,)]


def test_the_files_of_another_database_are_restored_with_their_log(changed: Operator, tmp_path: Path) -> None:
    """Files that were copied after a crash: the newest records are in the write-ahead log."""
    other = tmp_path / "lain"
    other.mkdir()
    with Service(other / "a.db") as service, service.site() as site:
        site.add("8", "Ina", "Solo")
        service.kill()
    assert (other / "a.db-wal").stat().st_size > 0
    changed.done("restore", str(other / "a.db"))
    assert changed.records() == [("8", "Ina", "Solo")]


def test_a_backup_in_wal_mode_is_restored_from_a_folder_that_may_not_be_written(
    changed: Operator, unprivileged: list[str]
) -> None:
    """SQLite alone would refuse it, because it would create a log beside the file."""
    folder = changed.folder / "usb"
    folder.mkdir()
    shutil.copy(changed.folder / "cadangan.db", folder / "a.db")
    run_script(folder / "a.db", "PRAGMA journal_mode = WAL")
    folder.chmod(0o500)
    answer = changed.run("restore", "usb/a.db", before=unprivileged)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert changed.records() == TWO
    assert [path.name for path in folder.iterdir()] == ["a.db"]


# ---- refused


def test_a_backup_of_a_newer_release_is_refused(changed: Operator) -> None:
    run_script(changed.folder / "cadangan.db", "PRAGMA user_version = 99")
    names = changed.names()
    (line,) = changed.failed("restore", "cadangan.db")
    assert re.fullmatch(r"mahasiswa: cadangan\.db has schema version 99, .* only up to \d+: use a newer release", line)
    assert (changed.names(), changed.records()) == (names, NOW)


@pytest.mark.parametrize("damage", ["overwritten", "cut off"])
def test_a_damaged_backup_is_refused(changed: Operator, damage: str) -> None:
    data = (changed.folder / "cadangan.db").read_bytes()
    rest = b"" if damage == "cut off" else b"\xff" * 4096 + data[8192:]
    changed.write("cadangan.db", data[:4096] + rest)
    names = changed.names()
    (line,) = changed.failed("restore", "cadangan.db")
    assert line.startswith("mahasiswa: cadangan.db cannot be restored: ")
    assert "damaged" in line or "malformed" in line
    assert (changed.names(), changed.records()) == (names, NOW)


def test_a_file_that_is_no_backup_is_refused(changed: Operator) -> None:
    """Each kind with its reason: no database, no table, a table of another program."""
    changed.write("a.csv", csv(HEADER, *TWO))
    assert_refused(changed, "a.csv is not an SQLite database", "a.csv")
    changed.write("kosong.db", b"")
    assert_refused(changed, "kosong.db cannot be restored: no such table: mahasiswa", "kosong.db")
    run_script(changed.folder / "asing.db", "CREATE TABLE mahasiswa (nim TEXT PRIMARY KEY, nama TEXT, alamat TEXT)")
    assert_refused(
        changed,
        "asing.db holds a table mahasiswa that this program did not make; export it as CSV with its own program, then run: mahasiswa import",
        "asing.db",
    )


def test_the_database_itself_is_refused(changed: Operator) -> None:
    assert_refused(changed, "mahasiswa.db is the database itself", "mahasiswa.db")


def test_on_postgresql_the_command_names_pg_restore(operator: Operator) -> None:
    operator.write("a.dump", b"")
    (line,) = operator.failed("restore", "a.dump", DATABASE_URL="postgresql://tidak.ada/x")
    assert "pg_restore --clean" in line


def test_a_restore_to_a_full_disk_changes_nothing(operator: Operator, small_disk: Path) -> None:
    """The service goes on, because no file is left on the disk that fills it."""
    rows = [(f"{n:04}", "x" * 500, "Solo") for n in range(1000)]
    operator.fill([(nim, nama, "Bantul") for nim, nama, _ in rows])
    operator.done("backup", "cadangan.db")
    operator.environment["DATABASE_URL"] = f"sqlite:///{small_disk}/a.db"
    operator.done("import", operator.write("a.csv", csv(HEADER, *rows)))
    (line,) = operator.failed("restore", "cadangan.db")
    assert line.endswith(": No space left on device")
    assert records_of(small_disk / "a.db") == rows
    assert {path.name for path in small_disk.iterdir()} <= {"a.db", "a.db-wal", "a.db-shm"}


# ---- a database that is lost, empty, damaged, or of a newer release


def history_of(path: Path) -> list[tuple[object, ...]]:
    """Return the history of a file."""
    return ask(path, "SELECT * FROM mahasiswa_history ORDER BY id")


def test_a_restore_into_an_empty_database_brings_the_history_back_while_the_service_runs(changed: Operator) -> None:
    """The service goes on. After the entries of the back-up there is the line of the restore."""
    for path in changed.folder.glob("mahasiswa.db*"):
        path.unlink()
    with Service(changed.database) as service, service.site() as site:
        assert site.list().rows == []
        assert "Start or restart" not in changed.done("restore", "cadangan.db")
        assert [row[1:] for row in site.list().rows] == TWO
        assert site.add("4", "Dewi", "Solo").status_code == 302
        *kept, restored, added = history_of(changed.database)
    assert kept == history_of(changed.folder / "cadangan.db")
    assert (restored[3], restored[4], added[5]) == ("restore", 2, "4")


@pytest.mark.parametrize("loss", ["missing", "damaged", "newer"])
def test_a_restore_replaces_a_file_that_cannot_be_repaired_while_the_service_runs(changed: Operator, loss: str) -> None:
    """The back-up takes its place, history included. The old files are kept, and the command says to restart the service."""
    with Service(changed.database) as service, service.site() as site:
        if loss == "missing":
            for path in changed.folder.glob("mahasiswa.db*"):
                path.unlink()
        elif loss == "damaged":
            with changed.database.open("r+b") as file:
                file.write(b"\xff" * 8192)
        else:
            run_script(changed.database, "PRAGMA user_version = 99")
        assert RESTART in changed.done("restore", "cadangan.db")
        assert site.get("/").status_code == 503
        assert site.add("5", "Ina", "Solo").status_code == 503
        service.restart()
        assert [row[1:] for row in site.list().rows] == TWO
        assert site.add("4", "Dewi", "Solo").status_code == 302
    assert history_of(changed.database)[:-1] == history_of(changed.folder / "cadangan.db")
    kept = [path for path in changed.folder.glob(f"mahasiswa.db.{loss}-*") if path.suffix[-4:] not in ("-wal", "-shm")]
    assert len(kept) == (loss != "missing")
    if loss == "newer":
        assert records_of(kept[0]) == NOW


@pytest.mark.parametrize("first_bad_byte", [0, 4096], ids=["the whole file", "all pages but the first"])
def test_a_damaged_database_is_set_aside(changed: Operator, first_bad_byte: int) -> None:
    """Its files are kept under another name, and its write-ahead log does not get into the restored file."""
    with Service(changed.database) as service, service.site() as site:
        site.add("5", "Ina", "Solo")
        service.kill()
    log = Path(f"{changed.database}-wal").read_bytes()[:20]  # the rest is lost too
    Path(f"{changed.database}-wal").write_bytes(log)
    data = bytearray(changed.database.read_bytes())
    data[first_bad_byte:] = b"\xff" * (len(data) - first_bad_byte)
    changed.database.write_bytes(data)
    first, second, third, fourth = changed.done("restore", "cadangan.db").splitlines()
    assert first == "2 records restored from cadangan.db: 2 added, 0 changed, 0 removed"
    damaged = Path(second.removeprefix("the list as it was before: "))
    assert re.fullmatch(r"mahasiswa\.db\.damaged-\d{8}T\d{6}Z", damaged.name)
    assert damaged.read_bytes() == data
    assert (third, fourth) == (RESTART, REMARK)
    assert changed.records() == TWO
    with Service(changed.database) as service, service.site() as site:
        assert site.add("4", "Dewi", "Solo").status_code == 302
