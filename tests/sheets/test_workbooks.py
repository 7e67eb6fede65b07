"""Workbooks are read: those of XlsxWriter, openpyxl and LibreOffice."""

import io
from pathlib import Path

import pytest
import xlsxwriter  # type: ignore[import-untyped]
from spreadsheets import (
    HEADER,
    HEADER_XML,
    by_libreoffice,
    by_openpyxl,
    reading,
    sheet_xml,
    text_cell,
    with_sheet,
)

from mahasiswa.sheets import public as sheets
from mahasiswa.sheets.cleaning import RowResult, clean_all


def rows_of(data: bytes) -> list[RowResult]:
    with reading(data) as table:
        return clean_all(table.rows)


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


# Number formats, and how they show 812345670.
FILLING = {
    "0000000000": "0812345670",
    "000000000000": "000812345670",
    '"0"#': "0812345670",
    '"0"General': "0812345670",
    r"\0#": "0812345670",
    "#0000000000": "0812345670",
    "[$-421]0000000000": "0812345670",
    "0000000000_-": "0812345670",
    "_-0000000000_-": "0812345670",
    "0000000000;-0000000000": "0812345670",
    "0000000000;[Red]-0000000000;@": "0812345670",
}
WITH_TEXTS = {
    '"23"0000000000': "230812345670",
    r"00\.00\.000000": "08.12.345670",
    '"0_#;"0000000000': "0_#;0812345670",
}
OTHER_FORMATS = [
    *("0", "#", "#,##0", "0.00", "0%", '"Rp"#,##0', '"Rp"0', '_("Rp"* 0_)', "0_);(0)", "0;-0;;@"),
    *(r"#\.000", "0##", "0E+00", "@", '"00"', "[$-421]0", "[$Rp-421]00", "[>9]00;0"),
]


def nims_of(data: bytes) -> list[str]:
    return [row.nim for row in rows_of(data) if isinstance(row, sheets.CleanedRow)]


@pytest.mark.parametrize(
    ("code", "nim"),
    [*FILLING.items(), *WITH_TEXTS.items(), *((code, "812345670") for code in OTHER_FORMATS)],
)
def test_a_nim_is_read_as_its_number_format_shows_it(code: str, nim: str) -> None:
    """Formats without more digits, and those that are not understood, change nothing."""
    data = by_openpyxl(HEADER, (812345670, "Ani", "Solo"), formats={"A2": code})
    assert nims_of(data) == [nim]


def test_a_nim_of_libreoffice_is_read_as_its_number_format_shows_it(tmp_path: Path) -> None:
    numbers = range(812345670, 812345670 + len(FILLING))
    rows = [(number, "Ani", "Solo") for number in numbers]
    formats = {f"A{at}": code for at, code in enumerate(FILLING, 2)}
    data = by_libreoffice(by_openpyxl(HEADER, *rows, formats=formats), "ods", tmp_path)
    zeros = [nim.index("8") for nim in FILLING.values()]
    assert nims_of(data) == [f"{'0' * n}{number}" for n, number in zip(zeros, numbers, strict=True)]


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
