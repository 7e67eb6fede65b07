"""Reads a file of a stranger: the child process that fills the stage of an upload, and the tables of a file for the command line.

The child is `python -P -m mahasiswa.sheets.read STAGE OPTIONS`, with the file as its standard input. It has
no password and no connection, and bounds itself. It ends with 0 if it has filled the stage, perhaps with
the reason why the file cannot be read. See `stage` for other codes. Any other end: the file is too heavy.
"""

import io
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any, BinaryIO

from mahasiswa import wording
from mahasiswa.record import FIELDS
from mahasiswa.sheets.biff import biff_rows
from mahasiswa.sheets.cells import Refused, Row, Sheet, is_blank, text_of
from mahasiswa.sheets.columns import TITLES_MAX, Columns, fields_of, find, join, measured, part_of
from mahasiswa.sheets.delimited import read_text
from mahasiswa.sheets.file_kind import encoding_of, kind_of
from mahasiswa.sheets.html_table import html_rows
from mahasiswa.sheets.rules import OTHER_TITLES, Judge, JudgedLine, cleaned
from mahasiswa.sheets.stage import EXIT_DISK_FULL, EXIT_STALE, Kept, Stage, StagedSheet, Stale
from mahasiswa.sheets.workbook import read_workbook, undamaged
from mahasiswa.system.child import bound

UPLOAD_MAX_ROWS = 10_000  # lines of all sheets that are read
ROWS_MAX = UPLOAD_MAX_ROWS + 100  # of a sheet, with its titles and signatures
MEMORY_BYTES = 512 << 20
PROCESSOR_SECONDS = 20
FILE_MAX_BYTES = 16 << 20

TOP_ROWS = 200  # rows of a sheet in which titles and doubts about the columns are looked for
EXAMPLES, EXAMPLE_MAX_CHARACTERS = 3, 60
_OF_EXAMPLES = ("contoh", "petunjuk", "panduan", "example", "referensi")  # names of sheets


def sheets_of(file: BinaryIO, *, nim_only: bool = False) -> Iterator[Sheet]:
    """The sheets of a seekable file of any kind. Each must be read before the next. Raises Refused and TooHeavy."""
    if not file.seek(0, os.SEEK_END):
        raise Refused(wording.EMPTY_FILE)
    file.seek(0)
    kind = kind_of(file)
    if kind == "workbook":
        sheets = undamaged(read_workbook(file))
    elif kind == "biff":
        sheets = iter([Sheet("", undamaged(biff_rows(file.read())))])
    elif kind == "html":
        sheets = iter([Sheet("", enumerate(html_rows(file), 1))])
    else:
        text = io.TextIOWrapper(file, encoding_of(file), errors="replace", newline="")
        sheets = iter([read_text(text, nim_only=nim_only)])
    for sheet in sheets:
        yield sheet._replace(rows=(row for row in sheet.rows if not is_blank(row[1])))


def tables_of(file: BinaryIO, *, nim_only: bool = False) -> Iterator[tuple[Sheet, Columns]]:
    """The sheets that have rows, each with its columns. Raises as `sheets_of` does."""
    for sheet in sheets_of(file, nim_only=nim_only):
        rows = iter(sheet.rows)
        if top := list(islice(rows, TOP_ROWS)):
            columns = _columns(sheet, top, nim_only=nim_only)
            yield sheet._replace(rows=chain(top, rows)), columns


def _columns(sheet: Sheet, top: Sequence[Row], *, nim_only: bool) -> Columns:
    columns = find(top, nim_only=nim_only)
    if sheet.is_split:
        columns = Columns(0, wording.HEADER, dict(enumerate(FIELDS)), doubt=wording.LINES_SPLIT)
    hidden = [column for column in sheet.hidden_columns if column in columns.of]
    doubt = "" if nim_only else columns.doubt
    if hidden:
        doubt = doubt or wording.HIDDEN_COLUMN.format(column=wording.column_letter(hidden[0]))
    return columns._replace(doubt=doubt)


