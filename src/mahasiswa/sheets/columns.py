"""Which columns of a sheet are the NIM, Nama and Alamat."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple, TypeAlias

from mahasiswa import wording
from mahasiswa.sheets.errors import Empty, NoColumns

# School files often have a title, a blank line and a date above the header. Rows that are not blank.
HEADER_WITHIN = 25

# Lower case letters alone, so `No. Mahasiswa *` is `nomahasiswa`. Where a sheet has several, the one named first here wins.
_ALIASES = {
    "NIM": (
        "nim npm nimmahasiswa npmmahasiswa nomorindukmahasiswa nomorpokokmahasiswa noindukmahasiswa nopokokmahasiswa "
        "nomormahasiswa nomahasiswa nomormhs nomhs nrp nipd nis nomorinduksiswa noinduksiswa nomorinduk noinduk nisn"
    ),
    "Nama": ("nama namalengkap namamahasiswa namalengkapmahasiswa namamhs namasiswa namalengkapsiswa namapesertadidik"),
    "Alamat": (
        "alamat alamatlengkap alamatrumah alamatmahasiswa alamatmhs alamatsiswa alamattinggal alamattempattinggal "
        "alamatdomisili alamatsekarang alamatasal alamatktp"
    ),
}
_RANKS = {alias: (field, rank) for field, aliases in _ALIASES.items() for rank, alias in enumerate(aliases.split())}


class BadCell(NamedTuple):
    """A cell that is no text and no number.

    `kind` is date, error, formula (one without a result) or long (a text too long to be passed on).
    """

    kind: str
    text: str


Cell: TypeAlias = str | int | float | bool | BadCell | None


# A row's number as Excel shows it, then its NIM, Nama and Alamat cells as they stand in the file. A bare tuple, for a
# million of them are made.
Raw: TypeAlias = tuple[int, Cell, Cell, Cell]


def pick(rows: Iterable[tuple[int, Sequence[Cell]]]) -> Iterator[Raw]:
    """The NIM, Nama and Alamat of each row that is not blank, found by the header or, without one, taken in order.

    The header is looked for before this returns: Empty and NoColumns are raised here and now.
    """
    rows = iter(rows)
    top = list(islice((row for row in rows if not is_blank(row[1])), HEADER_WITHIN))
    if not top:
        raise Empty(wording.EMPTY)
    for index, (_, row) in enumerate(top):
        if names_columns(row):
            columns = _best(row)
            return _cells(chain(top[index + 1 :], rows), [columns.get(field, _NO_COLUMN) for field in _ALIASES])
    found = {field for _, row in top for field, _, _ in _named(row)}
    if found:
        raise NoColumns(wording.NO_OTHER_COLUMN if found == {"NIM"} else wording.NO_NIM_COLUMN)
    if max(len(_trimmed(row)) for _, row in top) != len(_ALIASES):
        raise NoColumns(wording.NO_HEADER)
    return _cells(chain(top, rows), [0, 1, 2])


def names_columns(row: Iterable[object]) -> bool:
    """Whether a row is a header: it names the NIM and at least one other of our columns."""
    return {field for field, _, _ in _named(row)} > {"NIM"}


def is_header(cells: Sequence[Cell]) -> bool:
    """Whether a row's three picked cells name their own columns, as a header does that is repeated further down."""
    return ("NIM", 0) in {(field, column) for field, _, column in _named(cells)} and names_columns(cells)


def is_blank(cells: Iterable[Cell]) -> bool:
    return all(cell is None or (isinstance(cell, str) and (not cell or cell.isspace())) for cell in cells)


def _cells(rows: Iterable[tuple[int, Sequence[Cell]]], columns: list[int]) -> Iterator[Raw]:
    a, b, c = columns
    for number, row in rows:
        try:
            nim, nama, alamat = row[a], row[b], row[c]
        except IndexError:
            # A spreadsheet leaves out the blank cells at the end of a row.
            nim, nama, alamat = (row[column] if column < len(row) else None for column in columns)
        if nim or not is_blank((nim, nama, alamat)):
            yield number, nim, nama, alamat


# Past the end of any row, so that it reads as a blank cell.
_NO_COLUMN = 1 << 30


def _best(row: Iterable[Cell]) -> dict[str, int]:
    """The best column for each field that the row names. Two equally good ones raise NoColumns, for we do not guess."""
    best: dict[str, tuple[int, int]] = {}
    for field, rank, column in _named(row):
        if field in best and best[field][0] == rank:
            raise NoColumns(wording.two_columns(field, best[field][1], column))
        if field not in best or rank < best[field][0]:
            best[field] = (rank, column)
    return {field: column for field, (_, column) in best.items()}


def _named(row: Iterable[object]) -> list[tuple[str, int, int]]:
    """The field, the alias's rank and the column of each cell that is one of the names we know."""
    return [
        (*_RANKS[name], column)
        for column, cell in enumerate(row)
        if isinstance(cell, str) and len(cell) < _LONGEST_HEADER
        for name in _names(cell)[:1]
    ]


# No header is longer, and the search for names in a huge cell would only cost time.
_LONGEST_HEADER = 100


def _names(cell: str) -> list[str]:
    """The aliases that a cell is, as a whole or as a part of `NIM/NPM`."""
    text = re.sub(r"\(.*?\)", "", cell.casefold())
    names = (re.sub(r"[^a-z]+", "", part) for part in (text, *text.split("/")))
    return [name for name in names if name in _RANKS]


def _trimmed(row: Sequence[Cell]) -> Sequence[Cell]:
    """The row without the blank cells at its end."""
    end = len(row)
    while end and is_blank(row[end - 1 : end]):
        end -= 1
    return row[:end]
