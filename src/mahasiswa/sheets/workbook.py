"""Reads a workbook or a web page. A hostile upload may exhaust the parser, so a helper reads it."""

import datetime as dt
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, islice
from typing import BinaryIO, TypeVar

import python_calamine as calamine

from mahasiswa import wording
from mahasiswa.sheets.carried_file import CarriedFile
from mahasiswa.sheets.cell_marks import Marks, cell_marks
from mahasiswa.sheets.cells import (
    CELL_MAX_CHARACTERS,
    BadCell,
    Cell,
    Cells,
    Sheet,
    SheetRow,
    is_blank,
)
from mahasiswa.sheets.file_kind import kind_of
from mahasiswa.sheets.html_table import html_rows
from mahasiswa.sheets.limits import MAX_SHEETS, NAME_MAX_CHARACTERS, UPLOAD_MAX_ROWS, Choice
from mahasiswa.sheets.sheet_errors import SheetError, TooBig
from mahasiswa.sheets.titles import HEADER_WITHIN_ROWS, find_titles, is_header, sure_fields

T = TypeVar("T")

# The file with the names of its sheets; and the sheets, each of which must be read before the next.
Workbook = tuple[CarriedFile, Iterator[Sheet]]

# Texts that stand in each workbook, even if it is damaged.
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_PARTS = (b"xl/", b"opendocument.spreadsheet", "Workbook".encode("utf-16-le"))


def read_workbook(file: BinaryIO, choice: Choice, *, all_sheets: bool) -> Workbook:
    """The rows of an xlsx, xls, ods or HTML file. Raises SheetError, at once or while the rows are read."""
    ((carried, sheets),) = _undamaged(_opened(file, choice, all_sheets=all_sheets))
    return carried, _undamaged(sheets)


def _undamaged(items: Iterable[T]) -> Iterator[T]:
    """The same items. A fault of the parser, which also panics on some damaged files, becomes SheetError."""
    try:
        yield from items
    except (SheetError, MemoryError):
        raise
    except BaseException as error:
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            raise SheetError(wording.DAMAGED) from error
        raise


def _opened(file: BinaryIO, choice: Choice, *, all_sheets: bool) -> Iterator[Workbook]:
    """The workbook alone, as an iterator, so that `_undamaged` guards all that the parser does."""
    if kind_of(file) == "html":
        yield CarriedFile("", [""]), iter([_web_page(file)])
        return
    workbook = _open(file)
    # This reads the XML of a sheet, which takes most of the time.
    sheet_of = cache(workbook.get_sheet_by_name)
    tables = _tables_of(workbook)
    visible = [sheet.name for sheet in tables if sheet.visible == calamine.SheetVisibleEnum.Visible]
    hidden = [
        sheet.name
        for sheet in tables
        if sheet.name not in visible and _is_of_students(sheet_of(sheet.name))
    ]
    # A hidden list of students is read if there is a page that asks about it.
    listed = visible + hidden if all_sheets else visible
    names = [name for name in listed if name in choice.sheets]
    names = names or _choose_sheets(
        listed, sheet_of, UPLOAD_MAX_ROWS if all_sheets else None, nim_only=choice.nim_only
    )
    # A blank sheet has nothing to read.
    others = [name for name in visible + hidden if name not in names and sheet_of(name).height]
    read = names + others if all_sheets else names
    sheets = (_open_sheet(file, sheet_of(name), is_hidden=name in hidden) for name in read)
    yield CarriedFile("", names, other_sheets=others), sheets


def _tables_of(workbook: calamine.CalamineWorkbook) -> list[calamine.SheetMetadata]:
    """The sheets that have cells. Raises TooBig if a page cannot offer all of them."""
    kind = calamine.SheetTypeEnum.WorkSheet
    tables = [sheet for sheet in workbook.sheets_metadata if sheet.typ == kind]
    if len(tables) > MAX_SHEETS or any(len(sheet.name) > NAME_MAX_CHARACTERS for sheet in tables):
        raise TooBig(wording.TOO_HEAVY)
    return tables


def _web_page(file: BinaryIO) -> Sheet:
    rows = html_rows(file)
    if not rows:
        raise SheetError(wording.WEB_PAGE)
    return Sheet("", iter(enumerate(rows, 1)))


def _open(file: BinaryIO) -> calamine.CalamineWorkbook:
    try:
        return calamine.CalamineWorkbook.from_filelike(file)
    except calamine.CalamineError as error:
        file.seek(0)
        data = file.read()
        problem = wording.NOT_A_SPREADSHEET
        if isinstance(error, calamine.PasswordError) or _ENCRYPTED in data:
            problem = wording.PASSWORD
        elif any(part in data for part in _PARTS):
            problem = wording.DAMAGED
        raise SheetError(problem) from error


_is_example = re.compile(r"\W*(?:contoh|petunjuk|panduan|example)\b", re.IGNORECASE).match


def _choose_sheets(
    names: Sequence[str],
    sheet_of: Callable[[str], calamine.CalamineSheet],
    max_rows: int | None,
    *,
    nim_only: bool,
) -> list[str]:
    """All sheets with sure titles, unless they have too many rows; otherwise the first one with titles, or a cell."""
    headers = {name: _titles(sheet_of(name), nim_only=nim_only) for name in names}
    sure = [
        name
        for name, header in headers.items()
        if sure_fields(header) > {"nim"} and not _is_example(name)
    ]
    count = sum(sheet_of(name).height for name in sure)
    is_fitting = max_rows is None or count <= max_rows
    titled = [name for name, header in headers.items() if is_header(header, nim_only=nim_only)]
    filled = [name for name in names if sheet_of(name).height]
    if sure and is_fitting and not nim_only:
        return sure
    return [*sure, *titled, *filled][:1]


def _titles(sheet: calamine.CalamineSheet, *, nim_only: bool = False) -> Cells:
    """The row of a sheet that has the titles, or the best of the first rows."""
    top = [list(map(_cell, row)) for row in islice(sheet.iter_rows(), HEADER_WITHIN_ROWS)]
    return find_titles(top, nim_only=nim_only)[1]


def _is_of_students(sheet: calamine.CalamineSheet) -> bool:
    return sheet.height > 1 and sure_fields(_titles(sheet)) > {"nim"}


def _open_sheet(file: BinaryIO, sheet: calamine.CalamineSheet, *, is_hidden: bool) -> Sheet:
    """A sheet, and its parts that a person does not see in Excel."""
    height, width = (last + 1 for last in sheet.end or (-1, -1))
    marks, hidden_rows, hidden_columns = cell_marks(file, sheet.name, width)
    if is_hidden:
        hidden_rows = [*range(1, height + 1)]
    rows = _undamaged(_numbered(sheet, marks))
    return Sheet(sheet.name, rows, (), hidden_columns, hidden_rows)


def _numbered(sheet: calamine.CalamineSheet, marks: Marks) -> Iterator[SheetRow]:
    blank = [""] * sheet.start[1] if sheet.start else []
    for index, values in enumerate(sheet.iter_rows()):
        row = list(map(_cell, chain(blank, values)))
        for column, mark in marks.get(index, {}).items():
            if column < len(row):
                row[column] = mark
        if not is_blank(row):
            yield index + 1, row


def _cell(value: float | str | dt.time | dt.date | dt.timedelta) -> Cell:
    if isinstance(value, str):
        return BadCell("long", "") if len(value) > CELL_MAX_CHARACTERS else value
    if isinstance(value, int | float):
        return value if math.isfinite(value) else BadCell("error", "#NUM!")
    return BadCell("date", str(value) if isinstance(value, dt.timedelta) else value.isoformat())
