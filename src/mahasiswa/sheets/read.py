"""Reads a file of a stranger: the child process that fills the stage of an upload, and the tables of a file for the command line.

The child is `python -P -m mahasiswa.sheets.read STAGE OPTIONS`, with the file as its standard input. It has
no password and no connection, and bounds itself. It ends with 0 if it has filled the stage, perhaps with
the reason why the file cannot be read. See `stage` for other codes. Any other end: the file is too heavy.
"""

import io
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO

from mahasiswa import wording
from mahasiswa.sheets import rules
from mahasiswa.sheets.cells import Refused, Row, Sheet, is_blank, text_of
from mahasiswa.sheets.columns import Table, fields_of, find, part_of
from mahasiswa.sheets.delimited import read_text
from mahasiswa.sheets.file_kind import encoding_of, kind_of
from mahasiswa.sheets.html_table import html_rows
from mahasiswa.sheets.rules import JudgedLine
from mahasiswa.sheets.stage import EXIT_DISK_FULL, EXIT_STALE, Choice, Stage, Stale
from mahasiswa.sheets.workbook import read_workbook, undamaged
from mahasiswa.system.child import bound

UPLOAD_MAX_ROWS = 10_000  # lines of all sheets that are read
ROWS_MAX = UPLOAD_MAX_ROWS + 100  # of a sheet, with its titles and signatures
MEMORY_BYTES = 512 << 20
PROCESSOR_SECONDS = 20
FILE_MAX_BYTES = 16 << 20

TOP_ROWS = 200  # rows of a sheet in which titles and doubts about the columns are looked for
_OF_EXAMPLES = ("contoh", "petunjuk", "panduan", "example", "referensi")  # names of sheets


def tables_of(file: BinaryIO, *, nim_only: bool = False) -> Iterator[tuple[Table, Iterable[Row]]]:
    """The tables of the sheets that have rows, of a seekable file of any kind, each with its rows.

    Each must be read before the next. With `nim_only` their columns are sure. Raises Refused and TooHeavy.
    """
    at = 0
    for sheet in _sheets(file, nim_only=nim_only):
        rows = (row for row in sheet.rows if not is_blank(row[1]))
        if top := list(islice(rows, TOP_ROWS)):
            table = find(at, sheet, top)
            yield table._replace(doubt="") if nim_only else table, chain(top, rows)
            at += 1


def _sheets(file: BinaryIO, *, nim_only: bool) -> Iterable[Sheet]:
    kind = kind_of(file)
    if kind == "workbook":
        return undamaged(read_workbook(file))
    if kind == "html":
        return [Sheet("", enumerate(html_rows(file), 1))]
    text = io.TextIOWrapper(file, encoding_of(file), errors="replace", newline="")
    return [read_text(text, nim_only=nim_only)]


def fill(stage: Stage, file: BinaryIO) -> None:
    """Put the sheets of a file into its stage. Raises Refused and TooHeavy."""
    tables = tables_of(file, nim_only=stage.facts().purpose == "pilih")
    sheets = [(table, list(islice(rows, ROWS_MAX))) for table, rows in tables]
    if not sheets:
        raise Refused(wording.EMPTY)
    stage.put_sheets(sheets)


def is_example(name: str) -> bool:
    """Whether a sheet of this name holds examples or instructions."""
    return name.casefold().startswith(_OF_EXAMPLES)


def put_lines(stage: Stage, choice: Choice | None, version: int) -> None:
    """Judge the rows of the sheets that are read, in the columns that a person has chosen, if any. Raises Refused and Stale."""
    sheets = list(_chosen(stage.sheets(), choice))
    read = [sheet for sheet in sheets if sheet.is_read]
    must_choose = any(sheet.doubt for sheet in read)
    lines = [
        (sheet.id, *line) for sheet in read if not must_choose for line in _judged(stage, sheet)
    ]
    if len(lines) > UPLOAD_MAX_ROWS:
        raise Refused(wording.TOO_MANY_ROWS.format(limit=wording.number(UPLOAD_MAX_ROWS)))
    if not (lines or must_choose):
        raise Refused(wording.NO_ROWS)
    stage.put_lines(sheets, lines, version)


def _chosen(sheets: Sequence[Table], choice: Choice | None) -> Iterator[Table]:
    """The sheets as a person reads them, or else those whose titles name the most fields, without those of examples."""
    best = max(map(_rank, sheets))
    for sheet in sheets:
        if not choice:
            yield sheet._replace(is_read=_rank(sheet) == best)
            continue
        columns, is_read = choice[sheet.id]
        # Every column may have texts.
        titles = [title or wording.UNTITLED for title in sheet.titles]
        yield sheet._replace(columns=dict(columns), titles=titles, doubt="", is_read=is_read)


def _rank(sheet: Table) -> int:
    return len(fields_of(sheet.columns)) * (not is_example(sheet.name))


def _judged(stage: Stage, sheet: Table) -> Iterable[JudgedLine]:
    """The lines of a sheet. Those of a selection have a NIM, or without a column of NIMs their whole text, and perhaps a name."""
    rows = stage.rows(sheet.id)
    if stage.facts().purpose == "impor":
        return rules.lines(rows, sheet)
    if "nim" not in fields_of(sheet.columns):
        sheet = sheet._replace(header=0, columns={0: "nim"})
        rows = [(number, [" ".join(map(text_of, row))]) for number, row in rows]
    judged = [rules.judge(number, sheet.join(row)) for number, row in rows if number > sheet.header]
    return [
        line._replace(alamat="", own="hidden" * ("hidden" in line.own))
        for line in judged
        if line.nim and not part_of(line.nim)
    ]


def main(path: str, options_json: str) -> int:
    """Fill a stage, as the module says; return the exit code."""
    bound(MEMORY_BYTES, PROCESSOR_SECONDS, FILE_MAX_BYTES)
    options = json.loads(options_json)
    try:
        with Stage(Path(path)) as stage:
            try:
                if not options["choice"]:
                    fill(stage, sys.stdin.buffer)
                put_lines(stage, options["choice"], options["version"])
            except Refused as error:
                stage.do("fail", [(str(error),)])
    except Stale:
        return EXIT_STALE
    except OSError:
        return EXIT_DISK_FULL
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
