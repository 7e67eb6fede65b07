"""Finds the cells of an .ods sheet that python-calamine gives as something else than what LibreOffice shows.

The same three as in `xlsx_marks`: errors, formulas that nobody has calculated, numbers shown with leading zeros.
"""

import re
import zipfile
from collections.abc import Mapping
from typing import IO, BinaryIO

from mahasiswa.sheets.columns import BadCell
from mahasiswa.sheets.markup import FORGIVEN, Mark, Marks, holds, parse

_WORTH_READING = re.compile(rb"""value-type=["']error["']|:formula=|:p>0[0-9]""")
_LONGEST_TEXT = 64
_MOST_REPEATED = 1000  # a longer run of the same error is a column filled to its end, not a list


def ods_marks(file: BinaryIO, sheet: str) -> Marks:
    """The marks of a sheet, none where the file is no .ods."""
    try:
        with zipfile.ZipFile(file) as package:
            if "content.xml" not in package.namelist() or not holds(_WORTH_READING, package.open("content.xml")):
                return {}
            return _Finder(sheet).read(package.open("content.xml"))
    except FORGIVEN:
        return {}


class _Finder:
    """Gathers the marks of one sheet while the XML of all of them goes by."""

    def __init__(self, sheet: str) -> None:
        self._sheet = sheet
        self._inside = False
        self._marks: Marks = {}
        self._row = self._column = 0
        self._rows = 1
        self._cell: Mapping[str, str] = {}
        self._text = ""

    def read(self, part: IO[bytes]) -> Marks:
        parse(part, self._start, self._end, self._data)
        return self._marks

    def _start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag == "table":
            self._inside = attributes.get("table:name") == self._sheet
            self._row = 0
        elif tag == "table-row":
            self._rows = int(attributes.get("table:number-rows-repeated", "1"))
            self._column = 0
        elif tag in ("table-cell", "covered-table-cell"):
            # Copied, for the parser may use the same mapping again.
            self._cell = dict(attributes)
            self._text = ""

    def _data(self, text: str) -> None:
        if self._inside and len(self._text) < _LONGEST_TEXT:
            self._text += text

    def _end(self, tag: str) -> None:
        if tag == "table-row":
            self._row += self._rows
        elif tag in ("table-cell", "covered-table-cell"):
            columns = int(self._cell.get("table:number-columns-repeated", "1"))
            mark = self._mark() if self._inside else None
            if mark is not None:
                for row in range(self._row, self._row + min(self._rows, _MOST_REPEATED)):
                    for column in range(self._column, self._column + min(columns, _MOST_REPEATED)):
                        self._marks.setdefault(row, {})[column] = mark
            self._column += columns

    def _mark(self) -> Mark | None:
        if self._cell.get("calcext:value-type") == "error":
            return BadCell("error", self._text[:20])
        kind = self._cell.get("office:value-type")
        if kind is None and "table:formula" in self._cell:
            return BadCell("formula", "")
        if kind == "float" and re.fullmatch("0[0-9]+", self._text):
            return len(self._text)
        return None
