"""Helpers for tests that use a store through its protocol, and for another program at the same SQLite file."""

import asyncio
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Literal

import psycopg
import pytest
from spreadsheets import Database

from mahasiswa.record import Mahasiswa
from mahasiswa.settings import DatabaseURL, SQLiteURL, parse_database_url
from mahasiswa.store import Snapshot, Store
from mahasiswa.store.engines import engine_of
from mahasiswa.store.history_items import Item
from mahasiswa.store.results import Merged
from mahasiswa.store.store_errors import Refused, Unavailable
from mahasiswa.work import SEARCH, Slots

SITI = Mahasiswa("0001", "Siti Aminah", "Jalan Kaliurang 5")
BUDI = Mahasiswa("0002", "Budi", "Bantul")


Place = DatabaseURL | Path | str
"""The address of a database, or the path of a file. A text is as in DATABASE_URL."""


def url_of(place: Place) -> DatabaseURL:
    if isinstance(place, Path):
        return SQLiteURL(place)
    return parse_database_url(place) if isinstance(place, str) else place


def migrate(place: Place, days: int | None = None) -> None:
    """Create or upgrade the tables of a database, as a start with these HISTORY_DAYS does."""
    engine_of(url_of(place)).migrate(days)


@asynccontextmanager
async def opened(place: Place) -> AsyncIterator[Store]:
    store = await engine_of(url_of(place)).open_store(Slots())
    try:
        yield store
    finally:
        await store.close()


Outcome = tuple[str, str] | Literal["unavailable"] | None


async def attempt(write: Awaitable[object]) -> Outcome:
    """Make a write; return None if it is stored, the field and the reason if it is refused, or "unavailable"."""
    try:
        await write
    except Refused as refused:
        return refused.field, refused.reason
    except Unavailable:
        return "unavailable"
    return None


async def attempt_all(*writes: Awaitable[object]) -> list[Outcome]:
    return await asyncio.gather(*map(attempt, writes))


def merge(place: Place, *records: tuple[str, str | None, str | None]) -> Merged:
    """Import records by command. Those of the list get the new texts."""
    rows = [(number, *record) for number, record in enumerate(records, 2)]
    return engine_of(url_of(place)).merge(rows, update=True, dry_run=False)


def fill(place: Place, records: Sequence[tuple[str, str, str]]) -> None:
    """Import records that the list does not have."""
    assert merge(place, *records).new == len(records)


async def items(store: Store, batch: str | None = None) -> Sequence[Item]:
    """Return the items of the history, newest first, or the entries of a batch."""
    reader = store.reader(SEARCH)
    page = await reader.history("", 0, 1000, batch=batch)
    assert page.total == len(page.items)
    return page.items


async def read_all(store: Store, at_most: int = 10_000) -> list[Mahasiswa]:
    return records_of(await store.snapshot(at_most))


def records_of(snapshot: Snapshot) -> list[Mahasiswa]:
    assert snapshot.packed is not None
    cells = snapshot.packed.decode().split("\0") if snapshot.packed else []
    assert len(cells) == 3 * snapshot.total
    return list(map(Mahasiswa, cells[::3], cells[1::3], cells[2::3]))


SCRIPT_RUNNER = (
    "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=30).executescript(sys.argv[2])"
)


@contextmanager
def other_program(path: Path) -> Iterator[Callable[[str], list[tuple[object, ...]]]]:
    """Start another program that has the file open; yield a function that runs a statement in it."""
    with Database(path) as other:
        yield other.run


def run_script(path: Path, script: str) -> None:
    """Run SQL statements in another program, which creates the file if necessary."""
    subprocess.run([sys.executable, "-ISc", SCRIPT_RUNNER, str(path), script], check=True)


def ask(path: Path, statement: str) -> list[tuple[object, ...]]:
    with other_program(path) as execute:
        return execute(statement)


def in_shell(path: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Run commands in the sqlite3 shell, or skip if it is not installed."""
    shell = shutil.which("sqlite3")
    if shell is None:
        pytest.skip("the sqlite3 shell is not installed")
    return subprocess.run(
        [shell, "-bail", str(path)],
        input=script,
        capture_output=True,
        text=True,
        check=False,
        cwd=path.parent,
    )


AGE_SQLITE = """
UPDATE mahasiswa_history SET moment = strftime('%Y-%m-%dT%H:%M:%fZ', moment, '{days:+} days')"""
AGE_POSTGRES = "UPDATE mahasiswa_history SET moment = moment + interval '{days} days'"


def age_history(place: Place, days: int) -> None:
    """Make the whole history some days older, in another program."""
    url = url_of(place)
    if isinstance(url, SQLiteURL):
        run_script(url.address, AGE_SQLITE.format(days=-days))
        return
    with psycopg.connect(url.address) as db:
        db.execute(AGE_POSTGRES.format(days=-days))
