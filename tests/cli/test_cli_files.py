"""The files that commands create and replace: their modes, and symbolic links."""

import stat
from pathlib import Path

import pytest
from cli.operators import TWO, Operator, records_of
from harness import Service, visited
from processes import COMMAND, until

# With this umask a file is private only if the program asks for it.
WIDE_UMASK = ["sh", "-c", 'umask 000; exec "$@"', "sh"]


def mode_of(path: Path) -> int:
    """Return the permissions of a file or of the file that a link leads to."""
    return stat.S_IMODE(path.stat().st_mode)


def test_only_the_owner_can_read_the_files_of_a_new_database(tmp_path: Path) -> None:
    """The mode of the database, the write-ahead log and its index is 0600 for any umask, and that of the uploads 0700."""
    uploads = tmp_path / "mahasiswa.db-unggahan"
    with visited(Service(tmp_path / "mahasiswa.db", command=[*WIDE_UMASK, *COMMAND])) as site:
        site.add("0001", "Siti", "Solo")
        until(uploads.exists)
        modes = {path.name: mode_of(path) for path in tmp_path.iterdir()}
    files = dict.fromkeys(("mahasiswa.db", "mahasiswa.db-wal", "mahasiswa.db-shm"), 0o600)
    assert modes == {**files, uploads.name: 0o700}


def test_only_the_owner_can_read_what_a_command_creates(operator: Operator) -> None:
    """A database behind a link that leads to no file yet, and a back-up, although the database became public."""
    operator.database.symlink_to("sebenarnya.db")
    operator.run("import", operator.write_rows(*TWO), before=WIDE_UMASK)
    assert operator.database.is_symlink()
    assert mode_of(operator.folder / "sebenarnya.db") == 0o600
    assert operator.records() == TWO
    operator.database.chmod(0o666)
    operator.run("backup", "cadangan.db", before=WIDE_UMASK)
    assert mode_of(operator.folder / "cadangan.db") == 0o600


def test_a_database_behind_a_link_is_read_with_its_log(operator: Operator) -> None:
    """SQLite keeps the log beside the file that the link leads to, and a restore leaves the records before there.

    The back-ups have the name of that file.
    """
    real = operator.folder / "lain" / "daftar.db"
    real.parent.mkdir()
    operator.database.symlink_to(real)
    operator.environment["BACKUP_DIR"] = str(operator.backups)
    other = Operator(operator.folder, operator.folder / "sumber.db")
    other.fill(TWO)
    with visited(Service(operator.database)) as site:
        site.add("1", "Rahasia", "Solo")
        operator.done("backup")
        (backup,) = operator.backup_files()
        assert backup.name.startswith("daftar-")
        operator.done("restore", str(other.database))
        (before,) = real.parent.glob("daftar.db.before-*")
        assert records_of(before) == [("1", "Rahasia", "Solo")]


@pytest.mark.parametrize(("before", "mode"), [(0o600, 0o600), (0o666, 0o666), (None, 0o640)])
def test_an_export_keeps_the_mode_of_the_file_that_it_replaces(
    operator: Operator, before: int | None, mode: int
) -> None:
    """A new file has a mode by the umask. A link stays, and no other file is left."""
    operator.fill(TWO)
    (operator.folder / "link.csv").symlink_to("b.csv")
    file = operator.folder / "b.csv"
    if before:
        file.write_bytes(b"yang lama")
        file.chmod(before)
    operator.done("export", "link.csv", before=["sh", "-c", 'umask 027; exec "$@"', "sh"])
    assert file.read_bytes().count(b"\n") == 3
    assert mode_of(file) == mode
    assert operator.names() == {"mahasiswa.db", "b.csv", "link.csv"}
