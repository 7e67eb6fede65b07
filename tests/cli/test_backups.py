"""Back-ups that get their name from the time: by the command and by the service, and how long they are kept."""

import re
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest
from cli.operators import TWO, Operator, records_of, use_up
from harness import Service, free_port
from processes import COMMAND, started, until
from spreadsheets import numbered
from stores import execute

from mahasiswa.system.unfinished import unfinished

NAME = re.compile(r"mahasiswa-[0-9a-f]{8}-\d{8}T\d{6}Z\.db")
CITRA = ("0008", "Citra", "Solo")
KEY = "SELECT signing_key FROM mahasiswa_history_state"


@pytest.fixture(name="kept")
def operator_with_a_folder_for_backups(operator: Operator) -> Operator:
    """Run commands in a folder with two records. BACKUP_DIR is the folder `cadangan`, which does not exist yet."""
    operator.fill(TWO)
    operator.environment |= {"HOST": "127.0.0.1", "PORT": str(free_port())}
    operator.environment["BACKUP_DIR"] = str(operator.backups)
    return operator


def backed_up(operator: Operator) -> Path:
    """Make the first back-up; return its file."""
    operator.done("backup")
    (file,) = operator.backup_files()
    return file


def renamed(file: Path, hours: float) -> Path:
    """Give a back-up the name of so many hours ago."""
    moment = datetime.now(UTC) - timedelta(hours=hours)
    older = re.sub(r"\d{8}T\d{6}Z", f"{moment:%Y%m%dT%H%M%SZ}", file.name)
    return file.rename(file.with_name(older))


def copied(file: Path, hour: int, *days: str) -> set[Path]:
    """Copy a back-up to the names of an hour of these days."""
    names = (re.sub(r"\d{8}T\d{6}Z", f"{day}T{hour:02}0000Z", file.name) for day in days)
    return {Path(shutil.copy(file, file.with_name(name))) for name in names}


def test_a_backup_without_a_name_goes_to_backup_dir(kept: Operator) -> None:
    """Its name has the list and the time. The folder and the file are private. Without BACKUP_DIR it is refused."""
    said = kept.done("backup")
    (file,) = kept.backup_files()
    assert NAME.fullmatch(file.name)
    assert said == f"{file}: {file.stat().st_size} bytes, verified\n"
    assert [path.stat().st_mode & 0o777 for path in (file.parent, file)] == [0o700, 0o600]
    assert records_of(file) == TWO
    assert [path.name for path in kept.backups.iterdir()] == [file.name]
    (line,) = kept.failed("backup", BACKUP_DIR="")
    assert line == "mahasiswa: name a file for the back-up, or set BACKUP_DIR to a folder"


def test_old_backups_are_removed_by_the_times_in_their_names(kept: Operator) -> None:
    """Two days stay whole, and the newest one of each of 30 days and of 12 months with back-ups."""
    last = datetime(2025, 6, 30, tzinfo=UTC)
    # Today has the back-up of this test, so the first of these days is the second one.
    days = [f"{last - timedelta(days=number):%Y%m%d}" for number in range(29)]
    # Today's month and 202506 are the first two of 12.
    months = [f"{year}{month:02}05" for year, month in MONTHS]
    file = backed_up(kept)
    stays = copied(file, 1, days[0]) | copied(file, 2, *days, *months[:10])
    goes = copied(file, 1, *days[1:], *months) | copied(file, 2, "20250601", *months[10:])
    foreign = file.with_name("mahasiswa-0123abcd-20200101T000000Z.db")
    own_name = file.with_name("mahasiswa-akhir-tahun.db")
    for other in (foreign, own_name, file.with_name("mahasiswa.db")):
        stays.add(Path(shutil.copy(file, other)))
    _, *removed = kept.done("backup").splitlines()
    assert sorted(removed) == sorted(f"removed the old back-up {path}" for path in goes)
    assert not any(path.exists() for path in goes)
    assert all(path.exists() for path in stays)


MONTHS = [
    *((2025, month) for month in range(5, 0, -1)),
    *((2024, month) for month in range(12, 5, -1)),
]


def test_nothing_is_removed_if_the_newest_backup_holds_less_than_half_of_the_one_before_it(
    kept: Operator,
) -> None:
    """One of as many records removes the old ones again."""
    file = renamed(backed_up(kept), 5)
    old = copied(file, 1, "20200101", "20200102") | copied(file, 2, "20200101")
    kept.sql("DELETE FROM mahasiswa")
    (said,) = kept.done("backup").splitlines()
    assert said.endswith(" bytes, verified")
    newest = {*kept.backup_files()} - {file} - old
    renamed(newest.pop(), 1)
    _, removed = kept.done("backup").splitlines()
    assert removed == f"removed the old back-up {min(old)}"


