"""The file of a preview, which the browser carries, so that a person can repair and confirm it.

The service keeps nothing between two requests. The browser carries all cells of a small file. Of a larger file it
carries only NIM, Nama and Alamat; to choose another column or sheet, a person must choose the file again.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple, TypeAlias

from mahasiswa import wording
from mahasiswa.sheets.cells import Cell, FieldColumns, Sheet, SheetRow, cell_text, is_blank
from mahasiswa.sheets.cleaning import RowResult, clean_all
from mahasiswa.sheets.columns import Columns
from mahasiswa.sheets.errors import SheetError
from mahasiswa.sheets.limits import Choice
from mahasiswa.sheets.reading import Table, table_of

Typed: TypeAlias = Sequence[str | None]
"""NIM, Nama and Alamat as a person typed them into a preview. None is a cell that was not changed."""

LEFT_OUT: Typed = ("", "", "")  # a row that a person skips
MAX_CONFIRMED_BYTES = 8 << 20  # the form that a browser sends back, and the JSON in its field
VERSI_MAX_CHARACTERS = 32  # of the digest of all records that a preview would replace: 128 bits


class CarriedFile(NamedTuple):
    """The cells of a file, the repairs of a person, and the changes that the preview has shown."""

    name: str  # of the file; blank for pasted cells
    read_sheets: Sequence[str]  # the names of the sheets that are read; one blank name for CSV
    sheets: list[Sheet]  # those that are read come first; without all cells, one of all NIMs, names and addresses
    other_sheets: list[str]  # the names of the sheets whose cells are not here
    columns: Columns
    has_all_cells: bool
    typed: Mapping[int, Typed] = {}  # by the number of the row
    accepted: frozenset[int] = frozenset()  # rows whose NIM has no digit, and is right
    new: Sequence[int] = ()  # rows that the preview has shown as new records, and as changed ones
    changed: Sequence[int] = ()
    fills_alamat: bool = False  # new records get "-", because the file has no such column
    versi: str = ""  # one digest of the records that the changed rows replace


class CleanedFile(NamedTuple):
    """A file with its rows, as they are in the file, and cleaned.

    If the columns could not be found, there are no rows, and `columns_problem` is the reason.
    """

    file: CarriedFile
    rows: list[SheetRow]
    results: list[RowResult]
    columns_problem: str = ""
    remarks: Sequence[str] = ()  # sentences about the file

    def selected(self) -> CarriedFile:
        """The file with only the NIM, Nama and Alamat of its rows, which have the typed texts."""
        return self.file._replace(sheets=[Sheet("", self.rows)], has_all_cells=False, typed={})


def clean_table(table: Table, name: str) -> CleanedFile:
    """Read and clean all rows of a file with this name. Raises SheetError."""
    rows, characters = [], 0
    for row in table.rows:
        rows.append(row)
        characters += sum(len(cell) for cell in row[1] if isinstance(cell, str))
        if characters > MAX_CONFIRMED_BYTES:  # with an emoji in each text, the rest of the file would take 120 MB
            raise too_large()
    has_all_cells = bool(table.kept_sheets)
    kept = table.kept_sheets or [Sheet("", rows)]
    file = CarriedFile(name, table.sheets, kept, table.other_sheets, table.columns, has_all_cells)
    return CleanedFile(file, rows, clean_all(rows, table.sheets), table.columns_problem, table.remarks)


def too_large() -> SheetError:
    return SheetError(wording.CONFIRMATION_TOO_LARGE.format(limit=wording.size(MAX_CONFIRMED_BYTES)))


def clean_again(file: CarriedFile) -> CleanedFile:
    """Select the rows of a file as it is now, with its repairs, and clean them. Raises SheetError."""
    table = Table(file.columns, iter(file.sheets[0].rows))
    if file.has_all_cells:
        table = _table_of(file, file.columns.of_fields)
    rows = list(_with_typed(table.rows, file.typed))
    results = clean_all(rows, file.read_sheets)
    return CleanedFile(file._replace(columns=table.columns), rows, results, table.columns_problem, table.remarks)


def _table_of(file: CarriedFile, columns: FieldColumns | None) -> Table:
    return table_of(file.read_sheets, file.other_sheets, file.sheets, Choice(columns=columns))


def repaired(
    cleaned: CleanedFile,
    choice: Choice,
    typed: Mapping[int, Typed],
    accepted: AbstractSet[int] = frozenset(),
    *,
    fills_alamat: bool = False,
) -> CarriedFile:
    """The file with a person's repairs: texts and ticks by the number of the row.

    A text that equals the one in the preview is no change.
    """
    file, rows = cleaned.file, dict(cleaned.rows)
    names = [sheet.name for sheet in file.sheets if sheet.name in choice.sheets]
    if file.has_all_cells and names and set(names) != set(file.read_sheets):
        sheets = sorted(file.sheets, key=lambda sheet: sheet.name not in names)
        file = CarriedFile(file.name, names, sheets, file.other_sheets, file.columns, has_all_cells=True)
        return file._replace(columns=_table_of(file, None).columns)
    if file.has_all_cells and choice.columns is not None:
        file = file._replace(columns=file.columns._replace(of_fields=choice.columns))
    changes = dict(file.typed)
    for number in typed.keys() & rows.keys():
        before = changes.get(number, (None, None, None))
        texts = zip(typed[number], rows[number], before, strict=True)
        new = tuple(old if text is None or text == in_input(cell) else text for text, cell, old in texts)
        if typed[number] == LEFT_OUT or any(text is not None for text in new):
            changes[number] = LEFT_OUT if typed[number] == LEFT_OUT else new
    return file._replace(
        typed=changes,
        accepted=file.accepted | (rows.keys() & accepted),
        fills_alamat=file.fills_alamat or fills_alamat,
    )


def in_input(cell: Cell) -> str:
    """A cell as the text of an input. Line breaks and NUL become spaces, because a browser would alter them."""
    return re.sub(r"[\r\n\0]+", " ", cell_text(cell))


def _with_typed(rows: Iterable[SheetRow], typed: Mapping[int, Typed]) -> Iterator[SheetRow]:
    """The rows with the cells that a person has typed. A row whose cells were all cleared is left out."""
    for number, cells in rows:
        texts = zip(typed.get(number, (None,) * len(cells)), cells, strict=True)
        repaired_cells = [cell if text is None else text for text, cell in texts]
        if not is_blank(repaired_cells):
            yield number, repaired_cells
