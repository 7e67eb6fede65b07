"""Writes records as an .xlsx workbook of one sheet, in which every cell is text."""

import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from xlsxwriter import Workbook  # type: ignore[import-untyped]
from xlsxwriter.exceptions import FileCreateError  # type: ignore[import-untyped]

from mahasiswa import wording
from mahasiswa.sheets.sheet_errors import NotCarried

# As in Excel, which counts a character outside the basic plane as two.
CELL_MAX_UTF16_UNITS = 32_767
SHEET_MAX_RECORDS = 1_048_575  # 1,048,576 rows of an Excel sheet without the header
# Between these limits a column is wider than its longest text by two characters.
COLUMN_MIN_CHARACTERS, COLUMN_MAX_CHARACTERS = 16, 62
TEMPLATE_COLUMN_CHARACTERS = (20, 36, 60)

_is_not_carried = re.compile("[\ud800-\udfff\ufffe\uffff]").search  # no XML holds these
# Control characters, and texts that XlsxWriter takes for XML.
_has_control = re.compile("[\x00-\x08\x0b-\x1f]|_x[0-9a-fA-F]{4}|^<r>").search


def write_xlsx(
    records: Iterable[Sequence[str]], file: BinaryIO, titles: Sequence[str] = wording.HEADER
) -> int:
    """Write the records, in constant memory; return their number. Raises OSError, or NotCarried before it writes."""
    widths = [COLUMN_MIN_CHARACTERS] * len(titles)
    number = 0
    with _new_sheet(file, widths, titles) as (sheet, text_format):
        for number, record in enumerate(records, 1):
            if number > SHEET_MAX_RECORDS:
                raise NotCarried(
                    wording.TOO_MANY_FOR_EXCEL.format(limit=wording.number(SHEET_MAX_RECORDS))
                )
            for column, text in enumerate(record):
                widths[column] = min(max(widths[column], len(text) + 2), COLUMN_MAX_CHARACTERS)
            _write_row(sheet, number, record, text_format)
    return number


def rest_as_xlsx(rows: Iterable[Sequence[str]]) -> bytes:
    """The rows that an import leaves out, each with its problem, as a workbook. It is made in memory. Raises NotCarried."""
    file = BytesIO()
    workbook = Workbook(file, {"in_memory": True})
    sheet = workbook.add_worksheet(wording.TEMPLATE_SHEET)
    text_format = workbook.add_format({"num_format": "@"})
    sheet.set_column(0, len(wording.HEADER), COLUMN_MIN_CHARACTERS, text_format)

    for number, row in enumerate([(*wording.HEADER, wording.REMARK), *rows]):
        _write_row(sheet, number, row, text_format)

    workbook.close()
    return file.getvalue()


def _write_row(sheet: Any, number: int, texts: Sequence[str], text_format: object) -> None:  # noqa: ANN401 - XlsxWriter has no types
    for column, text in enumerate(texts):
        written = _as_xml(text) if _has_control(text) else text
        problem = wording.CELL_NOT_CARRIED if _is_not_carried(text) else ""
        if not problem and sheet.write_string(number, column, written, text_format):
            problem = wording.CELL_TOO_LONG
        if problem:
            field, limit = wording.HEADER[column], wording.number(CELL_MAX_UTF16_UNITS)
            raise NotCarried(problem.format(field=field, nim=texts[0][:40], limit=limit))


def write_template(file: BinaryIO) -> None:
    """Write an empty table of text cells with hints. It has no example row, which would end up among the records."""
    with _new_sheet(file, TEMPLATE_COLUMN_CHARACTERS) as (sheet, _):
        for column, hint in enumerate(wording.TEMPLATE_HINTS):
            shown = {
                "validate": "any",
                "input_title": wording.HEADER[column],
                "input_message": hint,
            }
            sheet.data_validation(1, column, SHEET_MAX_RECORDS, column, shown)


@contextmanager
def _new_sheet(
    file: BinaryIO, widths: Sequence[int], titles: Sequence[str] = wording.HEADER
) -> Iterator[tuple[Any, Any]]:
    """A sheet with a header, and the format "Text" for its cells. The file gets the workbook when it is complete."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "complete")
        workbook = Workbook(path, {"constant_memory": True, "tmpdir": folder, "use_zip64": True})
        sheet = workbook.add_worksheet(wording.TEMPLATE_SHEET)
        text_format = workbook.add_format({"num_format": "@"})
        bold_format = workbook.add_format({"num_format": "@", "bold": True})
        # Undocumented, as dim_rowmax is; XlsxWriter leaves it open after an error.
        with closing(sheet.row_data_fh):
            for column, title in enumerate(titles):
                sheet.write_string(0, column, title, bold_format)
            sheet.freeze_panes(1, 0)
            # Otherwise Excel marks each NIM with a green corner, because it is a number stored as text.
            sheet.ignore_errors({"number_stored_as_text": f"A1:C{SHEET_MAX_RECORDS + 1}"})
            yield sheet, text_format
            for column, width in enumerate(widths):
                sheet.set_column(column, column, width, text_format)
            sheet.autofilter(0, 0, sheet.dim_rowmax, len(titles) - 1)
            try:
                workbook.close()
            except FileCreateError as error:
                raise error.args[0] from None
        with path.open("rb") as complete:
            shutil.copyfileobj(complete, file)


def _as_xml(text: str) -> str:
    """A text as XML, which XlsxWriter writes as it is. Its own escapes are wrong if they follow each other."""
    # XlsxWriter would escape `_x0001_`, a control character, once more, so the underscore is `&#95;`.
    text = re.sub("_(?=x[0-9a-fA-F]{4}_)", "&#95;x005F&#95;", escape(text, quote=False))
    text = re.sub("[\x00-\x08\x0b-\x1f]", lambda match: f"&#95;x{ord(match[0]):04X}&#95;", text)
    return f'<r><t xml:space="preserve">{text}</t></r>'
