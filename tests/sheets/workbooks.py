"""Makes workbooks as other programs make them, and reads them."""

import io
from collections.abc import Iterable
from typing import Any

import openpyxl  # type: ignore[import-untyped]

Row = Iterable[object]


def by_openpyxl(*rows: Row, **sheets: Iterable[Row]) -> bytes:
    """Return a workbook of one sheet, or of several by their names."""
    workbook = openpyxl.Workbook(write_only=True)
    for name, rows_of_sheet in (sheets or {"Sheet": rows}).items():
        sheet = workbook.create_sheet(name)
        for row in rows_of_sheet:
            sheet.append(row)
    file = io.BytesIO()
    workbook.save(file)
    return file.getvalue()


def cells_of(xlsx: bytes) -> list[tuple[Any, ...]]:
    (sheet,) = openpyxl.load_workbook(io.BytesIO(xlsx))
    return list(sheet.rows)
