"""Keeps all cells of small sheets, so that a person can choose other columns or another sheet afterwards."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from mahasiswa.sheets.columns import Cell, is_blank

WHOLE_MAX_CELLS = 150_000
WHOLE_MAX_CHARACTERS = 1 << 20
"""Maximum size of all cells that are kept. 3,000 rows of 20 columns fit."""

RawRow: TypeAlias = tuple[int, Sequence[Cell]]
"""The number of a row as Excel shows it, and all its cells."""


class Sheet(NamedTuple):
    """All cells of a sheet."""

    name: str
    rows: list[RawRow]


class Room:
    """The room that is left for whole sheets."""

    def __init__(self) -> None:
        self._cells, self._characters = WHOLE_MAX_CELLS, WHOLE_MAX_CHARACTERS

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
