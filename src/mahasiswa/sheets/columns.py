"""Finds which columns of a sheet hold the NIM, Nama and Alamat."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple, TypeAlias

from mahasiswa import wording
from mahasiswa.sheets.errors import SheetError, TooBig

HEADER_WITHIN_ROWS = 25
"""The header is looked for in this many rows that are not blank: school files often begin with titles and a date."""

HEADER_MAX_CHARACTERS = 100
"""Maximum length of a cell that can be a header. Looking for names in a huge cell would only cost time."""

CELL_MAX_CHARACTERS = 131_072
"""Maximum length of a text in a cell: four times what Excel holds, and the default limit of Python's CSV reader."""

ROW_MAX_CELLS = 16_384
"""Maximum cells of a row, as in Excel."""

# Only lower case letters count: `No. Mahasiswa *` is `nomahasiswa`. If a sheet has several of them, the first one wins.
_ALIASES = {
    wording.NIM: (
        "nim npm nimmahasiswa npmmahasiswa nomorindukmahasiswa nomorpokokmahasiswa noindukmahasiswa nopokokmahasiswa "
        "nomormahasiswa nomahasiswa nomormhs nomhs nrp nipd nis nomorinduksiswa noinduksiswa nomorinduk noinduk nisn"
    ),
    wording.NAMA: (
        "nama namalengkap namamahasiswa namalengkapmahasiswa namamhs namasiswa namalengkapsiswa namapesertadidik"
    ),
    wording.ALAMAT: (
        "alamat alamatlengkap alamatrumah alamatmahasiswa alamatmhs alamatsiswa alamattinggal alamattempattinggal "
        "alamatdomisili alamatsekarang alamatasal alamatktp"
    ),
}
_RANKS = {alias: (field, rank) for field, aliases in _ALIASES.items() for rank, alias in enumerate(aliases.split())}


class BadCell(NamedTuple):
    """A cell that is neither text nor a number.

    `kind` is "date", "error", "formula" (without a result) or "long" (over CELL_MAX_CHARACTERS).
    """

    kind: str
    text: str


class Verbatim(str):
    """A text that our own export marked: it is imported as it is, even if it is blank."""

    __slots__ = ()


Cell: TypeAlias = str | int | float | bool | BadCell | None

SheetRow: TypeAlias = tuple[int, Cell, Cell, Cell]
"""The number of a row as Excel shows it, then its NIM, Nama and Alamat cells as they are in the file.

A plain tuple, because an import makes a million of them.
"""


def select_columns(rows: Iterable[tuple[int, Sequence[Cell]]], *, nim_only: bool = False) -> Iterator[SheetRow]:
    """The NIM, Nama and Alamat of each row that is not blank, found by the header or, without one, in this order.

    With `nim_only` the header needs no other column, and Nama and Alamat are left blank. A sheet without a header may
    then also have one column, or one row of NIMs. Raises SheetError before it returns if the rows are all blank, too wide, or if a column cannot be found.
    """
    rows = iter(rows)
    top = list(islice((row for row in rows if not is_blank(row[1])), HEADER_WITHIN_ROWS))
    if not top:
        raise SheetError(wording.EMPTY)
    for index, (_, row) in enumerate(top):
        if is_header(row, nim_only=nim_only):
            columns = _columns_of(row)
            fields = (wording.NIM,) if nim_only else tuple(_ALIASES)
            places = [columns.get(field, _NO_COLUMN) if field in fields else _NO_COLUMN for field in _ALIASES]
            return _selected(chain(top[index + 1 :], rows), places)
    found = {field for _, row in top for field, _, _ in _headings(row)}
    if found:
        raise SheetError(wording.NO_OTHER_COLUMN if found == {wording.NIM} else wording.NO_NIM_COLUMN)
    width = max(_width(row) for _, row in top)
    if nim_only and len(top) == 1:
        number, row = top[0]
        return ((number, cell, None, None) for cell in row if not is_blank((cell,)))
    if nim_only and width in (1, len(_ALIASES)):
        return _selected(chain(top, rows), [0, _NO_COLUMN, _NO_COLUMN])
    if width != len(_ALIASES):
        raise SheetError(wording.NO_NIM_HEADER if nim_only else wording.NO_HEADER)
    return _selected(chain(top, rows), [0, 1, 2])


def is_header(row: Iterable[object], *, nim_only: bool = False) -> bool:
    """Whether a row names the column of the NIM and, unless `nim_only`, at least one other."""
    fields = {field for field, _, _ in _headings(row)}
    return wording.NIM in fields if nim_only else fields > {wording.NIM}


def is_repeated_header(cells: Sequence[Cell]) -> bool:
    """Whether the three selected cells of a row are a header again, as in a sheet with a header on each printed page."""
    return is_header(cells) and (wording.NIM, 0) in {(field, column) for field, _, column in _headings(cells)}


def is_blank(cells: Sequence[Cell]) -> bool:
    """Whether no cell has a text. Raises TooBig if there are too many to look at."""
    if len(cells) > ROW_MAX_CELLS:
        raise TooBig(wording.TOO_HEAVY)
    return all(cell is None or (isinstance(cell, str) and (not cell or cell.isspace())) for cell in cells)


def _selected(rows: Iterable[tuple[int, Sequence[Cell]]], columns: list[int]) -> Iterator[SheetRow]:
    a, b, c = columns
    for number, row in rows:
        try:
            nim, nama, alamat = row[a], row[b], row[c]
        except IndexError:
            # A CSV file may leave out the blank cells at the end of a row.
            nim, nama, alamat = (row[column] if column < len(row) else None for column in columns)
        if nim or not is_blank((nim, nama, alamat)):
            yield number, nim, nama, alamat


_NO_COLUMN = 1 << 30  # past the end of every row, so each of its cells is blank


def _columns_of(header: Iterable[Cell]) -> dict[str, int]:
    """The best column for each field. Raises SheetError if two columns are equally good."""
    best: dict[str, tuple[int, int]] = {}
    for field, rank, column in _headings(header):
        if field in best and best[field][0] == rank:
            first, second = wording.column_letter(best[field][1]), wording.column_letter(column)
            raise SheetError(wording.TWO_COLUMNS.format(field=field, first=first, second=second))
        if field not in best or rank < best[field][0]:
            best[field] = (rank, column)
    return {field: column for field, (_, column) in best.items()}


def _headings(row: Iterable[object]) -> list[tuple[str, int, int]]:
    """The field, the rank of the alias and the column of each cell that names a field."""
    return [
        (*_RANKS[alias], column)
        for column, cell in enumerate(row)
        if isinstance(cell, str) and len(cell) <= HEADER_MAX_CHARACTERS
        for alias in _aliases(cell)[:1]
    ]


def _aliases(cell: str) -> list[str]:
    """The aliases in a cell: the whole cell, or a part of `NIM/NPM`."""
    folded = cell.casefold()
    # Only up to the last `)`, because after it each `(` would be compared with the rest of the cell.
    end = folded.rfind(")") + 1
    text = re.sub(r"\([^)]*\)", "", folded[:end]) + folded[end:]
    names = (re.sub(r"[^a-z]+", "", part) for part in (text, *text.split("/")))
    return [name for name in names if name in _RANKS]


def _width(row: Sequence[Cell]) -> int:
    """The number of cells without the blank ones at the end."""
    width = len(row)
    while width and is_blank(row[width - 1 : width]):
        width -= 1
    return width
