"""Reads the tables of a web page, or of flat XML: many academic systems (SIAKAD) export one under a name that ends in .xls."""

import codecs
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import BinaryIO

from mahasiswa.digits import whole_number
from mahasiswa.intake.cells import CELL_MAX_CHARACTERS, ROW_MAX_CELLS, Bad, Cell, TooHeavy
from mahasiswa.intake.file_kind import encoding_of

MAX_SPAN = 1000  # rows or columns of one cell, as in the HTML standard

# In HTML and in SpreadsheetML 2003.
_TABLES, _ROWS, _CELLS = ("table",), ("tr", "row"), ("td", "th", "cell")


def html_rows(file: BinaryIO) -> list[list[Cell]]:
    """The rows of all tables of a page, in their order. Raises TooHeavy if a row is too long."""
    parser = _Tables()
    parser.feed(codecs.getreader(encoding_of(file))(file, "replace").read())
    # The parser keeps `A&B` at the end of a file that was cut, until a space follows. Its close() would give it, too,
    # but reads a tag that never ends in quadratic time.
    parser.feed("\n")
    parser.end_row()
    return parser.rows


class _Tables(HTMLParser):
    """Collects rows of cells. A cell that spans several columns or rows is followed by blank cells in its place."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[Cell]] = []
        self._row: list[Cell] | None = None
        self._texts: list[str] | None = None  # of the open cell
        self._columns = self._spanned_rows = 1
        self._spans: dict[int, int] = {}  # rows that a cell above still takes, by column

    def end_row(self) -> None:
        """Close the open row, if there is one. Its end tag may be left out."""
        self._end_cell()
        if self._row is not None:
            self._fill(self._row)
            self.rows.append(self._row)
        self._row = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        name = tag.rpartition(":")[2]
        if name in _TABLES:
            self.end_row()
            self._spans.clear()
        elif name in _ROWS:
            self.end_row()
            self._row = []
        elif name in _CELLS:
            self._start_cell({key.rpartition(":")[2]: value for key, value in attrs})
        elif name in ("br", "p") and self._texts is not None:
            self._texts.append("\n")

    def _start_cell(self, attributes: Mapping[str, str | None]) -> None:
        self._end_cell()
        if self._row is None:
            self._row = []
        numbers = {key: whole_number(value or "") or 0 for key, value in attributes.items()}
        # SpreadsheetML names the column after blank cells, and counts how many more columns a cell has.
        blank = numbers.get("index", 0) - 1 - len(self._row)
        self._row += [None] * min(max(blank, 0), ROW_MAX_CELLS)
        self._texts = []
        columns = numbers.get("colspan") or 1 + numbers.get("mergeacross", 0)
        self._columns = min(columns, MAX_SPAN)
        self._spanned_rows = min(numbers.get("rowspan") or 1, MAX_SPAN)

    def handle_endtag(self, tag: str) -> None:
        name = tag.rpartition(":")[2]
        if name in _CELLS:
            self._end_cell()
        elif name in (*_ROWS, *_TABLES):
            self.end_row()

    def handle_data(self, data: str) -> None:
        if self._texts is not None:
            # A line end of the source is a space. Only <br> breaks a line.
            self._texts.append(data.replace("\r", " ").replace("\n", " "))

    def _end_cell(self) -> None:
        if self._texts is None or self._row is None:
            return
        self._fill(self._row)
        column = len(self._row)
        if column + self._columns > ROW_MAX_CELLS:
            raise TooHeavy
        lines = "".join(self._texts).split("\n")
        text = "\n".join(filter(None, (" ".join(line.split()) for line in lines)))
        self._row.append(Bad("damaged", "") if len(text) > CELL_MAX_CHARACTERS else text)
        self._row += [None] * (self._columns - 1)
        if self._spanned_rows > 1:
            self._spans |= dict.fromkeys(
                range(column, column + self._columns), self._spanned_rows - 1
            )
        self._texts = None

    def _fill(self, row: list[Cell]) -> None:
        """Put blank cells where a cell of a row above spans this row."""
        while left := self._spans.get(len(row), 0):
            self._spans[len(row)] = left - 1
            row.append(None)
