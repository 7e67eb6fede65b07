"""Reads CSV files of any encoding and separator, and cells that were copied from a spreadsheet and pasted."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, filterfalse, islice
from threading import Event
from typing import BinaryIO, TypeVar

from mahasiswa import wording
from mahasiswa.sheets.cells import CELL_MAX_CHARACTERS, ROW_MAX_CELLS, Cell, SheetRow, cell_text, is_blank
from mahasiswa.sheets.columns import HEADER_WITHIN_ROWS, is_header
from mahasiswa.sheets.csv_form import unguarded
from mahasiswa.sheets.file_kind import SAMPLE_BYTES, encoding_of
from mahasiswa.sheets.sheet_errors import SheetError, Stopped, TooBig

T = TypeVar("T")

SAMPLE_ROWS = 100
ROW_MAX_CHARACTERS = 1 << 20  # of CSV, because one call splits it into cells, in 15 ms
CHECK_LINES = 16  # lines or rows between two checks whether the caller has set `stop`

_SEPARATORS = ";\t,"
_END = "\0the end of the file\0"


@contextmanager
def read_csv(file: BinaryIO, *, max_lines: int | None, stop: Event | None) -> Iterator[Iterator[SheetRow]]:
    """The rows of a seekable CSV file, in bounded memory. The file stays open.

    Raises SheetError, at once or while the rows are read, and Stopped after `stop` was set.
    """
    encoding = encoding_of(file)
    text = io.TextIOWrapper(file, encoding=encoding, newline="")
    try:
        sample = text.read(SAMPLE_BYTES)
        lines = at_most(max_lines, _lines(text), stop)
        yield _rows(lines, sample)
    except UnicodeDecodeError as error:  # also while the rows are read
        raise SheetError(wording.NOT_A_SPREADSHEET) from error
    finally:
        text.detach()


def read_pasted(data: bytes, *, max_lines: int | None, stop: Event | None, nim_only: bool) -> Iterator[SheetRow]:
    """The rows of cells pasted from Excel, or of pasted CSV, in valid UTF-8. Raises as `read_csv` does.

    With `nim_only` several lines are cells, because a NIM that Excel shows as `2,3E+14` has a comma of its own. Each
    line or cell is decoded alone, because a text of 16 MB takes 64 MB if one of its characters is an emoji.
    """
    text = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline="")
    filled = filterfalse(str.isspace, at_most(max_lines, _lines(text), stop))
    if not any(filled):
        raise SheetError(wording.EMPTY_PASTE)
    if b"\t" in data or (nim_only and any(filled)):
        return at_most(max_lines, _pasted_rows(data), stop)
    text.seek(0)
    sample = text.read(SAMPLE_BYTES)
    lines = at_most(max_lines, _lines(text), stop)
    filled_lines = [line for line in sample.splitlines() if line.strip()]
    if not any(is_header(re.split("[,;]", line)) for line in filled_lines) and (
        2 * sum(map(bool, map(_chat_line, filled_lines))) > len(filled_lines)
    ):
        return _chat_rows(lines)
    return _rows(lines, sample)


# A NIM with five digits, a space, a name, and the first comma before the address.
_chat_line = re.compile(
    r"\W{0,9}((?=(?:\D{0,9}\d){5})[\w./-]{5,40})\s{1,9}-?\s{0,9}([^,;\t\r\n]{1,200})[,;]\s{0,9}(\S[^\r\n]*)"
).match


def _chat_rows(lines: Iterator[str]) -> Iterator[SheetRow]:
    for number, line in enumerate(lines, 1):
        found = _chat_line(line)
        yield number, [text.strip() for text in found.groups()] if found else [line.strip()]


def rejoined(rows: Iterable[SheetRow]) -> tuple[Iterator[SheetRow], Sequence[str]]:
    """The rows, and a remark if a program has put the lines of a CSV file into wrong cells, and they are put right here.

    Such a program splits the lines at another character, most often at the commas of addresses. Raises SheetError, also
    while the rows are read, if a row does not come out with as many cells as the others.
    """
    rows = iter(rows)
    top = list(islice(rows, HEADER_WITHIN_ROWS))
    all_rows = chain(top, rows)
    for separator in _SEPARATORS:
        lines = [_line_of(row) for _, row in top if _is_packed(row, separator)]
        split = [cells for line in lines if (cells := _split(line, separator))]
        is_list = any(map(is_header, split)) or {len(cells) for cells in split} == {len(wording.HEADER)}
        if is_list and len(lines) * 2 > len(top) and len(split) * 2 > len(lines):
            return _resplit_rows(all_rows, separator), [wording.RESPLIT]
    return all_rows, ()


def _resplit_rows(rows: Iterable[SheetRow], separator: str) -> Iterator[SheetRow]:
    width = 0
    for number, row in rows:
        if not _is_packed(row, separator) and sum(not is_blank((cell,)) for cell in row) < 2:
            yield number, row  # a title or a total
            continue
        line = _line_of(row)
        cells = _split(line, separator)
        if not cells or len(cells) != (width or len(cells)):
            raise SheetError(wording.NOT_RESPLIT.format(row=number))
        width = len(cells)
        yield number, list(map(unguarded, cells))


def _is_packed(row: Sequence[Cell], separator: str) -> bool:
    """Whether the first cell holds several cells. A comma says so only if no other cell has a text."""
    first = row[0] if row else None
    return isinstance(first, str) and separator in first and (separator == ";" or is_blank(row[1:]))


def _line_of(row: Sequence[Cell]) -> str:
    """The line of a row. A number has lost the space that stood before it."""
    texts = [str(cell) if isinstance(cell, str) else cell and f" {cell_text(cell)}" for cell in row]
    while texts and not texts[-1]:
        texts.pop()
    return ",".join(text or "" for text in texts)


def _split(line: str, separator: str) -> list[str] | None:
    if len(line) > ROW_MAX_CHARACTERS:
        return None
    try:
        (cells,) = csv.reader([line], delimiter=separator, strict=True)
    except (csv.Error, ValueError):
        return None
    return cells


def at_most(most: int | None, items: Iterable[T], stop: Event | None = None) -> Iterator[T]:
    """The same lines or rows. Raises TooBig if there are more, and Stopped after `stop` was set."""
    for count, item in enumerate(items, 1):
        if most is not None and count > most:
            raise TooBig(wording.TOO_MANY_ROWS.format(limit=wording.number(most)))
        if stop is not None and not count % CHECK_LINES and stop.is_set():
            raise Stopped
        yield item


def _lines(text: io.TextIOWrapper) -> Iterator[str]:
    """The lines of a whole text. A line that is too long comes in parts."""
    text.seek(0)
    return iter(partial(text.readline, ROW_MAX_CHARACTERS), "")


def _rows(lines: Iterator[str], sample: str) -> Iterator[SheetRow]:
    # Excel reads a first line `sep=;` as an instruction, and does not count it as a row.
    instruction = re.match(r"sep=(.?)\r?\n", sample, re.IGNORECASE)
    if instruction:
        next(lines)
        sample = sample[instruction.end() :]
    separator = instruction[1] if instruction and instruction[1] in {*_SEPARATORS, "|"} else _separator(sample)
    return _csv_rows(lines, separator)


def _csv_rows(lines: Iterator[str], separator: str) -> Iterator[SheetRow]:
    """The rows of CSV, without the guards of an export. A cell with line breaks belongs to one row, as in Excel."""
    row_lines: list[str] = []

    def collected() -> Iterator[str]:
        size = 0
        # If a quote never ends, Python's reader returns the rest of the file as one cell. So the line _END is added to
        # the file. If no row consists of this line, it is within a cell, and a quote has no end. The strict mode of the
        # reader would refuse other files that Excel reads.
        for line in chain(lines, [_END]):
            size = size + len(line) if row_lines else len(line)
            row_lines.append(line)
            yield line
            if size >= ROW_MAX_CHARACTERS:
                raise TooBig(wording.TOO_HEAVY)

    number = 0
    try:
        for number, cells in enumerate(csv.reader(collected(), delimiter=separator), 1):
            if cells == [_END]:
                return
            yield number, list(map(unguarded, cells)) if any("'" in cell for cell in cells) else cells
            row_lines.clear()
    except csv.Error as error:
        # A cell is too long. If the number of quotes is odd, the reason is a quote that never ends.
        quotes = sum(line.count('"') for line in chain(row_lines, lines))
        problem = wording.OPEN_QUOTE if quotes % 2 else wording.CELL_OVER_LIMIT
        limit = wording.number(CELL_MAX_CHARACTERS)
        raise SheetError(problem.format(row=number + 1, limit=limit)) from error
    raise SheetError(wording.OPEN_QUOTE.format(row=number))


def _separator(sample: str) -> str:
    """The separator that shows a header in the sample; otherwise the separator that gives most rows the same width."""
    whole_lines = sample[: sample.rfind("\n") + 1] if len(sample) >= SAMPLE_BYTES else sample

    def score(separator: str) -> tuple[bool, int]:
        reader = csv.reader(io.StringIO(whole_lines, newline=""), delimiter=separator)
        rows = [row for row in islice(reader, SAMPLE_ROWS) if any(row)]
        widths = Counter(len(row) for row in rows if len(row) > 1)
        return any(map(is_header, rows)), max(widths.values(), default=0)

    try:
        return max(_SEPARATORS, key=score)
    except csv.Error:
        return _SEPARATORS[0]


# Excel puts a copied cell in quotes only if it holds a line break, a tab or a quote. Any other quote is the text's own. Both
# patterns end at a length, because no other thread runs meanwhile.
_QUOTE = ord('"')
_CELL_MAX_BYTES = 4 * CELL_MAX_CHARACTERS  # in UTF-8
_quoted_cell = re.compile(rb'"((?:[^"]|""){0,%d}+)"(?=[\t\r\n]|\Z)' % (2 * _CELL_MAX_BYTES)).match
_plain_cell = re.compile(rb"[^\t\r\n]{0,%d}+[\x80-\xbf]*+" % (_CELL_MAX_BYTES + 1)).match  # ends with a whole character
_needs_quotes = re.compile(rb'[\t\r\n]|""').search


def _pasted_rows(data: bytes) -> Iterator[SheetRow]:
    number, at = 1, 0
    row: list[Cell] = []
    while at < len(data):
        found = _quoted_cell(data, at) if data[at] == _QUOTE else None
        if found and _needs_quotes(found[1]):
            cell = found[1].replace(b'""', b'"').replace(b"\r\n", b"\n").replace(b"\r", b"\n").decode()
        else:
            found = _plain_cell(data, at)
            cell = found[0].decode()  # type: ignore[index]  # it always matches
        at = found.end()  # type: ignore[union-attr]  # as above
        row.append(cell)
        if len(cell) > CELL_MAX_CHARACTERS:
            raise SheetError(wording.CELL_OVER_LIMIT.format(row=number, limit=wording.number(CELL_MAX_CHARACTERS)))
        if data.startswith(b"\t", at):
            at += 1
            if len(row) > ROW_MAX_CELLS:
                raise TooBig(wording.TOO_HEAVY)
        else:
            yield number, row
            number, row = number + 1, []
            at += 2 if data.startswith(b"\r\n", at) else 1
    if row:
        yield number, row
