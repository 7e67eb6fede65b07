"""Writes records as an .xlsx workbook of one sheet, in which every cell is text."""

import re
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import BinaryIO

from xlsxwriter import Workbook  # type: ignore[import-untyped]
from xlsxwriter.exceptions import FileCreateError  # type: ignore[import-untyped]

from mahasiswa import wording

# As in Excel, which counts a character outside the basic plane as two.
CELL_MAX_UTF16_UNITS = 32_767
SHEET_MAX_RECORDS = 1_048_575  # 1,048,576 rows of an Excel sheet without the header
COLUMNS_CHARACTERS = (24, 44, 62, 60)

# No XML holds the first ones. XlsxWriter takes a text that begins with <r> for XML, and its escapes are wrong if one
# directly follows another.
_is_not_carried = re.compile(
    "[\ud800-\udfff\ufffe\uffff]|^<r>|_x[0-9a-fA-F]{4}(?:_x|[\x00-\x08\x0b-\x1f])"
).search


class NotCarried(ValueError):
    """A workbook cannot hold a text, or so many records. The text is a sentence in Indonesian for the person."""


def write_xlsx(
    records: Iterable[Sequence[str]],
    file: BinaryIO,
    titles: Sequence[str] = wording.HEADER,
) -> int:
    """Write the records, in constant memory; return their number. Raises OSError, or NotCarried before it writes."""
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
                    is_cut = sheet.write_string(number, column, text, text_format)
                    if is_cut or _is_not_carried(text):
                        problem = wording.CELL_TOO_LONG if is_cut else wording.CELL_NOT_CARRIED
                        limit = wording.number(CELL_MAX_UTF16_UNITS)
                        field, nim = titles[column], record[0][:40]
                        raise NotCarried(problem.format(field=field, nim=nim, limit=limit))

            for column, width in enumerate(COLUMNS_CHARACTERS[: len(titles)]):
                sheet.set_column(column, column, width, text_format)
            sheet.freeze_panes(1, 0)
            # Otherwise Excel marks each NIM with a green corner, because it is a number stored as text.
            sheet.ignore_errors({"number_stored_as_text": f"A1:C{SHEET_MAX_RECORDS + 1}"})
            sheet.autofilter(0, 0, number, len(titles) - 1)
            try:
                workbook.close()
            except FileCreateError as error:
                raise error.args[0] from None
    return number
