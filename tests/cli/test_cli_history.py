"""`mahasiswa forget`, and the commands that write many entries of the history or none."""

import pytest
from operators import TWO, Operator, operator_in_empty_folder
from spreadsheets import HEADER, csv
from stores import ask, other_program

from mahasiswa.store.history import UNDOABLE_ROWS_MAX

# The fixture, which pytest finds by this name.
__all__ = ["operator_in_empty_folder"]

ELSEWHERE = "Back-ups, replicas, archives and logs elsewhere keep what they have. Remove it from them yourself."


def test_forget_removes_a_record_and_its_history(operator: Operator) -> None:
    """It names the places that it cannot reach. Other records stay."""
    operator.fill(TWO)
    operator.imported("--existing", "update", operator.write("b.csv", csv(HEADER, ("1", "Rahasia", "Solo"))))
    assert operator.done("forget", "1").splitlines() == ["1: the record and its history are removed", ELSEWHERE]
    assert operator.records() == [TWO[1]]
    assert ask(operator.database, "SELECT nim FROM mahasiswa_history WHERE kind IS NULL") == [("2",)]
    assert b"Rahasia" not in operator.database.read_bytes()


def test_forgetting_an_unknown_nim_is_no_error(operator: Operator) -> None:
    """The first line says that there was nothing. A database that does not exist is not created."""
    operator.fill(TWO)
    assert operator.done("forget", "3").splitlines() == ["3: no record and no history", ELSEWHERE]
    assert operator.records() == TWO
    operator.database.unlink()
    (line,) = operator.failed("forget", "3")
    assert "does not exist" in line


@pytest.mark.torture
def test_forget_fails_while_another_program_reads(operator: Operator) -> None:
    """Exit code 1, and one line names the files that still hold the texts. Run again, the command succeeds."""
    operator.fill(TWO)
    with other_program(operator.database) as other:
        other("BEGIN")
        other("SELECT * FROM mahasiswa")
        (line,) = operator.failed("forget", "1")
        other("ROLLBACK")
    assert f"{operator.database} and {operator.database}-wal still hold the texts" in line
    assert line.endswith("run the command again")
    assert operator.records() == [TWO[1]]
    operator.done("forget", "1")
    assert b"Ani" not in operator.database.read_bytes()


def test_an_import_that_cannot_be_undone_says_so_before_it_writes(operator: Operator) -> None:
    """The line says how to make a back-up first; also for a dry run. One row less, and there is no such line."""
    rows = [(f"{number:06}", "Siti", "Solo") for number in range(UNDOABLE_ROWS_MAX + 1)]
    name = operator.write("a.csv", csv(HEADER, *rows))
    for arguments in (["--dry-run"], []):
        ended = operator.run("import", name, *arguments)
        assert ended.returncode == 0
        (line,) = ended.stderr.splitlines()
        assert "cannot be undone" in line
        assert "mahasiswa backup FILE" in line
    assert ask(operator.database, "SELECT kind, rows FROM mahasiswa_history") == [("import", len(rows))]
    operator.imported(operator.write("a.csv", csv(HEADER, *rows[1:])), "--dry-run")


def test_copy_carries_no_history(operator: Operator) -> None:
    """The history of the target begins with the copy, as one import."""
    operator.fill(TWO)
    operator.done("import", operator.write("b.csv", csv(HEADER, ("1", "Ina", "Solo"))), "--existing", "update")
    operator.done("copy", "--to", "sqlite:///kedua.db")
    kept = ask(operator.folder / "kedua.db", "SELECT kind, rows, nama_before, nama_after FROM mahasiswa_history")
    assert kept == [("import", 2, None, None), (None, None, None, "Ina"), (None, None, None, "Budi")]
