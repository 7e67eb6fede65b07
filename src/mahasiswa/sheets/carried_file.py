"""The file of a preview, which the browser carries in a field of the form, so that a person can repair and confirm it.

The service keeps nothing between two requests. The browser carries all cells of a small file. Of a larger file it
carries only NIM, Nama and Alamat; to choose another column or sheet, a person must choose the file again.

The field is JSON by columns, compressed with bz2, as URL-safe base64, which no browser alters. Row by row it would be a
tenth longer. The browser may send anything, so every bound is checked before the work that it bounds.
"""

import base64
import bz2
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import accumulate, chain, groupby, islice, pairwise, repeat, starmap, zip_longest
from sys import getsizeof
from typing import Any, NamedTuple, TypeAlias

from mahasiswa import wording
from mahasiswa.sheets.cells import ROW_MAX_CELLS, SHEET_ROWS, Sheet, SheetRow, from_json, in_input, is_blank, to_json
from mahasiswa.sheets.cleaning import RowResult, clean_all
from mahasiswa.sheets.columns import TITLE_MAX_CHARACTERS, TITLES, Columns
from mahasiswa.sheets.limits import MAX_SHEETS, MAX_TITLES, NAME_MAX_CHARACTERS, UPLOAD_MAX_ROWS, Choice
from mahasiswa.sheets.reading import KEPT_MAX_CELLS, Table, table_of
from mahasiswa.sheets.sheet_errors import SheetError

MAX_CONFIRMED_BYTES = 8 << 20  # the form that a browser sends back, and the JSON in its field, also in memory
OTHER_FIELDS_BYTES = 64 << 10  # the part of MAX_CONFIRMED_BYTES that is left for the other fields of the form
FIELD_MAX_CHARACTERS = 56 << 10  # of a field with all cells of a file; a phone at 400 kbit/s loads as much in a second
BZ2_LEVEL = 3  # 10,000 rows get 2% longer than with 9, and are packed in 0.7 and unpacked in 0.3 of its time
REPLACED_DIGEST_MAX_CHARACTERS = 32  # of the digest of all records that a preview would replace: 128 bits
# Counted by the commas and brackets before them, also by those in texts. 8 MB of empty lists would take 170 MB of memory,
# and no other thread would run while they are parsed.
MAX_JSON_VALUES = 1 << 19

# The shape of the JSON. A tuple is a list with a value of each shape. A list [shape, most] is a list of at most so many
# values of one shape. A range is a whole number in it, a number is a text of at most so many characters, a frozenset is
# a value of one of these shapes, and a type is a value of this type.
_NUMBERS = range(1, MAX_SHEETS * SHEET_ROWS)
_RUNS = [(_NUMBERS, range(1, KEPT_MAX_CELLS + 1)), KEPT_MAX_CELLS]
_COLUMN = frozenset({None, range(ROW_MAX_CELLS)})
_TYPED = frozenset({None, MAX_CONFIRMED_BYTES})
_SHAPE = (
    NAME_MAX_CHARACTERS,
    [NAME_MAX_CHARACTERS, MAX_SHEETS],
    [(NAME_MAX_CHARACTERS, _RUNS, [list, ROW_MAX_CELLS]), MAX_SHEETS],
    [NAME_MAX_CHARACTERS, MAX_SHEETS],
    ((_COLUMN,) * len(TITLES), [TITLE_MAX_CHARACTERS, MAX_TITLES]),
    bool,
    [(_NUMBERS, *[_TYPED] * len(TITLES)), KEPT_MAX_CELLS],
    *[_RUNS] * 3,
    bool,
    REPLACED_DIGEST_MAX_CHARACTERS,
)

Typed: TypeAlias = Sequence[str | None]  # NIM, Nama and Alamat as a person typed them; None for a cell without a change
LEFT_OUT: Typed = ("", "", "")  # a row that a person skips


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
    replaced_digest: str = ""  # one digest of the records that the changed rows replace


class CleanedFile(NamedTuple):
    """A file with its rows, as they are in the file, and cleaned. There are none if `columns_problem` has a reason."""

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
    rows, size = [], 0
    for row in table.rows:
        rows.append(row)
        size += sum(map(getsizeof, row[1]))  # a text takes four bytes for each character if one of them is an emoji
        if size > MAX_CONFIRMED_BYTES:
            raise _too_large()
    kept = table.kept_sheets or [Sheet("", rows)]
    file = CarriedFile(name, table.sheets, kept, table.other_sheets, table.columns, bool(table.kept_sheets))
    return CleanedFile(file, rows, clean_all(rows, table.sheets), table.columns_problem, table.remarks)


