"""Reads CSV and other texts with separators, in any usual encoding, and cells that were pasted from a spreadsheet."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import TextIO

from mahasiswa import wording
from mahasiswa.sheets.cells import (
    Refused,
    Row,
    Sheet,
    TooHeavy,
    unescaped,
)
from mahasiswa.sheets.columns import are_titles
from mahasiswa.sheets.pasted import split_lines

SAMPLE_ROWS, SAMPLE_CHARACTERS = 100, 1 << 16
ROW_MAX_CHARACTERS = 1 << 20

_instruction = re.compile(r"sep=(.?)\r?\n", re.IGNORECASE).match
# A guard of our own export, see `csv_form`.
_unguard = re.compile(r"""(?:^|(?<=[,;\t\r\n]))'(?=['"]*+[=+\-@\t\r＝＋－＠])""").sub
# A backslash before a quote that does not end its cell; and a quote that is doubled inside one.
_escaped_quote = re.compile(r'\\"[^";,\t|\r\n]').search
_doubled_quote = re.compile(r'[^\\";,\t|\r\n]""[^";,\t|\r\n]').search
_has_nim = re.compile(r"(?:.*[;,\t|])? *[0-9]{5,} *(?:[;,\t|]|$)", re.MULTILINE).match


def read_text(text: TextIO, *, nim_only: bool) -> Sheet:
    """The rows of a text, in bounded memory. Raises Refused and TooHeavy, at once or while rows are read.

    With `nim_only` a text without titles has one cell for each line.
    """
    sample = text.read(SAMPLE_CHARACTERS)
    text.seek(0)
    lines = iter(partial(text.readline, ROW_MAX_CHARACTERS), "")
    separator = _separator(sample, nim_only=nim_only)
    # Excel reads a first line `sep=;` as an instruction, and does not count it as a row.
    if instruction := _instruction(sample):
        next(lines)
        separator = instruction[1] or separator
    if separator:
        return Sheet("", _rows(lines, separator, sample))
    if nim_only:
        return Sheet("", ((number, [line]) for number, line in enumerate(lines, 1)))
    return Sheet("", split_lines(lines), is_split=True)


def _separator(sample: str, *, nim_only: bool) -> str:
    """The separator with which a row has titles, or else most rows have the same width; blank without one."""
    lines = [line for line in sample.splitlines()[:SAMPLE_ROWS] if line.strip()]
    # An address has commas. So they part the cells only below titles, or beside NIMs that stand alone.
    are_cells = not any(map(str.isdigit, "".join(lines[:1]))) or any(map(_has_nim, lines))

    def score(separator: str) -> tuple[bool, bool, int]:
        # Texts of our own export may look like titles with another separator.
        is_export = sample.startswith(separator.join(wording.HEADER))
        rows = [*islice(_reader(io.StringIO(sample, newline=""), separator, sample), SAMPLE_ROWS)]
        widths = Counter(len(row) for row in rows if len(row) > 1)
        has_titles = any(are_titles(row, nim_only=nim_only) for row in rows)
        alike = max(widths.values(), default=0) * (are_cells or separator != ",")
        return is_export, has_titles, alike

    (is_export, has_titles, alike), best = max((score(mark), mark) for mark in ",|\t;")
    is_table = not nim_only and 10 * alike >= 9 * len(lines)
    return best if is_export or has_titles or is_table else ""


def _reader(lines: Iterator[str] | TextIO, separator: str, sample: str) -> Iterator[list[str]]:
    is_escaped = _escaped_quote(sample) is not None and not _doubled_quote(sample)
    return csv.reader(
        lines,
        delimiter=separator,
        doublequote=not is_escaped,
        escapechar="\\" if is_escaped else None,
        skipinitialspace=f'{separator} "' in sample,
    )


def _rows(lines: Iterator[str], separator: str, sample: str) -> Iterator[Row]:
    """The rows of CSV. A cell with line breaks belongs to one row, as in Excel."""
    number, size = 1, 0  # of the row that is read, and the characters of its lines

    def counted() -> Iterator[str]:
        nonlocal size
        for line in lines:
            size += len(line)
            if size >= ROW_MAX_CHARACTERS:
                raise TooHeavy
            # The entities of a web page end with a semicolon.
            is_plain = size > len(line) or '"' in line or "&" not in line
            yield line if is_plain else unescaped(line)
        # Inside quotes the reader asks for a further line. Its strict mode would refuse other files that Excel reads.
        if size:
            raise csv.Error

    try:
        for cells in _reader(counted(), separator, sample):
            has_guard = "'" in "".join(cells)
            yield number, [_unguard("", cell) for cell in cells] if has_guard else cells
            number += 1
            size = 0
    except csv.Error as error:  # also for a cell that is longer than any real one
        raise Refused(wording.OPEN_QUOTE.format(row=number)) from error
