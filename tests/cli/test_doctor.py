"""`mahasiswa doctor`: it names each fault with its remedy, and then ends with exit code 1."""

import os
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import psycopg
import pytest
from harness import Service
from operators import TWO, Operator, operator_in_empty_folder, unprivileged_command
from postgres import own_schema
from spreadsheets import HEADER, csv
from stores import run_script

# The fixtures, which pytest finds by these names.
__all__ = ["operator_in_empty_folder", "unprivileged_command"]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no file modes")


def problems(operator: Operator, *arguments: str, before: Sequence[str] = (), **environment: str) -> list[str]:
    """Run the command, which must find something wrong; return the sentences about that."""
    answer = operator.run("doctor", *arguments, before=before, **environment)
    assert answer.returncode == 1, answer.stdout
    assert "Traceback" not in answer.stderr
    return [line.removeprefix("WRONG  ") for line in answer.stdout.splitlines() if line.startswith("WRONG")]


@pytest.fixture(name="kept")
def operator_with_a_backup(operator: Operator) -> Operator:
    """Run commands in a folder with two records, and a back-up of them in the folder `cadangan`."""
    operator.fill(TWO)
    (operator.folder / "cadangan").mkdir()
    operator.done("backup", "cadangan/a.db")
    return operator


def test_a_sound_installation_is_reported_as_such(kept: Operator) -> None:
    """Each line begins with ok. The service may run meanwhile. The newest of several back-ups counts."""
    shutil.copy(kept.folder / "cadangan" / "a.db", kept.folder / "cadangan" / "lama.db")
    os.utime(kept.folder / "cadangan" / "lama.db", (0, 0))
    with Service(kept.database) as service, service.site() as site:
        site.add("3", "Citra", "Solo")
        lines = kept.done("doctor", "--backup", "cadangan").splitlines()
    assert all(line.startswith("ok     ") for line in lines)
    for said in (
        "The settings can be used",
        "MB are free",
        "Only the owner and its group have rights",
        "mahasiswa.db is sound and holds 3 records",
        "The newest back-up, cadangan/a.db, is 0.0 hours old",
        "cadangan/a.db is sound and holds 2 records",
    ):
        assert sum(said in line for line in lines) == 1, said


def test_without_a_folder_it_says_that_the_backups_were_not_checked(kept: Operator) -> None:
    assert "mahasiswa doctor --backup FOLDER" in kept.done("doctor").splitlines()[-1]


def test_nothing_is_written_to_the_database(kept: Operator) -> None:
    """No file is created beside it either, so the command can be run at any time."""
    before = kept.database.read_bytes()
    kept.done("doctor", "--backup", "cadangan")
    assert kept.database.read_bytes() == before
    assert kept.names() == {"cadangan", "isi.csv"}
    assert [path.name for path in (kept.folder / "cadangan").iterdir()] == ["a.db"]


def test_a_damaged_database_is_found(kept: Operator) -> None:
    data = bytearray(kept.database.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    kept.database.write_bytes(data)
    (line,) = problems(kept)
    assert line.startswith(f"{kept.database} is damaged (")
    assert line.endswith("Restore a back-up: mahasiswa restore FILE")


def test_a_missing_database_is_found_and_not_created(kept: Operator) -> None:
    kept.database.unlink()
    (line,) = problems(kept)
    assert line.startswith(f"{kept.database} does not exist. ")
    assert not kept.database.exists()


def test_a_missing_folder_is_found(operator: Operator) -> None:
    (line,) = problems(operator, DATABASE_URL="sqlite:////tidak/ada/a.db")
    assert line == "The folder /tidak/ada does not exist. Create it, or correct DATABASE_URL."


def test_a_database_of_a_newer_version_is_found(kept: Operator) -> None:
    run_script(kept.database, "PRAGMA user_version = 99")
    (line,) = problems(kept)
    assert "schema version 99" in line


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("CREATE TABLE lain (a)", "cannot be read: no such table: mahasiswa. Check DATABASE_URL, or restore a back-up"),
        ("CREATE TABLE mahasiswa (nim, nama, alamat)", "that this program did not make"),
    ],
)
def test_a_database_of_another_program_is_found(operator: Operator, script: str, found: str) -> None:
    """The service would not start on the second one."""
    run_script(operator.database, script)
    operator.database.chmod(0o600)
    (line,) = problems(operator)
    assert found in line


def test_a_user_without_rights_is_told_to_be_the_user_of_the_service(kept: Operator, unprivileged: list[str]) -> None:
    (kept.folder / "cadangan" / "a.db").chmod(0)
    kept.database.chmod(0o400)
    kept.folder.chmod(0o500)
    try:
        folder, backup = problems(kept, "--backup", "cadangan", before=unprivileged)
        kept.folder.chmod(0o700)
        database, _ = problems(kept, "--backup", "cadangan", before=unprivileged)
    finally:
        kept.folder.chmod(0o700)
    assert folder.startswith(f"This user may not write to {kept.folder}. Run this command as the user of the service")
    assert database.startswith(f"This user may not read and write {kept.database}. Run this command as the user")
    assert backup == "This user may not read cadangan/a.db. Run this command as the user of the service."


