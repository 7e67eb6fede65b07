"""Commands while the service runs: import, export and `mahasiswa backup`."""

import sqlite3
import stat
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import Service, Site
from operators import COMMAND, TWO, Operator, operator_in_empty_folder
from spreadsheets import HEADER, Database, another_program, csv

# The fixtures, which pytest finds by these names.
__all__ = ["another_program", "operator_in_empty_folder"]


@pytest.fixture
def beside(service: Service, other: Database, tmp_path: Path) -> Iterator[tuple[Operator, Site]]:
    """Run commands in an empty folder with the database of a running service, whose list is empty."""
    assert isinstance(service.database, Path)
    operator = Operator(tmp_path)
    operator.database = service.database
    operator.environment["DATABASE_URL"] = f"sqlite:///{service.database}"
    other.fill([])
    with service.site() as site:
        yield operator, site


def test_the_next_page_shows_an_import_by_command(beside: tuple[Operator, Site]) -> None:
    """The list, the search and an export by command see each other's changes at once."""
    operator, site = beside
    site.add("0", "Zainab", "Solo")
    assert len(site.list().rows) == 1
    operator.done("import", operator.write("a.csv", csv(HEADER, *TWO)))
    assert [row[1:] for row in site.list().rows] == [("0", "Zainab", "Solo"), *TWO]
    assert site.page("/?cari=budi").nims == ["2"]
    site.edit("2", "Budi", "Sleman")
    assert operator.done("export", "-").splitlines()[-1] == "2;Budi;Sleman"


def test_the_service_answers_during_an_import(beside: tuple[Operator, Site]) -> None:
    """Reads and writes succeed during a long import, and every acknowledged write is still there after it."""
    operator, site = beside
    rows = [(f"{n:06}", f"Nama {n}", "Jalan Kaliurang 5, Sleman") for n in range(150_000)]
    name = operator.write("a.csv", csv(HEADER, *rows))
    added: list[str] = []
    with subprocess.Popen(
        [*COMMAND, "import", name], cwd=operator.folder, env=operator.environment, stdout=subprocess.PIPE
    ) as process:
        while process.poll() is None:
            nim = f"x{len(added)}"
            assert site.add(nim, "Zainab", "Solo").status_code == 302
            added.append(nim)
            assert site.get("/?cari=Zainab&per=10").status_code == 200
    assert process.returncode == 0
    assert len(added) > 3
    text = operator.done("export", "-")
    assert text.count("\n") == 1 + len(rows) + len(added)
    assert all(f"\n{nim};Zainab;Solo" in text for nim in added)


def test_a_backup_while_the_service_writes_is_consistent(beside: tuple[Operator, Site], service: Service) -> None:
    """It is one file, it passes the integrity check, and it has every write acknowledged before the back-up began."""
    operator, _ = beside
    acknowledged: list[str] = []
    ended = threading.Event()

    def write() -> None:
        with service.site() as site:
            while not ended.is_set():
                nim = f"{len(acknowledged):06}"
                assert site.add(nim, "Zainab", "x" * 500).status_code == 302
                acknowledged.append(nim)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(4):
            before = list(acknowledged)
            name = f"cadangan-{number}.db"
            said = operator.done("backup", name)
            path = operator.folder / name
            assert said == f"{name}: {path.stat().st_size} bytes, verified\n"
            assert operator.names() == {f"cadangan-{n}.db" for n in range(number + 1)}
            db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
            assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            nims = [nim for (nim,) in db.execute("SELECT nim FROM mahasiswa ORDER BY nim")]
            db.close()
            assert set(before) <= set(nims)
            # It shows one moment: each record is there with all records before it.
            assert nims == [f"{n:06}" for n in range(len(nims))]
    finally:
        ended.set()
        writer.join()
    assert len(acknowledged) > len(before) > 0


@pytest.mark.parametrize("there", ["empty file", "folder", "link to nothing", "database"])
def test_a_backup_never_replaces_an_existing_file(operator: Operator, there: str) -> None:
    operator.fill(TWO)
    target = operator.folder / "cadangan.db"
    if there == "folder":
        target.mkdir()
    elif there == "link to nothing":
        target.symlink_to("tidak-ada.db")
    elif there == "database":
        target = operator.database
    else:
        target.touch()
    before = (target.lstat().st_ino, target.lstat().st_size, stat.S_IFMT(target.lstat().st_mode))
    names = operator.names()
    lines = operator.failed("backup", str(target), code=2 if there == "folder" else 1)
    assert "cadangan.db" in lines[-1] or "mahasiswa.db" in lines[-1]
    assert (target.lstat().st_ino, target.lstat().st_size, stat.S_IFMT(target.lstat().st_mode)) == before
    assert operator.names() == names
    assert operator.records() == TWO


def test_a_backup_of_a_missing_database_fails(operator: Operator) -> None:
    """Neither the copy nor the database is created."""
    (line,) = operator.failed("backup", "cadangan.db")
    assert "mahasiswa.db" in line
    assert operator.names() == set()
    assert not operator.database.exists()
