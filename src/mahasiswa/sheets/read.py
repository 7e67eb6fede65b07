"""Reads a file of a stranger: the child process that fills the stage of an upload, and the tables of a file for the command line.

The child is `python -P -m mahasiswa.sheets.read STAGE OPTIONS`, with the file as its standard input. It has
no password and no connection, and bounds itself. It ends with 0 if it has filled the stage, perhaps with
the reason why the file cannot be read. See `stage` for other codes. Any other end: the file is too heavy.
"""

import io
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

from mahasiswa import wording
from mahasiswa.sheets import rules
from mahasiswa.sheets.biff import biff_rows
from mahasiswa.sheets.cells import KeptRow, Refused, Sheet, is_blank, text_of
from mahasiswa.sheets.columns import TITLES_MAX, Columns, fields_of, find, part_of, texts_of
from mahasiswa.sheets.delimited import read_text
from mahasiswa.sheets.file_kind import encoding_of, kind_of
from mahasiswa.sheets.html_table import html_rows
from mahasiswa.sheets.rules import OTHER_TITLES, JudgedLine
from mahasiswa.sheets.stage import (
    EXIT_DISK_FULL,
    EXIT_STALE,
    Stage,
    StagedSheet,
    Stale,
)
from mahasiswa.sheets.workbook import read_workbook, undamaged
from mahasiswa.system.child import bound

UPLOAD_MAX_ROWS = 10_000  # lines of all sheets that are read
ROWS_MAX = UPLOAD_MAX_ROWS + 100  # of a sheet, with its titles and signatures
MEMORY_BYTES = 512 << 20
PROCESSOR_SECONDS = 20
FILE_MAX_BYTES = 16 << 20

TOP_ROWS = 200  # rows of a sheet in which titles and doubts about the columns are looked for
EXAMPLES = 3
_OF_EXAMPLES = ("contoh", "petunjuk", "panduan", "example", "referensi")  # names of sheets


def tables_of(
    file: BinaryIO, *, nim_only: bool = False
) -> Iterator[tuple[str, Iterable[KeptRow], Columns]]:
    """The sheets that have rows, of a seekable file of any kind: name, rows and columns of each.

    Each must be read before the next. Raises Refused and TooHeavy.
    """
    for sheet in _sheets(file, nim_only=nim_only):
        hidden = sheet.hidden
        rows = ((number, row, number in hidden) for number, row in sheet.rows if not is_blank(row))
        if top := list(islice(rows, TOP_ROWS)):
            columns = find(top)
            doubt = "" if nim_only else columns.doubt
            if sheet.is_split:
                doubt = wording.LINES_SPLIT
            for column in columns.of.keys() & {*sheet.hidden_columns}:
                doubt = wording.HIDDEN_COLUMN.format(column=wording.column_letter(column))
            yield sheet.name, chain(top, rows), columns._replace(doubt=doubt)


def _sheets(file: BinaryIO, *, nim_only: bool) -> Iterable[Sheet]:
    kind = kind_of(file)
    if kind == "workbook":
        return undamaged(read_workbook(file))
    if kind == "biff":
        return [Sheet("", undamaged(biff_rows(file.read())))]
    if kind == "html":
        return [Sheet("", enumerate(html_rows(file), 1))]
    text = io.TextIOWrapper(file, encoding_of(file), errors="replace", newline="")
    return [read_text(text, nim_only=nim_only)]


def fill(stage: Stage, file: BinaryIO, *, nim_only: bool) -> None:
    """Put the sheets of a file into its stage. Raises Refused and TooHeavy."""
    sheets = []
    for at, (name, rows, columns) in enumerate(tables_of(file, nim_only=nim_only)):
        kept = list(islice(rows, ROWS_MAX))
        body = [row for number, row, _ in kept[:TOP_ROWS] if number > columns.header]
        width = min(max(map(len, body), default=0), TITLES_MAX)
        examples = [texts_of(body, column)[:EXAMPLES] for column in range(width)]
        staged = StagedSheet(at, name, *columns[:2], examples, *columns[2:], is_read=True)
        sheets.append((staged, kept))
    if not sheets:
        raise Refused(wording.EMPTY)
    stage.put_sheets(sheets)


