"""Reads the visible sheets of a workbook: .xlsx, .xls, .ods and .xlsb, by python-calamine."""

import datetime as dt
import math
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import BinaryIO, TypeVar

import python_calamine as calamine

from mahasiswa import wording
from mahasiswa.sheets.cells import (
    CELL_MAX_CHARACTERS,
    DAMAGED,
    DATE,
    ERROR,
    HIDDEN,
    Cell,
    Refused,
    Row,
    Sheet,
    TooHeavy,
    text_of,
)
from mahasiswa.sheets.xlsx_scan import Marks, Scan

T = TypeVar("T")

SHEETS_MAX = 200

# The sentence about a file that is not read, by a part that it has, even if it is damaged.
_SENTENCES = {
    "EncryptedPackage".encode("utf-16-le"): wording.PASSWORD,
    "Workbook".encode("utf-16-le"): wording.DAMAGED,
    b"xl/": wording.DAMAGED,
    b"opendocument.spreadsheet": wording.DAMAGED,
    b"": wording.NOT_A_SPREADSHEET,
}


def undamaged(items: Iterable[T]) -> Iterator[T]:
    """The same items. A fault of a parser becomes Refused. calamine also panics on some damaged files."""
    try:
        yield from items
    except (Refused, TooHeavy, MemoryError, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        raise Refused(wording.DAMAGED) from error


def read_workbook(file: BinaryIO) -> Iterator[Sheet]:
    """The visible sheets. Each must be read before the next. Raises Refused, and the errors of the parsers."""
    try:
        workbook = calamine.CalamineWorkbook.from_filelike(file)
    except calamine.PasswordError as error:
        raise Refused(wording.PASSWORD) from error
    except calamine.CalamineError as error:
        file.seek(0)
        data = file.read()
        raise Refused(next(text for part, text in _SENTENCES.items() if part in data)) from error

    sheets = [
        sheet.name
        for sheet in workbook.sheets_metadata
        if sheet.typ == calamine.SheetTypeEnum.WorkSheet
        and sheet.visible == calamine.SheetVisibleEnum.Visible
    ]
    if len(sheets) > SHEETS_MAX:
        raise Refused(wording.TOO_MANY_SHEETS.format(limit=SHEETS_MAX))
    scan = Scan(file)
    for name in sheets:
        marks = scan.marks(name)
        yield Sheet(name, undamaged(_rows(workbook.get_sheet_by_name(name), marks)))


def _rows(sheet: calamine.CalamineSheet, marks: Marks) -> Iterator[Row]:
    left = [""] * sheet.start[1] if sheet.start else []
    for at, values in enumerate(sheet.iter_rows()):
        is_hidden = at in marks.rows
        cells = enumerate(map(_cell, chain(left, values)))
        row = [marks.cells.get((at, column), cell) for column, cell in cells]
        if is_hidden or marks.columns:
            row = [
                f"{text}{HIDDEN}" if text and (is_hidden or column in marks.columns) else text
                for column, text in enumerate(map(text_of, row))
            ]
        yield at + 1, row


def _cell(value: float | str | dt.time | dt.date | dt.timedelta) -> Cell:
    match value:
        case str():
            return DAMAGED if len(value) > CELL_MAX_CHARACTERS else value
        case bool():
            return str(value).upper() + DAMAGED
        case int() | float():
            return value if math.isfinite(value) else ERROR
    return str(value) + DATE
