"""What the command line does with files: whole lists in and out, of any length, in bounded memory."""

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

from mahasiswa import sheets
from mahasiswa.record import Incoming, Mahasiswa
from mahasiswa.settings import DatabaseURL, SQLiteURL
from mahasiswa.store import Merged, Query, Store, migrate, open_store
from mahasiswa.store.errors import Refused, StoreError, Unusable
from mahasiswa.store.threads import copy, with_records

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar

T = TypeVar("T")

BATCH = 5000
"""Rows handed on at a time."""

MOST_LINES = 100
"""Rows that are named one by one."""


class Failure(Exception):
    """What was asked for was not done; `lines` say why, for standard error."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__(*lines)
        self.lines = lines


def import_file(url: DatabaseURL, file: Path, *, update: bool, dry_run: bool) -> tuple[Merged, Sequence[str]]:
    """Bring a spreadsheet's rows in, all or none; return what was done and what to look at. Raise Failure."""
    cleaner = sheets.Cleaner()
    with (
        _failing(file),
        file.open("rb") as source,
        sheets.read(source, sheets.COMMAND_LINE) as table,
        _progress("Import", file.stat().st_size) as advance,
    ):
        batches = _clean(cleaner, file, table, lambda: advance(source.tell()))
        merged = asyncio.run(_with_store(url, lambda store: store.merge(batches, update=update, dry_run=dry_run)))
    if merged.incomplete:
        raise Failure(_lines(file, ((row, sheets.NO_TEXT_FOR_NEW) for row in merged.incomplete)))
    return merged, _lines(file, cleaner.suspects().items())


def export_file(url: DatabaseURL, file: Path) -> int:
    """Write every record to a file that gets its name when it is whole; return how many. Raise Failure."""
    write: Callable[[Iterable[Mahasiswa], BinaryIO], None] = sheets.write_csv
    if file.suffix.lower() == ".xlsx":
        from mahasiswa.sheets.xlsx_export import write_xlsx  # noqa: PLC0415 - slow to import

        write = write_xlsx

    async def export(store: Store) -> int:
        count = await store.count(Query())
        with _target(file) as target, _progress("Export", count) as advance:
            await with_records(store, Query(), lambda records: write(_counted(records, advance), target))
        return count

    with _failing(file):
        return asyncio.run(_with_store(url, export, made=False))


def copy_records(source: DatabaseURL, target: DatabaseURL) -> int:
    """Copy every record of one database into another, empty one, all or none; return how many. Raise Failure."""

    async def both(store: Store) -> int:
        return await _with_store(target, lambda other: copy(store, other))

    try:
        return asyncio.run(_with_store(source, both, made=False))
    except StoreError as error:
        raise Failure([f"mahasiswa: {error}"]) from error


def _clean(
    cleaner: sheets.Cleaner, file: Path, raws: Iterable[sheets.Raw], advance: Callable[[], None]
) -> Iterator[Sequence[Incoming]]:
    """Batches of clean rows; Failure at the end where any was wrong, so that all of them are named at once."""
    wrong: list[tuple[int, str]] = []
    rows = cleaner.clean(raws)
    while batch := list(islice(rows, BATCH)):
        wrong += [(row.number, row.problem) for row in batch if isinstance(row, sheets.InvalidRow)]
        if not wrong:
            yield [row[:4] for row in cast("list[sheets.Row]", batch)]
        advance()
    if wrong:
        raise Failure(_lines(file, wrong))


def _counted(records: Iterator[Mahasiswa], advance: Callable[[int], None]) -> Iterator[Mahasiswa]:
    count = 0
    while batch := list(islice(records, BATCH)):
        yield from batch
        count += len(batch)
        advance(count)


def _lines(file: Path, problems: Iterable[tuple[int, str]]) -> list[str]:
    lines = [f"{file}: Baris {row}: {problem}" for row, problem in problems]
    if len(lines) > MOST_LINES:
        lines[MOST_LINES:] = [f"{file}: and {len(lines) - MOST_LINES} more rows"]
    return lines


async def _with_store(url: DatabaseURL, work: Callable[[Store], Awaitable[T]], *, made: bool = True) -> T:
    """Work with a store; a file to read from is not made where there is none."""
    gc.disable()  # a million rows make no cycle, and looking for one among them takes a tenth of the time
    if not made and isinstance(url, SQLiteURL) and not url.path.exists():
        raise Unusable(f"{url.path} does not exist")
    await asyncio.to_thread(migrate, url)
    store = await open_store(url)
    try:
        return await work(store)
    finally:
        await store.close()


@contextmanager
def _failing(file: Path) -> Iterator[None]:
    """Say as a Failure what a file or the database has against it."""
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
    """A bar on a terminal, nothing elsewhere; it is told how much of the whole is done."""
    bar: ProgressBar[int]
    with click.progressbar(length=whole, label=label, file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:
        yield lambda done: bar.update(done - bar.pos)


@contextmanager
def _target(file: Path) -> Iterator[BinaryIO]:
    """A file to write, under another name until it is whole; `-` is standard output."""
    if file == Path("-"):
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with tempfile.NamedTemporaryFile(dir=file.parent, prefix=f".{file.name}.", delete=False) as target:
        try:
            yield cast("BinaryIO", target)
            target.close()
            os.replace(target.name, file)  # noqa: PTH105 - a name, not a path
        except BaseException:
            os.unlink(target.name)  # noqa: PTH108 - as above
            raise
