"""The files that commands create and replace: their modes, symbolic links, and disks without hard links."""

import os
import re
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import Service
from operators import (
    COMMAND,
    COMMAND_SECONDS,
    TWO,
    Operator,
    records_of,
)
from spreadsheets import HEADER, csv

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no file modes")

# Both make a file readable by its owner only if the program asks for it.
WIDE_UMASK = ["sh", "-c", 'umask 000; exec "$@"', "sh"]
GROUP_UMASK = ["sh", "-c", 'umask 027; exec "$@"', "sh"]

# Runs a command that gets EPERM for link() and linkat(), as Linux answers on FAT and exFAT.
WITHOUT_HARD_LINKS = """
import ctypes, os, platform, struct, sys
numbers = {"x86_64": (86, 265), "aarch64": (37, 37)}[platform.machine()]
code = [
    (0x20, 0, 0, 0),  # load the number of the system call
    (0x15, 1, 0, numbers[0]),
    (0x15, 0, 1, numbers[1]),
    (0x06, 0, 0, 0x00050001),  # refuse it with EPERM
    (0x06, 0, 0, 0x7FFF0000),  # allow every other one
]
filters = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in code))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code), ctypes.addressof(filters)))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program):  # PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP
    sys.exit(f"no filter of system calls: {os.strerror(ctypes.get_errno())}")
os.execvp(sys.argv[1], sys.argv[1:])
"""

# Runs `mahasiswa backup cadangan.db` after it has created symbolic links of names that contain the process's id.
WITH_PLANTED_LINKS = """
import os, sys
for name in (".cadangan.db.{}", ".cadangan.db.{}-journal", "cadangan.db.{}"):
    os.symlink("penting", name.format(os.getpid()))
os.execvp(sys.argv[1], sys.argv[1:])
"""


def mode_of(path: Path) -> int:
    """Return the permissions of a file or of the file that a link leads to."""
    return stat.S_IMODE(path.stat().st_mode)


# ---- the database and its back-ups


def test_only_the_owner_can_read_the_files_of_a_new_database(tmp_path: Path) -> None:
    """The mode of the database, the write-ahead log and its index is 0600 for any umask."""
    before = os.umask(0)
    try:
        service = Service(tmp_path / "mahasiswa.db")
    finally:
        os.umask(before)
    with service, service.site() as site:
        site.add("0001", "Siti", "Solo")
        modes = {path.name: mode_of(path) for path in tmp_path.iterdir()}
    assert modes == dict.fromkeys(("mahasiswa.db", "mahasiswa.db-wal", "mahasiswa.db-shm"), 0o600)


def test_only_the_owner_can_read_a_database_behind_a_symbolic_link(operator: Operator) -> None:
    """The link leads to a file that does not exist yet."""
    operator.database.symlink_to("sebenarnya.db")
    operator.run("import", operator.write("a.csv", csv(HEADER, *TWO)), before=WIDE_UMASK)
    assert operator.database.is_symlink()
    assert mode_of(operator.folder / "sebenarnya.db") == 0o600
    assert operator.records() == TWO


def test_only_the_owner_can_read_a_backup(operator: Operator) -> None:
    """The umask and the mode of the database do not matter."""
    operator.fill(TWO)
    operator.database.chmod(0o666)
    answer = operator.run("backup", "cadangan.db", before=WIDE_UMASK)
    assert answer.returncode == 0, answer.stderr
    assert mode_of(operator.folder / "cadangan.db") == 0o600


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """Return an empty folder that every user can enter."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        folder.chmod(0o755)
        if not all(parent.stat().st_mode & 0o001 for parent in folder.parents):
            pytest.skip("the folder for temporary files is private")
        yield folder


@pytest.mark.parametrize(
    ("mode", "folder_mode", "warned"), [(0o644, 0o755, True), (0o640, 0o755, False), (0o644, 0o750, False)]
)
def test_the_service_warns_of_a_database_that_every_user_can_read(
    public_folder: Path, mode: int, folder_mode: int, *, warned: bool
) -> None:
    """The line names the command that changes the mode. The mode stays, because a person may have chosen it."""
    database = public_folder / "mahasiswa.db"
    with Service(database) as service:
        assert service.stderr() == ""
    database.chmod(mode)
    public_folder.chmod(folder_mode)
    with Service(database) as service:
        said = rf".* WARNING Every user of this computer has rights on {database}, .* Run: chmod o= {database}\*\n"
        assert re.fullmatch(said if warned else "", service.stderr())
    assert mode_of(database) == mode


# ---- mahasiswa backup


def test_a_backup_follows_no_symbolic_link_of_a_name_that_can_be_guessed(operator: Operator) -> None:
    """Links of names with the command's process id do not disturb it, and the file behind them stays."""
    operator.fill(TWO)
    operator.write("penting", b"penting")
    answer = operator.run("backup", "cadangan.db", before=[sys.executable, "-c", WITH_PLANTED_LINKS])
    assert answer.returncode == 0, answer.stderr
    assert records_of(operator.folder / "cadangan.db") == TWO
    assert (operator.folder / "penting").read_bytes() == b"penting"
    links = [path for path in operator.folder.iterdir() if path.is_symlink()]
    assert len(links) == 3


