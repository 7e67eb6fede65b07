"""Makes workbooks as other programs make them, and reads them."""

import io
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import openpyxl  # type: ignore[import-untyped]

Rows = Iterable[Iterable[object]]


def by_openpyxl(
    *rows: Iterable[object],
    sheets: Mapping[str, Rows] | None = None,
    edit: Callable[[Any], object] | None = None,
) -> bytes:
    """Return a workbook of one sheet, or of several by their names, after an edit of the first sheet."""
    workbook = openpyxl.Workbook()
    workbook.remove(workbook.active)
    for name, rows_of_sheet in (sheets or {"Sheet": rows}).items():
        sheet = workbook.create_sheet(name)
        for row in rows_of_sheet:
            sheet.append(list(row))
    if edit:
        edit(workbook.worksheets[0])
    file = io.BytesIO()
    workbook.save(file)
    return file.getvalue()


def cells_of(xlsx: bytes) -> list[tuple[Any, ...]]:
    (sheet,) = openpyxl.load_workbook(io.BytesIO(xlsx))
    return list(sheet.rows)
