"""Back-ups that get their name from the time: by the command and by the service, and how long they are kept."""

import asyncio
import fcntl
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from harness import Service, free_port, run_to_the_end
from operators import (
    COMMAND,
    TWO,
    Operator,
    aged,
    flickering,
    overwrite,
    records_of,
    until_idle,
    use_up,
)
from processes import children, needs_namespaces, started, until
from spreadsheets import numbered
from stores import ask, opened

from mahasiswa.settings import SQLiteURL
from mahasiswa.store.backup_folder import Outcome, read_outcome, write_outcome
from mahasiswa.store.sqlite.connection import LOCK_TIMEOUT_SECONDS, folder_lock
from mahasiswa.system.administrator import process_user

NAME = re.compile(r"mahasiswa-[0-9a-f]{8}-\d{8}T\d{6}Z(-2)?\.db")
CITRA = ("8", "Citra", "Solo")
KEY = "SELECT signing_key FROM mahasiswa_history_state"
HOUR = 3600
DAY = 24 * HOUR


@pytest.fixture(name="kept")
def operator_with_a_folder_for_backups(operator: Operator) -> Operator:
    """Run commands in a folder with two records. BACKUP_DIR is the folder `cadangan`, which does not exist yet."""
    operator.fill(TWO)
    operator.keep_backups()
    operator.environment |= {"HOST": "127.0.0.1", "PORT": str(free_port())}
    return operator


def test_a_backup_without_a_name_goes_to_the_folder_or_beside_the_database(kept: Operator) -> None:
    """The folder and the file are private. A list that did not change renews the file's time; a changed one is copied."""
    said = kept.done("backup")
    (first,) = kept.backup_files()
    assert NAME.fullmatch(first.name)
    assert said == f"{first}: {first.stat().st_size} bytes, verified\n"
    assert [path.stat().st_mode & 0o777 for path in (first.parent, first)] == [0o700, 0o600]
    aged(first, 365 * DAY)
    assert kept.done("backup") == said
    assert kept.backup_files() == [first]
    assert time.time() - first.stat().st_mtime < 60
    kept.sql("DELETE FROM mahasiswa WHERE nim = '1'")
    kept.done("backup")
    assert sorted(len(records_of(path)) for path in kept.backup_files()) == [1, 2]
    del kept.environment["BACKUP_DIR"]
    kept.done("backup")
    (beside,) = kept.names() - {"cadangan"}
    assert NAME.fullmatch(beside)


def test_a_list_that_nobody_changes_gets_no_new_backup_by_the_noted_clock(
    kept: Operator,
) -> None:
    """The service notes the clock once a day. After a restore of an old back-up the clock has not leapt."""
    ago = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '{}')"
    noted = f"SELECT noted > {ago.format('-1 hour')}, has_leapt FROM mahasiswa_history_state"
    age = f"UPDATE mahasiswa_history_state SET noted = {ago}"
    url = SQLiteURL(kept.database)

    async def purge() -> None:
        async with opened(url) as store:
            await store.purge()

    kept.sql(age.format("-25 hours"))
    kept.done("backup")
    (file,) = kept.backup_files()
    asyncio.run(purge())
    assert kept.ask(noted) == [(1, 0)]
    kept.done("backup")
    assert kept.backup_files() == [file]
    kept.database.unlink()
    kept.done("restore", str(file))
    asyncio.run(purge())
    assert kept.ask(noted) == [(1, 0)]
    kept.sql(age.format("-3 days"))
    asyncio.run(purge())
    assert kept.ask(noted) == [(1, 1)]


def moment(days: float) -> str:
    """Return the time in the name of a back-up of so many days ago."""
    return f"{datetime.fromtimestamp(time.time() - days * DAY, UTC):%Y%m%dT%H%M%SZ}"


def renamed(file: Path, days: float) -> Path:
    """Give a back-up the name and the file's time of days ago."""
    older = file.with_name(re.sub(r"\d{8}T\d{6}Z(-\d+)?", moment(days), file.name))
    file.rename(older)
    aged(older, days * DAY)
    return older


# Today's month, 202506 and 202505 are the first three of 12 months.
MONTH_ENDS = [
    "20250430",
    "20250331",
    "20250228",
    "20250131",
    "20241231",
    "20241130",
    "20241031",
    "20240930",
    "20240831",
]