@pytest.fixture
def without_hard_links(tmp_path: Path) -> list[str]:
    """Return the start of a command that runs without hard links. FAT and exFAT have none."""
    if sys.platform != "linux":
        pytest.skip("only Linux has filters of system calls")
    command = [sys.executable, "-c", WITHOUT_HARD_LINKS]
    (tmp_path / "satu").touch()
    tried = subprocess.run(
        [*command, "ln", "satu", "dua"],
        cwd=tmp_path,
        env=os.environ | {"LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=False,
    )
    (tmp_path / "satu").unlink()
    if "no filter" in tried.stderr or "KeyError" in tried.stderr:
        pytest.skip(tried.stderr)
    assert "Operation not permitted" in tried.stderr
    return command


def test_a_backup_needs_no_hard_links(operator: Operator, without_hard_links: list[str]) -> None:
    """It is written, and nothing else is left in the folder."""
    operator.fill(TWO)
    names = operator.names()
    answer = operator.run("backup", "cadangan.db", before=without_hard_links)
    assert answer.returncode == 0, answer.stderr
    assert operator.names() - names == {"cadangan.db"}
    assert mode_of(operator.folder / "cadangan.db") == 0o600
    assert records_of(operator.folder / "cadangan.db") == TWO


@pytest.mark.parametrize("links", [True, False], ids=["with hard links", "without hard links"])
def test_a_backup_never_replaces_a_file_that_is_created_meanwhile(
    filled: Operator, without_hard_links: list[str], *, links: bool
) -> None:
    """Another program creates a file of that name while the copy is made."""
    target = filled.folder / "cadangan.db"
    command = [*([] if links else without_hard_links), *COMMAND, "backup", target.name]
    with subprocess.Popen(command, cwd=filled.folder, env=filled.environment, stderr=subprocess.PIPE) as process:
        while not any(filled.folder.glob(".mahasiswa-*")):
            assert process.poll() is None
        with target.open("xb") as file:
            file.write(b"penting")
        _, said = process.communicate(timeout=COMMAND_SECONDS)
    assert process.returncode == 1
    assert said.endswith(b"\nmahasiswa: cadangan.db exists already; a backup never replaces another\n")
    assert target.read_bytes() == b"penting"
    assert filled.names() == {"cadangan.db"}


def test_a_backup_that_cannot_be_written_names_its_folder(operator: Operator, unprivileged: list[str]) -> None:
    """The line has the reason, and does not blame the database."""
    operator.fill(TWO)
    folder = operator.folder / "cadangan"
    folder.mkdir()
    folder.chmod(0o500)
    (line,) = operator.failed("backup", "cadangan/a.db", before=unprivileged)
    assert line == f"mahasiswa: no backup was written to the folder {folder}: Permission denied"


def test_a_backup_to_a_full_disk_names_its_folder(operator: Operator, small_disk: Path) -> None:
    """Nothing is left on the disk."""
    operator.fill([(f"{n:05}", "x" * 1000, "y" * 1000) for n in range(3000)])
    (line,) = operator.failed("backup", str(small_disk / "a.db"))
    assert line == f"mahasiswa: no backup was written to the folder {small_disk}: No space left on device"
    assert list(small_disk.iterdir()) == []


# ---- mahasiswa export


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_an_export_keeps_the_mode_of_the_file_that_it_replaces(operator: Operator, mode: int) -> None:
    operator.fill(TWO)
    operator.write("a.csv", b"yang lama")
    (operator.folder / "a.csv").chmod(mode)
    operator.run("export", "a.csv", before=GROUP_UMASK)
    assert mode_of(operator.folder / "a.csv") == mode
    assert (operator.folder / "a.csv").read_bytes().count(b"\n") == 3


def test_the_mode_of_a_new_export_follows_the_umask(operator: Operator) -> None:
    operator.fill(TWO)
    for before, mode in ((GROUP_UMASK, 0o640), (WIDE_UMASK, 0o666)):
        operator.run("export", f"{mode}.csv", before=before)
        assert mode_of(operator.folder / f"{mode}.csv") == mode


@pytest.mark.parametrize("exists", [True, False], ids=["to a file", "to nothing"])
def test_an_export_writes_through_a_symbolic_link(operator: Operator, *, exists: bool) -> None:
    """The link stays, and the file that it leads to is the export. No other file is left in either folder."""
    operator.fill(TWO)
    (operator.folder / "arsip").mkdir()
    file = operator.folder / "arsip" / "b.csv"
    if exists:
        file.write_bytes(b"yang lama")
        file.chmod(0o640)
    link = operator.folder / "a.csv"
    link.symlink_to("arsip/b.csv")
    names = operator.names()
    operator.done("export", "a.csv")
    assert link.is_symlink()
    assert file.read_bytes().count(b"\n") == 3
    assert not exists or mode_of(file) == 0o640
    assert operator.names() == names
    assert list(file.parent.iterdir()) == [file]


def test_an_export_that_fails_leaves_the_file_behind_a_symbolic_link(operator: Operator) -> None:
    """The file gets its new content only when that is complete."""
    operator.fill([*TWO, ("3", "x" * 40_000, "Solo")])
    operator.write("b.xlsx", b"yang lama")
    (operator.folder / "a.xlsx").symlink_to("b.xlsx")
    names = operator.names()
    assert operator.failed("export", "a.xlsx")
    assert (operator.folder / "b.xlsx").read_bytes() == b"yang lama"
    assert operator.names() == names


def test_an_export_writes_to_a_named_pipe(operator: Operator) -> None:
    """The pipe is not replaced by a file. The same holds for a device."""
    operator.fill(TWO)
    pipe = operator.folder / "a.csv"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    operator.done("export", "a.csv")
    assert pipe.is_fifo()
    reader.join(10)
    assert read[0].count(b"\n") == 3


def test_an_export_to_a_link_that_leads_to_itself_fails(operator: Operator) -> None:
    operator.fill(TWO)
    (operator.folder / "a.csv").symlink_to("a.csv")
    (line,) = operator.failed("export", "a.csv")
    assert line.startswith("a.csv: Too many levels of symbolic links")
    assert (operator.folder / "a.csv").is_symlink()
