"""Imports, exports and copies whole lists for the command line. An import keeps all NIMs in memory."""

import asyncio
import gc
import os
import shutil
import stat
import sys
import tempfile
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO, TypeVar

import click

from mahasiswa import wording
from mahasiswa.record import Incoming, Mahasiswa
from mahasiswa.settings import DatabaseURL
from mahasiswa.sheets.cells import Refused, TooHeavy
from mahasiswa.sheets.export import EXPORTS
from mahasiswa.sheets.read import is_example, tables_of
from mahasiswa.sheets.rules import (
    OTHER_TITLES,
    PROBLEMS,
    SKIPPED,
    Judge,
    JudgedLine,
    is_fault,
)
from mahasiswa.store import Query, Reader, store_errors
from mahasiswa.store.engine import Engine
from mahasiswa.store.engines import engine_of
from mahasiswa.store.history_items import UNDO_ROWS_MAX
from mahasiswa.store.results import Merged
from mahasiswa.store.store_errors import Unusable
from mahasiswa.store.threads import in_thread
from mahasiswa.system import interrupt
from mahasiswa.system.administrator import typed
from mahasiswa.system.progress import progress
from mahasiswa.system.unfinished import unfinished
from mahasiswa.work import EXPORT, Slots

T = TypeVar("T")

MAX_LISTED_ROWS = 100  # maximum rows with problems that are listed
LINE_MAX_CHARACTERS = 500
TOO_LONG_TO_UNDO = (
    f"This import has more than {UNDO_ROWS_MAX} rows, so it cannot be undone. To be able to go back, press Ctrl-C,"
    " then make a back-up: {backup} (PostgreSQL: pg_dump)"
)
DOUBTED = "Check these rows. If they are right, repeat the command with --accept-doubts"


class Failure(Exception):
    """The command failed and changed nothing. The text has the reasons, for standard error."""


