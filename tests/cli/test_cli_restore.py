"""`mahasiswa restore`: the back-ups that it restores and refuses, and the files that it leaves."""

import os
import re
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.operators import TWO, UNPRIVILEGED, Operator, overwrite, records_of, use_up
from harness import Service, led_to, visited
from processes import until
from spreadsheets import HEADER, Record, csv, numbered
from stores import execute

from mahasiswa.system.administrator import command_name

NOW: list[Record] = [("0001", "Ani", "Solo"), ("3", "Citra", "Bantul")]
RESTART = "Start or restart the service now: systemctl restart mahasiswa"
REMARK = "If a person was forgotten after that back-up, forget them again: {} forget NIM"


@pytest.fixture(name="changed")
def operator_with_a_backup(operator: Operator) -> Operator:
    """Run commands in a folder with a back-up of TWO, and a list that holds NOW since."""
    operator.fill([("0001", "Ani", "Sleman"), TWO[1]])
    operator.sql("UPDATE mahasiswa SET alamat = 'Solo' WHERE nim = '0001'")
    operator.sql(f"VACUUM INTO '{operator.folder}/cadangan.db'")
    operator.sql(
        f"DELETE FROM mahasiswa WHERE nim = '0002'; INSERT INTO mahasiswa VALUES {NOW[1]}",
    )
    return operator


def history_of(path: Path) -> list[tuple[object, ...]]:
    return execute(path, "SELECT * FROM mahasiswa_history ORDER BY id")


def test_a_restore_brings_every_record_back(changed: Operator) -> None:
    """It says how many records differ, names the back-up of the replaced list, and says that a forgotten person is back."""
    first, second, third = changed.done("restore", "cadangan.db").splitlines()
    (saved,) = changed.folder.glob("mahasiswa.db.before-*")
    assert first == "2 records restored from cadangan.db: 1 added, 0 changed, 1 removed"
    assert second == f"the list as it was before: {saved}"
    assert third == REMARK.format("mahasiswa")
    assert changed.records() == TWO
    assert records_of(saved) == NOW
    assert changed.names() == {"mahasiswa.db", "cadangan.db", saved.name}
    assert {stat.S_IMODE(path.stat().st_mode) for path in (saved, changed.database)} == {0o600}


def test_a_running_service_shows_the_restored_list_and_its_line_of_the_history(
    changed: Operator,
) -> None:
    """Changes go on. The entries before it stay. The page names the restore and offers no undo of it."""
    with Service(changed.database) as service, service.site() as site:
        assert site.records == NOW
        before = history_of(changed.database)
        changed.done("restore", "cadangan.db")
        *kept, restored = history_of(changed.database)
        assert kept == before
        assert restored[2:] == (None, "restore", 2, None, None, None, None, None, command_name())
        assert "Terakhir: 2 mahasiswa dipulihkan dari cadangan" in site.get("/").text
        row = site.get("/mahasiswa/riwayat").text.partition("<tbody>")[2].partition("</tr>")[0]
        assert "Dipulihkan dari cadangan" in row
        assert "tidak dapat dikembalikan" in row
        assert "<form" not in row
        assert site.page("/?cari=budi").nims == ["0002"]
        assert site.page("/?cari=citra").nims == []
        led_to(site.add("4", "Dewi", "Solo"))
        assert site.records == [*TWO, ("4", "Dewi", "Solo")]
        assert history_of(changed.database)[-1][5] == "4"
        until(lambda: service.stderr().count("\n") == 1)


def test_a_backup_in_wal_mode_is_restored_from_a_folder_that_may_not_be_written(
    changed: Operator,
) -> None:
    """SQLite alone would refuse it, because it would create a log beside the file."""
    folder = changed.folder / "usb"
    folder.mkdir()
    shutil.copy(changed.folder / "cadangan.db", folder / "a.db")
    execute(folder / "a.db", "PRAGMA journal_mode = WAL")
    folder.chmod(0o500)
    changed.done("restore", "usb/a.db", before=UNPRIVILEGED)
    assert changed.records() == TWO
    assert [path.name for path in folder.iterdir()] == ["a.db"]


