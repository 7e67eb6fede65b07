"""Reads CSV files of any encoding and separator, and cells that were copied from a spreadsheet and pasted."""

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
from mahasiswa.sheets.columns import Cell, SheetRow, is_header, select_columns
from mahasiswa.sheets.errors import SheetError

GUARD = "'"
"""Our export puts this before a text that a spreadsheet would take for a formula."""

GUARDED = frozenset("=+-@\t\r\n＝＋－＠'")
"""The first characters of texts that are guarded. The apostrophe is one, so the guard differs from a text's own."""

SAMPLE_BYTES = 1 << 16
SAMPLE_ROWS = 100
BATCH_ROWS = 1000
CHECK_BYTES = 1 << 20

_SEPARATORS = ";\t,"
_END = "\0the end of the file\0"


@contextmanager
def read_csv(file: BinaryIO) -> Iterator[Iterator[SheetRow]]:
    """The rows of a seekable CSV file, in bounded memory. The file stays open.

    Raises SheetError: at once for a file that cannot be read, and while the rows are read for a quote that never ends.
    """
    text = io.TextIOWrapper(file, encoding=_encoding(file), newline="")
    try:
        yield _rows(text, _sample(text))
    finally:
        text.detach()


def read_pasted(text: str) -> Iterator[SheetRow]:
    """The rows of cells pasted from Excel, or of pasted CSV. Raises SheetError as `read_csv` does."""
    if not text.strip():
        raise SheetError(wording.EMPTY_PASTE)
    if re.search("[\ud800-\udfff]", text):
        raise SheetError(wording.BROKEN_PASTE)
    if "\t" in text:
        return select_columns(enumerate(_pasted_rows(text), 1))
    return _rows(io.StringIO(text, newline=""), text[:SAMPLE_BYTES])


def _sample(text: io.TextIOWrapper) -> str:
    try:
        return text.read(SAMPLE_BYTES)
    except UnicodeDecodeError as error:
        raise SheetError(wording.NOT_A_SPREADSHEET) from error
    finally:
        text.seek(0)


def _rows(lines: io.TextIOBase, sample: str) -> Iterator[SheetRow]:
    # Excel reads a first line `sep=;` as an instruction and counts the rows after it.
    instruction = re.match(r"sep=(.)\r?\n", sample, re.IGNORECASE)
    if instruction:
        lines.readline()
    separator = instruction[1] if instruction else _separator(sample)
    return _without_guards(select_columns(_numbered(lines, separator)))


def _without_guards(rows: Iterable[SheetRow]) -> Iterator[SheetRow]:
    for row in rows:
        number, nim, nama, alamat = row
        try:
            # One comparison is enough for nearly all cells: the guard sorts before `(`, letters and digits after it.
            plain = nim >= "(" and nama >= "(" and alamat >= "("  # type: ignore[operator]
        except TypeError:  # a cell is None, because the file has no such column
            plain = False
        yield row if plain else (number, _unguarded(nim), _unguarded(nama), _unguarded(alamat))


def _unguarded(cell: Cell) -> Cell:
    return cell[1:] if isinstance(cell, str) and cell[:1] == GUARD and cell[1:2] in GUARDED else cell


def _numbered(lines: Iterable[str], separator: str) -> Iterator[tuple[int, list[str]]]:
    """Each row with its number. A cell with line breaks belongs to one row, as in Excel."""
    # Python's reader takes a quote that never ends for one huge cell. It swallows the line that we add as the last one,
    # so that line is missing. The reader's strict mode would refuse other files that Excel reads.
    reader = csv.reader(chain(lines, [_END]), delimiter=separator)
    number = 1
    while True:
        batch: list[list[str]] = []
        try:
            batch.extend(islice(reader, BATCH_ROWS))
        except csv.Error as error:
            raise SheetError(wording.OPEN_QUOTE.format(row=number + len(batch))) from error
        except UnicodeDecodeError as error:
            raise SheetError(wording.NOT_A_SPREADSHEET) from error
        if not batch:
            raise SheetError(wording.OPEN_QUOTE.format(row=number - 1))
        ended = batch[-1] == [_END]
        yield from enumerate(batch[:-1] if ended else batch, number)
        if ended:
            return
        number += len(batch)


def _separator(sample: str) -> str:
    """The separator with which the sample has a header; otherwise the one that gives most rows the same width."""
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


def _encoding(file: BinaryIO) -> str:
    """UTF-8 or UTF-16 by the byte order mark, UTF-8 if the whole file is valid UTF-8, otherwise Windows-1252."""
    file.seek(0)
    start = file.read(SAMPLE_BYTES)
    file.seek(0)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if not start.strip():
        raise SheetError(wording.EMPTY)
    if b"\0" in start:
        raise SheetError(wording.NOT_A_SPREADSHEET)
    if re.match(rb"(?:\xef\xbb\xbf)?\s*<[a-z!?]", start, re.IGNORECASE):
        raise SheetError(wording.WEB_PAGE)
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        while chunk := file.read(CHECK_BYTES):
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return "windows-1252"
    finally:
        file.seek(0)
    return "utf-8-sig"


# Excel puts a copied cell in quotes only if it holds a line break, a tab or a quote. Any other quote is the text's own.
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
    """The cell that begins at this index, and the index of its end."""
    quoted = _QUOTED.match(text, at)
    if quoted and re.search(r'[\t\r\n]|""', quoted[1]):
        return re.sub(r"\r\n?", "\n", quoted[1].replace('""', '"')), quoted.end()
    end = _CELL_END.search(text, at)
    stop = end.start() if end else len(text)
    return text[at:stop], stop