class Places:
    """The sheets of a file. Rows are numbered through all sheets that are read."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.starts: list[int] = []  # the last number before each sheet
        self.names: list[str] = []
        self.unread: list[
            tuple[str, str]
        ] = []  # sheets whose columns are not sure, and the reasons

    def line(self, number: int, sentence: str) -> str:
        """The line about a row. It names the sheet if several are read."""
        sheet = bisect_left(self.starts, number) - 1
        row = number - self.starts[sheet]
        name = f"{self.names[sheet]}, baris {row}" if len(self.names) > 1 else f"Baris {row}"
        return _printable(f"{self.file}: {name}: {sentence}"[:LINE_MAX_CHARACTERS])


class Problems:
    """Rows with problems, of which the first ones are listed."""

    def __init__(self) -> None:
        self.count = 0
        self._first: list[tuple[int, str]] = []

    def add(self, number: int, sentence: str) -> None:
        self.count += 1
        if self.count <= MAX_LISTED_ROWS:
            self._first.append((number, sentence))

    def lines(self, places: Places) -> Iterator[str]:
        for number, sentence in self._first:
            yield places.line(number, sentence)
        if self.count > MAX_LISTED_ROWS:
            yield f"{places.file}: and {self.count - MAX_LISTED_ROWS} more rows"


def import_file(
    url: DatabaseURL,
    backups: Path | None,
    file: Path,
    *,
    update: bool,
    dry_run: bool,
    accept_doubts: bool,
) -> tuple[Merged, Sequence[str]]:
    """Import a spreadsheet, all rows or none; return the counts and the remarks. Raise Failure or Interrupted."""
    places = Places(file)
    skipped = Problems()
    with _failures(file), _source(file) as source:
        rows = _incoming(source, places, skipped, accept_doubts=accept_doubts)
        # A file that cannot be read creates no database.
        first = list(islice(rows, 1))
        # A million rows make no cycles. Searching them for cycles would take a tenth of the time.
        gc.disable()
        engine_of(url).migrate(backups=backups)
        merged = engine_of(url).merge(chain(first, rows), update=update, dry_run=dry_run)
    if merged.incomplete:
        incomplete = Problems()
        for number in merged.incomplete:
            incomplete.add(number, wording.NEW_NEEDS_ONE)
        raise Failure("\n".join(incomplete.lines(places)))
    return merged, [*_unread(places), *skipped.lines(places)]


def _unread(places: Places) -> Iterator[str]:
    if places.unread:
        names = ", ".join(f"“{name}”" for name, _ in places.unread)
        yield _printable(f"{places.file}: {wording.SHEETS_NOT_READ.format(names=names)}")


def export_file(url: DatabaseURL, file: Path) -> int:
    """Write every record to a file; return their number. Raise Failure, Interrupted, or BrokenPipeError of a pipe."""
    # Standard output has no suffix, and gets CSV.
    kind = EXPORTS.get(file.suffix.lower(), EXPORTS[".csv"])

    with _failures(file), _complete_file(file) as target:
        return _read_all(url, "export", lambda records: kind.write(records, target))


def copy_records(source: DatabaseURL, target: DatabaseURL, backups: Path | None) -> int:
    """Copy all records to another, empty database, or none; return their number. Raise StoreError or Interrupted."""

    def merge(records: Iterator[Mahasiswa]) -> int:
        # The source can be read, so the target may be created.
        engine = engine_of(target)
        engine.migrate(backups=backups)
        if engine.count():
            # Later, the copied records could not be told from those.
            raise Unusable("the database to copy to holds records already")
        rows = ((number, *record) for number, record in enumerate(records, 1))
        return engine.merge(rows, update=False, dry_run=False).new

    return _read_all(source, "copy", merge)


def other_nims(url: DatabaseURL, nim: str) -> Sequence[str]:
    """The other nims of a changed nim: the record with that nim has had them before or after it."""
    return list(map(_printable, _read(url, lambda reader: reader.other_nims(nim))))


def _printable(text: str) -> str:
    """The text with control characters escaped, because a terminal would obey them."""
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)


def _incoming(
    source: BinaryIO, places: Places, skipped: Problems, *, accept_doubts: bool
) -> Iterator[Incoming]:
    """The rows to write; raise Failure after the last one if any is wrong or doubtful."""
    faults, doubts = Problems(), Problems()
    count = 0
    for number, code, line in progress(_judged(source, places), "import"):
        if line.skipped:
            skipped.add(number, SKIPPED[line.skipped])
        elif code and (is_fault(code) or not accept_doubts):
            sentence = PROBLEMS[code].sentence.format(**line._asdict())
            (faults if is_fault(code) else doubts).add(number, sentence)
        elif not (faults.count or doubts.count):
            count += 1
            if count == UNDO_ROWS_MAX + 1:
                click.echo(TOO_LONG_TO_UNDO.format(backup=typed("backup FILE")), err=True)
            yield number, line.nim, line.nama or None, line.alamat or None
    if faults.count or doubts.count:
        advice = [] if faults.count else [DOUBTED]
        raise Failure("\n".join([*faults.lines(places), *doubts.lines(places), *advice]))


def _judged(source: BinaryIO, places: Places) -> Iterator[tuple[int, str, JudgedLine]]:
    """The lines of all sheets whose columns are sure, each with its number and the code of its first problem."""
    judge = Judge()
    number = 0
    for sheet, columns in tables_of(source):
        if columns.doubt or is_example(sheet.name):
            places.unread.append((sheet.name, columns.doubt))
            continue
        before = number
        places.starts.append(before)
        places.names.append(sheet.name)
        for line in judge.lines(sheet.rows, columns, sheet.hidden):
            number = before + line.number
            if line.own == OTHER_TITLES:
                raise Refused(wording.OTHER_TITLES.format(row=line.number))
            code = line.own.partition(" ")[0]
            if judge.twice == line.number and not is_fault(code):
                code = "nim_twice"
            yield number, code, line
    if not places.names:
        raise Refused(next((doubt for _, doubt in places.unread if doubt), wording.EMPTY))


def _read(url: DatabaseURL, work: Callable[[Reader], Awaitable[T]]) -> T:
    """Open an existing database, and return the result of `work` on its reader."""

    async def read(engine: Engine) -> T:
        store = await engine.open_store(Slots())
        try:
            return await work(store.reader(EXPORT))
        finally:
            await store.close()

    gc.disable()  # as in an import
    engine = engine_of(url)
    engine.migrate(create=False)
    return asyncio.run(read(engine))


def _read_all(url: DatabaseURL, label: str, work: Callable[[Iterator[Mahasiswa]], T]) -> T:
    """The same with all records. `label` names the work at its progress bar."""

    def shown(records: Iterator[Mahasiswa]) -> T:
        return work(progress(records, label, engine_of(url).count()))

    def read(reader: Reader) -> Awaitable[T]:
        return in_thread(reader.chunks(Query(), may_pause=True), shown)

    return _read(url, read)


@contextmanager
def _failures(file: Path) -> Iterator[None]:
    try:
        yield
    except store_errors.Refused as error:
        raise Failure(
            f"{file}: the database refuses a record ({error}); nothing was written"
        ) from error
    except (Refused, TooHeavy) as error:
        # After Ctrl-C, report the interrupt and not the fault of the file.
        interrupt.check()
        raise Failure(f"{file}: {str(error) or wording.TOO_HEAVY}") from error
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Failure(f"{file}: {error.strerror or error}") from error


def _source(file: Path) -> BinaryIO:
    """A file to read. `-` is standard input, which is copied first, because a workbook is not read from front to back."""
    if file != Path("-"):
        return file.open("rb")
    source = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    with interrupt.at_once():  # a person may have to type the end of the input
        shutil.copyfileobj(sys.stdin.buffer, source)
    return source


@contextmanager
def _complete_file(file: Path) -> Iterator[BinaryIO]:
    """A file to write. It has a temporary name until it is complete. `-` is standard output.

    A file that is replaced keeps its mode. If `file` is a symbolic link, the file that it leads to is replaced. A device
    or a named pipe is written to, never replaced.
    """
    to_stdout = file == Path("-")
    try:
        # The working directory may be closed to this user, as /root is.
        mode = None if to_stdout else file.stat().st_mode
    except FileNotFoundError:
        mode = None
    if to_stdout or (mode is not None and not stat.S_ISREG(mode)):
        with interrupt.at_once():  # the reader of a named pipe may be late
            opened = sys.stdout.fileno() if to_stdout else file
            target = open(opened, "wb", closefd=not to_stdout)  # noqa: SIM115 - closed below
        with target:
            yield target
        return
    final = Path(os.path.realpath(file))
    with unfinished(final, mode=0o666) as copy:  # less those of the umask
        with copy.open("wb") as target:
            if mode is not None:
                copy.chmod(stat.S_IMODE(mode))
            yield target
        copy.replace(final)
