"""Reads a file of a stranger: the child process that fills the stage of an upload, and the lines for the command line.

The child is `python -P -m mahasiswa.intake.read STAGE OPTIONS`, with the file as its standard input. It has
no password and no connection, and sets limits on itself. Exit code 0: it has filled the stage, perhaps
with a sentence why the file cannot be read. 3: another page has changed the stage. Any other end: the
file is too big.
"""

import json
import os
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from mahasiswa import wording
from mahasiswa.intake.cells import Cell, Refused, Row, Sheet, TooHeavy, is_blank, text_of
from mahasiswa.intake.columns import TITLES_MAX, Columns, find, join, part_of
from mahasiswa.intake.delimited import read_pasted, read_text
from mahasiswa.intake.file_kind import kind_of
from mahasiswa.intake.html_table import html_rows
from mahasiswa.intake.rules import Judge, JudgedLine, OtherTitles, cleaned, judge
from mahasiswa.intake.stage import EXIT_DISK_FULL, EXIT_STALE, Line, Stage, StagedSheet, Stale
from mahasiswa.intake.stage import TooHeavy as StageTooHeavy
from mahasiswa.intake.workbook import read_workbook
from mahasiswa.record import FIELDS
from mahasiswa.system.child import bound

UPLOAD_MAX_ROWS = 10_000  # lines of all sheets that are read
ROWS_MAX = UPLOAD_MAX_ROWS + 100  # of a sheet, with titles and signatures
PASTED_MAX_BYTES = 1 << 20
MEMORY_BYTES = 512 << 20
PROCESSOR_SECONDS = 20
FILE_MAX_BYTES = 16 << 20
EXIT_TOO_HEAVY = 1

TOP_ROWS = 200  # rows of a sheet in which titles and doubts about the columns are looked for
EXAMPLES, EXAMPLE_MAX_CHARACTERS = 3, 60
_SHEETS_OF_EXAMPLES = ("contoh", "petunjuk", "panduan", "example", "format", "referensi")


def sheets_of(file: BinaryIO, *, nim_only: bool = False) -> Iterator[Sheet]:
    """The sheets of a seekable file of any kind. Each must be read before the next. Raises Refused and TooHeavy."""
    if not file.seek(0, os.SEEK_END):
        raise Refused(wording.EMPTY_FILE)
    kind = kind_of(file)
    file.seek(0)
    if kind in ("workbook", "biff"):
        return read_workbook(file, is_bare=kind == "biff")
    if kind == "html":
        rows = html_rows(file)
        if not rows:
            raise Refused(wording.WEB_PAGE)
        return iter(
            [Sheet("", ((number, row) for number, row in enumerate(rows, 1) if not is_blank(row)))]
        )
    return iter([read_text(file, nim_only=nim_only)])


def import_lines(file: BinaryIO) -> Iterator[JudgedLine]:
    """The lines of a file of any length, one by one, for the command line. Raises Refused if a person must choose columns."""
    judge = Judge()
    for sheet in sheets_of(file):
        rows = iter(sheet.rows)
        top = list(islice(rows, TOP_ROWS))
        columns = find(top)
        if columns.doubt:
            raise Refused(columns.doubt)
        yield from judge.lines(chain(top, rows), columns, sheet.hidden)


class _Read(NamedTuple):
    """A sheet as it is kept, with its rows and the columns that its titles name."""

    staged: StagedSheet
    rows: Sequence[Row]
    hidden: Collection[int]
    columns: Columns


def fill(stage: Stage, file: BinaryIO, options: Mapping[str, Any]) -> None:
    """Read a file into its stage. Raises Refused and TooHeavy."""
    nim_only = options["purpose"] == "pilih"
    if options["pasted"]:
        text = file.read(PASTED_MAX_BYTES).decode("utf-8", "replace")
        sheets = iter([read_pasted(text, nim_only=nim_only)])
    else:
        sheets = sheets_of(file, nim_only=nim_only)
    found = [_read(at, sheet, nim_only=nim_only) for at, sheet in enumerate(sheets)]
    read = _chosen([sheet for sheet in found if sheet.rows])
    if not read:
        raise Refused(wording.EMPTY)
    lines = list(_picked(read) if nim_only else _judged(read))
    if len(lines) > UPLOAD_MAX_ROWS:
        raise Refused(wording.TOO_MANY_ROWS.format(limit=wording.number(UPLOAD_MAX_ROWS)))
    if not (lines or any(sheet.staged.doubt for sheet in read)):
        raise Refused(wording.NO_ROWS)
    stage.put_sheets((sheet.staged, sheet.rows, frozenset(sheet.hidden)) for sheet in read)
    stage.put_lines([sheet.staged for sheet in read], lines, options["version"])


def _read(at: int, sheet: Sheet, *, nim_only: bool) -> _Read:
    rows = list(islice(sheet.rows, ROWS_MAX))
    columns = find(rows[:TOP_ROWS], nim_only=nim_only)
    hidden = [column for column in sheet.hidden_columns if column in columns.of]
    if sheet.is_split:
        columns = Columns(
            0, wording.HEADER, dict(enumerate(FIELDS)), len(FIELDS), wording.LINES_SPLIT
        )
    elif hidden and not columns.doubt:
        letter = wording.column_letter(hidden[0])
        columns = columns._replace(doubt=wording.HIDDEN_COLUMN.format(column=letter))
    body = [row for number, row in rows[:TOP_ROWS] if number > columns.header]
    staged = StagedSheet(
        at,
        sheet.name,
        columns.header,
        columns.titles,
        _examples(body),
        columns.of,
        columns.doubt,
        is_read=True,
    )
    return _Read(staged, rows, sheet.hidden, columns)


