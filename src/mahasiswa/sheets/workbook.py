"""Reads the visible sheets of a workbook: .xlsx, .xls, .ods and .xlsb, by python-calamine."""

import datetime as dt
import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import BinaryIO, TypeVar

import python_calamine as calamine

from mahasiswa import wording
from mahasiswa.sheets.cells import CELL_MAX_CHARACTERS, Bad, Cell, Refused, Row, Sheet, TooHeavy
from mahasiswa.sheets.xlsx_scan import Scan

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
        rows = undamaged(_rows(workbook.get_sheet_by_name(name), marks.cells))
        yield Sheet(name, rows, marks.rows, marks.columns)


def _rows(sheet: calamine.CalamineSheet, marks: Mapping[tuple[int, int], Cell]) -> Iterator[Row]:
    left = [""] * sheet.start[1] if sheet.start else []
    for row, values in enumerate(sheet.iter_rows()):
        cells = map(_cell, chain(left, values))
        yield row + 1, [marks.get((row, column), cell) for column, cell in enumerate(cells)]


def _cell(value: float | str | dt.time | dt.date | dt.timedelta) -> Cell:
    match value:
        case str():
            return Bad("damaged", "") if len(value) > CELL_MAX_CHARACTERS else value
        case bool():
            return Bad("damaged", str(value).upper())
        case int() | float():
            return value if math.isfinite(value) else Bad("error", "#NUM!")
    return Bad("date", str(value))
