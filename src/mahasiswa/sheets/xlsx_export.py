"""Writes records as an .xlsx workbook (ECMA-376) of one sheet, in which every cell is text."""

import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from html import escape
from typing import IO, BinaryIO

from mahasiswa import wording
from mahasiswa.record import Mahasiswa
from mahasiswa.sheets.columns import TITLES
from mahasiswa.sheets.errors import NotCarried
from mahasiswa.wording import HEADER, column_letter

CELL_MAX_UTF16_UNITS = 32_767
"""Maximum length of a text in an Excel cell. Excel counts a character outside the basic plane as two units."""

SHEET_MAX_RECORDS = 1_048_575
"""Maximum number of records in an Excel sheet: 1,048,576 rows without the header."""

COLUMN_MIN_CHARACTERS, COLUMN_MAX_CHARACTERS = 14, 60
"""Limits for the width of a column, which is otherwise as wide as its longest text."""

TEMPLATE_COLUMN_CHARACTERS = (20, 36, 60)

_XML = '<?xml version="1.0" encoding="UTF-8"?>\n'
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"

# The parts that are the same in every workbook. Number format 49 is Excel's format "Text". Style 1 is for the records,
# style 2 for the header. Excel reserves the first two fills for these patterns.
_CONSTANT_PARTS = {
    "[Content_Types].xml": f"""<Types xmlns="{_PACKAGE}/content-types">
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
<Override PartName="/xl/workbook.xml" ContentType="{_TYPE}.sheet.main+xml"/>
<Override PartName="/xl/styles.xml" ContentType="{_TYPE}.styles+xml"/>
<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{_TYPE}.worksheet+xml"/>
</Types>""",
    "_rels/.rels": f"""<Relationships xmlns="{_PACKAGE}/relationships">
<Relationship Id="rId1" Type="{_RELATION}/officeDocument" Target="xl/workbook.xml"/>
</Relationships>""",
    "xl/_rels/workbook.xml.rels": f"""<Relationships xmlns="{_PACKAGE}/relationships">
<Relationship Id="rId1" Type="{_RELATION}/worksheet" Target="worksheets/sheet1.xml"/>
<Relationship Id="rId2" Type="{_RELATION}/styles" Target="styles.xml"/>
</Relationships>""",
    "xl/styles.xml": f"""<styleSheet xmlns="{_MAIN}">
<fonts count="2">
<font><sz val="11"/><name val="Calibri"/></font>
<font><b/><sz val="11"/><name val="Calibri"/></font>
</fonts>
<fills count="2">
<fill><patternFill patternType="none"/></fill>
<fill><patternFill patternType="gray125"/></fill>
</fills>
<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>
<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>
<cellXfs count="3">
<xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>
<xf numFmtId="49" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/>
<xf numFmtId="49" fontId="1" fillId="0" borderId="0" xfId="0" applyNumberFormat="1" applyFont="1"/>
</cellXfs>
<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles>
</styleSheet>""",
}

# xml:space keeps spaces at the beginning and end of a text.
_LETTERS = [column_letter(column) for column in range(len(Mahasiswa._fields))]


def _row_format(style: int) -> str:
    """A row for `str.format`: the number of the row, then the text of each cell."""
    cells = (
        f'<c r="{letter}{{0}}" s="{style}" t="inlineStr"><is><t xml:space="preserve">{{{place}}}</t></is></c>'
        for place, letter in enumerate(_LETTERS, 1)
    )
    return f'<row r="{{0}}">{"".join(cells)}</row>\n'


_RECORD_ROW, _HEADER_ROW = _row_format(1), _row_format(2)

_HAS_SPECIAL = re.compile("[&<>_\x00-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]").search
_HAS_NO_ESCAPE = re.compile("[\ud800-\udfff\ufffe\uffff]").search  # no XML holds these, nor `_xFFFE_`


def write_xlsx(records: Iterable[Mahasiswa], file: BinaryIO) -> None:
    """Write the records to a file, in constant memory.

    Raises NotCarried if Excel cannot hold a text or so many records. Nothing is written to the file then.
    """
    widths = [COLUMN_MIN_CHARACTERS] * len(HEADER)
    number = 1
    # The file has the widths of the columns before the rows, so the rows go through a temporary file.
    with tempfile.TemporaryFile() as rows:
        for number, record in enumerate(records, 2):
            if number > SHEET_MAX_RECORDS + 1:
                raise NotCarried(wording.TOO_MANY_FOR_EXCEL.format(limit=wording.number(SHEET_MAX_RECORDS)))
            for column, text in enumerate(record):
                widths[column] = max(widths[column], len(text))
            joined = "".join(record)
            is_plain = not _HAS_SPECIAL(joined) and len(joined) <= CELL_MAX_UTF16_UNITS // 2
            rows.write(_RECORD_ROW.format(number, *(record if is_plain else _escaped(record))).encode())
        widths = [min(width, COLUMN_MAX_CHARACTERS) + 2 for width in widths]
        _write_workbook(file, widths, rows, last_row=number)