def test_a_backup_is_due_when_the_newest_one_has_the_age_of_backup_hours(kept: Operator) -> None:
    """Of one from the future, which a wrong clock has made, there is another one now."""
    kept.environment["BACKUP_HOURS"] = "12"
    ages = 11, 12, -24
    for age, made in zip(ages, (0, 1, 1), strict=True):
        shutil.rmtree(kept.backups, ignore_errors=True)
        renamed(backed_up(kept), age)
        assert len(kept.done("backup", "--due").splitlines()) == made, age
        assert len(kept.backup_files()) == 1 + made


def test_of_two_programs_only_one_makes_a_backup_of_a_list(kept: Operator) -> None:
    """While another program makes it, `backup --due` does nothing, and `backup` says so."""
    file = renamed(backed_up(kept), 99)
    with unfinished(file.with_name(re.sub(r"-\d{8}T\d{6}Z", "", file.name))):
        assert kept.done("backup", "--due") == ""
        (said,) = kept.failed("backup")
    fault = f"no backup was written to {kept.backups}"
    assert said == f"mahasiswa: {fault}: another program is writing it now"


def test_the_next_backup_replaces_the_unfinished_file_of_a_killed_one(kept: Operator) -> None:
    """There is one such file for a list, in a private folder."""
    kept.fill(numbered(200_000, "Nama {}", "Jalan Kaliurang {}"))
    with started(*COMMAND, "backup", cwd=kept.folder, env=kept.environment) as process:
        (left,) = until(lambda: [*kept.backups.glob(".*.unfinished")])
        process.kill()
    assert left.stat().st_mode & 0o777 == 0o700
    file = backed_up(kept)
    assert [*kept.backups.iterdir()] == [file]


def test_the_service_makes_a_backup_at_its_start_if_it_is_due(kept: Operator) -> None:
    """A restart soon afterwards makes no other one. The log names each back-up that is made or removed."""
    with Service(kept.database, {"BACKUP_DIR": str(kept.backups)}) as service:
        (file,) = until(kept.backup_files)
        service.says(f"INFO {file}: {file.stat().st_size} bytes, verified")
        until(lambda: not psutil.Process(service.pid).children())
        assert records_of(file) == TWO
        service.restart()
        until(lambda: not psutil.Process(service.pid).children())
        assert kept.backup_files() == [file]
        file = renamed(file, 24)
        for hour in (1, 2):
            copied(file, hour, "20200101", "20200102")
        service.restart()
        service.says("INFO removed the old back-up ")
        assert service.stop() == 0


def test_a_backup_that_fails_is_one_error_of_the_service(kept: Operator) -> None:
    """The line has the reason. The service goes on."""
    kept.backups.touch()
    said = f"no backup was written to {kept.backups}: File exists"
    with (
        Service(kept.database, {"BACKUP_DIR": str(kept.backups)}) as service,
        service.site() as site,
    ):
        service.says(f" ERROR the back-up failed (1): mahasiswa: {said}\n")
        assert site.get("/sehat").status_code == 200
        assert service.stderr().count("ERROR") == 1


def test_a_backup_on_a_full_disk_leaves_no_file(kept: Operator, small_disk: Path) -> None:
    use_up(small_disk)
    (line,) = kept.failed("backup", BACKUP_DIR=str(small_disk))
    assert line.startswith(f"mahasiswa: no backup was written to {small_disk}: ")
    assert [path.name for path in small_disk.iterdir()] == ["filler"]


@pytest.mark.parametrize("loss", ["missing", "empty"])
def test_a_lost_database_is_not_begun_anew_beside_its_backups(kept: Operator, loss: str) -> None:
    """Neither by the start nor by an import. The line names both remedies, and both work."""

    def lose() -> None:
        kept.database.unlink()
        if loss == "empty":
            kept.database.touch()

    file = backed_up(kept)
    lose()
    back = f"To have its records back: mahasiswa restore {file}"
    empty = f"To begin an empty list, move its back-ups away from {file.parent}"
    said = f"mahasiswa: {kept.database} holds no list, but it has back-ups. {back}. {empty}"
    ended = kept.run()
    assert ended.returncode == 2
    assert ended.stderr == f"{said}\n"
    assert kept.failed("import", kept.write_rows(CITRA)) == [said]

    kept.done("restore", str(file))
    assert kept.records() == TWO
    assert kept.sql(KEY) == execute(file, KEY)
    lose()
    file.rename(kept.folder / "simpanan")
    assert kept.done("import", kept.write_rows(CITRA)).startswith("written: 1")
