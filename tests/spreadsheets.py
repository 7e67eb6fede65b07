"""Records for tests, and spreadsheets with them: CSV, and workbooks as another program makes and reads them."""

import io
from collections.abc import Iterable, Sequence
from typing import Any, cast

import openpyxl  # type: ignore[import-untyped]

HEADER = ("NIM", "Nama", "Alamat")

Record = tuple[str, str, str]
Row = Iterable[object]


def as_records(*lines: str) -> list[Record]:
    """Return the records that are written as lines, such as `1|Ani|Solo`."""
    return [cast("Record", tuple(line.split("|"))) for line in lines]


def csv(*rows: Sequence[str]) -> bytes:
    return "".join(";".join(row) + "\r\n" for row in rows).encode()


def numbered(
    count: int, nama: str = "Ani", alamat: str = "Solo", *, nim: str = "{:05}"
) -> list[Record]:
    """Return records whose texts are the same, except for their number in the place of `{}`."""
    return [(nim.format(n), nama.format(n), alamat.format(n)) for n in range(count)]


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
