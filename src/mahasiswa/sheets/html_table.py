"""Reads the tables of a web page, or of flat XML: many academic systems (SIAKAD) export one under a name that ends in .xls."""

import codecs
from html.parser import HTMLParser
from typing import BinaryIO

from mahasiswa.digits import whole_number
from mahasiswa.sheets.cells import CELL_MAX_CHARACTERS, ROW_MAX_CELLS, TooHeavy
from mahasiswa.sheets.file_kind import encoding_of

# In HTML and in SpreadsheetML 2003.
_ROWS, _CELLS = ("tr", "row"), ("td", "th", "cell")


def html_rows(file: BinaryIO) -> list[list[str]]:
    """The rows of all tables of a page, in their order. Raises TooHeavy if a row or a cell is too long."""
    parser = _Tables()
    parser.feed(codecs.getreader(encoding_of(file))(file, "replace").read())
    # The parser keeps `A&B` at the end of a file that was cut, until a space follows. Its close() would give it, too,
    # but reads a tag that never ends in quadratic time.
    parser.feed("\n")
    rows = [["".join(pieces).strip() for pieces in row] for row in parser.rows if row]
    if any(len(cell) > CELL_MAX_CHARACTERS for row in rows for cell in row):
        raise TooHeavy
    return rows


class _Tables(HTMLParser):
    """Collects rows of cells, each in pieces. A cell that spans several columns is followed by blank cells."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[list[str]]] = [[]]
        self._pieces: list[
            str
        ] = []  # of the open cell, or of a text outside of cells, which is lost
        self._next = 0  # the column of the next cell

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        name = tag.rpartition(":")[2]
        self.handle_endtag(name)
        if name in _ROWS:
            self.rows.append([])
            self._next = 0
        elif name in _CELLS:
            given = {key.rpartition(":")[2]: whole_number(value or "") or 0 for key, value in attrs}
            # SpreadsheetML names the column behind blank cells, and counts how many more columns a cell has.
            column = max(self._next, given.get("index", 0) - 1)
            if column >= ROW_MAX_CELLS:
                raise TooHeavy
            row = self.rows[-1]
            row += [[] for _ in range(len(row), column)] + [self._pieces]
            self._next = column + max(given.get("colspan", 1), given.get("mergeacross", 0) + 1)
        elif name in ("br", "p"):
            self._pieces.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag.rpartition(":")[2] in _ROWS + _CELLS:
            self._pieces = []

    def handle_data(self, data: str) -> None:
        # A line end of the source is a space. Only <br> breaks a line.
        self._pieces.append(" ".join(data.splitlines()))