def clean_again(file: CarriedFile) -> CleanedFile:
    """Select the rows of a file as it is now, with its repairs, and clean them. Raises SheetError."""
    table = Table(file.columns, iter(file.sheets[0].rows))
    if file.has_all_cells:
        table = _table_of(file, Choice(columns=file.columns.of_fields))
    rows = list(_with_typed(table.rows, file.typed))
    results = clean_all(rows, file.read_sheets)
    return CleanedFile(file._replace(columns=table.columns), rows, results, table.columns_problem, table.remarks)


def _table_of(file: CarriedFile, choice: Choice) -> Table:
    return table_of((file.read_sheets, file.other_sheets, iter(())), file.sheets, choice)


def repaired(
    cleaned: CleanedFile, choice: Choice, typed: Mapping[int, Typed], accepted: AbstractSet[int], *, fills_alamat: bool
) -> CarriedFile:
    """The file with a person's texts and ticks, by the number of the row. A text as in the preview is no change."""
    file, rows = cleaned.file, dict(cleaned.rows)
    names = [sheet.name for sheet in file.sheets if sheet.name in choice.sheets]
    if file.has_all_cells and names and set(names) != set(file.read_sheets):
        sheets = sorted(file.sheets, key=lambda sheet: sheet.name not in names)
        file = CarriedFile(file.name, names, sheets, file.other_sheets, file.columns, has_all_cells=True)
        return file._replace(columns=_table_of(file, Choice()).columns)
    if file.has_all_cells and choice.columns is not None:
        file = file._replace(columns=file.columns._replace(of_fields=choice.columns))
    changes = dict(file.typed)
    for number in typed.keys() & rows.keys():
        before = changes.get(number, (None, None, None))
        texts = zip(typed[number], rows[number], before, strict=True)
        new = tuple(old if text is None or text == in_input(cell) else text for text, cell, old in texts)
        if new != (None, None, None) or typed[number] == LEFT_OUT:
            changes[number] = LEFT_OUT if typed[number] == LEFT_OUT else new
    return file._replace(
        typed=changes, accepted=file.accepted | (rows.keys() & accepted), fills_alamat=file.fills_alamat or fills_alamat
    )


def _with_typed(rows: Iterable[SheetRow], typed: Mapping[int, Typed]) -> Iterator[SheetRow]:
    """The rows with the cells that a person has typed. A row whose cells were all cleared is left out."""
    for number, row in rows:
        cells = row
        if number in typed:
            cells = [cell if text is None else text for text, cell in zip(typed[number], row, strict=True)]
        if not is_blank(cells):
            yield number, cells


def dump(cleaned: CleanedFile) -> tuple[CarriedFile, str]:
    """Return the part of the file that fits into the field, and the field. Raises SheetError if it is too large."""
    file = cleaned.file
    if file.has_all_cells:
        count = len(file.read_sheets)
        others = [*file.other_sheets, *(sheet.name for sheet in file.sheets[count:])]
        only_read = file._replace(sheets=file.sheets[:count], other_sheets=others)
        for smaller in (file, only_read) if others != file.other_sheets else (file,):
            field = _field_of(smaller)
            if len(field) <= FIELD_MAX_CHARACTERS:
                return smaller, field
        if cleaned.columns_problem:
            raise SheetError(cleaned.columns_problem)
        file = cleaned._replace(file=only_read).selected()
    field = _field_of(file)
    if len(field) + OTHER_FIELDS_BYTES > MAX_CONFIRMED_BYTES:
        raise _too_large()
    return file, field


def load(field: str) -> CarriedFile:
    """The file of a form field. Raises SheetError for anything that `dump` never makes."""
    try:
        return _file_of(base64.b64decode(field.encode("ascii"), altchars=b"-_", validate=True))
    except (ValueError, OSError, EOFError, RecursionError) as error:
        raise SheetError(wording.CONFIRMATION_DAMAGED) from error


def _field_of(file: CarriedFile) -> str:
    data = _json(_values_of(file))
    if len(data) > MAX_CONFIRMED_BYTES or _takes_too_much_memory(data):
        raise _too_large()
    return base64.urlsafe_b64encode(bz2.compress(data, BZ2_LEVEL)).decode()


