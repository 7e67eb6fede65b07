"""Reads CSV and other texts with separators, in any usual encoding, and cells that were pasted from a spreadsheet."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import BinaryIO

from mahasiswa import wording
from mahasiswa.intake.cells import (
    CELL_MAX_CHARACTERS,
    Cell,
    Refused,
    Row,
    Sheet,
    TooHeavy,
    is_blank,
    unescaped,
)
from mahasiswa.intake.columns import are_titles
from mahasiswa.intake.file_kind import encoding_of
from mahasiswa.intake.pasted import NIM_MIN_DIGITS, split_lines

SAMPLE_ROWS, SAMPLE_CHARACTERS = 100, 1 << 16
ROW_MAX_CHARACTERS = 1 << 20
SEPARATORS = ";\t,|"

_END = "\0the end of the file\0"
_instruction = re.compile(r"sep=(.?)\r?\n", re.IGNORECASE).match
# A guard of our own export, see `csv_form`.
_unguard = re.compile(r"""(?:^|(?<=[,;\t\r\n]))'(?=['"]*+[=+\-@\t\r＝＋－＠])""").sub
_gaps = re.compile(r"\s{2,}").split
# A backslash before a quote that does not end its cell.
_escaped_quote = re.compile(r'\\"[^";,\t|\r\n]').search


def read_text(file: BinaryIO, *, nim_only: bool) -> Sheet:
    """The rows of a seekable file, in bounded memory. Raises Refused, at once or while rows are read.

    With `nim_only` a text without titles has one cell for each line.
    """
    text = io.TextIOWrapper(file, encoding_of(file), errors="replace", newline="")
    sample = text.read(SAMPLE_CHARACTERS)
    text.seek(0)
    lines = iter(partial(text.readline, ROW_MAX_CHARACTERS), "")
    return _sheet(lines, sample, nim_only=nim_only)


def read_pasted(text: str, *, nim_only: bool) -> Sheet:
    """The rows of a pasted text: cells of a spreadsheet, or lines. Raises Refused."""
    if text.strip().startswith("BEGIN:VCARD"):
        raise Refused(wording.CONTACTS)
    if "\t" in text:
        return Sheet("", _filled(_pasted_rows(text)))
    lines = iter(io.StringIO(text, newline=""))
    return _sheet(lines, text[:SAMPLE_CHARACTERS], nim_only=nim_only)


def _sheet(lines: Iterator[str], sample: str, *, nim_only: bool) -> Sheet:
    # Excel reads a first line `sep=;` as an instruction, and does not count it as a row.
    named = ""
    if instruction := _instruction(sample):
        next(lines)
        named, sample = instruction[1], sample[instruction.end() :]
    if len(sample) >= SAMPLE_CHARACTERS:
        sample = sample[: sample.rfind("\n") + 1]

    separator = named or _separator(sample, nim_only=nim_only)
    if separator:
        return Sheet("", _filled(_split(lines, separator, sample)))
    if nim_only:
        return Sheet("", _filled((number, [line]) for number, line in enumerate(lines, 1)))
    top = list(islice(lines, SAMPLE_ROWS))
    starts = next(filter(None, map(_starts, top)), ())
    whole = chain(top, lines)
    if starts:
        return Sheet("", _filled(_cut(whole, starts)))
    return Sheet("", split_lines(whole), is_split=True)


def _filled(rows: Iterator[Row]) -> Iterator[Row]:
    return (row for row in rows if not is_blank(row[1]))


def _separator(sample: str, *, nim_only: bool) -> str:
    """The separator with which a row has titles, or else most rows have the same width; blank without one."""
    count = len([line for line in sample.splitlines()[:SAMPLE_ROWS] if line.strip()])

    def score(separator: str) -> tuple[bool, bool, int]:
        # Texts of our own export may look like titles with another separator.
        is_export = sample.startswith(separator.join(wording.HEADER))
        reader = _reader(iter(io.StringIO(sample, newline="")), separator, sample)
        rows = [row for row in islice(reader, SAMPLE_ROWS) if not is_blank(row)]
        widths = Counter(len(row) for row in rows if len(row) > 1)
        has_titles = any(are_titles(row, nim_only=nim_only) for row in rows)
        # An address has commas, so a line of a chat is not split at them.
        is_table = (
            separator != "," or any(map(_has_nim, rows)) or not any(map(str.isdigit, rows[0][0]))
        )
        return is_export, has_titles, max(widths.values(), default=0) * is_table

    try:
        best = max(SEPARATORS, key=score)
        is_export, has_titles, alike = score(best)
    except csv.Error:
        return SEPARATORS[0]
    is_table = not nim_only and 10 * alike >= 9 * count
    return best if is_export or has_titles or is_table else ""


