"""Packs a file into a field of the preview's form, and reads the field that the browser sends back.

The field is JSON by columns, compressed with bz2, as URL-safe base64, which no browser alters. Row by row it would be a
tenth longer. The browser may send anything, so every bound is checked before the work that it bounds.
"""

import base64
import bz2
import json
from collections.abc import Iterable
from itertools import accumulate, chain, pairwise
from typing import Any, cast

from mahasiswa import wording
from mahasiswa.record import Mahasiswa
from mahasiswa.sheets.carried_file import VERSI_MAX_CHARACTERS, CarriedFile, CleanedFile, Typed
from mahasiswa.sheets.cells import MAX_TITLES, ROW_MAX_CELLS, SHEET_ROWS, FieldColumns, cell_from_json, cell_to_json
from mahasiswa.sheets.columns import TITLE_MAX_CHARACTERS, Columns
from mahasiswa.sheets.errors import SheetError
from mahasiswa.sheets.kept_sheets import KEPT_MAX_CELLS, MAX_SHEETS, NAME_MAX_CHARACTERS, Sheet
from mahasiswa.sheets.limits import UPLOAD_MAX_ROWS

MAX_CONFIRMED_BYTES = 8 << 20
"""Maximum size of the form that a browser sends back, and of the JSON in its field."""

OTHER_FIELDS_BYTES = 64 << 10
"""The part of MAX_CONFIRMED_BYTES that is left for the other fields of the form."""

KEPT_MAX_PACKED_BYTES = 42 << 10
"""Maximum size of a file that is carried with all its cells. A phone at 400 kbit/s loads as much in a second."""

MAX_JSON_VALUES = 1 << 19
"""Maximum values in the JSON, counted by the commas and brackets before them, also by those in texts.

8 MB of empty lists would take 170 MB of memory, and no other thread would run while they are parsed.
"""


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
            packed = _packed(smaller)
            if len(packed) <= KEPT_MAX_PACKED_BYTES:
                return smaller, _field(packed)
        if cleaned.columns_problem:
            raise SheetError(cleaned.columns_problem)
        file = cleaned._replace(file=only_read).selected()
    field = _field(_packed(file))
    if len(field) + OTHER_FIELDS_BYTES > MAX_CONFIRMED_BYTES:
        raise _too_large()
    return file, field


def load(field: str) -> CarriedFile:
    """The file of a form field. Raises SheetError for anything that `dump` never makes."""
    try:
        return _unpacked(base64.b64decode(field.encode("ascii"), altchars=b"-_", validate=True))
    except SheetError:
        raise
    except (ValueError, TypeError, OSError, EOFError, RecursionError) as error:
        raise _damaged() from error


def _unpacked(packed: bytes) -> CarriedFile:
    unpacker = bz2.BZ2Decompressor()
    data = unpacker.decompress(packed, MAX_CONFIRMED_BYTES + 1)
    if len(data) > MAX_CONFIRMED_BYTES:
        raise _too_large()
    _require(unpacker.eof and not unpacker.unused_data and _values_in(data) <= MAX_JSON_VALUES)
    file = _file_of(json.loads(data))
    # Only JSON as `dump` writes it comes out the same: without objects, NaN, half characters and needless digits.
    _require(_json(_values_of(file)) == data)
    return file


def _packed(file: CarriedFile) -> bytes:
    data = _json(_values_of(file))
    if len(data) > MAX_CONFIRMED_BYTES or _values_in(data) > MAX_JSON_VALUES:
        raise _too_large()
    return bz2.compress(data)


def _field(packed: bytes) -> str:
    return base64.urlsafe_b64encode(packed).decode()


