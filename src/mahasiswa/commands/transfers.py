"""Imports, exports and copies whole lists for the command line. An import keeps all NIMs in memory."""

import asyncio
import gc
import os
import shutil
import signal
import stat
import sys
import tempfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO

import click

from mahasiswa import wording
from mahasiswa.record import Incoming, Mahasiswa
from mahasiswa.settings import DatabaseURL, Settings
from mahasiswa.sheets.cells import Refused, TooHeavy
from mahasiswa.sheets.export import EXPORTS
from mahasiswa.sheets.read import is_example, tables_of
from mahasiswa.sheets.rules import (
    OTHER_TITLES,
    PROBLEMS,
    SKIPPED,
    JudgedLine,
    is_fault,
    lines,
)
from mahasiswa.store import Query
from mahasiswa.store.engines import engine_of
from mahasiswa.store.history_items import UNDO_ROWS_MAX
from mahasiswa.store.results import Merged
from mahasiswa.store.store_errors import Unusable
from mahasiswa.system import interrupt
from mahasiswa.system.administrator import typed
from mahasiswa.system.progress import progress
from mahasiswa.system.unfinished import unfinished
from mahasiswa.work import EXPORT, Slots

STANDARD_STREAM = Path("-")
MAX_LISTED_ROWS = 100  # maximum rows with problems that are listed
LINE_MAX_CHARACTERS = 500
# The rows of all sheets have one number each: that of the sheet times this, and that of the row.
SHEET_MAX_ROWS = 10**9
TOO_LONG_TO_UNDO = (
    f"This import has more than {UNDO_ROWS_MAX} rows, so it cannot be undone. To be able to go back, press Ctrl-C,"
    " then make a back-up: {backup} (PostgreSQL: pg_dump)"
)
DOUBTED = "Check these rows. If they are right, repeat the command with --accept-doubts"

Remarks = Sequence[tuple[int, str]]
"""The numbers of rows, and a sentence about each."""


class Failure(Exception):
    """The command failed and changed nothing. The text has the reasons, for standard error."""


def import_file(
    settings: Settings, file: BinaryIO, *, update: bool, dry_run: bool, accept_doubts: bool
) -> tuple[Merged, Sequence[str]]:
    """Import a spreadsheet, all rows or none; return the counts and the remarks. Raise Failure or Interrupted."""
    table = Table(file.name)
    with _failures(file.name), _source(file) as source:
        rows = _incoming(source, table, accept_doubts=accept_doubts)
        # A file that cannot be read creates no database.
        first = list(islice(rows, 1))
        # A million rows make no cycles. Searching them for cycles would take a tenth of the time.
        gc.disable()
        engine = engine_of(settings.database_url)
        engine.migrate(backups=settings.backup_dir)
        merged = engine.merge(chain(first, rows), update=update, dry_run=dry_run)
    if merged.incomplete:
        incomplete = [(number, wording.NEW_NEEDS_ONE) for number in merged.incomplete]
        raise Failure("\n".join(table.lines(incomplete)))
    return merged, list(table.remarks())


