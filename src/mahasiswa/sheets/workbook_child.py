"""The child process that reads one workbook: `python -m mahasiswa.sheets.workbook_child MEMORY SECONDS CHOICE`.

The first arguments are limits: bytes of memory and seconds of CPU time. CHOICE is JSON: whether all sheets are wanted,
the sheets that a person has chosen, and whether only NIMs are read. Standard input is the workbook, a file. Standard output
is one message a line, JSON in ASCII:

- `"ready"`, when Python has started;
- `{"names": ["…"], "others": ["…"]}`: the sheets that are to be read, and the others;
- for each sheet its name, lists of rows `[number, [cell, …]]` without the blank ones, and an empty list;
- `"end"` instead of a name, or at any time after `"ready"` `{"error": "…", "too_big": false}` instead of all the rest.

A cell is a string, a number, a boolean, null, or `[kind, text]` for a BadCell. The tables of a web page are one sheet.
"""

import contextlib
import datetime as dt
import json
import math
import os
import resource
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
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
from mahasiswa.sheets.cell_marks import Mark, Marks, cell_marks
from mahasiswa.sheets.cells import (
    CELL_MAX_CHARACTERS,
    FIRST_INEXACT,
    MAX_SHEETS,
    NAME_MAX_CHARACTERS,
    BadCell,
    Cell,
    SheetRow,
    is_blank,
)
from mahasiswa.sheets.columns import HEADER_WITHIN_ROWS, find_header
from mahasiswa.sheets.errors import SheetError, TooBig
from mahasiswa.sheets.file_kind import kind_of, looks_like_workbook
from mahasiswa.sheets.html_table import html_rows

_Value: TypeAlias = int | float | str | bool | dt.time | dt.date | dt.datetime | dt.timedelta
BATCH_SIZE = 1 << 16  # cells and characters without the last row; no other thread runs while a batch is decoded


def main() -> None:
    memory_bytes, seconds = map(int, sys.argv[1:3])
    all_sheets, chosen, nim_only = json.loads(sys.argv[3])
    _limit(memory_bytes, seconds)
    _send("ready")
    try:
        with os.fdopen(0, "rb") as file:
            _read(file, memory_bytes, all_sheets=all_sheets, chosen=chosen, nim_only=nim_only)
    except SheetError as error:
        _send({"error": str(error), "too_big": isinstance(error, TooBig)})
    except MemoryError:
        _send({"error": wording.TOO_HEAVY, "too_big": True})
    else:
        _send("end")


def _limit(memory_bytes: int, seconds: int) -> None:
    os.nice(10)  # requests of others go first
    for kind, limit in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
    ):
        with contextlib.suppress(OSError, ValueError):  # macOS refuses some of them
            resource.setrlimit(kind, (limit, limit))


def _read(file: BinaryIO, memory_bytes: int, *, all_sheets: bool, chosen: Sequence[str], nim_only: bool) -> None:
    if kind_of(file) == "html":
        rows: list[SheetRow] = list(enumerate(html_rows(file), 1))
        if not rows:
            raise SheetError(wording.WEB_PAGE)
        _send({"names": [""], "others": []})
        _send_sheet("", rows)
        return
    _refuse_huge_archive(file, memory_bytes)
    workbook = _open(file)
    # This reads the XML of a sheet, which takes most of the time.
    sheet_of = cache(workbook.get_sheet_by_name)
    visible = _visible_sheets(workbook)
    names = [name for name in visible if name in chosen] or [_choose_sheet(visible, sheet_of, nim_only=nim_only)]
    others = [name for name in visible if name not in names]
    _send({"names": names, "others": others})
    for name in names + others if all_sheets else names:
        try:
            rows_of_sheet = _numbered(sheet_of(name), cell_marks(file, name))
        except CalamineError as error:
            raise SheetError(wording.DAMAGED) from error
        _send_sheet(name, rows_of_sheet)


