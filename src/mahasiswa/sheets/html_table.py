"""Reads the tables of a web page, which many academic systems (SIAKAD) export under a name that ends in .xls."""

import codecs
from html.parser import HTMLParser
from typing import BinaryIO

from mahasiswa.digits import whole_number
from mahasiswa.sheets.cells import CELL_MAX_CHARACTERS, ROW_MAX_CELLS, BadCell, Cell
from mahasiswa.sheets.file_kind import encoding_of
from mahasiswa.sheets.sheet_errors import TooBig
from mahasiswa.wording import TOO_HEAVY

FEED_CHARACTERS = 1 << 16
# Of a tag or a comment, which the parser reads again with each piece.
UNFINISHED_MAX_CHARACTERS = 1 << 18
MAX_SPAN = 1000  # rows or columns of one cell, as in the HTML standard


def html_rows(file: BinaryIO) -> list[list[Cell]]:
    """The rows of all tables of a page, in their order. Raises TooBig if a row or a tag is too long."""
    parser = _Tables()
    text = codecs.getreader(encoding_of(file))(file, "replace")
    unfinished = 0
    while piece := text.read(FEED_CHARACTERS):
        before = parser.getpos()
        parser.feed(piece)
        unfinished = unfinished + len(piece) if parser.getpos() == before else 0
        if unfinished > UNFINISHED_MAX_CHARACTERS:
            raise TooBig(TOO_HEAVY)
    # The parser keeps `A&B` at the end of a file that was cut, until a space follows. Its close() would give it, too,
    # but reads a tag that never ends in quadratic time: 6 s for 32 KB.
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
        self._length = 0
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
        if tag == "table":
            self.end_row()
            self._spans.clear()
        elif tag == "tr":
            self.end_row()
            self._row = []
        elif tag in ("td", "th"):
            self._end_cell()
            if self._row is None:
                self._row = []
            self._texts, self._length = [], 0
            spans = {name: min(whole_number(value or "") or 1, MAX_SPAN) for name, value in attrs}
            self._columns, self._spanned_rows = spans.get("colspan", 1), spans.get("rowspan", 1)
        elif tag == "br" and self._texts is not None:
            self._texts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._end_cell()
        elif tag in ("tr", "table"):
            self.end_row()

    def handle_data(self, data: str) -> None:
        if self._texts is not None and self._length <= CELL_MAX_CHARACTERS:
            self._length += len(data)
            # A line end of the source is a space. Only <br> breaks a line.
            self._texts.append(data.replace("\r", " ").replace("\n", " "))

    def _end_cell(self) -> None:
        if self._texts is None or self._row is None:
            return
        self._fill(self._row)
        column = len(self._row)
        if column + self._columns > ROW_MAX_CELLS:
            raise TooBig(TOO_HEAVY)
        lines = "".join(self._texts).split("\n")
        text = "\n".join(filter(None, (" ".join(line.split()) for line in lines)))
        self._row.append(BadCell("long", "") if self._length > CELL_MAX_CHARACTERS else text)
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
