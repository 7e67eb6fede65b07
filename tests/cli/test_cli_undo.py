"""Refusals of `mahasiswa undo`, and of times for `mahasiswa show`, and their messages."""

import os
import shutil
from pathlib import Path

import pytest
from engines import run_elsewhere
from operators import TWO, Operator, use_up
from spreadsheets import numbered

ROOM_TO_OPEN = 200_000  # bytes that suffice to open the file


@pytest.fixture(name="imported")
def operator_after_an_import(operator: Operator, database: str) -> Operator:
    """Run commands with two records, which change 1 has imported."""
    operator.use(database)
    operator.imported_rows(*TWO)
    return operator


def test_an_undo_never_writes_to_a_newer_database(imported: Operator, database: str) -> None:
    """An older program could damage it. The list stays as it is."""
    newer = "PRAGMA user_version = 9"
    if database.startswith("postgresql:"):
        newer = "COMMENT ON TABLE mahasiswa IS 'schema 9 of mahasiswa'"
    run_elsewhere(database, newer)
    (line,) = imported.failed("undo", "1")
    assert "schema version" in line
    assert "newer release" in line


def test_an_undo_says_why_the_file_cannot_be_used(
    operator: Operator, unprivileged: list[str]
) -> None:
    """The file is missing, or is in a folder without rights."""
    missing = f"mahasiswa: {operator.database} does not exist"
    assert operator.failed("undo", "1") == [missing]
    operator.imported_rows(*TWO)
    operator.folder.chmod(0o500)
    try:
        (line,) = operator.failed("undo", "1", before=unprivileged)
    finally:
        operator.folder.chmod(0o700)
    assert line.endswith(f"who may not use it. Run: chmod u+rwX {operator.folder}")


def test_an_undo_on_a_full_disk_says_so(operator: Operator, small_disk: Path) -> None:
    """Also if only the undo needs more room than there is."""
    operator.imported_rows(*numbered(3000))
    operator.use(Path(shutil.copy(operator.database, small_disk / "a.db")))
    said = [f"mahasiswa: The disk of {small_disk}/a.db is full. Make room on it"]
    filler = use_up(small_disk)
    assert operator.failed("undo", "1") == said
    os.truncate(filler, filler.stat().st_size - ROOM_TO_OPEN)
    assert operator.failed("undo", "1") == said
    filler.unlink()
    assert operator.done("undo", "1") == "3000 records are as before change 1\n"


def test_an_undo_of_records_that_have_all_changed_changes_nothing(
    imported: Operator,
) -> None:
    """Neither the conflict nor the option promises to restore others."""
    changed = [(nim, nama, "Klaten") for nim, nama, _ in TWO]
    imported.imported_rows(*changed, options=["--existing", "update"])
    conflict = "mahasiswa: 2 records have changed since; nothing was changed"
    assert imported.failed("undo", "1") == [conflict]
    none = "mahasiswa: no record is as change 1 left it; nothing was changed"
    assert imported.failed("undo", "1", "--unchanged") == [none]


def test_numbers_and_times_that_no_change_has_are_no_fault_of_the_program(
    imported: Operator,
) -> None:
    assert "is not in the range" in imported.failed("undo", "9" * 20, code=2)[-1]
    largest = str(2**63 - 1)
    assert imported.failed("undo", largest)[0].startswith(f"mahasiswa: {largest} cannot be undone")
    for timezone in ("Asia/Jakarta", "America/New_York"):
        days = ("--since", "0001-01-01", "--until", "9999-12-31 23:59")
        assert "import of 2 records, change 1" in imported.done("show", *days, TIMEZONE=timezone)
