"""Reads a spreadsheet file of any kind, which it recognises by the content and not by the name."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from typing import BinaryIO

from mahasiswa import wording
from mahasiswa.sheets.columns import SheetRow
from mahasiswa.sheets.delimited import read_csv, read_pasted
from mahasiswa.sheets.errors import TooBig
from mahasiswa.sheets.plan import MAX_CONFIRMED_ROWS
from mahasiswa.sheets.workbook import read_workbook

UPLOAD_MAX_BYTES = 16 << 20
"""Maximum size of a file that is uploaded."""

_ZIP = b"PK\3\4"  # xlsx, ods
_COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # xls, and any Office file with a password


@dataclass(frozen=True)
class Limits:
    """Limits for reading one file. None is no limit. The last three are for the process that reads a workbook."""

    file_bytes: int | None
    rows: int | None  # rows that are not blank
    lines: int | None  # lines of a CSV file or of pasted cells, also blank ones
    output_bytes: int | None  # maximum output of the process
    memory_bytes: int
    seconds: float


WEB = Limits(
    file_bytes=UPLOAD_MAX_BYTES,
    rows=MAX_CONFIRMED_ROWS,
    lines=1_048_576,  # as in Excel
    output_bytes=32 << 20,
    memory_bytes=512 << 20,
    seconds=20,
)
COMMAND_LINE = Limits(file_bytes=None, rows=None, lines=None, output_bytes=None, memory_bytes=2 << 30, seconds=600)


@dataclass(frozen=True)
class Table:
    """The rows of a file, read one by one, and a note for the person about the whole file."""

    rows: Iterator[SheetRow]
    note: str | None = None

    def __iter__(self) -> Iterator[SheetRow]:
        return self.rows


def is_workbook(file: BinaryIO) -> bool:
    """Whether a file is to be read as a workbook, by its first bytes, and not as CSV."""
    file.seek(0)
    start = file.read(8)
    file.seek(0)
    return start.startswith((_ZIP, _COMPOUND))


@contextmanager
def read(file: BinaryIO, limits: Limits = WEB, stop: Event | None = None, *, nim_only: bool = False) -> Iterator[Table]:
    """The rows of an xlsx, xls, ods or CSV file, valid within the `with`. The file must be seekable, and stays open.

    With `nim_only` no other column is needed, and Nama and Alamat are left blank.

    Raises SheetError, at once or while the rows are read. Another thread may set `stop`; then Stopped is raised within
    a second.
    """
    if limits.file_bytes is not None and file.seek(0, 2) > limits.file_bytes:
        raise TooBig(wording.TOO_LARGE.format(limit=wording.size(limits.file_bytes)))
    file.seek(0)
    start = file.read(8)
    file.seek(0)
    if not start.startswith((_ZIP, _COMPOUND)):
        with read_csv(file, max_lines=limits.lines, stop=stop, nim_only=nim_only) as rows:
            yield Table(_at_most(limits.rows, rows))
        return
    with read_workbook(
        file,
        max_rows=limits.rows,
        output_bytes=limits.output_bytes,
        memory_bytes=limits.memory_bytes,
        seconds=limits.seconds,
        stop=stop,
        nim_only=nim_only,
    ) as workbook:
        others = ", ".join(workbook.others)
        note = wording.ONE_SHEET_READ.format(sheet=workbook.sheet, others=others) if others else None
        yield Table(workbook.rows, note)


def read_text(text: str, limits: Limits = WEB, stop: Event | None = None, *, nim_only: bool = False) -> Table:
    """The rows of cells that were pasted from a spreadsheet. Raises as `read` does."""
    return Table(_at_most(limits.rows, read_pasted(text, max_lines=limits.lines, stop=stop, nim_only=nim_only)))


def _at_most(limit: int | None, rows: Iterator[SheetRow]) -> Iterator[SheetRow]:
    for count, row in enumerate(rows, 1):
        if limit is not None and count > limit:
            raise TooBig(wording.TOO_MANY_ROWS.format(limit=wording.number(limit)))
        yield row
