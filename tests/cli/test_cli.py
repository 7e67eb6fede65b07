"""Every command: wrong use, exit codes, help, progress bars, and `mahasiswa copy`."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from operators import TWO, Operator, operator_in_empty_folder, records_of
from spreadsheets import HEADER, csv

from mahasiswa.cli import main

# The fixture, which pytest finds by this name.
__all__ = ["operator_in_empty_folder"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["import", "tidak-ada.csv"],
        ["import", "a.csv", "--existing", "delete"],
        ["export", "a.ods"],
        ["copy", "--to", "@tidak-ada.url"],
        ["hapus"],
    ],
    ids=" ".join,
)
def test_wrong_arguments_have_exit_code_2(operator: Operator, arguments: list[str]) -> None:
    """Standard error has a message, and no file is created."""
    operator.write("a.csv", csv(HEADER, *TWO))
    assert operator.failed(*arguments, code=2)
    assert operator.names() == {"a.csv"}
    assert not operator.database.exists()


@pytest.mark.parametrize("arguments", [["import", "a.csv"], ["export", "b.csv"], ["backup", "b.db"]], ids=" ".join)
def test_a_wrong_or_unusable_database_is_one_line(operator: Operator, arguments: list[str]) -> None:
    """The exit code is 2 for a wrong setting, and 1 for a file or a folder, which the line names."""
    operator.write("a.csv", csv(HEADER, *TWO))
    operator.write("bukan.db", b"bukan basis data" * 100)
    (line,) = operator.failed(*arguments, code=2, DATABASE_URL="mysql://localhost")
    assert line.startswith("mahasiswa: DATABASE_URL must be ")
    (line,) = operator.failed(*arguments, DATABASE_URL=f"sqlite:///{operator.folder}/bukan.db")
    assert "bukan.db" in line
    (line,) = operator.failed(*arguments, DATABASE_URL=f"sqlite:///{operator.folder}/tidak/ada.db")
    assert "tidak" in line
    assert operator.names() == {"a.csv", "bukan.db"}


@pytest.mark.parametrize("arguments", [["export", "tidak/ada.csv"], ["backup", "tidak/ada.db"]], ids=" ".join)
def test_a_missing_folder_has_exit_code_1(operator: Operator, arguments: list[str]) -> None:
    """One line names the folder."""
    operator.fill(TWO)
    (line,) = operator.failed(*arguments)
    assert "tidak" in line


def test_the_help_of_each_command_shows_how_to_call_it() -> None:
    """The examples are lines that can be copied. The help of the program names every command."""
    for name in main.commands.keys() - {"serve", "doctor"}:
        shown = CliRunner().invoke(main, [name, "--help"]).output
        assert re.search(rf"(?m)^  mahasiswa {name}\b", shown), name
        assert f"  {name} " in CliRunner().invoke(main, ["--help"]).output


# ---- a terminal


def test_a_progress_bar_is_drawn_only_on_a_terminal(operator: Operator) -> None:
    """It reaches 100% and is drawn on standard error. `Operator.done` asserts that a pipe gets nothing."""
    name = operator.write("a.csv", csv(HEADER, *((f"{n:05}", f"Nama {n}", "Solo") for n in range(20_000))))
    code, output, drawn = operator.on_a_terminal("import", name)
    assert (code, output.splitlines()[0]) == (0, "written: 20000 new, 0 changed; left as they are: 0")
    assert b"Import" in drawn
    assert b"100%" in drawn
    assert drawn.count(b"%") > 2
    code, output, drawn = operator.on_a_terminal("export", "keluar.csv")
    assert (code, output) == (0, "20000 records in keluar.csv\n")
    assert b"Export" in drawn
    assert b"100%" in drawn
    code, output, drawn = operator.on_a_terminal("export", "-")
    assert (code, output.count("\n")) == (0, 20_001)
    assert b"100%" in drawn


def test_an_error_on_a_terminal_has_its_own_line_below_the_bar(operator: Operator) -> None:
    code, output, drawn = operator.on_a_terminal("import", operator.write("a.csv", csv(HEADER, ("", "A", "B"))))
    assert (code, output) == (1, "")
    assert drawn.replace(b"\x1b[?25h", b"").splitlines()[-1].startswith(b"a.csv: Baris 2: NIM kosong")


# ---- copy


def test_copy_copies_all_records_to_the_other_engine_and_back(tmp_path: Path, database: str) -> None:
    """More than a batch of them, with texts that are special in PostgreSQL's COPY. A target that holds records is refused."""
    operator = Operator(tmp_path / "first")
    operator.folder.mkdir()
    operator.fill([(f"{n:05}/é🎓\t\\N", "Siti\r\n\\.", "\x01 <é> & '7'" if n % 2 else "") for n in range(12_000)])
    here, back = f"sqlite:///{operator.database}", f"sqlite:///{operator.folder}/back.db"
    assert operator.done("copy", "--from", here, "--to", database) == "12000 records copied\n"
    assert operator.done("copy", "--from", database, "--to", back) == "12000 records copied\n"
    assert records_of(operator.folder / "back.db") == operator.records()
    again = operator.run("copy", "--from", here, "--to", database)
    assert (again.returncode, again.stdout) == (1, "")
    assert again.stderr == "mahasiswa: the database to copy to holds records already\n"


@pytest.mark.parametrize(
    ("source", "code", "said"),
    [("sqlite:///tidak-ada.db", 1, "tidak-ada.db does not exist"), ("mysql://x/y", 2, "--from must be")],
)
def test_copy_refuses_a_source_that_does_not_exist(operator: Operator, source: str, code: int, said: str) -> None:
    """No file is created."""
    answer = operator.run("copy", "--from", source, "--to", "sqlite:///lain.db")
    assert answer.returncode == code
    assert said in answer.stderr
    assert not list(operator.folder.iterdir())


def test_copy_takes_database_url_for_the_address_that_is_left_out(operator: Operator) -> None:
    """So the address of PostgreSQL can stay in the environment, which other users cannot read."""
    operator.fill(TWO)
    operator.done("copy", "--to", "sqlite:///kedua.db")
    assert records_of(operator.folder / "kedua.db") == TWO
    operator.environment["DATABASE_URL"] = "sqlite:///ketiga.db"
    operator.done("copy", "--from", "sqlite:///kedua.db")
    assert records_of(operator.folder / "ketiga.db") == TWO


def test_copy_reads_an_address_from_a_file(operator: Operator) -> None:
    """A line break at its end does not matter. An error does not show the address, which may hold a password."""
    operator.fill(TWO)
    operator.write("alamat.url", b"sqlite:///kedua.db\r\n")
    operator.done("copy", "--to", "@alamat.url")
    operator.done("copy", "--from", "@alamat.url", "--to", "sqlite:///ketiga.db")
    assert records_of(operator.folder / "ketiga.db") == TWO
    operator.write("salah.url", b"mysql://admin:rahasia\xff@localhost/mahasiswa")
    for name, said in {"salah.url": "--to must be ", "tidak-ada.url": "--to: tidak-ada.url: No such file"}.items():
        (line,) = operator.failed("copy", "--to", f"@{name}", code=2)
        assert said in line
        assert "rahasia" not in line
