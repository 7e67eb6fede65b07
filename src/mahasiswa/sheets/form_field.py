"""Packs a file into a field of the preview's form, and reads the field that the browser sends back.

The field is JSON by columns, compressed with bz2, as URL-safe base64, which no browser alters. Row by row it would be a
tenth longer. The browser may send anything, so every bound is checked before the work that it bounds.
"""

import base64
import bz2
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, pairwise, zip_longest
from typing import Any

from mahasiswa import wording
from mahasiswa.sheets.carried_file import MAX_CONFIRMED_BYTES, VERSI_MAX_CHARACTERS, CarriedFile, CleanedFile, too_large
from mahasiswa.sheets.cells import (
    MAX_SHEETS,
    MAX_TITLES,
    NAME_MAX_CHARACTERS,
    ROW_MAX_CELLS,
    SHEET_ROWS,
    Cell,
    Sheet,
    cell_from_json,
    cell_to_json,
)
from mahasiswa.sheets.columns import TITLE_MAX_CHARACTERS, TITLES, Columns
from mahasiswa.sheets.errors import SheetError
from mahasiswa.sheets.limits import UPLOAD_MAX_ROWS
from mahasiswa.sheets.reading import KEPT_MAX_CELLS

OTHER_FIELDS_BYTES = 64 << 10  # the part of MAX_CONFIRMED_BYTES that is left for the other fields of the form
KEPT_MAX_CHARACTERS = 56 << 10  # of a field with all cells of a file; a phone at 400 kbit/s loads as much in a second

MAX_JSON_VALUES = 1 << 19
"""Maximum values in the JSON, counted by the commas and brackets before them, also by those in texts.

8 MB of empty lists would take 170 MB of memory, and no other thread would run while they are parsed.
"""

# The shape of the JSON. A tuple is a list with a value of each shape. A list [shape, most] is a list of at most so many
# values of one shape. A range is a whole number in it, a number is a text of at most so many characters, a frozenset is
# a value of one of these shapes, and a type is a value of this type.
_NUMBERS = range(1, MAX_SHEETS * SHEET_ROWS)
_COLUMN = frozenset({None, range(ROW_MAX_CELLS)})
_TYPED = frozenset({None, MAX_CONFIRMED_BYTES})
_SHAPE = (
    NAME_MAX_CHARACTERS,
    [NAME_MAX_CHARACTERS, MAX_SHEETS],
    [(NAME_MAX_CHARACTERS, [_NUMBERS, KEPT_MAX_CELLS], [list, ROW_MAX_CELLS]), MAX_SHEETS],
    [NAME_MAX_CHARACTERS, MAX_SHEETS],
    ((_COLUMN,) * len(TITLES), [TITLE_MAX_CHARACTERS, MAX_TITLES]),
    bool,
    [(_NUMBERS, *[_TYPED] * len(TITLES)), KEPT_MAX_CELLS],
    *[[_NUMBERS, UPLOAD_MAX_ROWS]] * 3,
    bool,
    VERSI_MAX_CHARACTERS,
)


def dump(cleaned: CleanedFile) -> tuple[CarriedFile, str]:
    """Return the part of the file that fits into the field, and the field.

    Raises SheetError if it would be too large to be sent back.
    """
    file = cleaned.file
    if file.has_all_cells:
        count = len(file.read_sheets)
        others = [*file.other_sheets, *(sheet.name for sheet in file.sheets[count:])]
        only_read = file._replace(sheets=file.sheets[:count], other_sheets=others)
        for smaller in (file, only_read):
            field = _field_of(smaller)
            if len(field) <= KEPT_MAX_CHARACTERS:
                return smaller, field
        if cleaned.columns_problem:
            raise SheetError(cleaned.columns_problem)
        file = cleaned._replace(file=only_read).selected()
    field = _field_of(file)
    if len(field) + OTHER_FIELDS_BYTES > MAX_CONFIRMED_BYTES:
        raise too_large()
    return file, field