def is_example(name: str) -> bool:
    """Whether a sheet of this name holds examples or instructions."""
    return name.casefold().startswith(_OF_EXAMPLES)


def put_lines(stage: Stage, options: Mapping[str, Any]) -> None:
    """Judge the rows of the sheets that are read, in the columns that a person has chosen, if any. Raises Refused and Stale."""
    judged = [
        _judged(stage, sheet, options) for sheet in _chosen(stage.sheets(), options["choice"])
    ]
    sheets = [sheet for sheet, _ in judged]
    lines = [(sheet.id, *line) for sheet, found in judged for line in found]
    must_choose = any(sheet.is_read and sheet.doubt for sheet in sheets)
    if len(lines) > UPLOAD_MAX_ROWS:
        raise Refused(wording.TOO_MANY_ROWS.format(limit=wording.number(UPLOAD_MAX_ROWS)))
    if not (lines or must_choose):
        raise Refused(wording.NO_ROWS)
    stage.put_lines(sheets, [] if must_choose else lines, options["version"])


def _chosen(
    sheets: Sequence[StagedSheet], choice: Mapping[str, Any] | None
) -> Iterator[StagedSheet]:
    """The sheets as a person reads them, or else those whose titles name the most fields, without those of examples."""
    best = max(map(_rank, sheets))
    for sheet in sheets:
        if not choice:
            yield sheet._replace(is_read=_rank(sheet) == best)
            continue
        of_sheet = choice["sheets"][str(sheet.id)]
        columns = {int(column): part for column, part in of_sheet["columns"].items()}
        # Every column may have texts.
        titles = [title or wording.UNTITLED for title in sheet.titles]
        yield sheet._replace(columns=columns, titles=titles, doubt="", is_read=of_sheet["is_read"])


def _rank(sheet: StagedSheet) -> int:
    return len(fields_of(sheet.columns)) * (not is_example(sheet.name))


def _judged(
    stage: Stage, sheet: StagedSheet, options: Mapping[str, Any]
) -> tuple[StagedSheet, Sequence[JudgedLine]]:
    """A sheet, perhaps with a doubt about its columns, and its lines if they are read.

    Those of a selection have a NIM, and perhaps a name. Without a column of NIMs, each row is one text.
    """
    if sheet.doubt or not sheet.is_read:
        return sheet, []
    rows = stage.rows(sheet.id)
    columns = Columns(sheet.header, sheet.titles, sheet.columns)
    if "nim" not in fields_of(sheet.columns):
        columns = Columns(0, [""], {0: "nim"})
        rows = [(number, [" ".join(map(text_of, row))], hidden) for number, row, hidden in rows]
    lines = list(rules.lines(rows, columns))
    if stage.facts().purpose == "pilih":
        return sheet, [
            line._replace(alamat="", own="hidden" * ("hidden" in line.own), skipped="")
            for line in lines
            if line.nim and not part_of(line.nim)
        ]
    others = [line.number for line in lines if line.own == OTHER_TITLES]
    if others and not options["choice"]:
        sheet = sheet._replace(doubt=wording.OTHER_TITLES.format(row=others[0]))
    return sheet, lines


def main(path: str, options_json: str) -> int:
    """Fill a stage, as the module says; return the exit code."""
    bound(MEMORY_BYTES, PROCESSOR_SECONDS, FILE_MAX_BYTES)
    options = json.loads(options_json)
    try:
        with Stage(Path(path)) as stage:
            try:
                if not options["choice"]:
                    nim_only = stage.facts().purpose == "pilih"
                    fill(stage, sys.stdin.buffer, nim_only=nim_only)
                put_lines(stage, options)
            except Refused as error:
                stage.do("fail", [(str(error),)])
    except Stale:
        return EXIT_STALE
    except OSError:
        return EXIT_DISK_FULL
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
