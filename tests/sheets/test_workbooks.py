"""Workbooks are read: those of XlsxWriter, openpyxl and LibreOffice."""

import io

import xlsxwriter  # type: ignore[import-untyped]
from spreadsheets import HEADER, HEADER_XML, reading, sheet_xml, text_cell, with_sheet

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
