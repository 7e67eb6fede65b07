"""Reads a spreadsheet file of any kind, which it recognises by the content and not by the name."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice, zip_longest
from typing import BinaryIO, NamedTuple

from mahasiswa import wording
from mahasiswa.sheets.carried_file import CarriedFile
from mahasiswa.sheets.cells import SHEET_ROWS, Sheet, SheetRow, SheetRows, is_blank
from mahasiswa.sheets.columns import TableReader
from mahasiswa.sheets.delimited import read_csv, read_pasted, rejoined
from mahasiswa.sheets.file_kind import kind_of
from mahasiswa.sheets.limits import (
    NO_CHOICE,
    UPLOAD_MAX_BYTES,
    UPLOAD_MAX_LINES,
    UPLOAD_MAX_ROWS,
    Choice,
)
from mahasiswa.sheets.questions import Question
from mahasiswa.sheets.sheet_errors import SheetError, TooBig
from mahasiswa.sheets.titles import is_header
from mahasiswa.sheets.workbook import read_workbook

# Maxima of all sheets that are kept, because a phone must load them: 1,000 rows of 60 columns fit.
KEPT_MAX_CELLS, KEPT_MAX_CHARACTERS = 150_000, 450_000
TRANSPOSED_MAX_ROWS = 100  # maximum rows of a table whose titles stand in its first column


class Table(NamedTuple):
    """The rows of the sheets that are read, one by one, and the file, with all cells if it is small.

    A table is appended to `file.tables` before its first row is read.

    A row of the place `file.places[n]`, a sheet or a part of one, has the number that Excel shows, plus n times SHEET_ROWS.
    """

    rows: SheetRows
    file: CarriedFile


@contextmanager
def read(file: BinaryIO, choice: Choice = NO_CHOICE, *, is_upload: bool = True) -> Iterator[Table]:
    """The rows of an xlsx, xls, ods, HTML or CSV file, valid within the `with`. It can be read anywhere, and stays open.

    An upload has limits, and all cells of a small one are kept, so that a person can choose other columns. Raises
    SheetError, at once or while the rows are read.
    """
    table = _table if is_upload else partial(table_of, is_upload=False)
    size = file.seek(0, 2)
    if not size:
        raise SheetError(wording.EMPTY_FILE)
    if is_upload and size > UPLOAD_MAX_BYTES:
        limit = wording.size(UPLOAD_MAX_BYTES)
        raise TooBig(wording.TOO_LARGE.format(limit=limit))
    if kind_of(file):
        yield table(*read_workbook(file, choice, all_sheets=is_upload), choice)
    else:
        with read_csv(file, asks=is_upload) as sheet:
            yield table(CarriedFile("", [""]), iter([sheet]), choice)


def read_text(data: bytes, choice: Choice = NO_CHOICE) -> Table:
    """The rows of cells that were pasted from a spreadsheet, in valid UTF-8. Raises as `read` does."""
    sheet = read_pasted(data, nim_only=choice.nim_only)
    return _table(CarriedFile("", [""]), iter([sheet]), choice)


def table_of(
    file: CarriedFile, more: Iterable[Sheet], choice: Choice, *, is_upload: bool = True
) -> Table:
    """The rows of the sheets to read: the first of those in the file, and then of `more`."""
    reader = TableReader(choice, is_strict=not is_upload)
    asked: list[Question] = []
    read = islice(chain(file.sheets, more), len(file.read_sheets))
    rows = _rows_of(read, reader, asked)
    if is_upload:
        rows = _at_most(UPLOAD_MAX_ROWS, rows)
    return Table(rows, file._replace(tables=reader.tables, places=reader.places, asked=asked))


def _rows_of(
    sheets: Iterable[Sheet], reader: TableReader, questions: list[Question]
) -> Iterator[SheetRow]:
    """The rows of all sheets, one after another.

    Questions about how they are read go into `questions`.
    """
    hidden: set[int] = set()
    for sheet in sheets:
        first = len(reader.tables)
        # Do not split a list of NIMs again: it has no names and addresses to separate.
        whole = sheet if reader.choice.nim_only else rejoined(sheet)
        questions += whole.questions
        if sheet.hidden_rows and reader.is_strict:
            questions.append(Question("tersembunyi", wording.HIDDEN_ROWS))
        rows = reader.rows(sheet.name, whole.rows)
        yield from _with_notices(rows, {*sheet.hidden_rows}) if sheet.hidden_rows else rows
        for columns in reader.tables[first:]:
            hidden |= columns.roles.keys() & set(sheet.hidden_columns)
    if not reader.tables:
        raise SheetError(wording.EMPTY)
    if hidden:
        letters = ", ".join(map(wording.column_letter, sorted(hidden)))
        sentence = wording.HIDDEN_COLUMNS.format(columns=letters)
        questions.append(Question("kolom-tersembunyi", sentence))


def _with_notices(rows: SheetRows, hidden: Collection[int]) -> Iterator[SheetRow]:
    """The rows, each with a notice if Excel does not show it."""
    for number, cells in rows:
        is_hidden = number % SHEET_ROWS in hidden
        yield number, (*cells, wording.HIDDEN_ROWS) if is_hidden else cells


def _at_most(most: int, rows: SheetRows) -> Iterator[SheetRow]:
    """The same rows. Raises TooBig if there are more."""
    for count, row in enumerate(rows, 1):
        if count > most:
            raise TooBig(wording.TOO_MANY_ROWS.format(limit=wording.number(most)))
        yield row


def _table(file: CarriedFile, sheets: Iterator[Sheet], choice: Choice) -> Table:
    """The rows of an upload, with all cells in its file if the sheets to read fit."""
    kept, more = _kept_sheets(map(_upright, sheets))
    kept_names = {sheet.name for sheet in kept}
    others = [name for name in file.other_sheets if name not in kept_names]
    if len(kept) < len(file.read_sheets):
        kept, more = [], chain(kept, more)
    whole = file._replace(sheets=kept, other_sheets=others, has_all_cells=bool(kept))
    return table_of(whole, more, choice)


def _kept_sheets(sheets: Iterator[Sheet]) -> tuple[list[Sheet], Iterator[Sheet]]:
    """The first sheets that fit, without their blank rows, and the others."""
    cells, characters = KEPT_MAX_CELLS, KEPT_MAX_CHARACTERS
    kept: list[Sheet] = []
    for sheet in sheets:
        taken: list[SheetRow] = []
        width = 0
        for number, row in sheet.rows:
            if is_blank(row):
                continue
            taken.append((number, row))
            width = max(width, len(row))
            characters -= sum([len(cell) for cell in row if isinstance(cell, str)])
            if characters < 0 or width * len(taken) > cells:
                unfinished = sheet._replace(rows=chain(taken, sheet.rows))
                return kept, chain([unfinished], sheets)
        cells -= width * len(taken)
        kept.append(sheet._replace(rows=taken))
    return kept, sheets


def _upright(sheet: Sheet) -> Sheet:
    """The sheet. If its titles stand in the first column of a few rows, turn columns into rows.

    Then the sheet also gets a question.
    """
    lines = _at_most(UPLOAD_MAX_LINES, sheet.rows)
    filled = (row for row in lines if not is_blank(row[1]))
    top = list(islice(filled, TRANSPOSED_MAX_ROWS + 1))
    rows = chain(top, lines)
    columns = list(zip_longest(*(cells for _, cells in top)))
    is_few = len(top) <= TRANSPOSED_MAX_ROWS and len(columns) > 2
    if not is_few or not is_header(columns[0]) or any(is_header(cells) for _, cells in top):
        return sheet._replace(rows=rows)
    # A pasted text of this kind was read by its lines only because it has no titles at its top, so
    # the question about its lines is dropped.
    asked = [question for question in sheet.questions if question.name != "baris"]
    asked.append(Question("terbalik", wording.TRANSPOSED))
    return Sheet(sheet.name, enumerate(columns, 1), asked)