def test_old_backups_are_removed_by_the_times_in_their_names_and_never_if_they_hold_much_more(
    kept: Operator,
) -> None:
    """The two newest days stay whole, 60 days and 12 months with their last one, and three that are twice as large.

    The files' own times say nothing: all files are as new as if they were copied without them.
    """
    larger, small = kept.folder / "besar", kept.folder / "kecil"
    kept.done("backup", str(small))
    more = "INSERT INTO mahasiswa VALUES ('3','A','B'),('4','A','B'),('5','A','B')"
    kept.sql(more)
    kept.done("backup", str(larger))
    kept.sql("DELETE FROM mahasiswa WHERE nim > '2'")
    kept.done("backup")
    own = kept.backup_files()[0].name.split("-")[1]

    def put(name: str, hour: int, *days: str, of: Path = small) -> set[Path]:
        """Copy a back-up to the names of an hour of these days."""
        files = {kept.folder / name.format(f"{day}T{hour:02}0000Z") for day in days}
        for file in files:
            shutil.copy(of, file)
        return files

    daily, old = f"cadangan/mahasiswa-{own}-{{}}.db", "cadangan/mahasiswa-{}.db"
    before = "mahasiswa.db.before-{}"
    last = datetime(2025, 6, 29, tzinfo=UTC)
    days = [f"{last - timedelta(days=number):%Y%m%d}" for number in range(58)]
    # Today has the back-up of this test. Then 20250630 is the second day, and 20250503 the 60th.
    stays = put(daily, 1, "20250630") | put(daily, 2, "20250630", *MONTH_ENDS) | put(old, 2, *days)
    goes = put(daily, 1, *days, *MONTH_ENDS, "20240731") | put(daily, 2, "20250429")
    stays |= put(daily, 0, "20250601", "20240101", "20230101", of=larger)
    goes |= put(daily, 0, "20220101", "20210101", of=larger)
    stays |= put(before, 2, "20250101", "20240101", "20230101") | put(before, 1, "20240101")
    goes |= put(before, 1, "20230101")
    # Cannot be read: they stay, and the others of their day stay too.
    damaged = put(daily, 3, "20250602", "20250606", "20200101") | put(old, 3, "20200101")
    for file in damaged:
        file.write_bytes(b"SQLite format 3" + bytes(9000))
    # From the future, of another list, and of no list.
    for name in (
        f"mahasiswa-{own}-{moment(-2)}.db",
        "mahasiswa-0123abcd-20200101T000000Z.db",
        "mahasiswa.db",
        "mahasiswa-akhir-tahun.db",
        "lain-20260101T000000Z.db",
    ):
        stays |= put(f"cadangan/{name}", 1, "")
    stays |= damaged
    answer = kept.run("backup")
    assert answer.returncode == 0
    assert all(file.exists() for file in stays)
    removed = re.findall("INFO removed the old back-up (.*)", answer.stderr)
    assert sorted(removed) == sorted(map(str, goes))
    assert len(removed) == len(answer.stderr.splitlines())


def test_each_of_two_lists_in_one_folder_has_its_own_backups(
    kept: Operator, tmp_path: Path
) -> None:
    """Both databases have the same name. An old name without an id belongs to the list whose key is in the file."""
    (tmp_path / "lain").mkdir()
    other = Operator(tmp_path / "lain")
    other.keep_backups(kept.backups)
    other.fill([("9", "Zul", "Solo")])
    kept.done("backup")
    (first,) = kept.backup_files()
    assert "holds no back-up" in other.doctor()
    with other.serving():
        until(lambda: [path.suffix for path in kept.backup_files()] == [".db"] * 2)
    (second,) = {*kept.backup_files()} - {first}
    assert records_of(second) == other.records()
    old_names = [
        file.rename(file.with_name(f"mahasiswa-{moment(days)}.db"))
        for days, file in ((3, first), (4, second))
    ]
    for operator, file in zip((kept, other), old_names, strict=True):
        assert f"The newest back-up, {file}, is " in operator.doctor()
        operator.done("backup")
        assert f"The newest back-up, {file}, is 0.0 hours" in operator.doctor()
    # Each of them removes its own only.
    for day in range(4, 8):
        shutil.copy(old_names[0], first.parent / f"mahasiswa-{moment(day)}-2.db")
    other.sql("DELETE FROM mahasiswa")
    other.done("backup")
    assert len(kept.backup_files()) == 7
    kept.sql("DELETE FROM mahasiswa WHERE nim = '1'")
    kept.run("backup")
    assert len(kept.backup_files()) == 8
    # A restore into an existing file keeps its key, and a copy has one of its own.
    before = other.ask(KEY)
    other.done("restore", str(old_names[0]))
    copied = kept.folder / "tujuan.db"
    kept.done("copy", "--to", f"sqlite:///{copied}")
    assert other.ask(KEY) == before
    assert len({*map(str, (before, kept.ask(KEY), ask(copied, KEY)))}) == 3


