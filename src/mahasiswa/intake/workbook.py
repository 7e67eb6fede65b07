"""Reads the visible sheets of a workbook: .xlsx, .xls, .ods and .xlsb, by python-calamine."""

import datetime as dt
import io
import math
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import BinaryIO, TypeVar

import python_calamine as calamine

from mahasiswa import wording
from mahasiswa.intake.biff import in_container
from mahasiswa.intake.cells import (
    CELL_MAX_CHARACTERS,
    Bad,
    Cell,
    Refused,
    Row,
    Sheet,
    TooHeavy,
    is_blank,
)
from mahasiswa.intake.xlsx_scan import Marks, scan

T = TypeVar("T")

SHEETS_MAX = 200

# Texts that stand in each workbook, even if it is damaged.
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_PARTS = (b"xl/", b"opendocument.spreadsheet", "Workbook".encode("utf-16-le"))


def read_workbook(file: BinaryIO, *, is_bare: bool) -> Iterator[Sheet]:
    """The visible sheets. Each must be read before the next. Raises Refused, also while rows are read.

    `is_bare` says that the file is a BIFF stream without its container.
    """
    if is_bare:
        file = io.BytesIO(in_container(file.read()))
    return _undamaged(_sheets(file))


def _undamaged(items: Iterable[T]) -> Iterator[T]:
    """The same items. A fault of the parser, which also panics on some damaged files, becomes Refused."""
    try:
        yield from items
    except (Refused, TooHeavy, MemoryError):
        raise
    except BaseException as error:
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            raise Refused(wording.DAMAGED) from error
        raise


def _sheets(file: BinaryIO) -> Iterator[Sheet]:
    workbook = _opened(file)
    visible = [
        sheet.name
        for sheet in workbook.sheets_metadata
        if sheet.typ == calamine.SheetTypeEnum.WorkSheet
        and sheet.visible == calamine.SheetVisibleEnum.Visible
    ]
    if len(visible) > SHEETS_MAX:
        raise TooHeavy
    for name in visible:
        marks = _marks(file, name)
        rows = _undamaged(_rows(workbook.get_sheet_by_name(name), marks))
        yield Sheet(name, rows, {row + 1 for row in marks.rows}, marks.columns)


def _marks(file: BinaryIO, name: str) -> Marks:
    file.seek(0)
    is_package = file.read(2) == b"PK"
    return scan(file, name) if is_package else Marks({}, set(), set())


def _opened(file: BinaryIO) -> calamine.CalamineWorkbook:
    file.seek(0)
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
        raise Refused(problem) from error


def _rows(sheet: calamine.CalamineSheet, marks: Marks) -> Iterator[Row]:
    left = [""] * sheet.start[1] if sheet.start else []
    for index, values in enumerate(sheet.iter_rows()):
        cells = list(map(_cell, chain(left, values)))
        for column, mark in marks.cells.get(index, {}).items():
            if column < len(cells):
                cells[column] = mark
        if not is_blank(cells):
            yield index + 1, cells


def _cell(value: float | str | dt.time | dt.date | dt.timedelta) -> Cell:
    if isinstance(value, str):
        return Bad("damaged", "") if len(value) > CELL_MAX_CHARACTERS else value
    if isinstance(value, bool):
        return Bad("boolean", str(value).upper())
    if isinstance(value, int | float):
        return value if math.isfinite(value) else Bad("error", "#NUM!")
    return Bad("date", str(value) if isinstance(value, dt.timedelta) else value.isoformat())
