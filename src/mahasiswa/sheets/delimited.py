"""Reads CSV files as they come from anywhere, and cells pasted from a spreadsheet."""

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import BinaryIO

from mahasiswa import wording
from mahasiswa.sheets.columns import Cell, Raw, names_columns, pick
from mahasiswa.sheets.errors import Empty, NotASpreadsheet, OpenQuote

# A spreadsheet that opens a CSV takes a text that begins with one of these for a formula. An apostrophe before it
# prevents that; so that the guard can be told from a text's own apostrophe, that is guarded as well.
GUARD = "'"
GUARDED = frozenset("=+-@\t\r\n＝＋－＠'")

_SAMPLE = 1 << 16  # bytes, or characters
_SEPARATORS = ";\t,"
_SAMPLE_ROWS = 100
_END = "\0the end of the file\0"


@contextmanager
def read_csv(file: BinaryIO) -> Iterator[Iterator[Raw]]:
    """The rows of a seekable CSV file, in bounded memory; the file stays open.

    Raises Empty, NoColumns and NotASpreadsheet at once, OpenQuote perhaps only while the rows are read.
    """
    text = io.TextIOWrapper(file, encoding=_encoding(file), newline="")
    try:
        yield _picked(text, _start(text))
    finally:
        text.detach()


def read_pasted(text: str) -> Iterator[Raw]:
    """The rows of cells pasted from Excel, or of CSV pasted as text. Raises what `read_csv` raises."""
    if not text.strip():
        raise Empty(wording.EMPTY_PASTE)
    if re.search("[\ud800-\udfff]", text):
        raise NotASpreadsheet(wording.BROKEN_PASTE)
    if "\t" in text:
        return pick(enumerate(_pasted_rows(text), 1))
    return _picked(io.StringIO(text, newline=""), text[:_SAMPLE])


def unguarded(text: str) -> str:
    """A CSV cell without the guard that our own export put before it."""
    return text[1:] if text[:1] == GUARD and text[1:2] in GUARDED else text


def _start(text: io.TextIOWrapper) -> str:
    try:
        return text.read(_SAMPLE)
    except UnicodeDecodeError as error:
        raise NotASpreadsheet(wording.NOT_A_SPREADSHEET) from error
    finally:
        text.seek(0)


def _picked(lines: io.TextIOBase, sample: str) -> Iterator[Raw]:
    # Excel takes a first line `sep=;` for an instruction, and counts the rows after it.
    instruction = re.match(r"sep=(.)\r?\n", sample, re.IGNORECASE)
    if instruction:
        lines.readline()
    separator = instruction[1] if instruction else _separator(sample)
    return _without_guards(pick(_numbered(lines, separator)))


def _without_guards(rows: Iterable[Raw]) -> Iterator[Raw]:
    for row in rows:
        number, nim, nama, alamat = row
        try:
            # One quick comparison for almost all cells: no letter and no digit stands before `(`.
            plain = nim >= "(" and nama >= "(" and alamat >= "("  # type: ignore[operator]
        except TypeError:  # the file has no such column
            plain = False
        yield row if plain else (number, _unguarded(nim), _unguarded(nama), _unguarded(alamat))


def _unguarded(cell: Cell) -> Cell:
    return unguarded(cell) if isinstance(cell, str) else cell


def _numbered(lines: Iterable[str], separator: str) -> Iterator[tuple[int, list[str]]]:
    """Each record with its row number. A cell with line breaks is one row, as in Excel."""
    # Without strict mode Python's reader takes a quote that is never closed for one huge cell. A last line of our own
    # shows it: the quote would have swallowed that as well.
    reader = csv.reader(chain(lines, [_END]), delimiter=separator)
    number = 1
    while True:
        batch: list[list[str]] = []
        try:
            batch.extend(islice(reader, 1000))
        except csv.Error as error:
            raise OpenQuote(wording.open_quote(number + len(batch))) from error
        except UnicodeDecodeError as error:
            raise NotASpreadsheet(wording.NOT_A_SPREADSHEET) from error
        if not batch:
            raise OpenQuote(wording.open_quote(number - 1))
        ended = batch[-1] == [_END]
        yield from enumerate(batch[:-1] if ended else batch, number)
        if ended:
            return
        number += len(batch)


def _separator(sample: str) -> str:
    """The separator with which the sample has a header; else the one that most often makes rows of the same width."""
    whole_lines = sample[: sample.rfind("\n") + 1] if len(sample) >= _SAMPLE else sample

    def score(separator: str) -> tuple[bool, int]:
        reader = csv.reader(io.StringIO(whole_lines, newline=""), delimiter=separator)
        rows = [row for row in islice(reader, _SAMPLE_ROWS) if any(row)]
        widths = Counter(len(row) for row in rows if len(row) > 1)
        return any(map(names_columns, rows)), max(widths.values(), default=0)

    try:
        return max(_SEPARATORS, key=score)
    except csv.Error:
        return _SEPARATORS[0]


def _encoding(file: BinaryIO) -> str:
    """UTF-8 or UTF-16 by its mark, UTF-8 where all of the file is UTF-8, else Windows-1252."""
    file.seek(0)
    start = file.read(_SAMPLE)
    file.seek(0)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if not start.strip():
        raise Empty(wording.EMPTY)
    if b"\0" in start:
        raise NotASpreadsheet(wording.NOT_A_SPREADSHEET)
    if re.match(rb"(?:\xef\xbb\xbf)?\s*<[a-z!?]", start, re.IGNORECASE):
        raise NotASpreadsheet(wording.WEB_PAGE)
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        while chunk := file.read(1 << 20):
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return "windows-1252"
    finally:
        file.seek(0)
    return "utf-8-sig"


# A pasted cell is in quotes only where it holds a line break, a tab or a doubled quote; any other quote is the text's own.
_QUOTED = re.compile(r'"([^"]*+(?:""[^"]*+)*+)"(?=[\t\r\n]|\Z)')
_CELL_END = re.compile(r"[\t\r\n]")


def _pasted_rows(text: str) -> Iterator[Sequence[str]]:
    row: list[str] = []
    at = 0
    while at < len(text):
        cell, at = _pasted_cell(text, at)
        row.append(cell)
        if not text.startswith("\t", at):
            yield row
            row = []
        at += 2 if text.startswith("\r\n", at) else 1
    if row:
        yield row


def _pasted_cell(text: str, at: int) -> tuple[str, int]:
    """The cell that begins at a place in the text, and where it ends."""
    quoted = _QUOTED.match(text, at)
    if quoted and re.search(r'[\t\r\n]|""', quoted[1]):
        return re.sub(r"\r\n?", "\n", quoted[1].replace('""', '"')), quoted.end()
    end = _CELL_END.search(text, at)
    stop = end.start() if end else len(text)
    return text[at:stop], stop
