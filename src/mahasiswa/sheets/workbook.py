"""Reads the visible sheets of a workbook: .xlsx, .xls, .ods and .xlsb, by python-calamine."""

import datetime as dt
import math
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import BinaryIO, TypeVar

import python_calamine as calamine

from mahasiswa import wording
from mahasiswa.sheets.cells import CELL_MAX_CHARACTERS, Bad, Cell, Refused, Row, Sheet, TooHeavy
from mahasiswa.sheets.xlsx_scan import Marks, scan

T = TypeVar("T")

SHEETS_MAX = 200

# Texts that stand in each workbook, even if it is damaged.
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_PARTS = (b"xl/", b"opendocument.spreadsheet", "Workbook".encode("utf-16-le"))


def undamaged(items: Iterable[T]) -> Iterator[T]:
    """The same items. A fault of a parser becomes Refused. calamine also panics on some damaged files."""
    try:
        yield from items
    except (Refused, TooHeavy, MemoryError):
        raise
    except BaseException as error:
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            raise Refused(wording.DAMAGED) from error
        raise


def read_workbook(file: BinaryIO) -> Iterator[Sheet]:
    """The visible sheets. Each must be read before the next. Raises Refused, and the errors of the parsers."""
    try:
        workbook = calamine.CalamineWorkbook.from_filelike(file)
    except calamine.CalamineError as error:
        file.seek(0)
        data = file.read()
        if isinstance(error, calamine.PasswordError) or _ENCRYPTED in data:
            raise Refused(wording.PASSWORD) from error
        is_workbook = any(part in data for part in _PARTS)
        raise Refused(wording.DAMAGED if is_workbook else wording.NOT_A_SPREADSHEET) from error

    sheets = [
        sheet.name
        for sheet in workbook.sheets_metadata
        if sheet.typ == calamine.SheetTypeEnum.WorkSheet
        and sheet.visible == calamine.SheetVisibleEnum.Visible
    ]
    if len(sheets) > SHEETS_MAX:
        raise TooHeavy
    for name in sheets:
        marks = scan(file, name)
        rows = undamaged(_rows(workbook.get_sheet_by_name(name), marks))
        yield Sheet(name, rows, {row + 1 for row in marks.rows}, marks.columns)


def _rows(sheet: calamine.CalamineSheet, marks: Marks) -> Iterator[Row]:
    left = [""] * sheet.start[1] if sheet.start else []
    for index, values in enumerate(sheet.iter_rows()):
        cells = list(map(_cell, chain(left, values)))
        for column, mark in marks.cells.get(index, {}).items():
            if column < len(cells):
                cells[column] = mark
        yield index + 1, cells


def _cell(value: float | str | dt.time | dt.date | dt.timedelta) -> Cell:
    if isinstance(value, str):
        return Bad("damaged", "") if len(value) > CELL_MAX_CHARACTERS else value
    if isinstance(value, bool):
        return Bad("damaged", str(value).upper())
    if isinstance(value, int | float):
        return value if math.isfinite(value) else Bad("error", "#NUM!")
    return Bad("date", str(value))