SHRUNK = "WRONG  The list has {} records fewer than within the last 30 days. If they are lost, restore a back-up."


def test_a_list_that_has_shrunk_is_an_alarm_until_its_number_is_accepted(kept: Operator) -> None:
    """By a tenth and by 20 records, compared with each back-up of 30 days. Later losses are another alarm."""
    kept.fill(numbered(300, "A", "B", nim="{:03}"))
    kept.done("backup")
    (file,) = kept.backup_files()
    file = renamed(file, 29)
    kept.sql("DELETE FROM mahasiswa WHERE nim >= '270'")
    kept.done("backup")
    assert "ok     The list" not in kept.done("doctor")
    kept.sql("DELETE FROM mahasiswa WHERE nim = '269'")
    assert SHRUNK.format(31) in kept.doctor()
    renamed(file, 31)
    assert SHRUNK.format(31) not in kept.done("doctor")
    kept.sql("DELETE FROM mahasiswa WHERE nim >= '200'")
    with (
        Service(kept.database, kept.environment | {"METRICS": "1", "BACKUP_HOURS": "1"}) as service,
        service.site() as site,
    ):
        aged(kept.backup_files()[-1], DAY)
        service.restart()
        until(lambda: re.search("records_missing.* 70\n", site.get("/metrics").text))
        assert SHRUNK.format(70) in kept.doctor()
        (line,) = (line for line in kept.doctor().splitlines() if "--accept" in line)
        kept.type_remedy(line)
        assert re.search("records_missing.* 0\n", site.get("/metrics").text)
        kept.sql("DELETE FROM mahasiswa WHERE nim >= '179'")
        assert SHRUNK.format(21) in kept.doctor()
    overwrite(kept.database, 0, 4096)
    (line,) = kept.failed("doctor", "--accept")
    assert line == f"mahasiswa: {kept.database} cannot be read"


def test_a_number_that_cannot_be_noted_is_not_accepted(
    kept: Operator, small_disk: Path, unprivileged: list[str]
) -> None:
    """One line says why: a full disk, or a file of another user."""
    noted = "mahasiswa.db.last-backup.json"
    shutil.copy(kept.database, small_disk)
    use_up(small_disk)
    url = f"sqlite:///{small_disk}/mahasiswa.db"
    said = f"mahasiswa: nothing was accepted: {small_disk}: No space left on device"
    assert kept.failed("doctor", "--accept", DATABASE_URL=url) == [said]
    kept.folder.joinpath(noted).touch(0)
    said = f"mahasiswa: nothing was accepted: {kept.folder / noted}: Permission denied"
    assert kept.failed("doctor", "--accept", before=unprivileged) == [said]


def test_a_clock_that_was_ahead_hides_no_loss_and_delays_no_test(kept: Operator) -> None:
    """The noted times of an acceptance and of a test are years in the future, and do not count."""
    kept.fill(numbered(100))
    ahead = time.time() + 3650 * DAY
    noted = Outcome(tested=ahead, accepted=ahead, accepted_records=5)
    write_outcome(kept.database, noted)
    with kept.serving():
        until(lambda: abs(read_outcome(kept.database).tested - time.time()) < 60)
    kept.sql("DELETE FROM mahasiswa WHERE nim > '00005'")
    missing = 100 - len(kept.records())
    assert missing > 90
    assert SHRUNK.format(missing) in kept.doctor()
    kept.doctor("--accept")
    assert SHRUNK.format(missing) not in kept.doctor()


