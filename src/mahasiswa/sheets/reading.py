"""Reads a spreadsheet file of any kind, which it recognises by the content and not by the name."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from threading import Event
from typing import BinaryIO, cast

from mahasiswa import wording
from mahasiswa.sheets.cells import RawRow, SheetRow
from mahasiswa.sheets.columns import IN_ORDER, Columns, FieldColumns, select_columns
from mahasiswa.sheets.delimited import CHECK_LINES, read_csv, read_pasted
from mahasiswa.sheets.errors import ColumnsUnclear, SheetError, Stopped, TooBig
from mahasiswa.sheets.file_kind import is_workbook
from mahasiswa.sheets.kept_sheets import KeepingBudget, Sheet
from mahasiswa.sheets.workbook import read_workbook

UPLOAD_MAX_BYTES = 16 << 20
"""Maximum size of a file that is uploaded."""

UPLOAD_MAX_ROWS = 10_000
"""Maximum rows of a file or of pasted cells that a person previews."""


@dataclass(frozen=True)
class ReadLimits:
    """Limits for reading one file. None is no limit. The last three are for the process that reads a workbook."""

    file_bytes: int | None
    rows: int | None  # rows that are not blank
    lines: int | None  # lines of a CSV file or of pasted cells, also blank ones
    output_bytes: int | None  # maximum output of the process
    memory_bytes: int
    seconds: float
    keeps_all_cells: bool = False  # all cells of a small file are kept, so that a person can choose other columns


WEB = ReadLimits(
    file_bytes=UPLOAD_MAX_BYTES,
    rows=UPLOAD_MAX_ROWS,
    lines=1_048_576,  # as in Excel
    output_bytes=32 << 20,
    memory_bytes=512 << 20,
    seconds=20,
    keeps_all_cells=True,
)
COMMAND_LINE = ReadLimits(file_bytes=None, rows=None, lines=None, output_bytes=None, memory_bytes=2 << 30, seconds=600)


@dataclass(frozen=True)
class Choice:
    """The sheet and the columns that a person has chosen. If one is None, the program finds it.

    With `nim_only` no other column is needed, and Nama and Alamat are left blank.
    """

    sheet: str | None = None
    columns: FieldColumns | None = None
    nim_only: bool = False


@dataclass(frozen=True)
class Table:
    """The rows of a file, read one by one, and the columns and the sheet that they come from.

    `kept_sheets` has all cells of a small file; the sheet that is read comes first. `other_sheets` are the names of all
    other sheets. If the columns could not be found, `columns_problem` is the reason, and there are no rows.
    """

    columns: Columns
    rows: Iterator[SheetRow]
    sheet: str = ""
    other_sheets: list[str] = field(default_factory=list)
    kept_sheets: list[Sheet] = field(default_factory=list)
    columns_problem: str = ""

    def __iter__(self) -> Iterator[SheetRow]:
        if self.columns_problem:
            raise SheetError(self.columns_problem)
        return self.rows


@contextmanager
def read(
    file: BinaryIO, limits: ReadLimits = WEB, stop: Event | None = None, choice: Choice | None = None
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
                yield Table(Columns(IN_ORDER, list(wording.HEADER)), _at_most(limits.rows, rows, stop))
            else:
                yield _table(text.rows, limits, stop, choice)
        return
    with read_workbook(
        file,
        max_rows=limits.rows,
        output_bytes=limits.output_bytes,
        memory_bytes=limits.memory_bytes,
        seconds=limits.seconds,
        keep_all_cells=limits.keeps_all_cells,
        sheet=choice.sheet,
        columns=choice.columns,
        nim_only=choice.nim_only,
        stop=stop,
    ) as workbook:
        if workbook.selected:
            columns, selected = workbook.selected
            yield Table(columns, _at_most(limits.rows, selected, stop), workbook.sheet, workbook.other_sheets)
        else:
            yield table_of(workbook.kept_sheets, workbook.other_sheets, choice, limits, stop)


def read_text(text: str, limits: ReadLimits = WEB, stop: Event | None = None, choice: Choice | None = None) -> Table:
    """The rows of cells that were pasted from a spreadsheet. Raises as `read` does."""
    choice = choice or Choice()
    rows = read_pasted(text, max_lines=limits.lines, stop=stop, nim_only=choice.nim_only)
    return _table(rows, limits, stop, choice)


def table_of(
    sheets: list[Sheet],
    other_sheets: list[str],
    choice: Choice,
    limits: ReadLimits = WEB,
    stop: Event | None = None,
) -> Table:
    """The rows of the first of these sheets, which have all their cells."""
    first = sheets[0]
    try:
        columns, rows = select_columns(first.rows, choice.columns, nim_only=choice.nim_only)
    except ColumnsUnclear as error:
        unclear = Columns(choice.columns or error.of_fields, error.titles)
        return Table(unclear, iter(()), first.name, other_sheets, sheets, str(error))
    return Table(columns, _at_most(limits.rows, rows, stop), first.name, other_sheets, sheets)


def _table(rows: Iterator[RawRow], limits: ReadLimits, stop: Event | None, choice: Choice) -> Table:
    kept, fit = KeepingBudget().take(rows) if limits.keeps_all_cells else ([], False)
    if fit:
        return table_of([Sheet("", kept)], [], choice, limits, stop)
    columns, selected = select_columns(chain(kept, rows), choice.columns, nim_only=choice.nim_only)
    return Table(columns, _at_most(limits.rows, selected, stop))


def _at_most(limit: int | None, rows: Iterator[SheetRow], stop: Event | None) -> Iterator[SheetRow]:
    for count, row in enumerate(rows, 1):
        if limit is not None and count > limit:
            raise TooBig(wording.TOO_MANY_ROWS.format(limit=wording.number(limit)))
        if stop is not None and not count % CHECK_LINES and stop.is_set():
            raise Stopped
        yield row
