"""mahasiswa-uninstall, on a small machine, with a full back-up disk and a fault in each of its steps."""

import fcntl
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from installed import ROOT
from worlds import OLD, Machine

RECORDS = "var/lib/mahasiswa"
BACKUPS = "var/lib/mahasiswa-backup"
INSTALLED = (
    "etc/mahasiswa.env",
    "etc/systemd/system/mahasiswa.service",
    "etc/systemd/system/mahasiswa-doctor.timer",
    "usr/local/bin/mahasiswa-run",
    "usr/local/bin/mahasiswa-uninstall",
)


NO_BACKUP = "no back-up outside the removed folders holds the records of"


class Uninstalled(Machine):
    program = ROOT / "packaging" / "mahasiswa_uninstall.py"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, {"v1": OLD})
        for name in (*INSTALLED, "user"):
            self.put(name, "")
        self.database = folder / RECORDS / "mahasiswa.db"
        self.database.parent.mkdir()
        shutil.copy(ROOT / "tests/store/version_1/mahasiswa.db", self.database)

    def fill_the_disk(self) -> None:
        """Let no back-up be made."""
        (self.folder / "srv/mahasiswa/app/about").write_text("tables=0 starts=true\n")

    def copies(self) -> list[Path]:
        """Return the files with all three records, in the service's folder or that of its back-ups."""
        found = []
        for file in [self.database, *(self.folder / BACKUPS).iterdir()]:
            if file.exists():
                with closing(sqlite3.connect(file)) as db:
                    if db.execute("SELECT count(*) FROM mahasiswa").fetchone() == (3,):
                        found.append(file)
        return found

    def left(self) -> set[str]:
        return {name for name in (*INSTALLED, RECORDS, "user") if (self.folder / name).exists()}

    def removes(self, *arguments: str) -> str:
        """Run the program, which must remove the service; return what it says."""
        said = self.run(*arguments).stderr
        assert not self.left(), said
        assert (self.folder / "owned").exists()
        return said

    def refuses(self, said: str) -> None:
        """Run the program, which must say this and remove nothing."""
        done = self.run()
        assert said in done.stderr
        assert done.returncode == 1
        assert self.left() == {*INSTALLED, RECORDS, "user"}


def name_all(database: Path, nama: str) -> None:
    """Give all records of a database this name."""
    with closing(sqlite3.connect(database)) as db:
        db.execute("UPDATE mahasiswa SET nama = ?", (nama,))
        db.commit()


@pytest.fixture
def world(tmp_path: Path) -> Uninstalled:
    return Uninstalled(tmp_path / "world")


@pytest.mark.parametrize("mode", ["fail", "kill", "interrupt"])
def test_records_are_removed_only_if_a_back_up_holds_them(world: Uninstalled, mode: str) -> None:
    """If a step fails before, the service runs and nothing is removed. The next run goes on."""
    for _ in world.faults(mode):
        assert world.copies()
        if mode != "kill" and not any((world.folder / BACKUPS).iterdir()):
            assert world.running() == OLD
            assert world.database.exists()
        world.removes()
        (backup, *_) = world.copies()
        assert backup.parent == world.folder / BACKUPS


@pytest.mark.parametrize(
    ("place", "is_full"),
    [("backup-folder", False), ("environment", True), ("etc/mahasiswa.env", True)],
)
def test_a_back_up_in_the_folder_of_the_settings_counts(
    world: Uninstalled, place: str, *, is_full: bool
) -> None:
    """The line that names it is in a drop-in or in the settings file. If the disk is full, an identical one counts."""
    folder = world.folder / "mnt/usb disk"
    folder.mkdir(parents=True)
    lines = {
        "backup-folder": "mnt/usb disk",
        "environment": f'HOST=::1 "BACKUP_DIR={folder}"',
        "etc/mahasiswa.env": f'HOST=::1\nBACKUP_DIR="{folder}"\n',
    }
    world.put(place, lines[place])
    if is_full:
        shutil.copy(world.database, folder / "mahasiswa-20260101T000000Z.db")
        world.fill_the_disk()
    assert f"are in {folder}/mahasiswa-" in world.removes()


