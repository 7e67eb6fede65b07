"""Keeps all cells of small sheets, so that a person can choose other columns or another sheet afterwards."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple, TypeAlias

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


Rows: TypeAlias = tuple[str, Iterator[RawRow]]
"""The name of a sheet and its rows."""


def kept_sheets(sheets: Iterable[Rows]) -> tuple[list[Sheet], list[Rows]]:
    """The sheets that fit, without their blank rows. The second list has the first one that does not fit, with all its rows."""
    cells, characters = KEPT_MAX_CELLS, KEPT_MAX_CHARACTERS
    kept: list[Sheet] = []
    for name, rows in sheets:
        taken: list[RawRow] = []
        width = 0
        for number, row in rows:
            if is_blank(row):
                continue
            taken.append((number, row))
            width = max(width, len(row))
            characters -= sum(len(cell) for cell in row if isinstance(cell, str))
            if characters < 0 or width * len(taken) > cells:
                return kept, [(name, chain(taken, rows))]
        cells -= width * len(taken)
        kept.append(Sheet(name, taken))
    return kept, []