def test_a_list_that_was_unchanged_for_months_is_compared_with_its_old_backup(
    kept: Operator,
) -> None:
    """As after a semester break: the name of its one back-up is old, and the file's time says when it was found last.

    A number that was accepted before the break stays accepted, and a later loss is another alarm.
    """
    kept.fill(numbered(300, "A", "B", nim="{:03}"))
    kept.done("backup")
    (file,) = kept.backup_files()
    file = renamed(file, 40)
    aged(file, DAY)
    assert "ok     The list" not in kept.done("doctor")
    kept.sql("DELETE FROM mahasiswa WHERE nim >= '200'")
    assert SHRUNK.format(100) in kept.doctor()
    kept.done("doctor", "--accept")
    last = read_outcome(kept.database)
    write_outcome(kept.database, last._replace(accepted=time.time() - 35 * DAY))
    assert SHRUNK.format(100) not in kept.done("doctor")
    kept.sql("DELETE FROM mahasiswa")
    assert SHRUNK.format(200) in kept.doctor()
    # The old one was replaced long ago: its file is as new as if the folder was copied.
    kept.sql("INSERT INTO mahasiswa VALUES ('1', 'A', 'B')")
    kept.done("backup")
    (newer,) = {*kept.backup_files()} - {file}
    aged(renamed(newer, 36), DAY)
    assert SHRUNK.format(199) not in kept.done("doctor")


def assert_not_begun(kept: Operator, file: Path, fault: str, before: Sequence[str] = ()) -> str:
    """Check that neither the start nor an import begins a list beside a copy; return their line about it."""
    remedies = f"To begin an empty list: mahasiswa begin. To have the records back: mahasiswa restore {file}"
    said = f"mahasiswa: {kept.database} holds no list, but {file} {fault}. {remedies}"
    ended = run_to_the_end(kept.environment, kept.folder, before)
    assert (ended.returncode, ended.stderr) == (2, f"{said}\n")
    assert kept.failed("import", kept.write_rows(CITRA), before=before) == [said]
    return said


def test_a_lost_database_is_not_begun_anew_beside_its_copies(kept: Operator) -> None:
    """The start, an import and a copy refuse. They name the commands that restore it or begin an empty list."""
    kept.done("backup")
    (file,) = kept.backup_files()
    source = f"sqlite:///{shutil.copy(kept.database, kept.folder / 'lain.db')}"
    kept_copy = file.rename(kept.folder / "simpanan")
    beside = kept.folder / "mahasiswa-20200101T000000Z.db"
    future = file.with_name(f"mahasiswa-{moment(-9)}.db")
    for copy in (file, beside, future):
        shutil.copy(kept_copy, copy)
        kept.environment["BACKUP_DIR"] = "" if copy == beside else str(kept.backups)
        for path in kept.folder.glob("mahasiswa.db*"):
            path.unlink()
        if copy != file:  # the file is there, but without tables
            kept.database.touch()
        said = assert_not_begun(kept, copy, "holds 2 records")
        assert kept.failed("copy", "--from", source) == [said]
        kept.done("restore", str(copy))
        assert kept.records() == TWO
        assert kept.ask(KEY) == ask(kept_copy, KEY), "it is the same list"
        kept.database.unlink()
        assert kept.done("begin") == f"{kept.database} is ready\n"
        with kept.serving() as service:
            with service.site() as site:
                assert site.list().records == []
                site.stores(*TWO[0])
            service.kill()
            service.restart()  # the log of a killed instance holds a list
        assert kept.records() == TWO[:1]
        for path in (*kept.folder.glob("cadangan/*.db"), copy):
            path.unlink(missing_ok=True)


def test_an_empty_file_beside_a_log_is_a_lost_database(kept: Operator) -> None:
    """SQLite removes the log of an empty file, so it holds no list. A restore brings the records back."""
    kept.done("backup")
    (file,) = kept.backup_files()
    with kept.serving() as service, service.site() as site:
        site.stores(*CITRA)
        service.kill()
    os.truncate(kept.database, 0)
    assert kept.database.with_name("mahasiswa.db-wal").stat().st_size > 0
    assert_not_begun(kept, file, "holds 2 records")
    kept.done("restore", str(file))
    assert kept.records() == TWO


