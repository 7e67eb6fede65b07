"""Finds which columns of a sheet hold the NIM, Nama and Alamat."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import NamedTuple, TypeAlias

from mahasiswa import wording
from mahasiswa.record import Field, Mahasiswa
from mahasiswa.sheets.cells import Cell, RawRow, SheetRow, is_blank
from mahasiswa.sheets.errors import ColumnsUnclear, SheetError

HEADER_WITHIN_ROWS = 25
"""Maximum rows that are not blank in which the header is searched: school files often begin with titles and a date."""

HEADER_MAX_CHARACTERS = 100
"""Maximum length of a cell that can be a header. Looking for names in a huge cell would only cost time."""

MAX_TITLES = 100
"""Maximum columns among which a person can choose."""

TITLE_MAX_CHARACTERS = 30
"""Maximum length of a column's title in that choice."""

# Only lower case letters count: `No. Mahasiswa *` is `nomahasiswa`. If a sheet has several of them, the first one wins.
_ALIASES: Mapping[Field, str] = {
    "nim": (
        "nim npm nimmahasiswa npmmahasiswa nomorindukmahasiswa nomorpokokmahasiswa noindukmahasiswa nopokokmahasiswa "
        "nomormahasiswa nomahasiswa nomormhs nomhs nrp nipd nis nomorinduksiswa noinduksiswa nomorinduk noinduk nisn"
    ),
    "nama": ("nama namalengkap namamahasiswa namalengkapmahasiswa namamhs namasiswa namalengkapsiswa namapesertadidik"),
    "alamat": (
        "alamat alamatlengkap alamatrumah alamatmahasiswa alamatmhs alamatsiswa alamattinggal alamattempattinggal "
        "alamatdomisili alamatsekarang alamatasal alamatktp"
    ),
}
_RANKS = {alias: (field, rank) for field, aliases in _ALIASES.items() for rank, alias in enumerate(aliases.split())}


FieldColumns: TypeAlias = tuple[int | None, int | None, int | None]
"""The columns of NIM, Nama and Alamat, counted from 0. None is a field that the sheet lacks."""


IN_ORDER: FieldColumns = (0, 1, 2)

TITLES = ("NIM", "Nama", "Alamat")
"""The titles in our own files. An import recognises them, so they do not follow the wording of pages."""


class Columns(NamedTuple):
    """The columns of a sheet: which one holds which field, and the titles of all of them."""

    of_fields: FieldColumns
    titles: list[str]


class Selection(NamedTuple):
    """The columns of a sheet, its rows, and sentences about what was found or is missing."""

    columns: Columns
    rows: Iterator[SheetRow]
    remarks: Sequence[str] = ()


def select_columns(
    rows: Iterable[RawRow],
    chosen: FieldColumns | None = None,
    *,
    nim_only: bool = False,
    first_sheet: Columns | None = None,
) -> Selection:
    """The columns, and the NIM, Nama and Alamat of each row that is not blank.

    The columns are those that a person has chosen, or those that the header names. Without a header they are the first
    three. With `nim_only` the header needs no other column, and Alamat is left blank. A sheet without a header may then
    also have one column, or one row of NIMs. If another sheet was read before, this one may be blank, and has the columns
    of the first sheet if it has the same titles or none.

    Raises SheetError if the rows are all blank or too wide, and ColumnsUnclear if a column cannot be found.
    """
    rows = iter(rows)
    top = list(islice((row for row in rows if not is_blank(row[1])), HEADER_WITHIN_ROWS))
    if not top and first_sheet:
        return Selection(first_sheet, iter(()))
    if not top:
        raise SheetError(wording.EMPTY)
    header = next((index for index, (_, row) in enumerate(top) if is_header(row, nim_only=nim_only)), None)
    if header is None and chosen is not None:
        header = next((index for index, (_, row) in enumerate(top) if _headings(row)), None)
    titles = _titles(top[header or 0][1])
    if nim_only and header is None and len(top) == 1:
        cells: list[SheetRow] = [(n, cell, None, None) for n, cell in enumerate(top[0][1], 1) if not is_blank((cell,))]
        return Selection(Columns((0, None, None), titles), iter(cells))
    if chosen is not None:
        of_fields = _checked(chosen, titles)
    elif first_sheet and (header is None or titles == first_sheet.titles):
        of_fields = first_sheet.of_fields
    elif header is not None:
        of_fields = _columns_of(top[header][1], titles)
    else:
        of_fields = _columns_without_header([row for _, row in top], nim_only=nim_only)
    if nim_only:
        of_fields = (*of_fields[:2], None)
    first = 0 if header is None else header + 1
    return Selection(Columns(of_fields, titles), _selected(chain(top[first:], rows), of_fields))


