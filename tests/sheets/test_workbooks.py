"""Workbooks are read: those of XlsxWriter, openpyxl and LibreOffice, and malicious ones."""

import io
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest
import xlsxwriter  # type: ignore[import-untyped]
from spreadsheets import HEADER, HEADER_XML, reading, sheet_xml, text_cell, with_sheet, zip_bomb

from mahasiswa.sheets import public as sheets
from mahasiswa.sheets.cleaning import RowResult, clean_all
from mahasiswa.sheets.limits import ReadLimits
from mahasiswa.sheets.sheet_errors import Stopped


def rows_of(
    data: bytes, limits: ReadLimits = sheets.WEB, stop: threading.Event | None = None
) -> list[RowResult]:
    with reading(data, limits, stop) as table:
        return clean_all(table.rows)


def test_the_child_process_imports_only_what_it_needs() -> None:
    """Its start is half of its time for 10,000 rows. XlsxWriter and the code of previews would double it."""
    command = "import sys, mahasiswa.sheets.workbook_child; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", command], capture_output=True, text=True, check=True
    )
    assert {"xlsxwriter", "mahasiswa.sheets.public", "mahasiswa.sheets.cleaning"}.isdisjoint(
        done.stdout.split()
    )


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
    rows = [
        HEADER_XML,
        b'<row r="5">'
        + text_cell(b"1")
        + b'<c t="e"><v>#NAME?</v></c>'
        + text_cell(b"A")
        + b"</row>",
    ]
    (wrong,) = rows_of(with_sheet(sheet_xml(*rows)))
    assert isinstance(wrong, sheets.RejectedRow)
    assert wrong.problem.startswith("Nama berisi kesalahan rumus (#NAME?)")


def huge_text() -> bytes:
    return with_sheet(
        sheet_xml(
            HEADER_XML,
            b'<row><c t="inlineStr"><is><t>',
            *[b"A" * (1 << 20)] * 600,
            b"</t></is></c></row>",
        )
    )


def far_cell() -> bytes:
    """Two cells at opposite corners: a dense table between them would have 17,000 million cells."""
    return with_sheet(
        sheet_xml(HEADER_XML, b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>')
    )


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


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="only Linux limits a process's memory"
)
@pytest.mark.parametrize("bomb", [zip_bomb, huge_text, far_cell, repeated_text])
def test_a_bomb_is_refused_in_bounded_memory_and_time(
    bomb: Callable[[], bytes], tmp_path: Path
) -> None:
    """It is measured in a process of its own, because a child's peak begins with the peak of its parent."""
    path = tmp_path / "bomb.xlsx"
    path.write_bytes(bomb())
    assert path.stat().st_size < 16 << 20
    began = time.monotonic()
    command = [sys.executable, "-c", READ_AND_MEASURE, str(path)]
    answer = subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=60
    ).stdout.split()
    assert answer[:2] == ["TooBig", "True"]
    assert int(answer[2]) <= sheets.WEB.memory_bytes
    assert int(answer[3]) < 100 << 20
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("stops", [False, True])
def test_reading_a_workbook_ends_if_it_is_told_to_or_if_the_child_stands_still(stops: bool) -> None:  # noqa: FBT001 - a parameter of pytest
    """A child that stands still takes no processor time, so the system does not end it. To stop takes at most a second."""
    # Such as a PostgreSQL server of other tests.
    others, stop = psutil.Process().children(), threading.Event()
    limits = sheets.WEB._replace(memory_bytes=4 << 30, seconds=60 if stops else 2)

    def started() -> list[psutil.Process]:
        """Without a child that does not yet run our module: its parent waits for that, and would for ever."""
        new = [child for child in psutil.Process().children() if child not in others]
        return [child for child in new if "mahasiswa.sheets.workbook_child" in child.cmdline()]

    with ThreadPoolExecutor(1) as thread:
        reading_it = thread.submit(rows_of, zip_bomb(), limits, stop)
        while not (found := started()):
            assert not reading_it.done()
        if stops:
            stop.set()
        else:
            found[0].suspend()
        with pytest.raises(Stopped if stops else sheets.TooBig):
            reading_it.result(1 if stops else 30)
    assert psutil.Process().children() == others


def test_the_deadline_counts_only_the_time_in_which_the_child_is_waited_for() -> None:
    """The time in which a database writes the rows of an import by a command does not count."""
    data = with_sheet(
        sheet_xml(
            HEADER_XML, *(b"<row>" + text_cell(b"%d" % n) * 3 + b"</row>" for n in range(5_000))
        )
    )
    began = time.monotonic()
    rows_of(data)
    # The child has a low priority, so other programs make it slow.
    seconds = 1 + 5 * (time.monotonic() - began)
    with reading(data, sheets.COMMAND_LINE._replace(seconds=seconds)) as table:
        rows = table.rows
        next(rows)
        time.sleep(seconds)  # as a database that writes the rows
        assert len(list(rows)) == 4_999
