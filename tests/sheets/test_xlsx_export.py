"""The workbook that is exported, and the template, as other programs read them."""

import io
import os
import re
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import openpyxl  # type: ignore[import-untyped]
import pytest
from python_calamine import load_workbook as load_by_calamine

from mahasiswa import sheets, wording
from mahasiswa.record import Mahasiswa
from mahasiswa.sheets.xlsx_export import SHEET_MAX_RECORDS

SHEET = "xl/worksheets/sheet1.xml"
MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
ROWS = [Mahasiswa("007", "=1+1", "1.23E+11" + "x" * 40), Mahasiswa("12345678901234567890", "http://a.b", "A")]


def as_xlsx(rows: list[Mahasiswa]) -> bytes:
    file = io.BytesIO()
    sheets.write_xlsx(rows, file)
    return file.getvalue()


def template() -> bytes:
    file = io.BytesIO()
    sheets.write_template(file)
    return file.getvalue()


def sheet_of(data: bytes) -> Any:  # noqa: ANN401 - a class of an untyped library
    """The one sheet of a workbook, as openpyxl reads it."""
    (sheet,) = openpyxl.load_workbook(io.BytesIO(data)).worksheets
    return sheet


def part_of(data: bytes, name: str) -> ET.Element:
    """One part of a workbook, for details that openpyxl does not show."""
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        return ET.fromstring(package.read(name))


def test_excel_marks_no_cell_as_a_number_stored_as_text() -> None:
    """Otherwise it shows a green corner at every nim."""
    (ignored,) = part_of(as_xlsx(ROWS), SHEET).iter(f"{MAIN}ignoredError")
    assert ignored.attrib == {"sqref": f"A1:C{SHEET_MAX_RECORDS + 1}", "numberStoredAsText": "1"}


@pytest.mark.parametrize(
    "text",
    [
        "\x01\x1f\r\n\t",
        "_x0001_",
        "_x005F_x0041_",
        "  a  ",
        "<r>&amp;</r>]]>",
        "a\x7f\x85\u2028b",
        "_x0041_x0042_",
        "<r>&</r>",
        "é漢😀",
        '"' + "'",
    ],
)
def test_other_programs_read_the_same_texts(text: str) -> None:
    data = as_xlsx([Mahasiswa("1", text, text)])
    assert load_by_calamine(io.BytesIO(data)).get_sheet_by_index(0).to_python() == [
        [*wording.HEADER],
        ["1", text, text],
    ]
    # openpyxl leaves the escapes of the format to its caller.
    cell = re.sub("_x([0-9A-F]{4})_", lambda escape: chr(int(escape[1], 16)), sheet_of(data)["B2"].value)
    assert cell == text


def test_a_workbook_gets_zip64_headers_only_if_it_needs_them() -> None:
    """LibreOffice and Google Drive refuse a ZIP file that says it needs version 4.5."""
    with zipfile.ZipFile(io.BytesIO(as_xlsx(ROWS))) as package:
        assert {part.extract_version for part in package.infolist()} == {20}


def test_more_records_than_an_excel_sheet_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is lowered, because a million rows take five seconds to write."""
    assert SHEET_MAX_RECORDS == 2**20 - 1
    monkeypatch.setattr("mahasiswa.sheets.xlsx_export.SHEET_MAX_RECORDS", 10)
    sheets.write_xlsx([Mahasiswa("1", "Ani", "A")] * 10, io.BytesIO())
    with pytest.raises(sheets.NotCarried, match="batas Excel"):
        sheets.write_xlsx([Mahasiswa("1", "Ani", "A")] * 11, io.BytesIO())


def test_each_cell_of_the_template_shows_a_hint() -> None:
    sheet = sheet_of(template())
    hints = [(hint.promptTitle, hint.prompt, str(hint.sqref)) for hint in sheet.data_validations.dataValidation]
    assert hints == [
        ("NIM", wording.TEMPLATE_HINTS[0], "A2:A1048576"),
        ("Nama", wording.TEMPLATE_HINTS[1], "B2:B1048576"),
        ("Alamat", wording.TEMPLATE_HINTS[2], "C2:C1048576"),
    ]
    assert all(hint.showInputMessage for hint in sheet.data_validations.dataValidation)
    # Excel refuses a workbook with a longer hint.
    assert max(map(len, wording.TEMPLATE_HINTS)) <= 255
    assert [int(sheet.column_dimensions[column].width) for column in "ABC"] == [20, 36, 60]
    assert {sheet.column_dimensions[column].number_format for column in "ABC"} == {"@"}


def test_an_export_that_is_interrupted_leaves_no_file_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a name in the folder for temporary files nor an open file, whose space would stay taken."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def interrupted() -> Iterator[Mahasiswa]:
        yield from ROWS
        assert any(tmp_path.iterdir())
        raise KeyboardInterrupt

    file = io.BytesIO()
    with pytest.raises(KeyboardInterrupt):
        sheets.write_xlsx(interrupted(), file)
    opened = [name for fd in Path("/dev/fd").iterdir() if (name := os.path.realpath(fd)).startswith(str(tmp_path))]
    assert (list(tmp_path.iterdir()), opened, file.getvalue()) == ([], [], b"")
