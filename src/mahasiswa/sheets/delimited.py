"""Reads CSV and other texts with separators, in any usual encoding, and cells that were pasted from a spreadsheet."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain, islice
from typing import TextIO

from mahasiswa import wording
from mahasiswa.sheets.cells import MARKS, Refused, Row, Sheet, unescaped
from mahasiswa.sheets.columns import are_titles
from mahasiswa.sheets.pasted import split_lines

SAMPLE_ROWS, SAMPLE_CHARACTERS = 100, 1 << 16
LINE_MAX_CHARACTERS = 1 << 20  # a longer line is read in pieces

_OWN_EXPORT = ";".join(wording.HEADER)
# A guard of our own export, see `csv_form`.
_unguard = re.compile(r"""(?:^|(?<=[,;\t\r\n]))'(?=['"]*+[=+\-@\t\r＝＋－＠])""").sub
# A backslash before a quote that does not end its cell; and a quote that is doubled inside one.
_escaped_quote = re.compile(r'\\"[^";,\t|\r\n]').search
_doubled_quote = re.compile(r'[^\\";,\t|\r\n]""[^";,\t|\r\n]').search
_has_nim = re.compile(r"(?:.*[;,\t|])? *[0-9]{5,} *(?:[;,\t|]|$)", re.MULTILINE).match


def read_text(text: TextIO, *, nim_only: bool) -> Sheet:
    """The rows of a text, in bounded memory. Raises Refused, at once or while rows are read.

    With `nim_only` a text without separators has one cell for each line.
    """
    sample = text.read(SAMPLE_CHARACTERS)
    text.seek(0)
    lines = iter(partial(text.readline, LINE_MAX_CHARACTERS), "")
    if separator := _separator(sample):
        return Sheet("", _rows(lines, separator, sample))
    if nim_only:
        return Sheet("", ((number, [line]) for number, line in enumerate(lines, 1)))
    return Sheet("", split_lines(lines), wording.LINES_SPLIT)


def _separator(sample: str) -> str:
    """The separator with which a row has titles, or else most rows have the same width; blank without one."""
    # Texts of our own export may look like titles with another separator.
    if sample.startswith(_OWN_EXPORT):
        return ";"
    lines = [line for line in sample.splitlines()[:SAMPLE_ROWS] if line.strip()]
    # An address has commas. So they part the cells only below titles, or beside NIMs that stand alone.
    are_cells = not any(map(str.isdigit, "".join(lines[:1]))) or any(map(_has_nim, lines))

    def score(separator: str) -> tuple[bool, int]:
        rows = [*islice(_reader(io.StringIO(sample, newline=""), separator, sample), SAMPLE_ROWS)]
        widths = Counter(len(row) for row in rows if len(row) > 1)
        alike = max(widths.values(), default=0) * (are_cells or separator != ",")
        return any(map(are_titles, rows)), alike

    (has_titles, alike), best = max((score(mark), mark) for mark in ",|\t;")
    return best if has_titles or 10 * alike >= 9 * len(lines) else ""


def _reader(lines: Iterable[str], separator: str, sample: str) -> Iterator[list[str]]:
    is_escaped = _escaped_quote(sample) is not None and not _doubled_quote(sample)
    return csv.reader(
        lines,
        delimiter=separator,
        doublequote=not is_escaped,
        escapechar="\\" if is_escaped else None,
        skipinitialspace=f'{separator} "' in sample,
    )


def _without_entities(lines: Iterable[str]) -> Iterator[str]:
    """The lines, with entities of a web page as letters, because each ends with a semicolon. Quoted cells keep theirs."""
    is_open = False
    for line in lines:
        if '"' in line:
            is_open ^= line.count('"') % 2 == 1
        yield unescaped(line) if "&" in line and '"' not in line and not is_open else line


def _rows(lines: Iterable[str], separator: str, sample: str) -> Iterator[Row]:
    """The rows of CSV. A cell with line breaks belongs to one row, as in Excel."""
    number = 0
    try:
        # A mark stands alone in the last row, unless a quote is open.
        for cells in _reader(chain(_without_entities(lines), [MARKS]), separator, sample):
            number += 1
            if cells == [MARKS]:
                return
            has_guard = "'" in "".join(cells)
            yield number, [_unguard("", cell) for cell in cells] if has_guard else cells
    except csv.Error:  # also for a cell that is longer than any real one
        number += 1
    raise Refused(wording.OPEN_QUOTE.format(row=number))