def _open(file: BinaryIO) -> CalamineWorkbook:
    try:
        return CalamineWorkbook.from_filelike(file)
    except PasswordError as error:
        raise SheetError(wording.PASSWORD) from error
    except CalamineError as error:
        if _is_encrypted(file):
            raise SheetError(wording.PASSWORD) from error
        raise SheetError(wording.DAMAGED if looks_like_workbook(file) else wording.NOT_A_SPREADSHEET) from error


def _refuse_huge_archive(file: BinaryIO, memory_bytes: int) -> None:
    """Check the sizes that a ZIP file declares. They may be false; then the limit of memory holds."""
    if kind_of(file) == "zip":
        with contextlib.suppress(zipfile.BadZipFile), zipfile.ZipFile(file) as package:
            if sum(part.file_size for part in package.infolist()) > memory_bytes:
                raise TooBig(wording.TOO_HEAVY)
    file.seek(0)


def _is_encrypted(file: BinaryIO) -> bool:
    """Whether the file has the format of a workbook that Office has encrypted."""
    return kind_of(file) == "compound" and "EncryptedPackage".encode("utf-16-le") in file.read()


def _visible_sheets(workbook: CalamineWorkbook) -> list[str]:
    """The names of the sheets that are not hidden. Raises TooBig if they are too many or too long."""
    names = [
        sheet.name
        for sheet in workbook.sheets_metadata
        if sheet.typ == SheetTypeEnum.WorkSheet and sheet.visible == SheetVisibleEnum.Visible
    ]
    if len(names) > MAX_SHEETS or any(len(name) > NAME_MAX_CHARACTERS for name in names):
        raise TooBig(wording.TOO_HEAVY)
    return names


def _choose_sheet(names: Sequence[str], sheet_of: Callable[[str], CalamineSheet], *, nim_only: bool) -> str:
    """The first sheet with a header, because the very first may hold instructions; otherwise the first with a cell."""
    first = None
    try:
        for name in names:
            sheet = sheet_of(name)
            if not sheet.height:
                continue
            top = [list(map(_cell, row)) for row in islice(sheet.iter_rows(), HEADER_WITHIN_ROWS)]
            if find_header(top, nim_only=nim_only)[1]:
                return name
            first = first or name
    except CalamineError as error:
        raise SheetError(wording.DAMAGED) from error
    if first is None:
        raise SheetError(wording.EMPTY)
    return first


def _numbered(sheet: CalamineSheet, marks: Marks) -> Iterator[tuple[int, list[Cell]]]:
    """Each row with its number as Excel shows it."""
    first_column = sheet.start[1] if sheet.start else 0
    for index, values in enumerate(sheet.iter_rows()):
        row = [value if type(value) is str and len(value) < CELL_MAX_CHARACTERS else _cell(value) for value in values]
        for column, mark in marks.get(index, {}).items():
            if 0 <= column - first_column < len(row):
                row[column - first_column] = _marked(row[column - first_column], mark)
        yield index + 1, row


def _cell(value: _Value) -> Cell:
    if isinstance(value, str):
        return BadCell("long", "") if len(value) > CELL_MAX_CHARACTERS else value
    if isinstance(value, int | float):
        return value if math.isfinite(value) else BadCell("error", "#NUM!")
    if isinstance(value, dt.timedelta):
        return BadCell("date", str(value))
    return BadCell("date", value.isoformat())


def _marked(cell: Cell, mark: Mark) -> Cell:
    if isinstance(mark, BadCell):
        return mark
    if isinstance(cell, int | float) and not isinstance(cell, bool) and 0 <= cell < FIRST_INEXACT and not cell % 1:
        return str(int(cell)).zfill(mark)
    return cell


def _send_sheet(name: str, rows: Iterable[SheetRow]) -> None:
    _send(name)
    batch: list[SheetRow] = []
    size = 0
    for row in rows:
        if is_blank(row[1]):
            continue
        batch.append(row)
        size += len(row[1]) + sum(len(cell) for cell in row[1] if isinstance(cell, str))
        if size > BATCH_SIZE:
            _send(batch)
            batch, size = [], 0
    if batch:
        _send(batch)
    _send([])


def _send(message: object) -> None:
    sys.stdout.write(json.dumps(message, separators=(",", ":")) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