def load(field: str) -> CarriedFile:
    """The file of a form field. Raises SheetError for anything that `dump` never makes."""
    try:
        return _file_of(base64.b64decode(field.encode("ascii"), altchars=b"-_", validate=True))
    except (ValueError, OSError, EOFError, RecursionError) as error:
        raise SheetError(wording.CONFIRMATION_DAMAGED) from error


def _field_of(file: CarriedFile) -> str:
    data = _json(_values_of(file))
    if len(data) > MAX_CONFIRMED_BYTES or _values_in(data) > MAX_JSON_VALUES:
        raise too_large()
    return base64.urlsafe_b64encode(bz2.compress(data)).decode()


def _file_of(packed: bytes) -> CarriedFile:
    unpacker = bz2.BZ2Decompressor()
    data = unpacker.decompress(packed, MAX_CONFIRMED_BYTES)
    if not unpacker.eof or unpacker.unused_data or _values_in(data) > MAX_JSON_VALUES:
        raise ValueError("not a whole field")
    values = json.loads(data)
    if not _has_shape(values, _SHAPE):
        raise ValueError("not the shape of a file")
    plain: Any = CarriedFile(*values)
    file = CarriedFile(*values)._replace(
        sheets=[
            Sheet(name, [*zip(accumulate(steps), _rows_of(columns), strict=True)])
            for name, steps, columns in plain.sheets
        ],
        columns=Columns(tuple(plain.columns[0]), plain.columns[1]),
        typed={number: tuple(texts) for number, *texts in plain.typed},
        accepted=frozenset(accumulate(plain.accepted)),
        new=list(accumulate(plain.new)),
        changed=list(accumulate(plain.changed)),
    )
    # Only JSON as `dump` writes it comes out the same: without objects, NaN, half characters and needless digits.
    if not _is_consistent(file) or _json(_values_of(file)) != data:
        raise ValueError("not a file of a preview")
    return file


def _json(values: object) -> bytes:
    return json.dumps(values, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _values_in(data: bytes) -> int:
    return data.count(b",") + data.count(b"[") + data.count(b"{")


def _values_of(file: Any) -> list[object]:  # noqa: ANN401 - a CarriedFile, whose parts become values of JSON
    """The parts of a file in their order: a sheet by columns, and ascending numbers by their steps."""
    return list(
        file._replace(
            sheets=[
                (
                    name,
                    _steps(number for number, _ in rows),
                    [*zip_longest(*(map(cell_to_json, row) for _, row in rows))],
                )
                for name, rows in file.sheets
            ],
            typed=[(number, *texts) for number, texts in sorted(file.typed.items())],
            accepted=_steps(sorted(file.accepted)),
            new=_steps(file.new),
            changed=_steps(file.changed),
        )
    )


def _rows_of(columns: Iterable[list[Any]]) -> Iterator[Sequence[Cell]]:
    return zip(*(map(cell_from_json, column) for column in columns), strict=True)


def _is_consistent(file: CarriedFile) -> bool:
    """Whether the parts of a file belong together, and its rows are not too many."""
    names = [sheet.name for sheet in file.sheets]
    rows = [row for sheet in file.sheets for row in sheet.rows]
    if file.has_all_cells:
        is_fitting = names[: len(file.read_sheets)] == file.read_sheets
        most_rows, most_number = KEPT_MAX_CELLS, SHEET_ROWS
    else:
        is_fitting = len(names) == 1 and all(len(cells) == len(TITLES) for _, cells in rows)
        most_rows, most_number = UPLOAD_MAX_ROWS, SHEET_ROWS * len(file.read_sheets)
    is_fitting = is_fitting and bool(file.read_sheets) and len(rows) <= most_rows
    return is_fitting and all(number < most_number for number, _ in rows)


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


def _steps(numbers: Iterable[int]) -> list[int]:
    """The difference of each ascending number to the one before it. Most are 1, which takes no room when it is packed."""
    return [number - before for before, number in pairwise(chain([0], numbers))]
