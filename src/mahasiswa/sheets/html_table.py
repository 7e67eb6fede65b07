"""Reads the tables of a web page, or of flat XML: many academic systems (SIAKAD) export one under a name that ends in .xls."""

import codecs
from html.parser import HTMLParser
from typing import BinaryIO

from mahasiswa.digits import whole_number
from mahasiswa.sheets.cells import CELL_MAX_CHARACTERS, ROW_MAX_CELLS, Cell, TooHeavy
from mahasiswa.sheets.file_kind import encoding_of

# In HTML and in SpreadsheetML 2003.
_ROWS, _CELLS = ("tr", "row"), ("td", "th", "cell")


def html_rows(file: BinaryIO) -> list[list[Cell]]:
    """The rows of all tables of a page, in their order. Raises TooHeavy if a row or a cell is too long."""
    parser = _Tables()
    parser.feed(codecs.getreader(encoding_of(file))(file, "replace").read())
    # The parser keeps `A&B` at the end of a file that was cut, until a space follows. Its close() would give it, too,
    # but reads a tag that never ends in quadratic time.
    parser.feed("\n")
    return [row for row in parser.rows if row]


class _Tables(HTMLParser):
    """Collects rows of cells. A cell that spans several columns is followed by blank cells."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[Cell]] = [[]]
        self._text: str | None = None  # of the open cell
        self._blank = 0  # cells that the last cell spans besides its own

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        name = tag.rpartition(":")[2]
        if name in _ROWS:
            self.handle_endtag(name)
            self.rows.append([])
        elif name in _CELLS:
            self.handle_endtag(name)
            given = {key.rpartition(":")[2]: whole_number(value or "") or 0 for key, value in attrs}
            row = self.rows[-1]
            # SpreadsheetML names the column behind blank cells, and counts how many more columns a cell has.
            blank = max(self._blank, given.get("index", 0) - 1 - len(row))
            if len(row) + blank >= ROW_MAX_CELLS:
                raise TooHeavy
            row += [None] * blank
            self._blank = max(given.get("colspan", 1) - 1, given.get("mergeacross", 0))
            self._text = ""
        elif name in ("br", "p"):
            self._add("\n")

    def handle_endtag(self, tag: str) -> None:
        name = tag.rpartition(":")[2]
        if name in (*_ROWS, *_CELLS) and self._text is not None:
            self.rows[-1].append(self._text.strip())
            self._text = None
        if name in _ROWS:
            self._blank = 0

    def handle_data(self, data: str) -> None:
        # A line end of the source is a space. Only <br> breaks a line.
        self._add(" ".join(data.splitlines()))

    def _add(self, text: str) -> None:
        if self._text is not None:
            self._text += text
            if len(self._text) > CELL_MAX_CHARACTERS:
                raise TooHeavy
