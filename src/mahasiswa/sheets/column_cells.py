"""Finds the column of the NIMs by its cells, in a sheet whose titles are missing or wrong."""

import re
from collections.abc import Sequence
from itertools import pairwise, zip_longest

from mahasiswa import wording
from mahasiswa.record import Mahasiswa
from mahasiswa.sheets.cells import MAX_TITLES, Cell, FieldColumns, cell_text, has_digit, is_blank
from mahasiswa.sheets.errors import ColumnsUnclear

NIM_MIN_DIGITS = 5
NIM_MAX_LENGTH = 30
"""Limits for a cell that looks like a NIM. At least half of its characters are digits."""

IN_ORDER: FieldColumns = (0, 1, 2)

_row_number = re.compile(r"([0-9]{1,3})[.)]?").fullmatch
_is_date = re.compile(r"[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}").fullmatch


class _ColumnTexts:
    """The texts of each column in the first rows of a sheet, without the rows of one cell, such as a letterhead."""

    def __init__(self, rows: Sequence[Sequence[Cell]]) -> None:
        texts = [
            [
                "" if is_blank((cell,)) else cell_text(cell)[: NIM_MAX_LENGTH + 1].strip() or "?"
                for cell in row[:MAX_TITLES]
            ]
            for row in rows
        ]
        lists = [row for row in texts if len(row) - row.count("") > 1] or texts
        self._texts = [list(filter(None, column)) for column in zip_longest(*lists, fillvalue="")]
        self.filled = [index for index, column in enumerate(self._texts) if column]
        self.counting = list(filter(self._counts, self.filled))
        like_nims = [index for index in self.filled if index not in self.counting and self._looks_like_nims(index)]
        self.nim = like_nims[0] if len(like_nims) == 1 else None
        """The only column that looks like NIMs."""

    def is_of_words(self, index: int) -> bool:
        """Whether most cells of a column have no digit."""
        column = self._texts[index]
        return sum(not has_digit(text) for text in column) * 2 > len(column)

    def _counts(self, index: int) -> bool:
        """Whether a column numbers the rows: 1, 2, 3, from any number on."""
        matches = list(map(_row_number, self._texts[index]))
        numbers = [int(match[1]) for match in matches if match]
        return len(numbers) == len(matches) and all(second == first + 1 for first, second in pairwise(numbers))

    def _looks_like_nims(self, index: int) -> bool:
        column = self._texts[index]
        return len(set(column)) == len(column) and sum(map(_looks_like_nim, column)) * 10 >= len(column) * 9


def _looks_like_nim(text: str) -> bool:
    digits = len(re.findall("[0-9]", text))
    return digits >= NIM_MIN_DIGITS and len(text) <= min(NIM_MAX_LENGTH, 2 * digits) and not _is_date(text)


def columns_by_cells(
    rows: Sequence[Sequence[Cell]], titles: list[str], *, nim_only: bool
) -> tuple[FieldColumns, Sequence[str]]:
    """The columns of a sheet without titles, and a remark if they are not the first three.

    A column that counts the rows is never taken for the NIM, except as the only one. Raises ColumnsUnclear.
    """
    columns = _ColumnTexts(rows)
    filled = columns.filled or [MAX_TITLES]  # all texts may stand further to the right
    first, width = filled[0], filled[-1] + 1
    counts = first in columns.counting and not (nim_only and width == 1)
    if columns.nim is not None and (nim_only or counts or (columns.nim != first and columns.is_of_words(first))):
        others = [index for index in filled if index != columns.nim and index not in columns.counting]
        if len(others) < len(Mahasiswa._fields):
            nama, alamat, *_ = (*others, None, None)
            remark = wording.NIM_AFTER_NUMBERS if counts else wording.NIM_AFTER_WORDS
            letters = {"first": wording.column_letter(first), "nim": wording.column_letter(columns.nim)}
            return (columns.nim, nama, alamat), [remark.format(**letters)] if columns.nim != first else []
    suggested = columns.nim, None, None
    if counts and not nim_only:
        raise ColumnsUnclear(wording.ROW_NUMBERS.format(first=wording.column_letter(first)), titles, suggested)
    if counts or (width != len(Mahasiswa._fields) and not (nim_only and width == 1)):
        raise ColumnsUnclear(wording.NO_NIM_HEADER if nim_only else wording.NO_HEADER, titles, suggested)
    return IN_ORDER, []


def refuse_swapped(of_fields: FieldColumns, rows: Sequence[Sequence[Cell]], titles: list[str]) -> None:
    """Raise ColumnsUnclear if the column of the NIM has words in several rows, and that of another field has the NIMs."""
    columns = _ColumnTexts(rows)
    nim, other = of_fields[0], columns.nim
    if len(rows) > 1 and nim in columns.filled and columns.is_of_words(nim) and other != nim and other in of_fields[1:]:
        swapped = {nim: other, other: nim}
        first, second, third = (swapped.get(column, column) for column in of_fields)
        raise ColumnsUnclear(wording.SWAPPED, titles, (first, second, third))


def with_nims(of_fields: FieldColumns, rows: Sequence[Sequence[Cell]]) -> FieldColumns:
    """The columns to suggest to a person. If the NIM has no column, the only one that looks like NIMs is suggested."""
    nim, nama, alamat = of_fields
    found = _ColumnTexts(rows).nim
    return (found, nama, alamat) if nim is None and found not in of_fields else of_fields
