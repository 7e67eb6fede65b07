"""The cells of a sheet: a text, a number, or a cell whose text must not be stored as it is."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

# Excel keeps 15 digits of a number, so a longer whole number may have lost its last digits.
MAX_EXACT = 10**15

BadKind = Literal["error", "date", "formula", "boolean", "damaged"]


class Bad(NamedTuple):
    """A cell that must not be stored as it is. `text` is what a person sees in it, perhaps blank."""

    kind: BadKind
    text: str


Cell = str | int | float | Bad | None

Row = tuple[int, Sequence[Cell]]
"""A row: its number, as the spreadsheet program shows it, and its cells from column A on."""


class Sheet(NamedTuple):
    """A visible sheet of a file. Blank rows may be absent. The rows are read once, from the first to the last."""

    name: str
    rows: Iterable[Row]
    hidden: frozenset[int] = frozenset()  # the numbers of the rows that Excel hides


def text_of(cell: Cell) -> str:
    """The text of a cell, as a person sees it."""
    if cell is None:
        return ""
    if isinstance(cell, Bad):
        return cell.text
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < MAX_EXACT:
        return str(int(cell))
    return str(cell)