def _examples(body: Sequence[Sequence[Cell]]) -> list[list[str]]:
    """The first texts of each column."""
    columns = zip_longest(*(row[:TITLES_MAX] for row in body))
    texts = (
        [text_of(cell).strip()[:EXAMPLE_MAX_CHARACTERS] for cell in column] for column in columns
    )
    return [list(islice(filter(None, of_column), EXAMPLES)) for of_column in texts]


def _chosen(found: Sequence[_Read]) -> list[_Read]:
    """All sheets. Read are those with sure titles, and those that have titles about which a person must decide."""
    real = [
        sheet for sheet in found if not sheet.staged.name.casefold().startswith(_SHEETS_OF_EXAMPLES)
    ]
    titled = [sheet for sheet in real if len(sheet.columns.fields()) > 1] or real or found
    whole = [sheet for sheet in titled if len(sheet.columns.fields()) == len(FIELDS)]
    names = {sheet.staged.id for sheet in whole or titled[:1]}
    return [
        sheet._replace(staged=sheet.staged._replace(is_read=sheet.staged.id in names))
        for sheet in found
    ]


def _judged(read: list[_Read]) -> Iterator[Line]:
    """The lines of the sheets that are read, unless a person must choose columns. Puts a doubt into `read`."""
    judge = Judge()
    lines: list[Line] = []
    for at, (staged, rows, hidden, columns) in enumerate(read):
        if not staged.is_read or staged.doubt:
            continue
        try:
            lines += (Line(staged.id, *line) for line in judge.lines(rows, columns, hidden))
        except OtherTitles as error:
            doubt = wording.OTHER_TITLES.format(row=error.args[0])
            read[at] = read[at]._replace(staged=staged._replace(doubt=doubt))
    must_choose = any(sheet.staged.doubt and sheet.staged.is_read for sheet in read)
    return iter(() if must_choose else lines)


def _picked(read: list[_Read]) -> Iterator[Line]:
    """The NIMs of a column, or each line of a text as it is."""
    with_nims = [sheet for sheet in read if sheet.columns.of]
    for staged, rows, _, columns in with_nims or read:
        for number, row in rows:
            nim, nama, _ = join(row, columns.of)
            if not columns.of:
                nim, nama = " ".join(filter(None, map(cleaned, row))), None
            if number > columns.header and not is_blank([nim]) and not part_of(nim):
                yield Line(staged.id, number, *judge(nim, nama, "")[:2], "")


def choose(stage: Stage, choice: Mapping[str, Any], version: int) -> None:
    """Read the rows of a stage again, with the columns that a person has chosen; raise Stale."""
    judge = Judge()
    sheets: list[StagedSheet] = []
    lines: list[Line] = []
    for found in stage.sheets():
        sheet = found
        if chosen := choice["sheets"].get(str(found.id)):
            columns = {int(index): part for index, part in chosen["columns"].items()}
            sheet = found._replace(columns=columns, doubt="", is_read=chosen["is_read"])
        sheets.append(sheet)
        if sheet.is_read and not sheet.doubt:
            lines += _reread(stage, sheet, judge)
    if any(sheet.is_read and sheet.doubt for sheet in sheets):
        lines = []
    if len(lines) > UPLOAD_MAX_ROWS:
        raise Refused(wording.TOO_MANY_ROWS.format(limit=wording.number(UPLOAD_MAX_ROWS)))
    stage.put_lines(sheets, lines, version)


def _reread(stage: Stage, sheet: StagedSheet, judge: Judge) -> Iterator[Line]:
    kept = list(stage.rows(sheet.id))
    rows = [(number, cells) for number, cells, _ in kept]
    width = max(len(sheet.titles), *(column + 1 for column in sheet.columns))
    longer = sum(not is_blank(cells[width:]) for _, cells in rows)
    if 2 * longer > len(rows):
        width = max(len(cells) for _, cells in rows)
    columns = Columns(sheet.header, sheet.titles, sheet.columns, width)
    hidden = {number for number, _, is_hidden in kept if is_hidden}
    for line in judge.lines(rows, columns, hidden, is_chosen=True):
        yield Line(sheet.id, *line)


def main(path: str, options_json: str) -> int:
    """Fill a stage, as the module says; return the exit code."""
    bound(MEMORY_BYTES, PROCESSOR_SECONDS, FILE_MAX_BYTES)
    options = json.loads(options_json)
    try:
        with Stage(Path(path)) as stage:
            try:
                if options["choice"]:
                    choose(stage, options["choice"], options["version"])
                else:
                    fill(stage, sys.stdin.buffer, options)
            except Refused as error:
                stage.fail(str(error))
    except Stale:
        return EXIT_STALE
    except (TooHeavy, StageTooHeavy, MemoryError):
        return EXIT_TOO_HEAVY
    except OSError:
        return EXIT_DISK_FULL
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
