"""Imports, exports and copies whole lists for the command line. An import keeps all NIMs in memory."""

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import BinaryIO

from mahasiswa import wording
from mahasiswa.record import Incoming, Mahasiswa
from mahasiswa.settings import DatabaseURL, Settings
from mahasiswa.sheets.cells import Refused
from mahasiswa.sheets.csv_form import write_csv
from mahasiswa.sheets.export import EXPORTS
from mahasiswa.sheets.read import is_example, tables_of
from mahasiswa.sheets.rules import (
    PROBLEMS,
    SKIPPED,
    JudgedLine,
    is_fault,
    lines,
)
from mahasiswa.store.engines import engine_of
from mahasiswa.store.results import Merged
from mahasiswa.store.store_errors import Unusable
from mahasiswa.system.unfinished import publish, unfinished

STANDARD_STREAM = Path("-")
MAX_LISTED_ROWS = 100  # maximum rows with problems that are listed
LINE_MAX_CHARACTERS = 500
ADVICE = (
    "\nMend these rows. If they are only doubtful, the command with --accept-doubts writes them."
)


def import_file(
    settings: Settings, file: BinaryIO, *, update: bool, dry_run: bool, accept_doubts: bool
) -> tuple[Merged, str]:
    """Import a spreadsheet, all rows or none; return the counts and lines of remarks.

    Raise Refused, TooHeavy, StoreError or OSError.
    """
    remarks: list[str] = []
    lacking: dict[str, str] = {}
    with _source(file) as source:
        rows = _incoming(source, remarks, lacking, accept_doubts=accept_doubts)
        engine = engine_of(settings.database_url)
        engine.migrate(backups=settings.backup_dir)
        merged = engine.merge(rows, update=update, dry_run=dry_run)
    if merged.incomplete:
        raise Refused(_listed([lacking[nim] for nim in lacking if nim in merged.incomplete]))
    return merged, _listed(remarks)


def _listed(remarks: Sequence[str]) -> str:
    """Lines with the first of these remarks, and the number of the others."""
    listed = [printable(remark[:LINE_MAX_CHARACTERS]) for remark in remarks[:MAX_LISTED_ROWS]]
    if len(remarks) > MAX_LISTED_ROWS:
        listed.append(f"and {len(remarks) - MAX_LISTED_ROWS} more rows")
    return "\n".join(listed)


def printable(text: str) -> str:
    """The text with control characters escaped, because a terminal would obey them."""
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)


def _judged(source: BinaryIO, remarks: list[str]) -> Iterator[tuple[str, JudgedLine]]:
    """The lines of all sheets whose columns are sure, each with its place. `remarks` gets the other sheets."""
    doubt = wording.EMPTY
    is_read = False
    for table, rows in tables_of(source):
        if table.doubt or is_example(table.name):
            remarks.append(wording.SHEETS_NOT_READ.format(names=f"“{table.name}”"))
            doubt = table.doubt or doubt
            continue
        is_read = True
        name = f"{table.name}, baris" if table.name else "Baris"
        for line in lines(rows, table):
            yield f"{name} {line.number}", line
    if not is_read:
        raise Refused(doubt)


def _incoming(
    source: BinaryIO,
    remarks: list[str],
    lacking: dict[str, str],
    *,
    accept_doubts: bool,
) -> Iterator[Incoming]:
    """The rows to write; raise Refused after the last one if any is wrong or doubtful.

    `remarks` gets a sentence for each line that is skipped, and `lacking` one for each row without nama or alamat.
    """
    seen: dict[int, int] = {}  # the hash of the texts of each NIM
    problems: list[str] = []
    for place, line in _judged(source, remarks):
        skipped, code = line.skipped, line.own.partition(" ")[0]
        if line.nim and not skipped:
            nim, texts = hash(line.nim), hash(line[1:4])
            if seen.get(nim) == texts:
                skipped = "same"
            elif nim in seen:
                code = "nim_twice"
            seen[nim] = texts
        if skipped:
            remarks.append(f"{place}: {SKIPPED[skipped]}")
        elif code and (is_fault(code) or not accept_doubts):
            problems.append(f"{place}: {PROBLEMS[code].format(**line._asdict())}")
        elif not problems:
            if not (line.nama and line.alamat):
                lacking[line.nim] = f"{place}: {wording.NEW_NEEDS_ONE}"
            yield line.nim, line.nama or None, line.alamat or None
    if problems:
        raise Refused(_listed(problems) + ADVICE)


def export_file(url: DatabaseURL, file: Path) -> int:
    """Write every record to a file; return their number. Raise Refused, StoreError or OSError."""
    with closing(engine_of(url).records()) as records:
        if file != STANDARD_STREAM:
            return _write_file(records, file)
        # If the reader of a pipe ends, this process ends without a line, as other programs do.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        return write_csv(records, sys.stdout.buffer)


def _write_file(records: Iterator[Mahasiswa], file: Path) -> int:
    """Write a file under a temporary name until it is complete; return the number of records.

    A file that is replaced keeps its mode. If `file` is a symbolic link, the file that it leads to is replaced.
    """
    final = Path(os.path.realpath(file))
    with unfinished(final, mode=0o666) as copy:  # less those of the umask
        with copy.open("wb") as target:
            count = EXPORTS[file.suffix.lower()].write(records, target)
        with suppress(FileNotFoundError):
            shutil.copymode(file, copy)
        publish(copy, final)
    return count


def copy_records(settings: Settings, address: str) -> int:
    """Copy all records of another database, or none; return their number. Raise SettingError or StoreError."""
    source = engine_of(Settings.from_environment({"DATABASE_URL": address}).database_url)
    source.count()  # fails before the other database is made
    target = engine_of(settings.database_url)
    target.migrate(backups=settings.backup_dir)
    if target.count():
        # Later, the copied records could not be told from those.
        raise Unusable("the database to copy to holds records already")
    with closing(source.records()) as records:
        return target.merge(records, update=False, dry_run=False).new


def _source(file: BinaryIO) -> BinaryIO:
    """The file to read, or a copy of standard input, because a workbook is not read from front to back."""
    if file is not sys.stdin.buffer:
        return file
    source = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    shutil.copyfileobj(file, source)
    return source
