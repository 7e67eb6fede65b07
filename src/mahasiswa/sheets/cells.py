"""The cells of a sheet: their kinds, the text by which a person recognises one, and their form in JSON."""

import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from mahasiswa import wording
from mahasiswa.sheets.errors import TooBig

ROW_MAX_CELLS = 16_384  # as in Excel
MAX_TITLES = 100  # columns among which a person can choose
MAX_SHEETS = 200  # of a file, because a preview offers all of them
NAME_MAX_CHARACTERS = 255  # of the name of a file or of a sheet; Excel's sheets have at most 31 characters
INTEGER_MAX = 2**63 - 1  # python-calamine reads whole numbers of 64 bits
SPREADSHEET_DIGITS = 15  # that a spreadsheet keeps of a number; a longer number has lost its last ones
FIRST_INEXACT = 10**SPREADSHEET_DIGITS

CELL_MAX_CHARACTERS = 131_072
"""Maximum length of a text in a cell: four times what Excel holds, and the default limit of Python's CSV reader."""

SHEET_ROWS = 1 << 21
"""The number of a row is its number in Excel, at most 1,048,576, plus this for each sheet that is read before its own."""


class BadCell(NamedTuple):
    """A cell that is neither text nor a number.

    `kind` is "date", "error", "formula" (without a result) or "long" (over CELL_MAX_CHARACTERS).
    """

    kind: Literal["date", "error", "formula", "long"]
    text: str


class Verbatim(str):
    """A text that our own export marked: it is imported as it is, even if it is blank."""

    __slots__ = ()


Cell: TypeAlias = str | int | float | bool | BadCell | None

SheetRow: TypeAlias = tuple[int, Sequence[Cell]]
"""The number of a row as Excel shows it, and its cells as they are in the file: all of them, or NIM, Nama and Alamat.

A plain tuple, because an import makes a million of them.
"""

FieldColumns: TypeAlias = tuple[int | None, int | None, int | None]
"""The columns of NIM, Nama and Alamat, counted from 0. None is a field that the sheet lacks."""


class Sheet(NamedTuple):
    """A sheet and the rows of it that were kept."""

    name: str
    rows: list[SheetRow]


has_digit = re.compile("[0-9]").search


def row_name(number: int, sheets: Sequence[str] = ()) -> str:
    """The name of a row in a sentence: `baris 4`, or `Kelas B, baris 4` if several sheets are read."""
    sheet, row = divmod(number, SHEET_ROWS)
    return f"{sheets[sheet]}, baris {row}" if len(sheets) > 1 else f"baris {row}"


def is_blank(cells: Sequence[Cell]) -> bool:
    """Whether no cell has a text, which a Verbatim always has. Raises TooBig if there are too many to look at."""
    if len(cells) > ROW_MAX_CELLS:
        raise TooBig(wording.TOO_HEAVY)
    return all(cell is None or (type(cell) is str and (not cell or cell.isspace())) for cell in cells)


def cell_text(cell: Cell) -> str:
    """A cell as text by which a person recognises it."""
    if cell is None:
        return ""
    if isinstance(cell, BadCell):
        return cell.text
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE"
    if isinstance(cell, float):
        exact = cell.is_integer() and abs(cell) < FIRST_INEXACT
        return str(int(cell)) if exact else f"{cell:.{SPREADSHEET_DIGITS}G}".replace(".", ",")
    return str(cell)


def cell_to_json(cell: Cell) -> object:
    """A cell as a value for `json.dumps`. A BadCell becomes `[kind, text]`, a Verbatim `["verbatim", text]`."""
    return ["verbatim", cell] if isinstance(cell, Verbatim) else cell


def cell_from_json(value: Any) -> Cell:  # noqa: ANN401 - a value of JSON
    """The cell of a value that `json.loads` returned. Raises ValueError if no cell has this value."""
    match value:
        case str() | bool() | float() | None:
            return value
        case int() if abs(value) <= INTEGER_MAX:
            return value
        case ["verbatim", str(text)]:
            return Verbatim(text)
        case ["date" | "error" | "formula" | "long" as kind, str(text)]:
            return BadCell(kind, text)
    raise ValueError("not a cell")