def _file_of(packed: bytes) -> CarriedFile:
    unpacker = bz2.BZ2Decompressor()
    data = unpacker.decompress(packed, MAX_CONFIRMED_BYTES)
    # Larger blocks could pack the same texts into half of the field, whose length bounds the page.
    if packed[:4] != b"BZh%d" % BZ2_LEVEL or not unpacker.eof or unpacker.unused_data or _takes_too_much_memory(data):
        raise ValueError("not a whole field")
    values = json.loads(data)
    if not _has_shape(values, _SHAPE):
        raise ValueError("not the shape of a file")
    plain: Any = CarriedFile(*values)
    file = CarriedFile(*values)._replace(
        sheets=[
            Sheet(name, [*zip(_numbers(runs), zip(*map(from_json, of_columns), strict=True), strict=True)])
            for name, runs, of_columns in plain.sheets
        ],
        columns=Columns(tuple(plain.columns[0]), plain.columns[1]),
        typed={number: tuple(texts) for number, *texts in plain.typed},
        accepted=frozenset(_numbers(plain.accepted)),
        new=list(_numbers(plain.new)),
        changed=list(_numbers(plain.changed)),
    )
    # Only JSON as `dump` writes it comes out the same: without objects, NaN, half characters and needless digits.
    if not _is_consistent(file) or _json(_values_of(file)) != data:
        raise ValueError("not a file of a preview")
    return file


def _json(values: object) -> bytes:
    return json.dumps(values, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _takes_too_much_memory(data: bytes) -> bool:
    values = data.count(b",") + data.count(b"[") + data.count(b"{")
    return values > MAX_JSON_VALUES or getsizeof(data.decode()) > MAX_CONFIRMED_BYTES


def _values_of(file: Any) -> list[object]:  # noqa: ANN401 - a CarriedFile, whose parts become values of JSON
    """The parts of a file in their order: a sheet by columns, and ascending numbers by their steps."""
    return list(
        file._replace(
            sheets=[
                (name, _runs(number for number, _ in rows), [*map(to_json, zip_longest(*(row for _, row in rows)))])
                for name, rows in file.sheets
            ],
            typed=[(number, *texts) for number, texts in sorted(file.typed.items())],
            accepted=_runs(sorted(file.accepted)),
            new=_runs(file.new),
            changed=_runs(file.changed),
        )
    )


def _is_consistent(file: CarriedFile) -> bool:
    """Whether the parts of a file belong together, and its rows are not too many."""
    names = [sheet.name for sheet in file.sheets]
    rows = [row for sheet in file.sheets for row in sheet.rows]
    if file.has_all_cells:
        is_fitting = names[: len(file.read_sheets)] == file.read_sheets and len(rows) <= KEPT_MAX_CELLS
    else:
        is_fitting = (
            len(names) == 1 and len(rows) <= UPLOAD_MAX_ROWS and all(len(row) == len(TITLES) for _, row in rows)
        )
    most_number = SHEET_ROWS * (1 if file.has_all_cells else len(file.read_sheets))
    return is_fitting and bool(file.read_sheets) and all(number < most_number for number, _ in rows)


def _has_shape(value: Any, shape: Any) -> bool:  # noqa: ANN401 - a value of JSON, and its shape
    match shape:
        case tuple():
            return isinstance(value, list) and len(value) == len(shape) and all(map(_has_shape, value, shape))
        case [each, most]:
            return isinstance(value, list) and len(value) <= most and all(_has_shape(item, each) for item in value)
        case range():
            return type(value) is int and value in shape
        case int():
            return isinstance(value, str) and len(value) <= shape
        case frozenset():
            return any(_has_shape(value, option) for option in shape)
    return value is None if shape is None else isinstance(value, shape)


def _runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Ascending numbers as pairs: a difference, and how often it follows. For `1,1,1,1` bz2 would take twice the time."""
    steps = (number - before for before, number in pairwise(chain([0], numbers)))
    return [(step, len([*same])) for step, same in groupby(steps)]


def _numbers(runs: Sequence[tuple[int, int]]) -> Iterator[int]:
    """The numbers of `_runs`, at most KEPT_MAX_CELLS. A file with more numbers does not come out the same."""
    return islice(accumulate(chain.from_iterable(starmap(repeat, runs))), KEPT_MAX_CELLS)


def _too_large() -> SheetError:
    return SheetError(wording.CONFIRMATION_TOO_LARGE.format(limit=wording.size(MAX_CONFIRMED_BYTES)))
