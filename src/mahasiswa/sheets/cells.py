"""The cells of a sheet: their kinds, the text by which a person recognises one, and their form in JSON."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

from mahasiswa import wording
from mahasiswa.sheets.questions import Question
from mahasiswa.sheets.sheet_errors import TooBig

ROW_MAX_CELLS = 16_384  # as in Excel
NIM_MIN_DIGITS = 5  # minimum digits of a text that may have a NIM
EXACT_DIGITS = 15  # digits of a number that a spreadsheet keeps; a longer one loses its last digits
FIRST_INEXACT = 10**EXACT_DIGITS
# Four times what Excel holds, and the default limit of Python's CSV reader.
CELL_MAX_CHARACTERS = 131_072
# A row of the n-th place, counted from 0, has its number in Excel (at most 1,048,576) plus n times
# this.
SHEET_ROWS = 1 << 21


class BadCell(NamedTuple):
    """A cell that is neither text nor a number.

    A "formula" has no result. A "long" cell has more than CELL_MAX_CHARACTERS.
    """

    kind: Literal["date", "error", "formula", "long"]
    text: str


Cell = str | int | float | bool | BadCell | None
Cells = Sequence[Cell]  # of a row

# The number of a row as Excel shows it, and its cells as they are in the file: all of them, or NIM, Nama and Alamat. It is
# a plain tuple, because an import makes a million of them.
SheetRow = tuple[int, Cells]
SheetRows = Iterable[SheetRow]


class Sheet(NamedTuple):
    """A sheet, questions about how it is read, and the columns and the numbers of the rows that Excel does not show.

    Its rows are a list if all of them are kept. Otherwise they are an iterator, which reads them one by one.
    """

    name: str
    rows: SheetRows
    questions: Sequence[Question] = ()
    hidden_columns: Sequence[int] = ()  # counted from 0
    hidden_rows: Sequence[int] = ()


has_digit = re.compile("[0-9]").search


def digits_in(text: str) -> int:
    """The number of digits."""
    return sum(map(str.isdigit, text))


def most_common(numbers: Iterable[int]) -> int:
    """The number that comes most often, the greatest of several; 0 without numbers."""
    counts = Counter(numbers)
    return max(counts, key=lambda number: (counts[number], number), default=0)


def has_nim(text: str) -> bool:
    """Whether a text has the digits of a NIM."""
    return digits_in(text) >= NIM_MIN_DIGITS


def row_name(number: int, sheets: Sequence[str]) -> str:
    """The name of a row in a sentence: `baris 4`, or `Kelas B, baris 4` if several sheets are read."""
    sheet, row = divmod(number, SHEET_ROWS)
    return f"{sheets[sheet]}, baris {row}" if len(sheets) > 1 else f"baris {row}"


def is_blank(cells: Cells) -> bool:
    """Whether no cell has a text. Raises TooBig if there are too many to look at."""
    if len(cells) > ROW_MAX_CELLS:
        raise TooBig(wording.TOO_HEAVY)
    for cell in cells:
        if cell is not None and not (isinstance(cell, str) and (not cell or cell.isspace())):
            return False
    return True


def cell_text(cell: Cell) -> str:
    """A cell as text by which a person recognises it."""
    if isinstance(cell, str):
        return cell
    if cell is None:
        return ""
    if isinstance(cell, BadCell):
        return cell.text
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE"
    if isinstance(cell, float):
        exact = cell.is_integer() and abs(cell) < FIRST_INEXACT
        return str(int(cell)) if exact else f"{cell:.{EXACT_DIGITS}G}".replace(".", ",")
    return str(cell)


def in_input(cell: Cell) -> str:
    """A cell as the text of an input. Line breaks and NUL become spaces, because a browser would alter them."""
    return re.sub(r"[\r\n\0]+", " ", cell_text(cell))


def has_digits(cells: Iterable[Cell]) -> bool:
    """Whether a cell has a digit, as no title has."""
    return any(map(has_digit, map(cell_text, cells)))


def from_json(values: Iterable[Any]) -> list[Cell]:
    """Cells that JSON carried. It knows a BadCell only as a list."""
    return [BadCell(*value) if type(value) is list else value for value in values]