@pytest.mark.parametrize("copy", ["a back-up", "a damaged database"])
def test_a_lost_database_is_not_begun_anew_beside_a_copy_that_cannot_be_read(
    kept: Operator, unprivileged: list[str], copy: str
) -> None:
    """The line names the copy. With the right to read it, the start says what it holds."""
    kept.done("backup")
    (file,) = kept.backup_files()
    if copy == "a damaged database":
        file = file.rename(kept.folder / f"mahasiswa.db.damaged-{moment(1)}")
    kept.database.unlink()
    file.chmod(0)
    rights = f"belongs to {process_user()}, who may not use it. Run: chmod u+rwX {file}"
    assert_not_begun(kept, file, rights, unprivileged)
    file.chmod(0o600)
    assert_not_begun(kept, file, "holds 2 records")
    overwrite(file)
    assert_not_begun(kept, file, "cannot be read")
    # A folder that cannot be used stops nothing.
    if copy == "a back-up":
        file.parent.chmod(0)
        kept.done("import", kept.write_rows(CITRA), before=unprivileged)
        file.parent.chmod(0o700)


def test_a_copy_without_records_does_not_stop_a_new_list(kept: Operator) -> None:
    kept.sql("DELETE FROM mahasiswa")
    kept.done("backup")
    kept.database.unlink()
    assert kept.imported_rows(CITRA).startswith("written: 1")


def test_the_service_restores_its_newest_backup_each_month_as_a_test(
    kept: Operator, small_disk: Path
) -> None:
    """The result is in `doctor`. A back-up that cannot be restored, or a disk without room, is a finding until it can."""
    kept.sql("INSERT INTO mahasiswa VALUES ('3', 'x', printf('%.*c', 200000, 'x'))")
    shutil.copy(kept.database, small_disk / "mahasiswa.db")
    kept.use(small_disk / "mahasiswa.db")
    succeeded = "ok     The service has restored a back-up as a test at "

    def tested(days: int = 31) -> str:
        """Return what doctor says so many days later: a test that failed is repeated after a day."""
        last = read_outcome(kept.database)
        write_outcome(kept.database, last._replace(tested=last.tested - days * DAY))
        with Service(kept.database, kept.environment) as service:
            until(lambda: time.time() - read_outcome(kept.database).tested < 60)
            assert read_outcome(kept.database).problem == ""
            assert service.stop() == 0
        assert {path.name for path in small_disk.glob(".mahasiswa-*")} == set()
        return kept.doctor()

    assert succeeded in tested()
    (file,) = kept.backup_files()
    good = file.read_bytes()
    overwrite(file, 4096, 8192)
    remedy = "Make room on the disk, or make a new back-up: mahasiswa backup\n"
    said = f"WRONG  The test restore of .* failed: {file} cannot be restored: .*damaged.* {remedy}"
    assert re.search(said, tested())
    file.write_bytes(good)
    (small_disk / "penuh").write_bytes(bytes(2300 * 1024))
    said = f"WRONG  The test restore of .*: {file} was not restored as a test: only"
    assert re.search(said, tested(1))
    (small_disk / "penuh").unlink()
    assert succeeded in tested(1)


AGAIN = "The service tries again within an hour. At once: systemctl restart mahasiswa"


def test_doctor_reports_that_the_service_cannot_write_where_the_command_can(
    kept: Operator, unprivileged: list[str]
) -> None:
    """Also while the newest back-up is young. The next success of the service clears it."""
    kept.done("backup")
    folder = kept.backups
    folder.chmod(0o500)
    failed = "WRONG  The service's last back-up failed at "
    with kept.serving([*unprivileged, *COMMAND]) as service:
        service.says(" ERROR no backup was written to the folder")
        until(lambda: failed in kept.doctor())
        rights = f"Give the user {process_user()} the rights on it\n"
        assert f"{folder}: Permission denied. {AGAIN}. {rights}" in kept.doctor()
        folder.chmod(0o700)
        kept.done("backup")
        assert AGAIN in kept.doctor()
        service.restart()
        succeeded = "ok     The service could write to the folder of the back-ups at "
        until(lambda: succeeded in kept.doctor())
    assert failed not in kept.doctor()


# Runs a program to which a folder is read-only, as to a unit of systemd with ProtectSystem=strict.
PROTECTED = [
    "unshare",
    "--mount",
    "sh",
    "-ec",
    'mount --bind "$0" "$0"; mount -o remount,bind,ro "$0"; exec "$@"',
]


