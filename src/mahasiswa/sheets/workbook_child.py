"""The child process that reads one workbook: `python -m mahasiswa.sheets.workbook_child ARGUMENTS`.

ARGUMENTS is a list in JSON: the maximum bytes of memory and seconds of CPU time, whether all sheets are wanted, the sheets
that a person has chosen, and whether only NIMs are read. Standard input is the workbook, a file. Standard output
is one message a line, JSON in ASCII:

- `{"names": ["…"], "others": ["…"]}`: the sheets that are to be read, and the others;
- for each sheet its name, lists of rows `[number, [cell, …]]` without the blank ones, and an empty list;
- `"end"` instead of a name, or at any time `{"error": "…", "too_big": false}` instead of all the rest.

A cell is a string, a number, a boolean, null, or `[kind, text]` for a BadCell. The tables of a web page are one sheet.
"""

import contextlib
import datetime as dt
import json
import math
import os
import resource
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import BinaryIO

import python_calamine as calamine

from mahasiswa import wording
from mahasiswa.sheets.cell_marks import Mark, Marks, cell_marks
from mahasiswa.sheets.cells import (
    CELL_MAX_CHARACTERS,
    FIRST_INEXACT,
    BadCell,
    Cell,
    SheetRow,
    is_blank,
)
from mahasiswa.sheets.file_kind import kind_of
from mahasiswa.sheets.html_table import html_rows
from mahasiswa.sheets.limits import MAX_SHEETS, NAME_MAX_CHARACTERS
from mahasiswa.sheets.sheet_errors import SheetError, TooBig
from mahasiswa.sheets.titles import HEADER_WITHIN_ROWS, find_titles, is_header

BATCH_ROWS = 50  # of one message; no other thread of the service runs while it is decoded
# In a workbook, even if it is damaged.
_PARTS = (b"xl/", b"opendocument.spreadsheet", "Workbook".encode("utf-16-le"))


def main() -> None:
    memory_bytes, seconds, all_sheets, chosen, nim_only = json.loads(sys.argv[1])
    _limit(memory_bytes, seconds)
    try:
        with os.fdopen(0, "rb") as file:
            _read(file, all_sheets=all_sheets, chosen=chosen, nim_only=nim_only)
    except SheetError as error:
        _send({"error": str(error), "too_big": isinstance(error, TooBig)})
    except MemoryError:
        _send({"error": wording.TOO_HEAVY, "too_big": True})
    except BaseException:  # noqa: BLE001 - calamine also panics on some damaged files
        _send({"error": wording.DAMAGED, "too_big": False})
    else:
        _send("end")


def _limit(memory_bytes: int, seconds: int) -> None:
    os.nice(10)  # requests of others go first
    limits = {
        resource.RLIMIT_AS: memory_bytes,
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: 0,
    }
    for kind, limit in limits.items():
        with contextlib.suppress(OSError, ValueError):  # macOS refuses some of them
            resource.setrlimit(kind, (limit, limit))


def _read(file: BinaryIO, *, all_sheets: bool, chosen: Sequence[str], nim_only: bool) -> None:
    if kind_of(file) == "html":
        rows: list[SheetRow] = list(enumerate(html_rows(file), 1))
        if not rows:
            raise SheetError(wording.WEB_PAGE)
        _send({"names": [""], "others": []})
        _send_sheet("", rows)
        return
    workbook = _open(file)
    # This reads the XML of a sheet, which takes most of the time.
    sheet_of = cache(workbook.get_sheet_by_name)
    visible = [
        sheet.name
        for sheet in workbook.sheets_metadata
        if (sheet.typ, sheet.visible)
        == (calamine.SheetTypeEnum.WorkSheet, calamine.SheetVisibleEnum.Visible)
    ]
    if len(visible) > MAX_SHEETS or any(len(name) > NAME_MAX_CHARACTERS for name in visible):
        raise TooBig(wording.TOO_HEAVY)
    names = [name for name in visible if name in chosen] or [
        _choose_sheet(visible, sheet_of, nim_only=nim_only)
    ]
    others = [name for name in visible if name not in names]
    _send({"names": names, "others": others})
    for name in names + others if all_sheets else names:
        _send_sheet(name, _numbered(sheet_of(name), cell_marks(file, name)))


def _open(file: BinaryIO) -> calamine.CalamineWorkbook:
    try:
        return calamine.CalamineWorkbook.from_filelike(file)
    except calamine.CalamineError as error:
        file.seek(0)
        data = file.read()
        if (
            isinstance(error, calamine.PasswordError)
            or "EncryptedPackage".encode("utf-16-le") in data
        ):
            raise SheetError(wording.PASSWORD) from error
        problem = (
            wording.DAMAGED if any(part in data for part in _PARTS) else wording.NOT_A_SPREADSHEET
        )
        raise SheetError(problem) from error


def _choose_sheet(
    names: Sequence[str], sheet_of: Callable[[str], calamine.CalamineSheet], *, nim_only: bool
) -> str:
    """The first sheet with a header, because the very first may hold instructions; otherwise the first with a cell."""
    for name in names:
        top = [
            list(map(_cell, row)) for row in islice(sheet_of(name).iter_rows(), HEADER_WITHIN_ROWS)
        ]
        if is_header(find_titles(top, nim_only=nim_only)[1], nim_only=nim_only):
            return name
    for name in names:
        if sheet_of(name).height:
            return name
    raise SheetError(wording.EMPTY)


def _numbered(sheet: calamine.CalamineSheet, marks: Marks) -> Iterator[tuple[int, list[Cell]]]:
    first_column = sheet.start[1] if sheet.start else 0
    for index, values in enumerate(sheet.iter_rows()):
        row = [
            value if type(value) is str and len(value) < CELL_MAX_CHARACTERS else _cell(value)
            for value in values
        ]
        for column, mark in marks.get(index, {}).items():
            if 0 <= column - first_column < len(row):
                row[column - first_column] = _marked(row[column - first_column], mark)
        yield index + 1, row


def _cell(value: float | str | dt.time | dt.date | dt.timedelta) -> Cell:
    if isinstance(value, str):
        return BadCell("long", "") if len(value) > CELL_MAX_CHARACTERS else value
    if isinstance(value, int | float):
        return value if math.isfinite(value) else BadCell("error", "#NUM!")
    return BadCell("date", str(value) if isinstance(value, dt.timedelta) else value.isoformat())


def _marked(cell: Cell, mark: Mark) -> Cell:
    if isinstance(mark, BadCell):
        return mark
    if (
        isinstance(cell, int | float)
        and not isinstance(cell, bool)
        and 0 <= cell < FIRST_INEXACT
        and not cell % 1
    ):
        return str(int(cell)).zfill(mark)
    return cell


def _send_sheet(name: str, rows: Iterable[SheetRow]) -> None:
    _send(name)
    filled = (row for row in rows if not is_blank(row[1]))
    while batch := list(islice(filled, BATCH_ROWS)):
        _send(batch)
    _send([])


def _send(message: object) -> None:
    sys.stdout.write(json.dumps(message, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