def write_template(file: BinaryIO) -> None:
    """Write an empty table to fill in. Its columns are text, so Excel alters no NIM; each cell shows a hint.

    There is no example row, because it would end up among the records.
    """
    hints = "".join(
        f'<dataValidation showInputMessage="1" promptTitle="{title}" prompt="{escape(hint)}"'
        f' sqref="{column}2:{column}{SHEET_MAX_RECORDS + 1}"/>'
        for column, title, hint in zip(_LETTERS, HEADER, wording.TEMPLATE_HINTS, strict=True)
    )
    validations = f'<dataValidations count="{len(HEADER)}">{hints}</dataValidations>'
    with tempfile.TemporaryFile() as no_rows:
        _write_workbook(file, TEMPLATE_COLUMN_CHARACTERS, no_rows, last_row=1, validations=validations)


def _escaped(record: Mahasiswa) -> list[str]:
    """The record's texts as XML. Control characters become `_x0001_`, and so does the underscore of such a text."""
    escaped = []
    for field, text in zip(HEADER, record, strict=True):
        if _HAS_NO_ESCAPE(text):
            raise NotCarried(wording.CELL_NOT_CARRIED.format(field=field, nim=record.nim[:40]))
        if len(text.encode("utf-16-le")) // 2 > CELL_MAX_UTF16_UNITS:
            limit = wording.number(CELL_MAX_UTF16_UNITS)
            raise NotCarried(wording.CELL_TOO_LONG.format(field=field, nim=record.nim[:40], limit=limit))
        text = re.sub("_(?=x[0-9a-fA-F]{4}_)", "_x005F_", text)  # noqa: PLW2901 - the same text, step by step
        text = re.sub("[\x00-\x08\x0b-\x1f]", lambda match: f"_x{ord(match[0]):04X}_", text)  # noqa: PLW2901 - as above
        escaped.append(escape(text, quote=False))
    return escaped


def _write_workbook(
    file: BinaryIO, widths: Sequence[int], rows: IO[bytes], *, last_row: int, validations: str = ""
) -> None:
    # LibreOffice shows no filter without the hidden name, and Excel crashes when a filter without it sorts (exceljs #400).
    workbook = f"""<workbook xmlns="{_MAIN}" xmlns:r="{_RELATION}">
<sheets><sheet name="{wording.TEMPLATE_SHEET}" sheetId="1" r:id="rId1"/></sheets>
<definedNames>
<definedName name="_xlnm._FilterDatabase" localSheetId="0" hidden="1">{wording.TEMPLATE_SHEET}!$A$1:${_LETTERS[-1]}${last_row}</definedName>
</definedNames>
</workbook>"""
    columns = "".join(
        f'<col min="{column}" max="{column}" width="{width}" style="1" customWidth="1"/>'
        for column, width in enumerate(widths, 1)
    )
    before_rows = f"""{_XML}<worksheet xmlns="{_MAIN}">
<dimension ref="A1:{_LETTERS[-1]}{last_row}"/>
<sheetViews><sheetView tabSelected="1" workbookViewId="0">
<pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/>
</sheetView></sheetViews>
<cols>{columns}</cols>
<sheetData>
{_HEADER_ROW.format(1, *TITLES)}""".encode()
    # Without ignoredErrors Excel marks each NIM with a green corner, because it is a number stored as text.
    after_rows = f"""</sheetData>
<autoFilter ref="A1:{_LETTERS[-1]}{last_row}"/>
{validations}
<ignoredErrors><ignoredError sqref="A1:{_LETTERS[-1]}{SHEET_MAX_RECORDS + 1}" numberStoredAsText="1"/></ignoredErrors>
</worksheet>""".encode()
    sheet = zipfile.ZipInfo("xl/worksheets/sheet1.xml")
    sheet.compress_type = zipfile.ZIP_DEFLATED
    # zipfile writes a ZIP64 header if the size is near 2 GiB. A needless one keeps LibreOffice and Google Drive from
    # opening the workbook (npoi #583).
    sheet.file_size = len(before_rows) + rows.tell() + len(after_rows)
    rows.seek(0)
    # zlib's default level, 6, is best: 100,000 records take 0.47 s and 3.3 MB, at level 1 0.33 s and 4.1 MB, at level 9
    # 1.1 s and 3.2 MB.
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as package:
        for name, text in {**_CONSTANT_PARTS, "xl/workbook.xml": workbook}.items():
            package.writestr(zipfile.ZipInfo(name), _XML + text, zipfile.ZIP_DEFLATED)
        with package.open(sheet, "w") as part:
            part.write(before_rows)
            shutil.copyfileobj(rows, part)
            part.write(after_rows)