def _json(values: object) -> bytes:
    return json.dumps(values, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _values_in(data: bytes) -> int:
    return data.count(b",") + data.count(b"[") + data.count(b"{")


def _values_of(file: CarriedFile) -> list[object]:
    """The file in the order of its fields, as lists, texts and numbers."""
    sheets = [
        [
            name,
            _steps(number for number, _ in rows),
            [
                [cell_to_json(cells[column] if column < len(cells) else None) for _, cells in rows]
                for column in range(max((len(cells) for _, cells in rows), default=0))
            ],
        ]
        for name, rows in file.sheets
    ]
    typed = [[number, *texts] for number, texts in sorted(file.typed.items())]
    shown = [_steps(numbers) for numbers in (sorted(file.accepted), file.new, file.changed)]
    return [
        file.name,
        list(file.read_sheets),
        sheets,
        file.other_sheets,
        file.columns,
        file.has_all_cells,
        typed,
        *shown,
        file.fills_alamat,
        file.versi,
    ]


def _file_of(values: Any) -> CarriedFile:  # noqa: ANN401 - a value of JSON
    """Check each value. Raises ValueError or TypeError."""
    name, read_sheets, sheets, others, (of_fields, titles), has_all_cells, typed, *shown, fills_alamat, versi = values
    accepted, new, changed = (_numbers(steps, UPLOAD_MAX_ROWS) for steps in shown)
    file = CarriedFile(
        _text(name, NAME_MAX_CHARACTERS),
        _texts(read_sheets, MAX_SHEETS, NAME_MAX_CHARACTERS),
        [_sheet_of(*sheet) for sheet in sheets],
        _texts(others, MAX_SHEETS, NAME_MAX_CHARACTERS),
        Columns(_field_columns(*of_fields), _texts(titles, MAX_TITLES, TITLE_MAX_CHARACTERS)),
        has_all_cells is True,
        dict(_typed(*row) for row in typed),
        frozenset(accepted),
        fills_alamat is True,
        new,
        changed,
        _text(versi, VERSI_MAX_CHARACTERS),
    )
    most_rows = KEPT_MAX_CELLS if file.has_all_cells else UPLOAD_MAX_ROWS
    widths = {len(cells) for _, rows in file.sheets for _, cells in rows}
    names = [sheet.name for sheet in file.sheets]
    _require(file.read_sheets and (not file.has_all_cells or names[: len(file.read_sheets)] == file.read_sheets))
    _require(1 <= len(file.sheets) <= MAX_SHEETS and sum(len(rows) for _, rows in file.sheets) <= most_rows)
    _require(file.has_all_cells or (len(file.sheets) == 1 and widths <= {len(Mahasiswa._fields)}))
    most_number = SHEET_ROWS * (1 if file.has_all_cells else len(file.read_sheets))
    _require(all(number < most_number for _, rows in file.sheets for number, _ in rows[-1:]))
    return file


def _sheet_of(name: object, steps: Any, columns: Any) -> Sheet:  # noqa: ANN401 - values of JSON
    numbers = _numbers(steps, KEPT_MAX_CELLS)
    rows = zip(*(map(cell_from_json, column) for column in columns), strict=True)
    return Sheet(_text(name, NAME_MAX_CHARACTERS), list(zip(numbers, rows, strict=True)))


def _field_columns(*columns: object) -> FieldColumns:
    _require(len(columns) == len(Mahasiswa._fields))
    _require(all(column is None or (type(column) is int and 0 <= column < ROW_MAX_CELLS) for column in columns))
    return cast("FieldColumns", columns)


def _typed(number: object, *texts: object) -> tuple[int, Typed]:
    _require(type(number) is int and len(texts) == len(Mahasiswa._fields))
    _require(all(text is None or isinstance(text, str) for text in texts))
    return cast("tuple[int, Typed]", (number, texts))


def _texts(values: Any, most: int, max_characters: int) -> list[str]:  # noqa: ANN401 - a value of JSON
    _require(isinstance(values, list) and len(values) <= most)
    return [_text(value, max_characters) for value in values]


def _text(value: object, max_characters: int) -> str:
    _require(isinstance(value, str) and len(value) <= max_characters)
    return cast("str", value)


def _steps(numbers: Iterable[int]) -> list[int]:
    """The difference of each ascending number to the one before it. Most are 1, which takes no room when it is packed."""
    return [number - before for before, number in pairwise(chain([0], numbers))]


def _numbers(steps: Any, most: int) -> list[int]:  # noqa: ANN401 - a value of JSON
    """The numbers with these differences, of which there are at most `most`."""
    _require(isinstance(steps, list) and len(steps) <= most and all(type(step) is int and step > 0 for step in steps))
    _require(sum(steps) < MAX_SHEETS * SHEET_ROWS)
    return list(accumulate(steps))


def _require(condition: object) -> None:
    if not condition:
        raise _damaged()


def _damaged() -> SheetError:
    return SheetError(wording.CONFIRMATION_DAMAGED)


def _too_large() -> SheetError:
    return SheetError(wording.CONFIRMATION_TOO_LARGE.format(limit=wording.size(MAX_CONFIRMED_BYTES)))
