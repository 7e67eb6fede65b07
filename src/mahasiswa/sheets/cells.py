"""The cells of a sheet: texts and numbers, and the marks of those that must not be stored as they are."""

import html
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

# Excel keeps 15 digits of a number, so a longer whole number may have lost its last digits.
MAX_EXACT = 10**15
ROW_MAX_CELLS = 16_384  # as in Excel
CELL_MAX_CHARACTERS = 131_072  # four times what Excel holds, and the limit of Python's CSV reader

# UTF-8 that was read as Windows-1252: the first byte of a letter, and the others.
_NEXT = (
    "[\u0080-\u00bf\u0152\u0153\u0160\u0161\u0178\u017d\u017e\u0192\u02c6\u02dc\u2013\u2014\u2018-\u201a"
    "\u201c-\u201e\u2020-\u2022\u2026\u2030\u2039\u203a\u20ac\u2122]"
)
# Signs that stand beside no letter, and capital letters inside a word: another encoding was used.
_SIGNS = (
    "[\u0131\u0192\u02c6\u02dc\u201a\u201e\u2020\u2021\u2026\u2030\u2039\u203a\u2500-\u25ff\u00a1-\u00a9\u00ab-\u00af"
    "\u00b1\u00b4-\u00b9\u00bb-\u00bf\u00d7\u00f7]"
)
ODD_LETTERS = (
    f"(?-i:[\u00c2-\u00df]{_NEXT}|[\u00e0-\u00ef]{_NEXT}{_NEXT}|[\u00c2\u00c3](?=[\\s\\0]|$)|{_SIGNS}(?=[a-z])"
    f"|(?<=[a-z])(?:[\u00c0-\u00d6\u00d8-\u00de\u0152\u0160\u0178\u017d]|{_SIGNS})|[\ufffd\ue000-\uf8ff])"
)
"""A pattern for letters that were lost, or decoded with the wrong encoding."""


class Refused(ValueError):
    """The file cannot be read. The text is a sentence in Indonesian for the person."""


class TooHeavy(Exception):
    """A limit is exceeded that no sentence about the file explains."""


Cell = str | int | float | None
"""A text, perhaps with a mark, or a number."""

MARKS = "\ufdd0\ufdd1\ufdd2\ufdd3\ufdd4"
ERROR, DATE, FORMULA, DAMAGED, HIDDEN = (*MARKS,)
"""Marks at the end of a cell that must not be stored as it is: the error of a formula, a date, a formula without a result,
damage, and a row or column that Excel hides. Unicode reserves these characters for such marks.
"""

Cells = Sequence[Cell]
Row = tuple[int, Cells]
"""A row: its number, as the spreadsheet program shows it, and its cells from column A on."""


class Sheet(NamedTuple):
    """A visible sheet of a file. Blank rows may be absent. The rows are read once, from the first to the last."""

    name: str
    rows: Iterable[Row]
    doubt: str = ""  # why a person must choose the columns, whatever their titles are


_entity = re.compile(r"&(?:#\d{2,6}|#[xX][\da-fA-F]{2,5}|[A-Za-z]{2,8});").sub


def unescaped(text: str) -> str:
    """A text in which entities of HTML, such as `&amp;`, are the letters that they stand for."""
    return _entity(lambda found: html.unescape(found[0]), text)


def text_of(cell: Cell) -> str:
    """The text of a cell, as a person sees it."""
    if isinstance(cell, str):
        return cell
    if cell is None:
        return ""
    if abs(cell) >= MAX_EXACT:
        return f"{cell:.14E}"
    return str(int(cell)) if cell == int(cell) else str(cell)


def is_blank(cells: Iterable[Cell]) -> bool:
    """Whether no cell has a text."""
    return not any(text_of(cell).strip() for cell in cells)
