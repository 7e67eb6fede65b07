"""Every command: wrong use, exit codes and help; `mahasiswa forget`; and commands while the service runs."""

import re
from contextlib import closing
from pathlib import Path

import pytest
from cli.operators import TWO, Operator
from click.testing import CliRunner
from harness import Service, Site, led_to
from processes import COMMAND, repeating, started
from spreadsheets import HEADER, by_openpyxl, csv, numbered
from stores import connect, migrate, nims_of

from mahasiswa.commands.cli import main

ELSEWHERE = (
    "Back-ups may hold the texts. The service removes those in BACKUP_DIR within 12 months. "
    "Files .before-… beside the database, dumps, exports, replicas and logs keep what they have: "
    "remove it from them yourself."
)

# The command, DATABASE_URL if it is not that of a list, the exit code, and what its line says.
FAILURES = """
    import tidak-ada.csv | | 2 | tidak-ada.csv
    export a.ods | | 2 | a.ods
    hapus | | 2 | hapus
    export tidak/ada.csv | | 1 | tidak
    export diri.csv | | 1 | diri.csv: Too many levels of symbolic links
    backup tidak/ada.db | | 1 | tidak/ada.db: No such file or directory
    backup folder | | 2 | folder
    backup mahasiswa.db | | 1 | mahasiswa: mahasiswa.db exists already
    backup b.db | sqlite:///tidak-ada.db | 1 | tidak-ada.db
    forget 3 | sqlite:///tidak-ada.db | 1 | unable to open database file
    restore a.csv | postgresql://tidak.ada/x | 1 | pg_restore --clean
    export b.csv | sqlite:///a.csv | 1 | a.csv
    export b.csv | sqlite:///tidak/ada.db | 1 | tidak
    copy sqlite:///tidak-ada.db | sqlite:///lain.db | 1 | tidak-ada.db cannot be used: unable to open database file
    copy mysql://admin:rahasia@x/y | | 2 | DATABASE_URL must be
"""


@pytest.mark.parametrize("failure", FAILURES.strip().splitlines(), ids=str.strip)
def test_a_command_that_fails_says_why_and_changes_no_file(
    operator: Operator, failure: str
) -> None:
    """Exit code 2 for wrong arguments and settings, 1 for files. No address of a database is shown: it may have a password."""
    operator.fill(TWO)
    operator.write_rows(*TWO)
    (operator.folder / "folder").mkdir()
    (operator.folder / "diri.csv").symlink_to("diri.csv")
    names = operator.names()
    before = (operator.folder / "a.csv").read_bytes()
    command, url, code, said = map(str.strip, failure.split("|"))
    if url:
        operator.environment["DATABASE_URL"] = url
    line = operator.failed(*command.split(), code=int(code))[-1]
    assert said in line
    assert "rahasia" not in line
    assert operator.names() == names
    assert operator.records() == TWO
    assert (operator.folder / "a.csv").read_bytes() == before


def test_the_help_of_each_command_shows_how_to_call_it() -> None:
    """The examples are lines that can be copied. The help of the program names every command."""
    for name in main.commands.keys() - {"serve", "doctor"}:
        shown = CliRunner().invoke(main, [name, "--help"]).output
        assert re.search(rf"(?m)^  mahasiswa {name}\b", shown), name
        assert f"  {name} " in CliRunner().invoke(main, ["--help"]).output


@pytest.mark.parametrize(
    "data", [csv(HEADER, *TWO), by_openpyxl(HEADER, *TWO)], ids=["csv", "xlsx"]
)
def test_an_import_reads_standard_input(operator: Operator, data: bytes) -> None:
    operator.write("a", data)
    operator.done("import", "-", before=["sh", "-c", '"$@" < a', "sh"])
    assert operator.records() == TWO


def test_a_command_that_changes_records_names_the_administrator(operator: Operator) -> None:
    """In the history. A person who is forgotten is not named there."""
    migrate(operator.database)
    operator.write_rows(*TWO)
    operator.done("backup", "b.db")
    for command in ("import a.csv", "forget 0001", "restore b.db"):
        operator.done(*command.split(), SUDO_USER="ani")
    history = operator.sql(
        "SELECT kind, rows, oleh, nim FROM mahasiswa_history WHERE batch IS NULL ORDER BY id",
    )
    kinds = ("import", 1), ("delete", 1), ("restore", 1)
    assert history == [(*kind, "command: ani", None) for kind in kinds]


