"""Reads CSV files of any encoding and separator, and cells that were copied from a spreadsheet and pasted."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from typing import BinaryIO

from mahasiswa import wording
from mahasiswa.sheets.cells import (
    CELL_MAX_CHARACTERS,
    ROW_MAX_CELLS,
    Cell,
    SheetRow,
    cell_text,
    is_blank,
)
from mahasiswa.sheets.csv_form import unguarded
from mahasiswa.sheets.file_kind import SAMPLE_BYTES, encoding_of
from mahasiswa.sheets.sheet_errors import SheetError, TooBig
from mahasiswa.sheets.titles import HEADER_WITHIN_ROWS, is_header

SAMPLE_ROWS = 100
ROW_MAX_CHARACTERS = 1 << 20  # of CSV, because one call splits it into cells, in 15 ms

_SEPARATORS = ";\t,"
_END = "\0the end of the file\0"


@contextmanager
def read_csv(file: BinaryIO) -> Iterator[Iterator[SheetRow]]:
    """The rows of a seekable CSV file, in bounded memory. Raises SheetError, at once or while rows are read."""
    text = io.TextIOWrapper(file, encoding=encoding_of(file), newline="")
    try:
        sample = text.read(SAMPLE_BYTES)
        yield _rows(_lines(text), sample)
    except UnicodeDecodeError as error:  # also while the rows are read
        raise SheetError(wording.NOT_A_SPREADSHEET) from error
    finally:
        text.detach()


def read_pasted(data: bytes, *, nim_only: bool) -> Iterator[SheetRow]:
    """The rows of cells pasted from Excel, or of pasted CSV, in valid UTF-8. Raises as `read_csv` does.

    With `nim_only` several lines are cells, because a NIM that Excel shows as `2,3E+14` has a comma of its own. Each
    line or cell is decoded alone, because a text of 16 MB takes 64 MB if one of its characters is an emoji.
    """
    if b"\t" in data or (nim_only and re.search(rb"[\r\n]", data.strip())):
        return _pasted_rows(data)
    text = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline="")
    sample = text.read(SAMPLE_BYTES)
    filled = [line for line in sample.splitlines() if line.strip()]
    has_header = any(is_header(re.split("[,;]", line)) for line in filled)
    is_chat = not has_header and 2 * sum(map(bool, map(_chat_line, filled))) > len(filled)
    return _chat_rows(_lines(text)) if is_chat else _rows(_lines(text), sample)


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
        split = [cells for _, row in top if (cells := _cells_in(row, separator))]
        is_list = any(map(is_header, split)) or {len(cells) for cells in split} == {
            len(wording.HEADER)
        }
        if is_list and len(split) * 2 > len(top):
            return _resplit_rows(all_rows, separator), [wording.RESPLIT]
    return all_rows, ()


def _resplit_rows(rows: Iterable[SheetRow], separator: str) -> Iterator[SheetRow]:
    width = 0
    for number, row in rows:
        cells = _cells_in(row, separator)
        if not cells and sum(not is_blank((cell,)) for cell in row) < 2:
            yield number, row  # a title or a total
            continue
        if not cells or len(cells) != (width or len(cells)):
            raise SheetError(wording.NOT_RESPLIT.format(row=number))
        width = len(cells)
        yield number, list(map(unguarded, cells))


def _cells_in(row: Sequence[Cell], separator: str) -> list[str]:
    """The cells of a row whose first cell holds several, or an empty list. A comma counts only in a row of one cell."""
    first = row[0] if row else None
    if (
        not isinstance(first, str)
        or separator not in first
        or (separator != ";" and not is_blank(row[1:]))
    ):
        return []
    texts = [cell if isinstance(cell, str) else cell and f" {cell_text(cell)}" for cell in row]
    while not texts[-1]:
        texts.pop()
    line = ",".join(text or "" for text in texts)[: ROW_MAX_CHARACTERS + 1]
    try:
        (cells,) = csv.reader([line], delimiter=separator, strict=True)
    except (csv.Error, ValueError):
        return []
    return cells if len(line) <= ROW_MAX_CHARACTERS else []


def _lines(text: io.TextIOWrapper) -> Iterator[str]:
    """The lines of a whole text. A line that is too long comes in parts."""
    text.seek(0)
    return iter(partial(text.readline, ROW_MAX_CHARACTERS), "")


def _rows(lines: Iterator[str], sample: str) -> Iterator[SheetRow]:
    """The rows of CSV, without the guards of an export. A cell with line breaks belongs to one row, as in Excel."""
    # Excel reads a first line `sep=;` as an instruction, and does not count it as a row.
    instruction = re.match(r"sep=(.?)\r?\n", sample, re.IGNORECASE)
    if instruction:
        next(lines)
        sample = sample[instruction.end() :]
    separator = (
        instruction[1]
        if instruction and instruction[1] in {*_SEPARATORS, "|"}
        else _separator(sample)
    )
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
            yield (
                number,
                list(map(unguarded, cells)) if any("'" in cell for cell in cells) else cells,
            )
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
        return max(f"{_SEPARATORS}|", key=score)
    except csv.Error:
        return _SEPARATORS[0]


# Excel puts a copied cell in quotes only if it holds a line break, a tab or a quote. Any other quote is the text's own. Both
# patterns of a cell end at a length, because no other thread runs meanwhile. The second one ends with a whole character.
_CELL_MAX_BYTES = 4 * CELL_MAX_CHARACTERS  # in UTF-8
_pasted_cell = re.compile(
    rb'(?:"((?:[^"]|""){0,%d}+)"(?=[\t\r\n]|\Z)|[^\t\r\n]{0,%d}+[\x80-\xbf]*+)'
    % (2 * _CELL_MAX_BYTES, _CELL_MAX_BYTES + 1)
).match
_needs_quotes = re.compile(rb'[\t\r\n]|""').search
_line_end = re.compile(rb"\r\n|[\r\n]|\Z").match


def _pasted_rows(data: bytes) -> Iterator[SheetRow]:
    number, at = 1, 0
    row: list[Cell] = []
    while at < len(data) or row:
        found = _pasted_cell(data, at)
        text, quoted = found[0], found[1]  # type: ignore[index]  # it always matches
        at += len(text)
        if quoted and _needs_quotes(quoted):
            text = quoted.replace(b'""', b'"').replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        row.append(cell := text.decode())
        if len(cell) > CELL_MAX_CHARACTERS:
            raise SheetError(
                wording.CELL_OVER_LIMIT.format(
                    row=number, limit=wording.number(CELL_MAX_CHARACTERS)
                )
            )
        if len(row) > ROW_MAX_CELLS:
            raise TooBig(wording.TOO_HEAVY)
        if end := _line_end(data, at):
            yield number, row
            number, row = number + 1, []
            at = end.end()
        else:
            at += 1  # a tab