def test_rights_for_every_user_are_found(kept: Operator) -> None:
    kept.database.chmod(0o644)
    (line,) = problems(kept)
    assert line.endswith(f"Run: chmod o= {kept.database}*")


def test_a_full_disk_is_found(kept: Operator, small_disk: Path) -> None:
    shutil.copy(kept.database, small_disk / "a.db")
    (line,) = problems(kept, DATABASE_URL=f"sqlite:///{small_disk}/a.db")
    assert line.startswith("Only ")
    assert line.endswith("Make room on that disk.")


def test_a_misspelt_setting_is_found(kept: Operator) -> None:
    assert problems(kept, PROT="80") == ["PROT is not a setting and is ignored. If you mean PORT, rename it."]


def test_a_wrong_setting_ends_with_exit_code_2(kept: Operator) -> None:
    """Every command does the same."""
    assert kept.failed("doctor", code=2, PORT="x")[0].startswith("mahasiswa: PORT must be")


# ---- the back-ups


def test_an_old_backup_is_found(kept: Operator) -> None:
    """The limit is 26 hours."""
    file = kept.folder / "cadangan" / "a.db"
    os.utime(file, (time.time() - 25 * 3600,) * 2)
    assert "is 25.0 hours old" in kept.done("doctor", "--backup", "cadangan")
    os.utime(file, (time.time() - 27 * 3600,) * 2)
    (line,) = problems(kept, "--backup", "cadangan")
    assert "cadangan/a.db, is 27.0 hours old. Find out why" in line


def test_a_backup_from_the_future_is_found(kept: Operator) -> None:
    os.utime(kept.folder / "cadangan" / "a.db", (time.time() + 3600,) * 2)
    (line,) = problems(kept, "--backup", "cadangan")
    assert line == "cadangan/a.db was made later than now. Set the clock: timedatectl set-ntp true"


def test_the_database_is_no_backup_of_itself(kept: Operator) -> None:
    """A back-up of ten days is found although the live file is in the same folder."""
    file = (kept.folder / "cadangan" / "a.db").rename(kept.folder / "a.db")
    os.utime(file, (time.time() - 240 * 3600,) * 2)
    (line,) = problems(kept, "--backup", ".")
    assert line.startswith("The newest back-up, a.db, is 240.0 hours old")
    file.unlink()
    (line,) = problems(kept, "--backup", ".")
    assert line.startswith(". holds no back-up.")


def test_a_folder_without_a_backup_is_found(kept: Operator) -> None:
    (kept.folder / "cadangan" / "a.db").rename(kept.folder / "cadangan" / "a.txt")
    (line,) = problems(kept, "--backup", "cadangan")
    assert line.startswith("cadangan holds no back-up. Make one")


@pytest.mark.parametrize("damage", ["damaged", "no database", "a newer version"])
def test_a_backup_that_cannot_be_restored_is_found(kept: Operator, damage: str) -> None:
    file = kept.folder / "cadangan" / "a.db"
    if damage == "a newer version":
        run_script(file, "PRAGMA user_version = 99")
    elif damage == "no database":
        file.write_bytes(csv(HEADER, *TWO))
    else:
        data = bytearray(file.read_bytes())
        data[4096:8192] = b"\xff" * 4096
        file.write_bytes(data)
    (line,) = problems(kept, "--backup", "cadangan")
    assert line.startswith("cadangan/a.db ")
    assert line.endswith("Make another back-up now: mahasiswa backup FILE")


# ---- PostgreSQL


def test_a_sound_postgresql_database_is_reported_as_such(operator: Operator, postgres: str) -> None:
    """Only the server's settings are found wrong: this server is one of the tests, and runs without fsync."""
    with own_schema(postgres) as url:
        operator.environment["DATABASE_URL"] = url
        operator.imported(operator.write("a.csv", csv(HEADER, *TWO)))
        answer = operator.run("doctor")
    wrong = [line for line in answer.stdout.splitlines() if line.startswith("WRONG")]
    assert all("fsync = off" in line or "full_page_writes = off" in line for line in wrong)
    assert "The table mahasiswa has its constraints and holds 2 records." in answer.stdout


def test_a_table_without_its_constraints_is_found(operator: Operator, postgres: str) -> None:
    with own_schema(postgres) as url:
        operator.environment["DATABASE_URL"] = url
        operator.imported(operator.write("a.csv", csv(HEADER, *TWO)))
        with psycopg.connect(url) as db:
            db.execute("ALTER TABLE mahasiswa DROP CONSTRAINT nim_too_long")
        lines = problems(operator)
    assert any("lacks the constraints nim_too_long" in line for line in lines)


def test_a_postgresql_server_that_cannot_be_reached_is_found(operator: Operator) -> None:
    """The line does not show the password."""
    (line,) = problems(operator, DATABASE_URL="postgresql://siti:rahasia@127.0.0.1:1/x")
    assert line.startswith("PostgreSQL cannot be used: ")
    assert "rahasia" not in line