def _has_nim(row: Sequence[str]) -> bool:
    """Whether a cell is a number and nothing else."""
    return any(len(cell.strip()) >= NIM_MIN_DIGITS and cell.strip().isdecimal() for cell in row)


def _reader(lines: Iterator[str], separator: str, sample: str) -> Iterator[list[str]]:
    is_escaped = _escaped_quote(sample) is not None and '""' not in sample
    return csv.reader(
        lines,
        delimiter=separator,
        doublequote=not is_escaped,
        escapechar="\\" if is_escaped else None,
        skipinitialspace=f'{separator} "' in sample,
    )


def _split(lines: Iterator[str], separator: str, sample: str) -> Iterator[Row]:
    """The rows of CSV. A cell with line breaks belongs to one row, as in Excel."""
    size = 0  # of the lines of the row that is read

    def collected() -> Iterator[str]:
        nonlocal size
        # If a quote never ends, Python's reader returns the rest of the file as one cell. So if no row consists of the
        # line _END, a quote has no end. The strict mode of the reader would refuse other files that Excel reads.
        for line in chain(lines, [_END]):
            size += len(line)
            if size >= ROW_MAX_CHARACTERS:
                raise TooHeavy
            # The entities of a web page end with a semicolon.
            yield unescaped(line) if "&" in line and '"' not in line else line

    number = 0
    try:
        for number, cells in enumerate(_reader(collected(), separator, sample), 1):
            if cells == [_END]:
                return
            size = 0
            has_guard = "'" in "".join(cells)
            yield number, [_unguard("", cell) for cell in cells] if has_guard else cells
    except csv.Error as error:
        limit = wording.number(CELL_MAX_CHARACTERS)
        raise Refused(wording.CELL_OVER_LIMIT.format(row=number + 1, limit=limit)) from error
    raise Refused(wording.OPEN_QUOTE.format(row=number))


def _starts(line: str) -> Sequence[int]:
    """The places where the columns of a text of fixed width begin, if this line has their titles."""
    titles = _gaps(line.strip())
    if not are_titles(titles):
        return ()
    starts: list[int] = []
    for title in titles:
        starts.append(line.index(title, starts[-1] + 1 if starts else 0))
    return starts


def _cut(lines: Iterator[str], starts: Sequence[int]) -> Iterator[Row]:
    ends = [*starts[1:], ROW_MAX_CHARACTERS]
    for number, line in enumerate(lines, 1):
        if any(
            line[start - 1 : start].strip() and line[start : start + 1].strip()
            for start in starts[1:]
        ):
            raise Refused(wording.NAMES_NOT_PARTED)
        yield number, [line[start:end].strip() for start, end in zip(starts, ends, strict=True)]


# Excel puts a copied cell in quotes only if it holds a line break, a tab or a quote. Any other quote is the text's own.
_pasted_cells = re.compile(
    r'(?:"((?:[^"]|"")*+)"(?=[\t\r\n]|\Z)|[^\t\r\n]*+)(\t|\r\n|\r|\n|\Z)'
).finditer
_needs_quotes = re.compile(r'[\t\r\n]|""').search


def _pasted_rows(text: str) -> Iterator[Row]:
    number = 1
    row: list[Cell] = []
    for found in _pasted_cells(text):
        quoted, end = found.groups()
        cell = found[0].removesuffix(end)
        if quoted and _needs_quotes(quoted):
            cell = quoted.replace('""', '"').replace("\r\n", "\n").replace("\r", "\n")
        row.append(cell)
        if end != "\t":
            yield number, row
            number, row = number + 1, []
