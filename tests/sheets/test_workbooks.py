"""Workbooks are read: those of XlsxWriter, openpyxl and LibreOffice, and malicious ones."""

import io
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import openpyxl  # type: ignore[import-untyped]
import psutil  # type: ignore[import-untyped]
import pytest
import xlsxwriter  # type: ignore[import-untyped]
from spreadsheets import HEADER, HEADER_XML, by_openpyxl, reading, sheet_xml, text_cell, with_sheet, zip_bomb

from mahasiswa import wording
from mahasiswa.sheets import public as sheets
from mahasiswa.sheets.cleaning import RowResult, clean_all
from mahasiswa.sheets.limits import ReadLimits
from mahasiswa.sheets.sheet_errors import Stopped


def rows_of(data: bytes, limits: ReadLimits = sheets.WEB) -> list[RowResult]:
    with reading(data, limits) as table:
        return clean_all(table.rows)


def test_the_child_process_imports_only_what_it_needs() -> None:
    """Its start is half of its time for 10,000 rows. XlsxWriter and the code of previews would double it."""
    command = "import sys, mahasiswa.sheets.workbook_child; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    assert {"xlsxwriter", "mahasiswa.sheets.public", "mahasiswa.sheets.cleaning"}.isdisjoint(done.stdout.split())


def test_results_of_formulas_and_zeros_of_number_formats_are_read() -> None:
    """A person sees the leading zeros that a number format adds, so they belong to the NIM."""
    file = io.BytesIO()
    with xlsxwriter.Workbook(file) as workbook:
        sheet = workbook.add_worksheet()
        zeros = workbook.add_format({"num_format": "0000000000"})
        sheet.write_row(3, 2, HEADER)
        sheet.write_number(4, 2, 12345, zeros)
        sheet.write_formula(4, 3, '="An"&"i"', None, "Ani")
        sheet.write_string(4, 4, "'A")
        sheet.write_formula(9, 2, "=20+3", zeros, 23)
        sheet.write_row(9, 3, ["B", 5])
    first, second = rows_of(file.getvalue())
    assert first == sheets.CleanedRow(5, "0000012345", "Ani", "'A")
    assert second == sheets.CleanedRow(10, "0000000023", "B", "5")


def test_a_sheet_without_cell_references_is_read() -> None:
    """Some programs leave out the reference of each cell, such as `B5`."""
    rows = [HEADER_XML, b'<row r="5">' + text_cell(b"1") + b'<c t="e"><v>#NAME?</v></c>' + text_cell(b"A") + b"</row>"]
    (wrong,) = rows_of(with_sheet(sheet_xml(*rows)))
    assert isinstance(wrong, sheets.RejectedRow)
    assert wrong.problem.startswith("Nama berisi kesalahan rumus (#NAME?)")


def test_the_sheet_with_the_header_is_read_and_the_others_are_named() -> None:
    kelas_a = [HEADER, ("1", "Ani", "A")]
    sheet_rows: dict[str, list[tuple[str, ...]]]
    sheet_rows = {"Petunjuk": [("Isi",)], "Kelas A": [*kelas_a], "Kelas B": [HEADER], "Rahasia": []}
    workbook = openpyxl.load_workbook(io.BytesIO(by_openpyxl(several=sheet_rows)))
    workbook["Rahasia"].sheet_state = "hidden"
    file = io.BytesIO()
    workbook.save(file)
    with reading(file.getvalue()) as table:
        assert [(number, *cells) for number, cells in table.rows] == [(2, "1", "Ani", "A")]
        assert (table.sheets, table.other_sheets) == (["Kelas A"], [])
        assert [sheet.name for sheet in table.kept_sheets] == ["Kelas A", "Petunjuk", "Kelas B"]
    with reading(file.getvalue(), choice=sheets.Choice(["Petunjuk"])) as table:
        assert (table.sheets, table.columns_problem) == (["Petunjuk"], wording.NO_HEADER)


def huge_text() -> bytes:
    return with_sheet(
        sheet_xml(HEADER_XML, b'<row><c t="inlineStr"><is><t>', *[b"A" * (1 << 20)] * 600, b"</t></is></c></row>")
    )