def test_nothing_is_removed_if_the_back_up_disk_is_full(world: Uninstalled, tmp_path: Path) -> None:
    """An identical back-up counts, whether it is named or not. An older or a damaged one does not."""
    old = world.folder / BACKUPS / "mahasiswa-20260101T000000Z.db"
    shutil.copy(world.database, old)
    name_all(world.database, "Ani")
    (world.folder / BACKUPS / "mahasiswa-20260102T000000Z.db").write_bytes(
        world.database.read_bytes()[:-4096]
    )
    world.fill_the_disk()
    world.refuses(f"{NO_BACKUP} {world.database}")
    named = tmp_path / "usb" / "mahasiswa.db"
    named.parent.mkdir()
    shutil.copy(world.database, named)
    assert f"the records of {world.database} are in {named}" in world.removes(str(named))


def test_a_list_in_the_folder_of_a_version_is_not_removed_without_a_back_up(
    world: Uninstalled,
) -> None:
    """`make run` has begun it there. The database of the version's own tests needs no back-up."""
    version = world.folder / "srv/mahasiswa/v1"
    begun = version / "mahasiswa.db"
    of_tests = version / "tests/store/version_1/mahasiswa.db"
    of_tests.parent.mkdir(parents=True)
    for file, name in ((begun, "Ani"), (of_tests, "Budi")):
        shutil.copy(world.database, file)
        name_all(file, name)
    world.refuses(f"{NO_BACKUP} {begun}")
    begun.rename(world.folder / "mahasiswa.db")
    world.removes()


def test_nothing_is_removed_while_an_upgrade_runs(world: Uninstalled) -> None:
    """The upgrade holds the lock of its folder."""
    lock = os.open(world.folder / "srv/mahasiswa", os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    world.refuses("mahasiswa-uninstall: mahasiswa-upgrade runs. Wait for its end.\n")
    os.close(lock)
    world.removes()


def test_a_file_that_a_restore_has_left_is_kept(world: Uninstalled) -> None:
    """It is moved to the back-ups with its log if none holds its records."""
    leftover = world.database.with_name("mahasiswa.db.newer-20261120T101700Z")
    shutil.copy(world.database, leftover)
    with closing(sqlite3.connect(leftover)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("UPDATE mahasiswa SET nama = 'Ani'")
        db.commit()
        world.removes()
    assert len([file for file in world.copies() if not file.name.endswith("-shm")]) == 2
    with closing(sqlite3.connect(world.folder / BACKUPS / leftover.name)) as db:
        assert db.execute("SELECT DISTINCT nama FROM mahasiswa").fetchall() == [("Ani",)]


UNREADABLE = {
    "damaged": ("mahasiswa.db", b"\xff" * 4096),
    "with another name": ("kampus.sqlite3", b"\xff" * 4096),
    "left by a restore": ("mahasiswa.db.damaged-20261120T101700Z-2", b"\xff" * 4096),
    "a log alone": ("kampus.db-wal", b"\xff" * 4096),
}


@pytest.mark.parametrize("has_old_backup", [False, True])
@pytest.mark.parametrize(("name", "content"), UNREADABLE.values(), ids=UNREADABLE)
def test_a_database_that_cannot_be_read_is_not_removed(
    world: Uninstalled, name: str, content: bytes, *, has_old_backup: bool
) -> None:
    """Its first page is overwritten. When it has been moved, the service is removed."""
    if has_old_backup:
        shutil.copy(world.database, world.folder / BACKUPS / "mahasiswa-20260101T000000Z.db")
    file = world.database.with_name(name)
    file.write_bytes(content + (file.read_bytes()[4096:] if file.exists() else b""))
    world.refuses(f"{file} cannot be read")
    assert world.running() == OLD
    assert file.read_bytes().startswith(content)
    file.rename(world.folder / name)
    world.removes()