class Table:
    """The sheets of a file that are read, and the remarks about them."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.sheets: list[str] = []
        self.unread: list[str] = []  # sheets whose columns are not sure
        self.skipped: list[tuple[int, str]] = []

    def remarks(self) -> Iterator[str]:
        if self.unread:
            names = ", ".join(f"“{name}”" for name in self.unread)
            yield printable(f"{self.file}: {wording.SHEETS_NOT_READ.format(names=names)}")
        yield from self.lines(self.skipped)

    def lines(self, remarks: Remarks) -> Iterator[str]:
        """The lines about the first of these rows, and the number of the others."""
        for number, sentence in remarks[:MAX_LISTED_ROWS]:
            sheet, row = divmod(number, SHEET_MAX_ROWS)
            name = self.sheets[sheet]
            place = f"{name}, baris {row}" if name else f"Baris {row}"
            yield printable(f"{self.file}: {place}: {sentence}"[:LINE_MAX_CHARACTERS])
        if (more := len(remarks) - MAX_LISTED_ROWS) > 0:
            yield f"{self.file}: and {more} more rows"


def printable(text: str) -> str:
    """The text with control characters escaped, because a terminal would obey them."""
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)


def _incoming(source: BinaryIO, table: Table, *, accept_doubts: bool) -> Iterator[Incoming]:
    """The rows to write; raise Failure after the last one if any is wrong or doubtful."""
    problems: list[tuple[int, str]] = []
    has_fault = False
    count = 0
    for number, code, line in progress(_judged(source, table), "import"):
        if line.skipped:
            table.skipped.append((number, SKIPPED[line.skipped]))
        elif code and (is_fault(code) or not accept_doubts):
            problems.append((number, PROBLEMS[code].format(**line._asdict())))
            has_fault |= is_fault(code)
        elif not problems:
            count += 1
            if count == UNDO_ROWS_MAX + 1:
                click.echo(TOO_LONG_TO_UNDO.format(backup=typed("backup FILE")), err=True)
            yield number, line.nim, line.nama or None, line.alamat or None
    if problems:
        advice = [] if has_fault else [DOUBTED]
        raise Failure("\n".join([*table.lines(problems), *advice]))


def _judged(source: BinaryIO, table: Table) -> Iterator[tuple[int, str, JudgedLine]]:
    """The lines of all sheets whose columns are sure, each with its number and the code of its first problem."""
    seen: dict[int, int] = {}  # the hash of the texts of each NIM
    doubt = wording.EMPTY
    for name, rows, columns in tables_of(source):
        if columns.doubt or is_example(name):
            table.unread.append(name)
            doubt = columns.doubt or doubt
            continue
        before = len(table.sheets) * SHEET_MAX_ROWS
        table.sheets.append(name)
        for line in lines(rows, columns):
            if line.own == OTHER_TITLES:
                raise Refused(wording.OTHER_TITLES.format(row=line.number))
            once = _once(line, seen)
            yield before + line.number, once.own.partition(" ")[0], once
    if not table.sheets:
        raise Refused(doubt)


def _once(line: JudgedLine, seen: dict[int, int]) -> JudgedLine:
    """The line. It is skipped if an earlier one is equal, and wrong if an earlier one has other texts for its NIM."""
    if line.skipped or not line.nim:
        return line
    nim, texts = hash(line.nim), hash(line[1:4])
    first = seen.get(nim)
    seen[nim] = texts
    if first == texts:
        return line._replace(skipped="same")
    return line if first is None else line._replace(own=f"nim_twice {line.own}")


def export_file(url: DatabaseURL, file: Path) -> int:
    """Write every record to a file; return their number. Raise Failure or Interrupted."""
    # Standard output has no suffix, and gets CSV.
    kind = EXPORTS.get(file.suffix.lower(), EXPORTS[".csv"])
    with _failures(file), closing(_records(url, "export")) as records:
        first = list(islice(records, 1))  # a database that cannot be read creates no file
        with _complete_file(file) as target:
            return kind.write(chain(first, records), target)


def copy_records(source: DatabaseURL, target: DatabaseURL, backups: Path | None) -> int:
    """Copy all records to another, empty database, or none; return their number. Raise StoreError or Interrupted."""
    with closing(_records(source, "copy")) as records:
        # If the source can be read, the target may be created.
        first = list(islice(records, 1))
        engine = engine_of(target)
        engine.migrate(backups=backups)
        if engine.count():
            # Later, the copied records could not be told from those.
            raise Unusable("the database to copy to holds records already")
        rows = ((number, *record) for number, record in enumerate(chain(first, records)))
        return engine.merge(rows, update=False, dry_run=False).new


def _records(url: DatabaseURL, label: str) -> Generator[Mahasiswa]:
    """All records of an existing database. `label` names the work at its progress bar."""
    gc.disable()  # as in an import
    engine = engine_of(url)
    engine.migrate(create=False)
    with asyncio.Runner() as runner:
        store = runner.run(engine.open_store(Slots()))
        chunks = store.reader(EXPORT).chunks(Query(), may_pause=True)

        async def next_chunk() -> Sequence[Mahasiswa]:
            return await anext(chunks, [])

        read = iter(lambda: runner.run(next_chunk()), [])
        try:
            yield from progress(chain.from_iterable(read), label, engine.count())
        finally:
            runner.run(chunks.aclose())
            runner.run(store.close())


@contextmanager
def _failures(file: str | Path) -> Iterator[None]:
    try:
        yield
    except (Refused, TooHeavy) as error:
        # After Ctrl-C, report the interrupt and not the fault of the file.
        interrupt.check()
        raise Failure(f"{file}: {str(error) or wording.TOO_HEAVY}") from error
    except OSError as error:
        raise Failure(f"{file}: {error.strerror or error}") from error


def _source(file: BinaryIO) -> BinaryIO:
    """The file to read, or a copy of standard input, because a workbook is not read from front to back."""
    if file is not sys.stdin.buffer:
        return file
    source = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    with interrupt.at_once():  # a person may have to type the end of the input
        shutil.copyfileobj(file, source)
    return source


@contextmanager
def _complete_file(file: Path) -> Iterator[BinaryIO]:
    """A file to write. It has a temporary name until it is complete. `-` is standard output.

    A file that is replaced keeps its mode. If `file` is a symbolic link, the file that it leads to is replaced. A device
    and a named pipe are refused.
    """
    if file == STANDARD_STREAM:
        # If the reader of a pipe ends, this process ends without a line, as other programs do.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        with open(sys.stdout.fileno(), "wb", closefd=False) as target:
            yield target
        return
    mode = None
    with suppress(FileNotFoundError):
        mode = file.stat().st_mode
    if mode and not stat.S_ISREG(mode):
        raise Failure(f"{file} is no file. To write to a pipe, export to -")
    final = Path(os.path.realpath(file))
    with unfinished(final, mode=0o666) as copy:  # less those of the umask
        with copy.open("wb") as target:
            if mode:
                copy.chmod(stat.S_IMODE(mode))
            yield target
        copy.replace(final)