DAMAGED = r"a\.db cannot be restored in .*: .*(damaged|malformed).*"
NEWER = r"a\.db has schema version 99, .* only up to \d+: use a newer release"
FOREIGN = r"a\.db has schema version 1, but not the tables of it\. .* mahasiswa import FILE"
OTHER_TABLE = "DROP TABLE mahasiswa; CREATE TABLE mahasiswa (nim, nama, alamat)"
NEWER_TABLE = "ALTER TABLE mahasiswa ADD kelas TEXT; PRAGMA user_version = 2"
REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "a newer release": (lambda file: execute(file, "PRAGMA user_version = 99"), NEWER),
    "overwritten": (lambda file: overwrite(file, 4096), DAMAGED),
    "no database": (
        lambda file: file.write_bytes(csv(HEADER, *TWO)),
        r"a\.db cannot be restored in .*: file is not a database",
    ),
    "another program's": (lambda file: execute(file, OTHER_TABLE), FOREIGN),
    "in use": (
        lambda file: file.with_name("a.db-wal").touch(),
        r"a\.db is in use, or was not closed\. Copy it first: .* mahasiswa backup FILE",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_file_that_is_no_backup_is_refused(changed: Operator, kind: str) -> None:
    """With the reason in one line. No record changes, and no file is left."""
    prepare, said = REFUSED[kind]
    (changed.folder / "cadangan.db").rename(changed.folder / "a.db")
    prepare(changed.folder / "a.db")
    names = changed.names()
    (line,) = changed.failed("restore", "a.db")
    assert re.fullmatch(f"mahasiswa: {said}", line)
    assert changed.names() == names
    assert changed.records() == NOW


def test_a_restore_that_lacks_room_names_the_disk_of_the_list(
    operator: Operator, small_disk: Path
) -> None:
    """Whichever step needs more room than there is, nothing changes, and no file is left on the disk."""
    rows = numbered(1000, "y" * 100, nim="{:04}")
    operator.fill([(nim, nama, "Bantul") for nim, nama, _ in rows])
    operator.done("backup", "cadangan.db")
    operator = Operator(operator.folder, small_disk / "a.db")
    operator.done("import", operator.write_rows(*rows))
    filler = use_up(small_disk)
    steps = 0
    while (answer := operator.run("restore", "cadangan.db")).returncode:
        assert re.search("No space left on device|disk is full", answer.stderr)
        assert str(small_disk) in answer.stderr
        names = {path.name for path in small_disk.iterdir()}
        assert names <= {"a.db", "a.db-wal", "a.db-shm", "filler"}
        os.truncate(filler, filler.stat().st_size - 200_000)
        steps += 1
    assert steps > 2
    (before,) = small_disk.glob("a.db.before-*")
    assert records_of(before) == rows


def lose(operator: Operator) -> None:
    for suffix in ("", "-wal", "-shm"):
        operator.folder.joinpath(f"mahasiswa.db{suffix}").unlink(missing_ok=True)


def test_a_restore_into_an_empty_database_brings_the_history_back_while_the_service_runs(
    changed: Operator,
) -> None:
    """The service goes on. After the entries of the back-up there is the line of the restore."""
    lose(changed)
    with visited(Service(changed.database)) as site:
        assert site.list().rows == []
        assert "Start or restart" not in changed.done("restore", "cadangan.db")
        assert site.records == TWO
        led_to(site.add("4", "Dewi", "Solo"))
        *kept, restored, added = history_of(changed.database)
    assert kept == history_of(changed.folder / "cadangan.db")
    assert restored[3] == "restore"
    assert restored[4] == 2
    assert added[5] == "4"


LOSSES: dict[str, Callable[[Operator], object]] = {
    "missing": lose,
    "damaged": lambda operator: overwrite(operator.database),
    "newer": lambda operator: operator.sql(NEWER_TABLE),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_a_restore_replaces_a_file_that_cannot_be_repaired_while_the_service_runs(
    changed: Operator, loss: str
) -> None:
    """The back-up takes its place, history included. The old files are kept, and the command says to restart the service."""
    with Service(changed.database) as service, service.site() as site:
        LOSSES[loss](changed)
        said = changed.done("restore", "cadangan.db")
        assert "2 records restored from cadangan.db: 2 added, 0 changed, 0 removed" in said
        assert said.endswith(f"{RESTART}\n{REMARK.format('mahasiswa')}\n")
        assert site.get("/").status_code == 503
        assert site.add("5", "Ina", "Solo").status_code == 503
        service.restart()
        assert site.records == TWO
        led_to(site.add("4", "Dewi", "Solo"))
    assert history_of(changed.database)[:-1] == history_of(changed.folder / "cadangan.db")
    kept = list(changed.folder.glob("mahasiswa.db.before-*Z"))
    assert len(kept) == (loss != "missing")
    if loss == "newer":
        assert records_of(kept[0]) == NOW


@pytest.mark.parametrize("table", ["lain", "mahasiswa"])
def test_the_sound_file_of_another_program_is_not_replaced(changed: Operator, table: str) -> None:
    """DATABASE_URL names it by mistake. Its version is that of the other program."""
    lose(changed)
    changed.sql(f"CREATE TABLE {table} (nim); PRAGMA user_version = 7")
    before = changed.database.read_bytes()
    (line,) = changed.failed("restore", "cadangan.db")
    assert re.match(
        f"mahasiswa: {changed.database} has schema version 7, but not the tables of it",
        line,
    )
    assert changed.names() == {"mahasiswa.db", "cadangan.db"}
    assert changed.database.read_bytes() == before