def fill(stage: Stage, file: BinaryIO, *, nim_only: bool) -> None:
    """Put the sheets of a file into its stage. Raises Refused and TooHeavy."""
    kept: list[tuple[StagedSheet, Kept]] = []
    for at, (sheet, columns) in enumerate(tables_of(file, nim_only=nim_only)):
        rows = list(islice(sheet.rows, ROWS_MAX))
        staged = _staged(at, sheet.name, columns, rows[:TOP_ROWS])
        kept.append((staged, [(number, cells, number in sheet.hidden) for number, cells in rows]))
    if not kept:
        raise Refused(wording.EMPTY)
    read = _with_titles([staged for staged, _ in kept])
    stage.put_sheets((staged._replace(is_read=staged in read), rows) for staged, rows in kept)


def _staged(at: int, name: str, columns: Columns, top: Sequence[Row]) -> StagedSheet:
    body = (row[:TITLES_MAX] for number, row in top if number > columns.header)
    examples = [
        list(
            islice(
                filter(None, (text_of(cell).strip()[:EXAMPLE_MAX_CHARACTERS] for cell in column)),
                EXAMPLES,
            )
        )
        for column in zip_longest(*body)
    ]
    return StagedSheet(
        at, name, columns.header, columns.titles, examples, columns.of, columns.doubt, is_read=True
    )


def is_example(name: str) -> bool:
    """Whether a sheet of this name holds examples or instructions."""
    return name.casefold().startswith(_OF_EXAMPLES)


def _with_titles(sheets: Sequence[StagedSheet]) -> Sequence[StagedSheet]:
    """The sheets whose titles name the most fields, without those of examples; or else the first sheet."""
    real = [sheet for sheet in sheets if not is_example(sheet.name)]
    fields = [len(fields_of(sheet.columns)) for sheet in real or sheets]
    most = [
        sheet for sheet, count in zip(real or sheets, fields, strict=True) if count == max(fields)
    ]
    return most if max(fields) > 1 or not most[0].doubt else most[:1]


def put_lines(stage: Stage, options: Mapping[str, Any]) -> None:
    """Judge the rows of the sheets that are read, in the columns that a person has chosen, if any. Raises Refused and Stale."""
    purpose = stage.facts().purpose
    choices = (options["choice"] or {"sheets": {}})["sheets"]
    judge = Judge()
    sheets: list[StagedSheet] = []
    lines: list[Sequence[object]] = []
    for found in stage.sheets():
        sheet = found
        if choice := choices.get(str(found.id)):
            columns = {
                int(column): choice["columns"][column]
                for column in sorted(choice["columns"], key=int)
            }
            sheet = found._replace(columns=columns, is_read=choice["is_read"], doubt="")
        if sheet.is_read and not sheet.doubt:
            rows = stage.rows(sheet.id)
            of_sheet = _picked(sheet, rows) if purpose == "pilih" else _judged(sheet, rows, judge)
            for line in of_sheet:
                lines.append((sheet.id, *line))
                if line.own == OTHER_TITLES and not choice:
                    sheet = sheet._replace(doubt=wording.OTHER_TITLES.format(row=line.number))
        sheets.append(sheet)

    must_choose = any(sheet.is_read and sheet.doubt for sheet in sheets)
    if len(lines) > UPLOAD_MAX_ROWS:
        raise Refused(wording.TOO_MANY_ROWS.format(limit=wording.number(UPLOAD_MAX_ROWS)))
    if not (lines or must_choose):
        raise Refused(wording.NO_ROWS)
    stage.put_lines(sheets, [] if must_choose else lines, options["version"])


def _judged(sheet: StagedSheet, rows: Kept, judge: Judge) -> Iterator[JudgedLine]:
    pairs = [(number, cells) for number, cells, _ in rows]
    columns = measured(Columns(sheet.header, sheet.titles, sheet.columns), pairs[:TOP_ROWS])
    return judge.lines(pairs, columns, {number for number, _, is_hidden in rows if is_hidden})


def _picked(sheet: StagedSheet, rows: Kept) -> Iterator[JudgedLine]:
    """The NIMs of a column, with their names if the file has some; or each line as it is."""
    for number, cells, is_hidden in rows:
        nim, nama, _ = map(cleaned, join(cells, sheet.columns))
        if not sheet.columns:
            nim = " ".join(filter(None, map(cleaned, cells)))
        if number > sheet.header and nim and not part_of(nim):
            yield JudgedLine(number, nim, nama, "", "hidden" if is_hidden else "")


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
