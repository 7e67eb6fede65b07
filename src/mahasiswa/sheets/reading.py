"""Reads a spreadsheet file of any kind, which it recognises by the content and not by the name."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice
from threading import Event
from typing import BinaryIO, cast

from mahasiswa import wording
from mahasiswa.sheets.columns import HEADER_WITHIN_ROWS, Batch, Columns, Places, SheetRow, select_columns
from mahasiswa.sheets.delimited import CHECK_LINES, CsvRows, is_html, read_csv, read_pasted
from mahasiswa.sheets.errors import ColumnsUnclear, SheetError, Stopped, TooBig
from mahasiswa.sheets.whole import RawRow, Room, Sheet
from mahasiswa.sheets.workbook import read_workbook

UPLOAD_MAX_BYTES = 16 << 20
"""Maximum size of a file that is uploaded."""

UPLOAD_MAX_ROWS = 10_000
"""Maximum rows of a file or of pasted cells that a person previews."""

SELECTED_ROWS = 40 * HEADER_WITHIN_ROWS
"""Rows in a batch of rows that were read one by one."""

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
    whole: bool = False  # all cells of a small file are kept, so that a person can choose other columns


WEB = Limits(
    file_bytes=UPLOAD_MAX_BYTES,
    rows=UPLOAD_MAX_ROWS,
    lines=1_048_576,  # as in Excel
    output_bytes=32 << 20,
    memory_bytes=512 << 20,
    seconds=20,
    whole=True,
)
COMMAND_LINE = Limits(file_bytes=None, rows=None, lines=None, output_bytes=None, memory_bytes=2 << 30, seconds=600)


@dataclass(frozen=True)
class Choice:
    """The sheet and the columns that a person has chosen. If one is None, the program finds it.

    With `nim_only` no other column is needed, and Nama and Alamat are left blank.
    """

    sheet: str | None = None
    places: Places | None = None
    nim_only: bool = False


@dataclass(frozen=True)
class Table:
    """The rows of a file, read one by one, and the columns and the sheet that they come from.

    `sheets` has all cells of a small file; the sheet that is read comes first. `others` are the names of all other
    sheets. If the columns could not be found, `unclear` is the reason, and there are no rows. `csv_rows` is set if the
    rows can also be read in batches.
    """

    columns: Columns
    rows: Iterator[SheetRow]
    sheet: str = ""
    others: list[str] = field(default_factory=list)
    sheets: list[Sheet] = field(default_factory=list)
    unclear: str = ""
    csv_rows: CsvRows | None = None

    def __iter__(self) -> Iterator[SheetRow]:
        if self.unclear:
            raise SheetError(self.unclear)
        return self.rows

    def batches(self) -> Iterator[Batch | Sequence[SheetRow]]:
        """The same rows, about a thousand at a time. Most rows of CSV come as a Batch, whose cells are not selected."""
        rows = iter(self)
        # The first selected rows are more than those that were read to find the columns.
        while batch := list(islice(rows, SELECTED_ROWS)):
            yield batch
            while self.csv_rows is not None and (read := self.csv_rows.batch()):
                yield Batch(*read, self.columns.places)


def is_workbook(file: BinaryIO) -> bool:
    """Whether a file is to be read in a process of its own: a workbook or a web page, by its first bytes."""
    file.seek(0)
    start = file.read(8)
    file.seek(0)
    return start.startswith((_ZIP, _COMPOUND)) or is_html(file)


@contextmanager
def read(
    file: BinaryIO, limits: Limits = WEB, stop: Event | None = None, choice: Choice | None = None
) -> Iterator[Table]:
    """The rows of an xlsx, xls, ods, HTML or CSV file, valid within the `with`. It must be seekable, and stays open.

    Raises SheetError, at once or while the rows are read. Another thread may set `stop`; then Stopped is raised within
    a second.
    """
    choice = choice or Choice()
    size = file.seek(0, 2)
    if not size:
        raise SheetError(wording.EMPTY_FILE)
    if limits.file_bytes is not None and size > limits.file_bytes:
        raise TooBig(wording.TOO_LARGE.format(limit=wording.size(limits.file_bytes)))
    if not is_workbook(file):
        with read_csv(file, max_lines=limits.lines, stop=stop) as text:
            if text.is_export:
                rows = cast("Iterator[SheetRow]", ((number, *cells) for number, cells in text.rows))
                yield Table(Columns((0, 1, 2), list(wording.HEADER)), _at_most(limits.rows, rows, stop))
            else:
                yield _table(text.rows, limits, stop, choice)
        return
    with read_workbook(
        file,
        max_rows=limits.rows,
        output_bytes=limits.output_bytes,
        memory_bytes=limits.memory_bytes,
        seconds=limits.seconds,
        whole=limits.whole,
        sheet=choice.sheet,
        places=choice.places,
        nim_only=choice.nim_only,
        stop=stop,
    ) as workbook:
        if workbook.selected:
            columns, selected = workbook.selected
            yield Table(columns, _at_most(limits.rows, selected, stop), workbook.sheet, workbook.others)
        else:
            yield table_of(workbook.sheets, workbook.others, choice, limits, stop)


def read_text(text: str, limits: Limits = WEB, stop: Event | None = None, choice: Choice | None = None) -> Table:
    """The rows of cells that were pasted from a spreadsheet. Raises as `read` does."""
    choice = choice or Choice()
    rows = read_pasted(text, max_lines=limits.lines, stop=stop, nim_only=choice.nim_only)
    return _table(rows, limits, stop, choice)


def table_of(
    sheets: list[Sheet], others: list[str], choice: Choice, limits: Limits = WEB, stop: Event | None = None
) -> Table:
    """The rows of the first of these sheets, which are kept whole."""
    first = sheets[0]
    try:
        columns, rows = select_columns(first.rows, choice.places, nim_only=choice.nim_only)
    except ColumnsUnclear as error:
        unclear = Columns(choice.places or error.places, error.titles)
        return Table(unclear, iter(()), first.name, others, sheets, str(error))
    return Table(columns, _at_most(limits.rows, rows, stop), first.name, others, sheets)


def _table(rows: Iterable[RawRow], limits: Limits, stop: Event | None, choice: Choice) -> Table:
    rows = iter(rows)
    kept, fit = Room().take(rows) if limits.whole else ([], False)
    if fit:
        return table_of([Sheet("", kept)], [], choice, limits, stop)
    columns, selected = select_columns(chain(kept, rows), choice.places, nim_only=choice.nim_only)
    csv_rows = rows if limits.rows is None and isinstance(rows, CsvRows) else None
    return Table(columns, _at_most(limits.rows, selected, stop), csv_rows=csv_rows)


def _at_most(limit: int | None, rows: Iterator[SheetRow], stop: Event | None) -> Iterator[SheetRow]:
    for count, row in enumerate(rows, 1):
        if limit is not None and count > limit:
            raise TooBig(wording.TOO_MANY_ROWS.format(limit=wording.number(limit)))
        if stop is not None and not count % CHECK_LINES and stop.is_set():
            raise Stopped
        yield row
