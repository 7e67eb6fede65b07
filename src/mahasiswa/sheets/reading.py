"""Reads any spreadsheet file: what it is, its content tells."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from mahasiswa import wording
from mahasiswa.sheets.columns import Raw
from mahasiswa.sheets.delimited import read_csv, read_pasted
from mahasiswa.sheets.errors import TooLarge, TooManyRows
from mahasiswa.sheets.workbook import read_workbook

_ZIP = b"PK\3\4"  # xlsx, ods
_COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # xls, and any Office file with a password


@dataclass(frozen=True)
class Limits:
    """What reading one file may take. None is no limit."""

    size: int | None  # bytes of the file
    rows: int | None  # that are not blank
    text: int | None  # characters that a workbook may hand over, as JSON
    memory: int  # bytes, for a workbook
    seconds: float  # for a workbook


WEB = Limits(size=16 << 20, rows=10_000, text=32 << 20, memory=512 << 20, seconds=20)
COMMAND_LINE = Limits(size=None, rows=None, text=None, memory=2 << 30, seconds=600)


@dataclass(frozen=True)
class Table:
    """The rows of a file, read as they are asked for, and what a person should know of the whole."""

    rows: Iterator[Raw]
    note: str | None = None

    def __iter__(self) -> Iterator[Raw]:
        return self.rows


@contextmanager
def read(source: BinaryIO | Path, limits: Limits = WEB) -> Iterator[Table]:
    """The rows of an xlsx, xls, ods or CSV file, valid within the `with`. A file object must be seekable and stays open.

    Raises an Unreadable, at once or while the rows are read; OSError where a path cannot be opened.
    """
    if isinstance(source, Path):
        with source.open("rb") as file, _read(file, limits) as table:
            yield table
    else:
        with _read(source, limits) as table:
            yield table


@contextmanager
def _read(file: BinaryIO, limits: Limits) -> Iterator[Table]:
    if limits.size is not None and file.seek(0, 2) > limits.size:
        raise TooLarge(wording.too_large(limits.size))
    file.seek(0)
    start = file.read(8)
    file.seek(0)
    if not start.startswith((_ZIP, _COMPOUND)):
        with read_csv(file) as rows:
            yield Table(_at_most(limits.rows, rows))
        return
    with read_workbook(
        file, memory=limits.memory, seconds=limits.seconds, most_rows=limits.rows, most_characters=limits.text
    ) as book:
        others = ", ".join(book.others)
        yield Table(book.rows, wording.ONE_SHEET_READ.format(sheet=book.sheet, others=others) if others else None)


def read_text(text: str, limits: Limits = WEB) -> Table:
    """The rows of cells that were pasted from a spreadsheet. Raises an Unreadable."""
    return Table(_at_most(limits.rows, read_pasted(text)))


def _at_most(most: int | None, rows: Iterator[Raw]) -> Iterator[Raw]:
    return rows if most is None else _counted(most, rows)


def _counted(most: int, rows: Iterator[Raw]) -> Iterator[Raw]:
    for number, row in enumerate(rows, 1):
        if number > most:
            raise TooManyRows(wording.too_many_rows(most))
        yield row