def test_forget_fails_while_another_program_reads(operator: Operator) -> None:
    """Exit code 1. It names the files that still hold the texts. Run again, the command succeeds."""
    operator.fill(TWO)
    with closing(connect(operator.database)) as other:
        other.execute("BEGIN; SELECT * FROM mahasiswa").fetchall()
        ended = operator.run("forget", "0001")
        other.execute("ROLLBACK")
    assert ended.stdout.startswith("0001: the record and its history are removed\n")
    files = f"{operator.database} and its log may still hold the texts"
    assert f"\nmahasiswa: {files}" in ended.stderr
    assert (ended.returncode, "run this again: " in ended.stderr) == (1, True)
    assert operator.records() == [TWO[1]]
    operator.done("forget", "0001")
    assert b"Ani" not in operator.database.read_bytes()


# ---- while the service runs
@pytest.fixture
def beside(service: Service, site: Site, tmp_path: Path) -> tuple[Operator, Site]:
    """Run commands in an empty folder with the database of a running service, whose list is empty."""
    assert isinstance(service.database, Path)
    return Operator(tmp_path, service.database), site


def test_the_service_answers_during_an_import(beside: tuple[Operator, Site]) -> None:
    """Reads and writes succeed meanwhile, every acknowledged write is still there after it, and the next page shows it."""
    operator, site = beside
    rows = numbered(60_000, "Siti Aminah", "Jalan Kaliurang 5, Sleman", nim="{:06}")
    name = operator.write_rows(*rows)
    added: list[str] = []
    with started(
        *COMMAND, "import", name, cwd=operator.folder, env=operator.environment
    ) as process:
        while process.poll() is None:
            nim = f"x{len(added)}"
            led_to(site.add(nim, "Zainab", "Solo"))
            added.append(nim)
            assert site.get("/?cari=Zainab&per=10").status_code == 200
    assert process.returncode == 0
    assert len(added) > 3
    text = operator.done("export", "-")
    assert text.count("\n") == 1 + len(rows) + len(added)
    assert all(f"\n{nim};Zainab;Solo" in text for nim in added)
    assert site.page("/?cari=059999").nims == ["059999"]


def test_forget_names_the_other_nims_of_a_person(beside: tuple[Operator, Site]) -> None:
    """Their history holds the same texts. They are named first: a second run would not find them.

    It names the places that it cannot reach. An unknown NIM is no error.
    """
    operator, site = beside
    site.add("1", "Rahasia", "Solo")
    assert site.post("/mahasiswa/nim/1", data={"nim": "2"}).status_code == 302
    removed = "the record and its history are removed"
    named = "1: the same person had this NIM. Run the command for it too."
    for nim, said in (
        ("2", [named, f"2: {removed}"]),
        ("1", [f"1: {removed}"]),
        ("3", ["3: no record and no history"]),
    ):
        assert operator.done("forget", nim).splitlines() == [*said, ELSEWHERE]
    assert operator.sql("SELECT nim FROM mahasiswa_history WHERE nim IN ('1', '2')") == []


def test_a_backup_while_the_service_writes_is_consistent(beside: tuple[Operator, Site]) -> None:
    """It is one file, it passes the integrity check, and it has every write acknowledged before the back-up began."""
    operator, site = beside
    acknowledged: list[str] = []

    def write() -> None:
        nim = f"{len(acknowledged):06}"
        led_to(site.add(nim, "Zainab", "x" * 500))
        acknowledged.append(nim)

    with repeating(write):
        for number in range(4):
            before = len(acknowledged)
            path = operator.folder / f"cadangan-{number}.db"
            said = operator.done("backup", path.name)
            assert said == f"{path.name}: {path.stat().st_size} bytes, verified\n"
            assert len(operator.names()) == number + 1
            # It shows one moment: each record is there with all records before it.
            found = sorted(nims_of(path))
            assert found == [f"{n:06}" for n in range(len(found))]
            assert before <= len(found)
    assert len(acknowledged) > before > 0
