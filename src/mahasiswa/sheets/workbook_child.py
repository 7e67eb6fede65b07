"""The child process that reads one workbook: `python -m mahasiswa.sheets.workbook_child MEMORY SECONDS ROWS CHOICE`.

The first arguments are limits: bytes of memory, seconds of CPU time, and rows (0 is no limit). CHOICE is JSON: whether
all cells of a small workbook are wanted, and the sheet and the columns that a person has chosen, or null. Standard input
is the workbook, a file. Standard output is one message a line, JSON in ASCII:

- `"ready"`, when Python has started;
- `{"sheet": "…", "others": ["…"], "columns": [[0, 1, 2], ["NIM", …]]}`, then lists of rows `[number, nim, nama, alamat]`;
- or the same with `"columns": null`, then for each sheet `{"sheet": "…"}` and lists of rows `[number, [cell, …]]`;
- `"end"`, or at any time after `"ready"` `{"error": "…", "too_big": false}` instead of all the rest.

A cell is a string, a number, a boolean, null, or `[kind, text]` for a BadCell. The tables of a web page are one sheet.
"""

import contextlib
import datetime as dt
import json
import math
import os
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from typing import Any, BinaryIO, TypeAlias

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
from mahasiswa.sheets.cells import CELL_MAX_CHARACTERS, FIRST_INEXACT, BadCell, Cell, RawRow
from mahasiswa.sheets.columns import HEADER_WITHIN_ROWS, FieldColumns, is_header, select_columns
from mahasiswa.sheets.errors import SheetError, TooBig
from mahasiswa.sheets.file_kind import is_compound, is_html, is_zip
from mahasiswa.sheets.html_table import html_rows
from mahasiswa.sheets.kept_sheets import MAX_SHEETS, NAME_MAX_CHARACTERS, KeepingBudget

try:
    import resource
except ImportError:  # Windows has none; only the parent's deadline holds there
    resource = None  # type: ignore[assignment]

_Value: TypeAlias = int | float | str | bool | dt.time | dt.date | dt.datetime | dt.timedelta
BATCH_ROWS = 1000
BATCH_CHARACTERS = 1 << 16
"""Maximum length of a batch, without its last row. The service decodes it in one call, in which no other thread runs."""


def main() -> None:
    memory_bytes, seconds, max_rows = map(int, sys.argv[1:4])
    keep_all_cells, chosen_sheet, chosen_columns, nim_only = json.loads(sys.argv[4])
    _limit(memory_bytes, seconds)
    _send("ready")
    try:
        with os.fdopen(0, "rb") as file:
            _read(
                file,
                max_rows,
                memory_bytes,
                keep_all_cells=keep_all_cells,
                chosen_sheet=chosen_sheet,
                chosen_columns=chosen_columns,
                nim_only=nim_only,
            )
    except SheetError as error:
        _send({"error": str(error), "too_big": isinstance(error, TooBig)})
    except MemoryError:
        _send({"error": wording.TOO_HEAVY, "too_big": True})
    else:
        _send("end")


def _limit(memory_bytes: int, seconds: int) -> None:
    with contextlib.suppress(AttributeError, OSError):
        os.nice(10)  # requests of others go first
    if resource is None:
        return
    for kind, limit in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
    ):
        with contextlib.suppress(OSError, ValueError):  # macOS refuses some of them
            resource.setrlimit(kind, (limit, limit))


def _read(
    file: BinaryIO,
    max_rows: int,
    memory_bytes: int,
    *,
    keep_all_cells: bool,
    chosen_sheet: str | None,
    chosen_columns: FieldColumns | None,
    nim_only: bool,
) -> None:
    rows_of: Callable[[str], Iterator[RawRow]]
    if is_html(file):
        rows: list[RawRow] = list(html_rows(file))
        if not rows:
            raise SheetError(wording.WEB_PAGE)
        name, others, rows_of = "", [], lambda _: iter(rows)
    else:
        _refuse_huge_archive(file, memory_bytes)
        workbook = _open(file)
        # Each of these reads the XML of a sheet, which takes most of the time.
        sheet_of, marks_of = cache(workbook.get_sheet_by_name), cache(partial(cell_marks, file))
        visible = _visible_sheets(workbook)
        name = chosen_sheet if chosen_sheet in visible else _choose_sheet(visible, sheet_of, nim_only=nim_only)
        others = [other for other in visible if other != name]
        rows_of = partial(_rows_of_sheet, sheet_of, marks_of)
    budget = KeepingBudget()
    cells, fit = budget.take(rows_of(name)) if keep_all_cells else ([], False)
    if fit:
        _send({"sheet": name, "others": others, "columns": None})
        while fit:
            _send({"sheet": name})
            _send_rows(cells)
            if not others:
                return
            name = others.pop(0)
            cells, fit = budget.take(rows_of(name))
        return
    columns, selected = select_columns(rows_of(name), chosen_columns, nim_only=nim_only)
    _send({"sheet": name, "others": others, "columns": columns})
    _send_rows(selected, max_rows)


def _open(file: BinaryIO) -> CalamineWorkbook:
    try:
        return CalamineWorkbook.from_filelike(file)
    except PasswordError as error:
        raise SheetError(wording.PASSWORD) from error
    except CalamineError as error:
        if _is_encrypted(file):
            raise SheetError(wording.PASSWORD) from error
        raise SheetError(wording.NOT_A_SPREADSHEET) from error


def _rows_of_sheet(
    sheet_of: Callable[[str], CalamineSheet], marks_of: Callable[[str], Marks], name: str
) -> Iterator[RawRow]:
    try:
        return _numbered(sheet_of(name), marks_of(name))
    except CalamineError as error:
        raise SheetError(wording.DAMAGED) from error


def _refuse_huge_archive(file: BinaryIO, memory_bytes: int) -> None:
    """Check the sizes that a ZIP file declares. They may be false, but Windows and macOS limit no memory."""
    if is_zip(file):
        with contextlib.suppress(zipfile.BadZipFile), zipfile.ZipFile(file) as package:
            if sum(part.file_size for part in package.infolist()) > memory_bytes:
                raise TooBig(wording.TOO_HEAVY)
    file.seek(0)


def _is_encrypted(file: BinaryIO) -> bool:
    """Whether the file has the format of a workbook that Office has encrypted."""
    return is_compound(file) and "EncryptedPackage".encode("utf-16-le") in file.read()


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
            if any(
                is_header(row, nim_only=nim_only)
                for row, _ in zip(sheet.iter_rows(), range(HEADER_WITHIN_ROWS), strict=False)
            ):
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


def _send_rows(rows: Iterable[tuple[Any, ...]], max_rows: int = 0) -> None:
    batch: list[object] = []
    characters = 0
    for count, row in enumerate(rows, 1):
        if max_rows and count > max_rows:
            raise TooBig(wording.TOO_MANY_ROWS.format(limit=wording.number(max_rows)))
        batch.append(row)
        cells = row[1] if len(row) == 2 else row
        characters += sum(len(cell) for cell in cells if isinstance(cell, str))
        if len(batch) == BATCH_ROWS or characters > BATCH_CHARACTERS:
            _send(batch)
            batch, characters = [], 0
    if batch:
        _send(batch)


def _send(message: object) -> None:
    sys.stdout.write(json.dumps(message, separators=(",", ":")) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