def _columns_without_header(rows: Sequence[Sequence[Cell]], *, nim_only: bool) -> FieldColumns:
    """The first three columns. Raises ColumnsUnclear if there are more or fewer, or if a title stands alone."""
    found = {field for row in rows for field, _, _ in _headings(row)}
    if found:
        problem = wording.NO_OTHER_COLUMN if found == {"nim"} else wording.NO_NIM_COLUMN
        row = next(row for row in rows if _headings(row))
        raise ColumnsUnclear(problem, _titles(row), _first_columns(row))
    width = max(map(_width, rows))
    if width != len(Mahasiswa._fields) and not (nim_only and width == 1):
        raise ColumnsUnclear(wording.NO_NIM_HEADER if nim_only else wording.NO_HEADER, _titles(rows[0]))
    return IN_ORDER


def is_header(row: Iterable[object], *, nim_only: bool = False) -> bool:
    """Whether a row names the column of the NIM and, unless `nim_only`, at least one other."""
    fields = {field for field, _, _ in _headings(row)}
    return "nim" in fields if nim_only else fields > {"nim"}


def is_repeated_header(cells: Sequence[Cell]) -> bool:
    """Whether the three selected cells of a row are a header again, as in a sheet with a header on each printed page."""
    return any(field == "nim" for field, _, _ in _headings(cells[:1])) and is_header(cells)


def _selected(rows: Iterable[RawRow], of_fields: FieldColumns) -> Iterator[SheetRow]:
    columns = a, b, c = [_NO_COLUMN if column is None else column for column in of_fields]
    for number, row in rows:
        try:
            nim, nama, alamat = row[a], row[b], row[c]
        except IndexError:
            # A CSV file may leave out the blank cells at the end of a row.
            nim, nama, alamat = (row[column] if column < len(row) else None for column in columns)
        if nim or not is_blank((nim, nama, alamat)):
            yield number, nim, nama, alamat


_NO_COLUMN = 1 << 30  # past the end of every row, so each of its cells is blank


def _checked(chosen: FieldColumns, titles: list[str]) -> FieldColumns:
    """The columns that a person has chosen. Raises ColumnsUnclear if they cannot be used."""
    nim, nama, alamat = chosen
    if nim is None or (nama is None and alamat is None):
        raise ColumnsUnclear(wording.COLUMN_NOT_CHOSEN, titles)
    given = [column for column in chosen if column is not None]
    if len(set(given)) < len(given):
        raise ColumnsUnclear(wording.COLUMN_CHOSEN_TWICE, titles)
    return chosen


def _columns_of(header: Sequence[Cell], titles: list[str]) -> FieldColumns:
    """The best column for each field. Raises ColumnsUnclear if two columns are equally good."""
    best: dict[Field, tuple[int, int]] = {}
    for field, rank, column in _headings(header):
        if field in best and best[field][0] == rank:
            first, second = wording.column_letter(best[field][1]), wording.column_letter(column)
            problem = wording.TWO_COLUMNS.format(field=wording.LABELS[field], first=first, second=second)
            raise ColumnsUnclear(problem, titles, _first_columns(header))
        if field not in best or rank < best[field][0]:
            best[field] = (rank, column)
    nim, nama, alamat = (best[field][1] if field in best else None for field in _ALIASES)
    return nim, nama, alamat


def _first_columns(header: Sequence[Cell]) -> FieldColumns:
    """The first column for each field that the header names."""
    first = {field: column for field, _, column in reversed(_headings(header))}
    nim, nama, alamat = map(first.get, _ALIASES)
    return nim, nama, alamat


def _titles(row: Sequence[Cell]) -> list[str]:
    """The texts of a row by which a person recognises its columns."""
    texts = (cell[:TITLE_MAX_CHARACTERS] if isinstance(cell, str) else "" for cell in row[:MAX_TITLES])
    titles = [" ".join(text.split()) for text in texts]
    return titles + [""] * (len(Mahasiswa._fields) - len(titles))


def _headings(row: Iterable[object]) -> list[tuple[Field, int, int]]:
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
    # Only up to the last `)`: each `(` after it would be compared with the rest of the cell, in quadratic time.
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
