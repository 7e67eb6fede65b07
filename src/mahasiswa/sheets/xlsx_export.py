"""Writes records as an .xlsx workbook of one sheet, in which every cell is text."""

import re
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import closing
from html import escape
from typing import Any, BinaryIO

from xlsxwriter import Workbook  # type: ignore[import-untyped]
from xlsxwriter.exceptions import FileCreateError  # type: ignore[import-untyped]

from mahasiswa import wording

# As in Excel, which counts a character outside the basic plane as two.
CELL_MAX_UTF16_UNITS = 32_767
SHEET_MAX_RECORDS = 1_048_575  # 1,048,576 rows of an Excel sheet without the header
# A column is wider than its longest text by two characters, between these limits.
COLUMNS_MIN_CHARACTERS, COLUMN_MAX_CHARACTERS = (20, 36, 60, 60), 62

_is_not_carried = re.compile("[\ud800-\udfff\ufffe\uffff]").search  # no XML holds these
# Control characters, and texts that XlsxWriter takes for XML.
_has_control = re.compile("[\x00-\x08\x0b-\x1f]|_x[0-9a-fA-F]{4}|^<r>").search


class NotCarried(ValueError):
    """A workbook cannot hold a text, or so many records. The text is a sentence in Indonesian for the person."""


def write_xlsx(
    records: Iterable[Sequence[str]],
    file: BinaryIO,
    titles: Sequence[str] = wording.HEADER,
    hints: Sequence[str] = (),
) -> int:
    """Write the records, in constant memory; return their number. Raises OSError, or NotCarried before it writes.

    Excel shows the hints at the cells of the columns.
    """
    widths = list(COLUMNS_MIN_CHARACTERS[: len(titles)])
    number = 0
    with tempfile.TemporaryDirectory() as folder:
        workbook = Workbook(file, {"constant_memory": True, "tmpdir": folder, "use_zip64": True})
        sheet = workbook.add_worksheet(wording.TEMPLATE_SHEET)
        text_format = workbook.add_format({"num_format": "@"})
        # Undocumented; XlsxWriter leaves it open after an error.
        with closing(sheet.row_data_fh):
            sheet.write_row(0, 0, titles, workbook.add_format({"num_format": "@", "bold": True}))
            for number, record in enumerate(records, 1):
                if number > SHEET_MAX_RECORDS:
                    limit = wording.number(SHEET_MAX_RECORDS)
                    raise NotCarried(wording.TOO_MANY_FOR_EXCEL.format(limit=limit))
                for column, text in enumerate(record):
                    widths[column] = min(max(widths[column], len(text) + 2), COLUMN_MAX_CHARACTERS)
                    if problem := _problem(sheet, number, column, text, text_format):
                        limit = wording.number(CELL_MAX_UTF16_UNITS)
                        field, nim = titles[column], record[0][:40]
                        raise NotCarried(problem.format(field=field, nim=nim, limit=limit))

            for column, width in enumerate(widths):
                sheet.set_column(column, column, width, text_format)
            for column, hint in enumerate(hints):
                shown = {"validate": "any", "input_title": titles[column], "input_message": hint}
                sheet.data_validation(1, column, SHEET_MAX_RECORDS, column, shown)
            sheet.freeze_panes(1, 0)
            # Otherwise Excel marks each NIM with a green corner, because it is a number stored as text.
            sheet.ignore_errors({"number_stored_as_text": f"A1:C{SHEET_MAX_RECORDS + 1}"})
            sheet.autofilter(0, 0, number, len(titles) - 1)
            try:
                workbook.close()
            except FileCreateError as error:
                raise error.args[0] from None
    return number


def _problem(sheet: Any, row: int, column: int, text: str, text_format: object) -> str:  # noqa: ANN401 - XlsxWriter has no types
    """Write a cell; return the sentence if a workbook cannot hold its text, or a blank text."""
    if _is_not_carried(text):
        return wording.CELL_NOT_CARRIED
    written = _as_xml(text) if _has_control(text) else text
    return wording.CELL_TOO_LONG if sheet.write_string(row, column, written, text_format) else ""


def _as_xml(text: str) -> str:
    """A text as XML, which XlsxWriter writes as it is. Its own escapes are wrong if they follow each other."""
    # XlsxWriter would escape `_x0001_`, a control character, once more, so the underscore is `&#95;`.
    text = re.sub("_(?=x[0-9a-fA-F]{4}_)", "&#95;x005F&#95;", escape(text, quote=False))
    text = re.sub("[\x00-\x08\x0b-\x1f]", lambda match: f"&#95;x{ord(match[0]):04X}&#95;", text)
    return f'<r><t xml:space="preserve">{text}</t></r>'
