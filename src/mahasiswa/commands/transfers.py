"""Imports, exports and copies whole lists for the command line. An import keeps all NIMs in memory."""

import asyncio
import gc
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeVar

import click

from mahasiswa import wording
from mahasiswa.record import Incoming, Mahasiswa
from mahasiswa.settings import DatabaseURL
from mahasiswa.sheets import public as sheets
from mahasiswa.store import Query, Reader
from mahasiswa.store.engine import Engine
from mahasiswa.store.engines import engine_of
from mahasiswa.store.history_items import UNDO_ROWS_MAX
from mahasiswa.store.results import Merged
from mahasiswa.store.store_errors import Refused, Unusable
from mahasiswa.store.threads import in_thread
from mahasiswa.system import interrupt
from mahasiswa.system.administrator import typed
from mahasiswa.system.progress import progress
from mahasiswa.system.unfinished import unfinished
from mahasiswa.work import EXPORT, Slots

T = TypeVar("T")
Problem = tuple[int, str]  # the number of a row, and its problem

MAX_LISTED_ROWS = 100  # maximum rows with problems that are listed
# Notices that name the row. One remark about the whole file is enough for its hidden rows.
MOVED_CELLS = (wording.JOINED_CELLS, wording.MORE_CELLS)
TOO_LONG_TO_UNDO = (
    f"This import has more than {UNDO_ROWS_MAX} rows, so it cannot be undone. To be able to go back, press Ctrl-C,"
    " then make a back-up: {backup} (PostgreSQL: pg_dump)"
)


class Failure(Exception):
    """The command failed and changed nothing. The text has the reasons, for standard error."""


def import_file(
    url: DatabaseURL, backups: Path | None, file: Path, *, update: bool, dry_run: bool
) -> tuple[Merged, Sequence[str]]:
    """Import a spreadsheet, all rows or none; return the counts and the warnings. Raise Failure or Interrupted."""
    skipped: list[Problem] = []
    doubted: list[Problem] = []
    with (
        _failures(file),
        _source(file) as source,
        sheets.read(source, is_upload=False) as table,
    ):
        places = table.file.places
        cleaner = sheets.Cleaner(places)
        rows = _incoming(cleaner, file, table, skipped, doubted)
        # A million rows make no cycles. Searching them for cycles would take a tenth of the time.
        gc.disable()
        engine_of(url).migrate(backups=backups)
        merged = engine_of(url).merge(rows, update=update, dry_run=dry_run)
    if merged.incomplete:
        problems = [(row, wording.NEW_NEEDS_ONE) for row in merged.incomplete]
        raise Failure("\n".join(_lines(file, problems, places)))
    doubts = (skipped, doubted, cleaner.suspects().items())
    lines = [line for problems in doubts for line in _lines(file, problems, places)]
    return merged, [*_remarks(file, table.file), *lines]


def _remarks(file: Path, read: sheets.CarriedFile) -> Iterator[str]:
    """The remarks about the whole file."""
    for question in read.asked:
        yield f"{file}: {question.sentence}"
    if read.other_sheets:
        names = ", ".join(f"“{name}”" for name in read.other_sheets)
        yield f"{file}: {_printable(wording.SHEETS_NOT_READ.format(names=names))}"


def export_file(url: DatabaseURL, file: Path) -> int:
    """Write every record to a file; return their number. Raise Failure, Interrupted, or BrokenPipeError of a pipe."""
    # Standard output has no suffix, and gets CSV.
    kind = sheets.EXPORTS.get(file.suffix.lower(), sheets.EXPORTS[".csv"])

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
    cleaner: sheets.Cleaner,
    file: Path,
    table: sheets.Table,
    skipped: list[Problem],
    doubted: list[Problem],
) -> Iterator[Incoming]:
    """The clean rows; raise Failure after the last one if any is invalid.

    Skipped rows are appended to `skipped`, and clean rows whose cells may have moved to `doubted`.
    """
    invalid: list[Problem] = []
    count = 0
    for row in progress(cleaner.clean(table.rows), "import"):
        if isinstance(row, sheets.RejectedRow):
            (skipped if row.is_skipped else invalid).append((row.number, row.problem))
        else:
            count += 1
            if count == UNDO_ROWS_MAX + 1:
                click.echo(TOO_LONG_TO_UNDO.format(backup=typed("backup FILE")), err=True)
            if row.noted:
                doubted += [(row.number, note) for note in row.noted if note in MOVED_CELLS]
            if not invalid:
                yield row.number, row.nim, row.nama, row.alamat
    if invalid:
        raise Failure("\n".join(_lines(file, invalid, table.file.places)))


def _lines(file: Path, problems: Iterable[Problem], places: Sequence[str]) -> list[str]:
    lines = [f"{file}: {_name_of(row, places)}: {problem}" for row, problem in problems]
    if len(lines) > MAX_LISTED_ROWS:
        others = len(lines) - MAX_LISTED_ROWS
        lines[MAX_LISTED_ROWS:] = [f"{file}: and {others} more rows"]
    return lines


def _name_of(row: int, places: Sequence[str]) -> str:
    """The name of a row at the beginning of a sentence, with its sheet if several are read."""
    name = sheets.row_name(row, places)
    return _printable(name) if len(places) > 1 else name.capitalize()


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
    except Refused as error:
        raise Failure(
            f"{file}: the database refuses a record ({error}); nothing was written"
        ) from error
    except sheets.SheetError as error:
        # After Ctrl-C, report the interrupt and not the fault of the file.
        interrupt.check()
        raise Failure(f"{file}: {error}") from error
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