@pytest.mark.root
def test_doctor_names_the_command_that_lets_the_service_use_a_folder_on_another_disk(
    kept: Operator,
) -> None:
    """The command succeeds there, because it runs outside of the unit's sandbox."""
    needs_namespaces()
    kept.done("backup")
    folder = kept.environment["BACKUP_DIR"]
    remedy = f"As root, run: mahasiswa-backup-folder {folder}"
    said = f"{folder}: Read-only file system. {AGAIN}. {remedy}\n"
    with kept.serving([*PROTECTED, folder, *COMMAND]):
        until(lambda: said in kept.doctor())
        kept.done("backup")
        assert said in kept.doctor()


@pytest.mark.root
def test_doctor_does_not_move_the_backups_to_the_disk_of_the_records_if_their_disk_is_gone(
    kept: Operator,
) -> None:
    """The mount point is protected as the folder was. Both lines say that the disk must be connected."""
    needs_namespaces()
    mount_point = kept.folder / "usb"
    mount_point.mkdir()
    kept.keep_backups(mount_point / "cadangan")
    other = "or set BACKUP_DIR to another folder, under systemd by mahasiswa-backup-folder FOLDER"
    remedy = f"Connect its disk, {other}\n"
    with kept.serving([*PROTECTED, str(mount_point), *COMMAND]):
        until(lambda: f"Read-only file system. {AGAIN}. {remedy}" in kept.doctor())
    read = f"The folder of the back-ups {kept.backups} cannot be read: No such file or directory"
    assert f"{read}. {remedy}" in kept.doctor()