def far_cell() -> bytes:
    """Two cells at opposite corners: a dense table between them would have 17,000 million cells."""
    return with_sheet(sheet_xml(HEADER_XML, b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'))


def repeated_text() -> bytes:
    """One long shared string in 27,000 cells: small when unpacked, large in memory."""
    file = io.BytesIO()
    with xlsxwriter.Workbook(file) as workbook:
        sheet = workbook.add_worksheet()
        for row in range(9_000):
            sheet.write_row(row, 0, ["A" * 30_000] * 3)
    return file.getvalue()


READ_AND_MEASURE = """
import resource, sys
from pathlib import Path
from mahasiswa import wording
from mahasiswa.sheets import public as sheets
from mahasiswa.sheets.cleaning import clean_all
try:
    with open(sys.argv[1], "rb") as file, sheets.read(file) as table:
        clean_all(table.rows)
except sheets.SheetError as error:
    print(type(error).__name__, str(error) == wording.TOO_HEAVY)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10)
own = Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]
print(int(own) << 10)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux limits a process's memory")
@pytest.mark.parametrize("bomb", [zip_bomb, huge_text, far_cell, repeated_text])
def test_a_bomb_is_refused_in_bounded_memory_and_time(bomb: Callable[[], bytes], tmp_path: Path) -> None:
    """It is measured in a process of its own, because a child's peak begins with the peak of its parent."""
    path = tmp_path / "bomb.xlsx"
    path.write_bytes(bomb())
    assert path.stat().st_size < 16 << 20
    began = time.monotonic()
    command = [sys.executable, "-c", READ_AND_MEASURE, str(path)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.split()
    assert answer[:2] == ["TooBig", "True"]
    assert int(answer[2]) <= sheets.WEB.memory_bytes
    assert int(answer[3]) < 100 << 20
    assert time.monotonic() - began < 30


def test_the_service_limits_how_much_it_takes_from_the_child() -> None:
    """The child may hold 512 MiB. The service stops reading its output at 32 MiB."""
    rows = [b"<row>" + text_cell(b"A" * 30_000) * 3 + b"</row>"] * 1000
    with pytest.raises(sheets.TooBig, match=re.escape(wording.TOO_HEAVY)):
        rows_of(with_sheet(sheet_xml(HEADER_XML, *rows)))


def test_reading_a_workbook_has_a_deadline() -> None:
    data = zip_bomb()
    began = time.monotonic()
    with pytest.raises(sheets.TooBig, match=re.escape(wording.TOO_HEAVY)):
        rows_of(data, sheets.WEB._replace(memory_bytes=4 << 30, seconds=0.3))
    assert time.monotonic() - began < 12


def test_a_child_that_stands_still_is_given_up() -> None:
    """It takes no processor time, so the system does not end it."""
    others = psutil.Process().children()  # such as a PostgreSQL server of other tests

    def started() -> list[psutil.Process]:
        """Without a child that does not yet run our module: its parent waits for that, and would for ever."""
        new = [child for child in psutil.Process().children() if child not in others]
        return [child for child in new if "mahasiswa.sheets.workbook_child" in child.cmdline()]

    with ThreadPoolExecutor(1) as thread:
        reading_it = thread.submit(rows_of, zip_bomb(), sheets.WEB._replace(memory_bytes=4 << 30, seconds=2))
        while not (found := started()):
            assert not reading_it.done()
        found[0].suspend()
        with pytest.raises(sheets.TooBig, match=re.escape(wording.TOO_HEAVY)):
            reading_it.result(30)


def test_the_deadline_counts_only_the_time_in_which_the_child_is_waited_for() -> None:
    """The time in which a database writes the rows of an import by a command does not count."""
    data = with_sheet(sheet_xml(HEADER_XML, *(b"<row>" + text_cell(b"%d" % n) * 3 + b"</row>" for n in range(5_000))))
    began = time.monotonic()
    rows_of(data)
    seconds = 1 + 5 * (time.monotonic() - began)  # the child has a low priority, so other programs make it slow
    with reading(data, sheets.COMMAND_LINE._replace(seconds=seconds)) as table:
        rows = table.rows
        next(rows)
        time.sleep(seconds)  # as a database that writes the rows
        assert len(list(rows)) == 4_999


def test_reading_a_workbook_stops_within_a_second() -> None:
    """The child ends, and the thread that waits for its answer goes on."""
    data, stop = zip_bomb(), threading.Event()
    others = psutil.Process().children()  # such as a PostgreSQL server of other tests

    def read() -> None:
        with reading(data, sheets.COMMAND_LINE, stop) as table:
            list(table.rows)

    with ThreadPoolExecutor(1) as threads:
        job = threads.submit(read)
        while psutil.Process().children() == others:
            assert not job.done()
        stop.set()
        with pytest.raises(Stopped):
            job.result(1)
    assert psutil.Process().children() == others


def test_a_workbook_that_is_too_large_to_be_kept_is_read_by_chosen_columns() -> None:
    data = by_openpyxl((*HEADER, "Lain"), *((str(n), "Ani", "Solo", "x" * 2000) for n in range(600)))
    with reading(data, choice=sheets.Choice(columns=(0, 2, 1))) as table:
        assert table.kept_sheets == []
        assert next(table.rows) == (2, ("0", "Solo", "Ani"))
