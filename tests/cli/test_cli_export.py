"""`mahasiswa export`: the files that it writes, and those that it leaves unchanged when it fails."""

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from operators import COMMAND, COMMAND_SECONDS, TWO, Operator, operator_in_empty_folder
from spreadsheets import HEADER, Database, cells_of, csv

# The fixture, which pytest finds by this name.
__all__ = ["operator_in_empty_folder"]


def test_export_writes_csv_or_xlsx_by_the_ending(operator: Operator) -> None:
    """A dash is CSV on standard output. A file must have one of the two endings."""
    operator.fill([("001", "Émile", "=1+1"), ("12345678901234567890", "Budi", "Bantul")])
    text = "\ufeffNIM;Nama;Alamat\r\n001;Émile;'=1+1\r\n12345678901234567890;Budi;Bantul\r\n".encode()
    assert operator.done("export", "keluar.csv") == "2 records in keluar.csv\n"
    assert (operator.folder / "keluar.csv").read_bytes() == text
    answer = subprocess.run(
        [*COMMAND, "export", "-"], env=operator.environment, capture_output=True, check=True, timeout=COMMAND_SECONDS
    )
    assert (answer.stdout, answer.stderr) == (text, f"database: {operator.database}\n".encode())
    assert operator.done("export", "KELUAR.XLSX") == "2 records in KELUAR.XLSX\n"
    rows = cells_of((operator.folder / "KELUAR.XLSX").read_bytes())
    assert [tuple(cell.value for cell in row) for row in rows] == [HEADER, *operator.records()]


@pytest.mark.parametrize("name", ["a.csv", "a.xlsx"])
def test_an_exported_file_is_imported_unchanged(operator: Operator, name: str) -> None:
    """Importing it into the same list changes nothing."""
    operator.fill([("001", "'=1+1", "=1+1"), ("002", "  Émile ", "Gang “B”"), ("X/3", "漢字", "a\\b")])
    records = operator.records()
    operator.done("export", name)
    again = operator.imported(name, "--existing", "update")
    assert again == "written: 0 new, 0 changed; left as they are: 3"
    operator.database.unlink()
    operator.done("import", name)
    assert operator.records() == records


def test_an_export_that_fails_leaves_the_old_file(operator: Operator) -> None:
    """One text does not fit into a workbook. No half-written file is left either."""
    operator.fill([*TWO, ("3", "x" * 40_000, "Solo")])
    operator.write("a.xlsx", b"yang lama")
    names = operator.names()
    (line,) = operator.failed("export", "a.xlsx")
    assert line.startswith("a.xlsx: Nama untuk NIM 3 lebih dari 32.767 karakter, batas sel Excel.")
    assert (operator.folder / "a.xlsx").read_bytes() == b"yang lama"
    assert operator.names() == names


@pytest.mark.skipif(not shutil.which("prlimit"), reason="needs prlimit")
@pytest.mark.parametrize("name", ["a.csv", "a.xlsx"])
def test_an_export_to_a_full_disk_leaves_no_file(operator: Operator, name: str) -> None:
    """The last part of the file cannot be written either, so closing the file fails, too."""
    operator.fill([(f"{n:06}", f"Nama {n * 7919}", "x" * 100) for n in range(9000)])
    names = operator.names()
    (line,) = operator.failed("export", name, before=["prlimit", "--fsize=100000", "--"])
    assert line == f"{name}: File too large"
    assert operator.names() == names


def test_an_export_that_fails_late_prints_one_line(operator: Operator) -> None:
    """The record that fails is far down a long list. There is no traceback."""
    operator.fill([(f"{n:05}", "Ani", "Solo") for n in range(9000)])
    operator.done("import", operator.write("x.csv", csv(HEADER, ("00100x", "x" * 40_000, "Solo"))))
    lines = operator.failed("export", "a.xlsx")
    assert [line.split(" lebih")[0] for line in lines] == ["a.xlsx: Nama untuk NIM 00100x"]


def test_an_export_whose_reader_stops_early_ends_silently(operator: Operator) -> None:
    """For example `mahasiswa export - | head -n 1`. The exit code is that of a program that SIGPIPE has ended."""
    operator.fill([(f"{n:06}", "x" * 100, "y" * 100) for n in range(9000)])
    with subprocess.Popen(
        [*COMMAND, "export", "-"], env=operator.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline() == "\ufeffNIM;Nama;Alamat\r\n".encode()
        process.stdout.close()
        said = process.stderr.read().decode()
        process.wait(COMMAND_SECONDS)
    assert (process.returncode, said) == (141, f"database: {operator.database}\n")


def test_an_export_reports_the_number_of_records_in_the_file(operator: Operator) -> None:
    """Also while another program adds records."""
    operator.fill(TWO)
    other = Database(operator.database)
    with ThreadPoolExecutor(1) as thread:
        for _ in range(5):
            exporting = thread.submit(operator.done, "export", "a.csv")
            while not exporting.done():
                other.run("INSERT INTO mahasiswa (nim, nama, alamat) VALUES (lower(hex(randomblob(8))), 'Ani', 'Solo')")
            rows = (operator.folder / "a.csv").read_bytes().count(b"\r\n") - 1
            assert exporting.result() == f"{rows} records in a.csv\n"
    other.close()


def test_an_export_replaces_an_older_one(operator: Operator) -> None:
    """The new file takes the old one's name."""
    operator.fill(TWO)
    operator.done("export", "a.csv")
    operator.done("import", operator.write("b.csv", csv(HEADER, ("3", "Citra", "Klaten"))))
    operator.done("export", "a.csv")
    assert (operator.folder / "a.csv").read_bytes().count(b"\r\n") == 4