def test_the_copy_of_a_killed_command_is_named_and_removed_after_an_hour(filled: Operator) -> None:
    """Whatever characters the database's name has. A folder whose program still works, and a person's own, are left alone."""
    filled.use(filled.database.rename(filled.folder / "maha[1].db"))
    filled.keep_backups()
    with started(*COMMAND, "backup", cwd=filled.folder, env=filled.environment) as process:
        until(lambda: any(filled.backups.glob(".mahasiswa-*/*.db")))
        process.kill()
    (left,) = filled.backups.glob(".mahasiswa-*")
    own = filled.backups / ".mahasiswa-cadangan"
    own.mkdir()
    aged(own, 365 * DAY)
    assert f"\n{left} still holds the texts.\n" in filled.done("forget", "0000001")
    filled.done("backup")
    assert left.exists()
    aged(left, 2 * HOUR)
    assert f"{left} was left by a program that was killed" in filled.doctor()
    with (left / "lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        filled.done("backup")
        assert left.exists()
    filled.done("backup")
    assert (left.exists(), own.exists()) == (False, True)


def test_the_service_makes_a_backup_at_its_start_if_the_newest_one_is_old(kept: Operator) -> None:
    """In a process that ends. A younger one is left alone. The end of the service does not wait for a back-up."""
    with kept.serving() as service:
        until(
            lambda: (
                len(kept.backup_files()) == 1
                and NAME.fullmatch(kept.backup_files()[0].name) is not None
            )
        )
        service.says(f"INFO back-up {kept.backup_files()[0]}: ")
        until_idle(service)
        assert records_of(kept.backup_files()[0]) == TWO
        assert "no back-ups" not in service.stdout()
        (file,) = kept.backup_files()
        kept.sql("DELETE FROM mahasiswa WHERE nim = '1'")
        for age, count in ((22 * HOUR, 1), (24 * HOUR, 2)):
            aged(file, age)
            service.restart()
            until_idle(service)
            until(lambda count=count: len(kept.backup_files()) == count)  # type: ignore[misc]
        assert service.stop() == 0


# The service, whose third child process makes a back-up and gets SIGTERM before it runs anything of ours.
TERMINATED = """
import os, signal
from mahasiswa.commands.cli import main
forks = []
os.register_at_fork(
    after_in_parent=lambda: forks.append(print("forked", flush=True)),
    after_in_child=lambda: len(forks) == 2 and os.kill(os.getpid(), signal.SIGTERM),
)
main()
"""


def test_sigterm_ends_a_backup_that_has_just_begun(kept: Operator) -> None:
    """It leaves no file. The service, from which the process has inherited its handlers, goes on."""
    command = [sys.executable, "-c", TERMINATED]
    with kept.serving(command) as service, service.site() as site:
        until(lambda: service.stdout().count("forked") == 3)
        until_idle(service)
        assert (kept.backup_files(), service.stderr()) == ([], "")
        assert site.list().records == TWO
        assert service.stop() == 0


def locked(folder: Path) -> None:
    folder.mkdir(0o700, exist_ok=True)
    fcntl.flock(os.open(folder, os.O_RDONLY), fcntl.LOCK_EX)


@pytest.mark.torture
def test_a_service_does_not_wait_for_ever_for_a_locked_folder(tmp_path: Path) -> None:
    """It ends with one line that names the folder and says why."""
    locked(tmp_path)
    environment = {"PORT": str(free_port()), "DATABASE_URL": f"sqlite:///{tmp_path}/a.db"}
    ended = run_to_the_end(environment, tmp_path)
    assert ended.returncode == 1
    said = f"mahasiswa: another program has locked the folder {tmp_path} for {LOCK_TIMEOUT_SECONDS:g} s"
    assert ended.stderr == f"{said}. Probably a back-up runs: try again later\n"


def test_folders_of_other_programs_that_vanish_meanwhile_are_no_fault(kept: Operator) -> None:
    """As those of exports that end while the service starts."""
    folders = [kept.folder / f".mahasiswa-{number:032x}" for number in range(50)]
    with flickering(folders, Path.mkdir, Path.rmdir):
        for _ in range(5):
            assert kept.run("doctor").stderr == ""
            kept.done("export", "a.csv")


def test_a_newest_backup_that_cannot_be_read_does_not_stop_the_next_one(
    kept: Operator, unprivileged: list[str]
) -> None:
    """It has the same size, as another user's copy of the same list has. It is blamed, and stays."""
    kept.done("backup")
    (unreadable,) = kept.backup_files()
    unreadable.chmod(0)
    answer = kept.run("backup", before=unprivileged)
    assert answer.returncode == 0, answer.stderr
    assert f"{unreadable} cannot be used: Permission denied" in answer.stderr
    assert len(kept.backup_files()) == 2


NOTED = "mahasiswa.db.last-backup.json"
MOMENTS = b'"moment": 1e9, "succeeded": 1e9'
OUTCOMES = {
    "a field more": b'{%s, "problem": "", "failures": 3, "later": [1]}' % MOMENTS,
    "a field less": b'{%s, "problem": ""}' % MOMENTS,
    "torn": b'{%s, "prob' % MOMENTS,
    "never synced": bytes(4096),
    "empty": b"",
    "no object": b"[1, 2]",
    "no UTF-8": b'{"problem": "\xff"}',
}


def test_an_outcome_that_cannot_be_read_counts_as_empty_and_an_unknown_field_is_ignored(
    kept: Operator,
) -> None:
    """For `doctor`, for /metrics and for the next back-up, which notes its own."""
    noted = kept.folder / NOTED
    noted.write_bytes(OUTCOMES["torn"])
    with kept.serving(METRICS="1") as service, service.site() as site:
        until(lambda: time.time() - read_outcome(kept.database).succeeded < 60)
        for outcome in OUTCOMES.values():
            noted.write_bytes(outcome)
            answer = kept.run("doctor")
            assert answer.stderr == ""
            is_known = b'"moment": 1e9' in outcome and outcome.endswith(b"}")
            assert ("could write to the folder" in answer.stdout) == is_known
            assert site.get("/metrics").status_code == 200
        assert "Traceback" not in service.stderr()


def test_an_outcome_that_the_service_may_not_read_stops_no_backup(
    kept: Operator, unprivileged: list[str]
) -> None:
    """As after a command of root. The log and `doctor` blame it."""
    noted = kept.folder / kept.write(NOTED, b"{}")
    noted.chmod(0)
    with kept.serving([*unprivileged, *COMMAND]) as service:
        service.says(" ERROR the outcome of the back-up could not be noted")
        assert [path.suffix for path in kept.backup_files()] == [".db"]
        assert "Traceback" not in service.stderr()
    said = kept.run("doctor", before=unprivileged).stdout
    fault = "WRONG  The outcome of the service's last back-up cannot be read: Permission denied"
    assert f"{fault}. As root, run: chown {process_user()}: {noted}\n" in said


def test_a_number_that_is_accepted_during_a_backup_stays_accepted(kept: Operator) -> None:
    """The service notes how its back-up ended in the same file."""
    folder = kept.backups
    folder.mkdir(0o700)
    with ExitStack() as lock:
        lock.enter_context(folder_lock(folder))
        with kept.serving() as service:
            until(lambda: any(is_open(folder, by=child) for child in children(service.pid)))
            assert "2 records are accepted" in kept.doctor("--accept")
            lock.close()
            until(lambda: read_outcome(kept.database).succeeded)
    assert read_outcome(kept.database).accepted_records == 2


def is_open(folder: Path, by: int) -> bool:
    with suppress(OSError):  # it has closed a file meanwhile
        return any(file.samefile(folder) for file in Path(f"/proc/{by}/fd").iterdir())
    return False


def test_the_outcome_of_a_folder_with_any_name_is_noted(kept: Operator) -> None:
    """With bytes that are no UTF-8, and so many control characters that its text is cut."""
    kept.keep_backups(Path(os.fsdecode(b"\xff"), *4 * ("\x01" * 200,)))
    with kept.serving() as service:
        until(lambda: read_outcome(kept.database).problem)
        assert " ERROR no backup was written to the folder" in service.stderr()
        assert "Traceback" not in service.stderr()
    answer = kept.run("doctor")
    assert "WRONG  The service's last back-up failed at " in answer.stdout
    assert answer.stderr == ""


def test_a_folder_that_hangs_or_may_not_be_used_never_stops_the_service(
    kept: Operator, hanging_folder: Path, unprivileged: list[str]
) -> None:
    """The start does not wait, pages are answered beside /metrics, and the end comes in time. All blame the folder."""
    forbidden = kept.folder / "terlarang"
    forbidden.mkdir(0o000)
    connect, rights = "Connect its disk, or ", f"Give the user {process_user()} the rights on it"
    for folder, said, remedy in (
        (hanging_folder / "mahasiswa", "it has not answered for 5 s", connect),
        (forbidden, "Permission denied", rights),
        (forbidden / "mahasiswa", "Permission denied", rights),
    ):
        kept.keep_backups(folder)
        with (
            kept.serving([*unprivileged, *COMMAND], METRICS="1") as service,
            service.site() as site,
            service.site() as monitor,
            ThreadPoolExecutor(1) as thread,
        ):
            metrics = thread.submit(monitor.get, "/metrics")
            assert site.edit("1", "Ani", str(folder)).status_code == 302
            assert metrics.result().status_code == 200
            assert "newest_backup_age" not in metrics.result().text
            blamed = f" ERROR no backup was written to the folder {folder}: {said}"
            until(lambda blamed=blamed: blamed in service.stderr())  # type: ignore[misc]
            until(lambda folder=folder: f"{folder}:" in read_outcome(kept.database).problem)  # type: ignore[misc]
            assert service.stderr().count("ERROR") == 1
            assert service.stop() == 0
        answer = kept.run("doctor", before=unprivileged, PORT=str(service.port))
        attempt, found = re.findall("^WRONG .*", answer.stdout, re.MULTILINE)
        assert said in attempt
        fault = f"WRONG  The folder of the back-ups {folder} cannot be read: {said}"
        assert found.startswith(f"{fault}. {remedy}")


@pytest.mark.parametrize(
    ("breaking", "said"),
    [
        (lambda folder: folder.write_bytes(b""), "Not a directory"),
        (lambda folder: folder.symlink_to("tidak/ada"), "No such file or directory"),
        pytest.param(locked, "another program has locked the folder", marks=pytest.mark.torture),
    ],
    ids=["no folder", "a missing folder", "locked"],
)
def test_a_backup_that_fails_is_an_error_of_the_service(
    kept: Operator, breaking: Callable[[Path], object], said: str
) -> None:
    """The service goes on. The command ends with exit code 1."""
    breaking(kept.backups)
    with kept.serving() as service, service.site() as site:
        until(lambda: re.search(f" ERROR no back-?up was .*{said}", service.stderr()) is not None)
        assert site.get("/sehat").status_code == 200
    (line,) = kept.failed("backup")
    assert said in line


def test_no_backup_is_made_without_room_for_three(kept: Operator, small_disk: Path) -> None:
    """The disk has 3 MB, and the database 1.2 MB. A name of one's own is not refused."""
    kept.sql("INSERT INTO mahasiswa VALUES ('3', 'x', printf('%.*c', 1200000, 'x'))")
    kept.keep_backups(small_disk)
    (line,) = kept.failed("backup")
    assert re.fullmatch(
        r"mahasiswa: no back-up was made: only \d MB are free for .*, not \d+ MB", line
    )
    kept.done("backup", str(small_disk / "a.db"))
