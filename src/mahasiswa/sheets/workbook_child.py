"""The child process that reads one workbook: `python -m mahasiswa.sheets.workbook_child MEMORY SECONDS ROWS`.

The workbook is standard input, a file. What it says on standard output is one JSON value a line, in ASCII:
`"ready"`, `{"sheet": "…", "others": ["…"]}`, then lists of up to a thousand rows `[number, nim, nama, alamat]`, then `"end"`.
Instead of any but the first, `{"error": "NoColumns", "message": "…"}` may come and end it. A cell is a string, a number, a
boolean, null, or `[kind, text]` for an BadCell one.
"""

import contextlib
import datetime as dt
import json
import math
import os
import sys
import zipfile
from collections.abc import Iterable, Iterator
from typing import BinaryIO, TypeAlias

from python_calamine import (
    CalamineError,
    CalamineSheet,
    CalamineWorkbook,
    PasswordError,
    SheetTypeEnum,
    SheetVisibleEnum,
)

from mahasiswa import wording
from mahasiswa.sheets.cleaning import LONGEST_CELL
from mahasiswa.sheets.columns import HEADER_WITHIN, BadCell, Cell, Raw, names_columns, pick
from mahasiswa.sheets.errors import Empty, NotASpreadsheet, PasswordProtected, SheetError, TooHeavy, TooManyRows
from mahasiswa.sheets.markup import Mark, Marks
from mahasiswa.sheets.ods_marks import ods_marks
from mahasiswa.sheets.xlsx_marks import xlsx_marks

try:
    import resource
except ImportError:  # Windows has none; the deadline holds there
    resource = None  # type: ignore[assignment]

_Value: TypeAlias = int | float | str | bool | dt.time | dt.date | dt.datetime | dt.timedelta
_BATCH_ROWS = 1000
_BATCH_CHARACTERS = 1 << 19


def main() -> None:
    memory, seconds, rows = map(int, sys.argv[1:4])
    _limit(memory, seconds)
    _say("ready")
    try:
        _read(os.fdopen(0, "rb"), rows, memory)
    except SheetError as error:
        _say({"error": type(error).__name__, "message": str(error)})
    except MemoryError:
        _say({"error": TooHeavy.__name__, "message": wording.TOO_HEAVY})
    else:
        _say("end")


def _limit(memory: int, seconds: int) -> None:
    with contextlib.suppress(AttributeError, OSError):
        os.nice(10)  # the service's other visitors go first
    if resource is None:
        return
    for kind, limit in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
    ):
        with contextlib.suppress(OSError, ValueError):  # macOS refuses some
            resource.setrlimit(kind, (limit, limit))


def _read(file: BinaryIO, most_rows: int, memory: int) -> None:
    _refuse_what_unpacks_huge(file, memory)
    try:
        workbook = CalamineWorkbook.from_filelike(file)
    except PasswordError as error:
        raise PasswordProtected(wording.PASSWORD) from error
    except CalamineError as error:
        if _is_encrypted(file):
            raise PasswordProtected(wording.PASSWORD) from error
        raise NotASpreadsheet(wording.NOT_A_SPREADSHEET) from error
    try:
        name, sheet = _choose(workbook)
    except CalamineError as error:
        raise NotASpreadsheet(wording.DAMAGED) from error
    others = [other for other in _readable(workbook) if other != name]
    rows = pick(_numbered(sheet, xlsx_marks(file, name) or ods_marks(file, name)))
    _say({"sheet": name, "others": others})
    _say_rows(rows, most_rows)


def _refuse_what_unpacks_huge(file: BinaryIO, memory: int) -> None:
    """The sizes a zip declares may lie; where the platform limits no memory they are still the best there is."""
    file.seek(0)
    if file.read(4) == b"PK\3\4":
        with contextlib.suppress(zipfile.BadZipFile), zipfile.ZipFile(file) as package:
            if sum(part.file_size for part in package.infolist()) > memory:
                raise TooHeavy(wording.TOO_HEAVY)
    file.seek(0)


def _is_encrypted(file: BinaryIO) -> bool:
    """Whether this is the wrapper in which Office keeps an encrypted workbook."""
    file.seek(0)
    start = file.read(8)
    return start == b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" and "EncryptedPackage".encode("utf-16-le") in file.read()


def _readable(workbook: CalamineWorkbook) -> list[str]:
    """The names of the sheets that a person sees."""
    return [
        sheet.name
        for sheet in workbook.sheets_metadata
        if sheet.typ == SheetTypeEnum.WorkSheet and sheet.visible == SheetVisibleEnum.Visible
    ]


def _choose(workbook: CalamineWorkbook) -> tuple[str, CalamineSheet]:
    """The first sheet with a header, for the first of all may be instructions; else the first that is not empty."""
    first = None
    for name in _readable(workbook):
        sheet = workbook.get_sheet_by_name(name)
        if not sheet.height:
            continue
        if any(names_columns(row) for row, _ in zip(sheet.iter_rows(), range(HEADER_WITHIN), strict=False)):
            return name, sheet
        first = first or (name, sheet)
    if first is None:
        raise Empty(wording.EMPTY)
    return first


def _numbered(sheet: CalamineSheet, marks: Marks) -> Iterator[tuple[int, list[Cell]]]:
    """Each row with its number as Excel shows it; the values turned into cells only where they are not text."""
    first_column = sheet.start[1] if sheet.start else 0
    for index, values in enumerate(sheet.iter_rows()):
        row = [value if type(value) is str and len(value) < LONGEST_CELL else _cell(value) for value in values]
        for column, mark in marks.get(index, {}).items():
            if 0 <= column - first_column < len(row):
                row[column - first_column] = _marked(row[column - first_column], mark)
        yield index + 1, row


def _cell(value: _Value) -> Cell:
    if isinstance(value, str):
        return BadCell("long", "") if len(value) > LONGEST_CELL else value
    if isinstance(value, int | float):
        return value if math.isfinite(value) else BadCell("error", "#NUM!")
    if isinstance(value, dt.timedelta):
        return BadCell("date", str(value))
    return BadCell("date", value.isoformat())


def _marked(cell: Cell, mark: Mark) -> Cell:
    if isinstance(mark, BadCell):
        return mark
    if isinstance(cell, int | float) and not isinstance(cell, bool) and 0 <= cell < 10**15 and not cell % 1:
        return str(int(cell)).zfill(mark)
    return cell


def _say_rows(rows: Iterable[Raw], most: int) -> None:
    batch: list[Raw] = []
    characters = 0
    for count, row in enumerate(rows, 1):
        if most and count > most:
            raise TooManyRows(wording.too_many_rows(most))
        batch.append(row)
        characters += sum(len(cell) for cell in row if isinstance(cell, str))
        if len(batch) == _BATCH_ROWS or characters > _BATCH_CHARACTERS:
            _say(batch)
            batch, characters = [], 0
    if batch:
        _say(batch)


def _say(value: object) -> None:
    sys.stdout.write(json.dumps(value, separators=(",", ":")) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
