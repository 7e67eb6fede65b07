"""Imports, exports and copies whole lists for the command line, of any length, in bounded memory."""

import asyncio
import gc
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeVar, cast

import click

from mahasiswa import sheets, wording
from mahasiswa.record import Incoming, Mahasiswa
from mahasiswa.settings import DatabaseURL, SQLiteURL
from mahasiswa.store import Merged, Query, Store, migrate, open_store
from mahasiswa.store.errors import Refused, StoreError, Unusable
from mahasiswa.store.threads import copy, with_records

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar

T = TypeVar("T")

BATCH_ROWS = 5000

MAX_LISTED_ROWS = 100
"""Maximum rows whose problems are listed one by one."""


class Failure(Exception):
    """The command failed and changed nothing. `lines` are the reasons, for standard error."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__(*lines)
        self.lines = lines


def import_file(url: DatabaseURL, file: Path, *, update: bool, dry_run: bool) -> tuple[Merged, Sequence[str]]:
    """Import the rows of a spreadsheet, all or none. Return the counts and the warnings. Raise Failure."""
    cleaner = sheets.Cleaner()
    with (
        _failures(file),
        file.open("rb") as source,
        sheets.read(source, sheets.COMMAND_LINE) as table,
        _progress("Import", file.stat().st_size) as advance,
    ):
        batches = _clean(cleaner, file, table, lambda: advance(source.tell()))
        merged = asyncio.run(_with_store(url, lambda store: store.merge(batches, update=update, dry_run=dry_run)))
    if merged.incomplete:
        raise Failure(_lines(file, ((row, wording.NEW_NEEDS_BOTH) for row in merged.incomplete)))
    return merged, _lines(file, cleaner.suspects().items())


def export_file(url: DatabaseURL, file: Path) -> int:
    """Write every record to a file and return their number. The file gets its name when it is complete. Raise Failure."""
    write = sheets.write_xlsx if file.suffix.lower() == ".xlsx" else sheets.write_csv

    async def export(store: Store) -> int:
        count = await store.count(Query())
        with _complete_file(file) as target, _progress("Export", count) as advance:
            await with_records(store, Query(), lambda records: write(_counted(records, advance), target))
        return count

    with _failures(file):
        return asyncio.run(_with_store(url, export, create=False))


def copy_records(source: DatabaseURL, target: DatabaseURL) -> int:
    """Copy every record of one database to another, empty one, all or none. Return their number. Raise Failure."""

    async def copy_all(store: Store) -> int:
        return await _with_store(target, lambda other: copy(store, other))

    try:
        return asyncio.run(_with_store(source, copy_all, create=False))
    except StoreError as error:
        raise Failure([f"mahasiswa: {error}"]) from error


def _clean(
    cleaner: sheets.Cleaner, file: Path, rows: Iterable[sheets.SheetRow], advance: Callable[[], None]
) -> Iterator[Sequence[Incoming]]:
    """Batches of clean rows. If any row is invalid, raise Failure at the end, so that all of them are listed at once."""
    invalid: list[tuple[int, str]] = []
    cleaned = cleaner.clean(rows)
    while batch := list(islice(cleaned, BATCH_ROWS)):
        invalid += [(row.number, row.problem) for row in batch if isinstance(row, sheets.InvalidRow)]
        if not invalid:
            yield [row[:4] for row in cast("list[sheets.Row]", batch)]
        advance()
    if invalid:
        raise Failure(_lines(file, invalid))


def _counted(records: Iterator[Mahasiswa], advance: Callable[[int], None]) -> Iterator[Mahasiswa]:
    count = 0
    while batch := list(islice(records, BATCH_ROWS)):
        yield from batch
        count += len(batch)
        advance(count)


def _lines(file: Path, problems: Iterable[tuple[int, str]]) -> list[str]:
    lines = [f"{file}: {wording.ROW.format(row=row, problem=problem)}" for row, problem in problems]
    if len(lines) > MAX_LISTED_ROWS:
        lines[MAX_LISTED_ROWS:] = [f"{file}: and {len(lines) - MAX_LISTED_ROWS} more rows"]
    return lines


async def _with_store(url: DatabaseURL, work: Callable[[Store], Awaitable[T]], *, create: bool = True) -> T:
    """Await `work` with an open store. With `create=False`, an SQLite file that does not exist is an error."""
    gc.disable()  # a million rows make no cycles, and searching them for cycles takes a tenth of the time
    if not create and isinstance(url, SQLiteURL) and not url.path.exists():
        raise Unusable(f"{url.path} does not exist")
    await asyncio.to_thread(migrate, url)
    store = await open_store(url)
    try:
        return await work(store)
    finally:
        await store.close()


@contextmanager
def _failures(file: Path) -> Iterator[None]:
    """Turn every error of the file or the database into a Failure."""
    try:
        yield
    except Refused as error:
        raise Failure([f"{file}: the database refuses a record ({error}); nothing was written"]) from error
    except StoreError as error:
        raise Failure([f"mahasiswa: {error}"]) from error
    except sheets.SheetError as error:
        raise Failure([f"{file}: {error}"]) from error
    except OSError as error:
        raise Failure([f"{file}: {error.strerror or error}"]) from error


@contextmanager
def _progress(label: str, whole: int) -> Iterator[Callable[[int], None]]:
    """A progress bar if standard error is a terminal. Call the result with how much of `whole` is done."""
    bar: ProgressBar[int]
    with click.progressbar(length=whole, label=label, file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:
        yield lambda done: bar.update(done - bar.pos)


@contextmanager
def _complete_file(file: Path) -> Iterator[BinaryIO]:
    """A file to write. It has a temporary name until it is complete. `-` is standard output."""
    if file == Path("-"):
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with tempfile.NamedTemporaryFile(dir=file.parent, prefix=f".{file.name}.", delete=False) as target:
        try:
            yield cast("BinaryIO", target)
            target.close()
            os.replace(target.name, file)  # noqa: PTH105 - a name, not a Path
        except BaseException:
            os.unlink(target.name)  # noqa: PTH108 - as above
            raise
