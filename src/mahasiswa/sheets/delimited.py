"""Reads CSV files in UTF-8, UTF-16 or Windows-1252 with any usual separator, and cells that were pasted from a spreadsheet."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice, zip_longest
from typing import BinaryIO, TextIO

from mahasiswa import wording
from mahasiswa.sheets.cell_rules import is_like_a_nim, unescaped
from mahasiswa.sheets.cells import (
    CELL_MAX_CHARACTERS,
    ROW_MAX_CELLS,
    Cell,
    Cells,
    Sheet,
    SheetRow,
    SheetRows,
    cell_text,
    has_digit,
    has_digits,
    is_blank,
)
from mahasiswa.sheets.csv_form import unguarded
from mahasiswa.sheets.file_kind import encoding_of
from mahasiswa.sheets.lines import rows_in_lines
from mahasiswa.sheets.questions import Question
from mahasiswa.sheets.sheet_errors import SheetError, TooBig
from mahasiswa.sheets.titles import HEADER_WITHIN_ROWS, is_header

SAMPLE_ROWS, SAMPLE_CHARACTERS = 100, 1 << 16
ROW_MAX_CHARACTERS = 1 << 20  # of CSV

_SEPARATORS = tuple(";\t,|")
_END = "\0the end of the file\0"


@contextmanager
def read_csv(file: BinaryIO, *, asks: bool) -> Iterator[Sheet]:
    """The rows of a seekable CSV file, in bounded memory. Raises SheetError, at once or while rows are read."""
    text = io.TextIOWrapper(file, encoding=encoding_of(file), newline="")
    try:
        yield (asks and _in_lines(_rows(text), text)) or Sheet("", _rows(text))
    except UnicodeDecodeError as error:  # also while the rows are read
        raise SheetError(wording.NOT_A_SPREADSHEET) from error
    finally:
        text.detach()


def read_pasted(data: bytes, *, nim_only: bool) -> Sheet:
    """The rows of cells pasted from Excel, or of a pasted text, in valid UTF-8. Raises as `read_csv` does.

    With `nim_only` several lines are cells, because a NIM that Excel shows as `2,3E+14` has a comma of its own.
    """
    text = io.StringIO(data.decode(), newline="")
    whole = text.getvalue().strip()
    if whole.startswith("BEGIN:VCARD"):
        raise SheetError(wording.CONTACTS)
    are_cells = "\t" in text.getvalue() or (nim_only and re.search(r"[\r\n]", whole))
    rows = _pasted_rows if are_cells else _rows
    return (not nim_only and _in_lines(rows(text), text)) or Sheet("", rows(text))


def _has_columns(rows: SheetRows) -> bool:
    """Whether the first rows have titles, or a column of numbers.

    A NIM among other words is no number.
    """
    try:
        top = [row for _, row in islice(rows, SAMPLE_ROWS) if not is_blank(row)]
    except SheetError:
        return True
    columns = zip_longest(*top, fillvalue="")
    titles = [row for row in top if not has_digits(row)]
    return any(map(is_header, titles)) or any(
        2 * sum(map(_is_number, map(cell_text, column))) > len(top) for column in columns
    )


def _is_number(text: str) -> bool:
    return is_like_a_nim(text) and " " not in text.strip()


def _in_lines(rows: SheetRows, text: TextIO) -> Sheet | None:
    """The rows that the lines of a text have, unless its cells have columns, with a question about them."""
    if _has_columns(rows):
        return None
    text.seek(0)
    found = rows_in_lines(text.read())
    return Sheet("", iter(found), (Question("baris", wording.IN_LINES),)) if found else None


def rejoined(sheet: Sheet) -> Sheet:
    """The sheet, perhaps with other rows and a question.

    Its rows are split again if they are a text in the first column, or CSV that a program has split
    at commas.
    """
    rows = iter(sheet.rows)
    top = list(islice(rows, HEADER_WITHIN_ROWS))
    if not _are_lines(top):
        return sheet._replace(rows=chain(top, rows))

    whole = [*top, *rows]
    text = io.StringIO(_joined_lines(whole))
    split = list(_rows(text))
    read = _in_lines(split, text)
    if not read and _has_columns(split):
        read = Sheet("", split, (Question("terpisah", wording.RESPLIT),))
    if not read:
        return sheet._replace(rows=whole)
    return sheet._replace(rows=read.rows, questions=[*sheet.questions, *read.questions])


def _are_lines(top: Sequence[SheetRow]) -> bool:
    """Whether most rows are lines of a text.

    A row of our own export is none if it has several cells, although its NIM may hold a separator.
    """
    is_export = bool(top) and tuple(top[0][1]) == wording.HEADER
    lines = [row for _, row in top if _line_of(row) and (is_blank(row[1:]) or not is_export)]
    return 2 * len(lines) > len(top)


def _joined_lines(rows: Sequence[SheetRow]) -> str:
    """The text of all rows. A line has the number of its row."""
    lines = [""] * max(number for number, _ in rows)
    for number, row in rows:
        lines[number - 1] = _line_of(row) or " ".join(map(cell_text, row)).strip()
    return "\n".join(lines)


def _line_of(row: Cells) -> str:
    """The line of a text that stands in the first cell, or in several that commas parted; blank for other rows."""
    first = row[0] if row else None
    if not isinstance(first, str) or not (";" in first or is_blank(row[1:])):
        return ""
    is_line = re.search("[;,\t|]", first) or (" " in first.strip() and has_digit(first))
    # A number had a space before it, which a program has dropped.
    texts = [cell if isinstance(cell, str) else f" {cell_text(cell)}" for cell in row]
    line = ",".join(texts).rstrip(", ").replace("\r", " ").replace("\n", " ")
    return line if is_line else ""


# A formula that is only a text, as SIAKAD writes a NIM for Excel; and a letter as HTML writes it. In a cell with quotes
# each quote of its text is doubled.
_text_formula = re.compile(r'(^|[;,\t|])="(?=[^";,\t|\r\n])').sub


def _splittable(line: str) -> str:
    """A line, to be split into cells, in which formulas and escapes of HTML are now texts."""
    line = _text_formula(r'\1"', line) if '="' in line else line
    # A program that writes quotes, as we do, may mean the text itself.
    return line if '"' in line else unescaped(line)


def _rows(text: TextIO) -> Iterator[SheetRow]:
    """The rows of CSV, from the beginning of the text."""
    text.seek(0)
    sample = text.read(SAMPLE_CHARACTERS)
    text.seek(0)
    return _split(iter(partial(text.readline, ROW_MAX_CHARACTERS), ""), sample)


def _split(lines: Iterator[str], sample: str) -> Iterator[SheetRow]:
    """The rows of CSV, without the guards of an export. A cell with line breaks belongs to one row, as in Excel."""
    # Excel reads a first line `sep=;` as an instruction, and does not count it as a row.
    named = ""
    if instruction := re.match(r"sep=(.?)\r?\n", sample, re.IGNORECASE):
        next(lines)
        named, sample = instruction[1], sample[instruction.end() :]
    separator = named if named in _SEPARATORS else _separator(sample)
    has_spaces = f'{separator} "' in sample  # before its quotes
    size = 0  # of the lines of the row that is read

    def collected() -> Iterator[str]:
        nonlocal size
        # If a quote never ends, Python's reader returns the rest of the file as one cell. So the line _END is added to
        # the file. If no row consists of this line, it is within a cell, and a quote has no end. The strict mode of the
        # reader would refuse other files that Excel reads.
        for line in chain(lines, [_END]):
            is_first = size == 0
            size += len(line)
            yield _splittable(line) if is_first else line
            if size >= ROW_MAX_CHARACTERS:
                raise TooBig(wording.TOO_HEAVY)

    number = 0
    try:
        reader = csv.reader(collected(), delimiter=separator, skipinitialspace=has_spaces)
        for number, cells in enumerate(reader, 1):
            if cells == [_END]:
                return
            has_guard = "'" in "".join(cells)
            yield number, list(map(unguarded, cells)) if has_guard else cells
            size = 0
    except csv.Error as error:
        raise _too_long(number + 1) from error
    raise SheetError(wording.OPEN_QUOTE.format(row=number))


def _too_long(row: int) -> SheetError:
    """The error about a cell of a row."""
    limit = wording.number(CELL_MAX_CHARACTERS)
    return SheetError(wording.CELL_OVER_LIMIT.format(row=row, limit=limit))


def _separator(sample: str) -> str:
    """The separator in our own titles, or else the one with which the sample has a header.

    Without a header it is the separator that gives most rows the same width.
    """
    whole_lines = sample[: sample.rfind("\n") + 1] if len(sample) >= SAMPLE_CHARACTERS else sample

    def score(separator: str) -> tuple[bool, bool, int]:
        # A text of our own export may look like a header with another separator.
        is_export = sample.startswith(separator.join(wording.HEADER))
        reader = csv.reader(io.StringIO(whole_lines, newline=""), delimiter=separator)
        rows = [row for row in islice(reader, SAMPLE_ROWS) if any(row)]
        widths = Counter(len(row) for row in rows if len(row) > 1)
        return is_export, any(map(is_header, rows)), max(widths.values(), default=0)

    try:
        return max(_SEPARATORS, key=score)
    except csv.Error:
        return _SEPARATORS[0]


# Excel puts a copied cell in quotes only if it holds a line break, a tab or a quote. Any other quote is the text's own.
_pasted_cells = re.compile(
    r'(?:"((?:[^"]|"")*+)"(?=[\t\r\n]|\Z)|[^\t\r\n]*+)(\t|\r\n|\r|\n|\Z)'
).finditer
_needs_quotes = re.compile(r'[\t\r\n]|""').search


def _pasted_rows(text: io.StringIO) -> Iterator[SheetRow]:
    number = 1
    row: list[Cell] = []
    for found in _pasted_cells(text.getvalue()):
        quoted, end = found.groups()
        cell = found[0].removesuffix(end)
        if quoted and _needs_quotes(quoted):
            cell = quoted.replace('""', '"').replace("\r\n", "\n").replace("\r", "\n")
        row.append(cell)
        if len(cell) > CELL_MAX_CHARACTERS:
            raise _too_long(number)
        if len(row) > ROW_MAX_CELLS:
            raise TooBig(wording.TOO_HEAVY)
        if end != "\t":
            yield number, row
            number, row = number + 1, []
