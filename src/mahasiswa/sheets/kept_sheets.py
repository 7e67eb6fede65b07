"""Keeps all cells of small sheets, so that a person can choose other columns or another sheet afterwards."""

from collections.abc import Iterable
from typing import NamedTuple

from mahasiswa.sheets.cells import RawRow, is_blank

KEPT_MAX_CELLS = 150_000
KEPT_MAX_CHARACTERS = 1 << 20
"""Maximum size of all cells that are kept. 3,000 rows of 20 columns fit."""

MAX_SHEETS = 200
"""Maximum sheets of a file, because a preview offers all of them."""

NAME_MAX_CHARACTERS = 255
"""Maximum length of the name of a file or of a sheet. Excel's sheets have at most 31 characters."""


class Sheet(NamedTuple):
    """A sheet and the rows of it that were kept."""

    name: str
    rows: list[RawRow]


class KeepingBudget:
    """The cells and characters that may still be kept, of all sheets of a file together."""

    def __init__(self) -> None:
        self._cells, self._characters = KEPT_MAX_CELLS, KEPT_MAX_CHARACTERS

    def take(self, rows: Iterable[RawRow]) -> tuple[list[RawRow], bool]:
        """The rows that are not blank, up to the first that does not fit; and whether all of them fit."""
        taken: list[RawRow] = []
        width = 0
        for number, row in rows:
            if is_blank(row):
                continue
            taken.append((number, row))
            width = max(width, len(row))
            self._characters -= sum(len(cell) for cell in row if isinstance(cell, str))
            if self._characters < 0 or width * len(taken) > self._cells:
                return taken, False
        self._cells -= width * len(taken)
        return taken, True
