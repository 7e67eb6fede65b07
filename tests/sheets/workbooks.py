"""Makes workbooks as other programs make them. One of them is large when it is unpacked."""

import io
import zipfile
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import openpyxl  # type: ignore[import-untyped]
from spreadsheets import HEADER

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


def with_rows(row: bytes, count: int) -> bytes:
    """Return a workbook with this XML of a row so often below the titles."""
    usual, file = io.BytesIO(by_openpyxl(HEADER)), io.BytesIO()
    with (
        zipfile.ZipFile(usual) as source,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as target,
    ):
        for name in source.namelist():
            before, end, after = source.read(name).partition(b"</sheetData>")
            with target.open(name, "w") as part:
                part.write(before)
                part.writelines([row] * count if end else [])
                part.write(end + after)
    return file.getvalue()


def text_row(text: bytes, cells: int) -> bytes:
    return b"<row>" + b'<c t="inlineStr"><is><t>%b</t></is></c>' % text * cells + b"</row>"


def zip_bomb() -> bytes:
    """Return a workbook that is small, and large when it is unpacked."""
    return with_rows(text_row(b"A" * 100, 10) * 1000, 300)


def cells_of(xlsx: bytes) -> list[list[Any]]:
    workbook = openpyxl.load_workbook(io.BytesIO(xlsx))
    (sheet,) = workbook.worksheets
    return [list(row) for row in sheet.iter_rows()]
