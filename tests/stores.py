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
from mahasiswa.settings import DatabaseURL, SQLiteURL
from mahasiswa.store import Snapshot, Store
from mahasiswa.store.engines import engine_of
from mahasiswa.store.store_errors import Refused, Unavailable
from mahasiswa.work import Slots

SITI = Mahasiswa("0001", "Siti Aminah", "Jalan Kaliurang 5")
BUDI = Mahasiswa("0002", "Budi", "Bantul")


@asynccontextmanager
async def opened(url: DatabaseURL) -> AsyncIterator[Store]:
    store = await engine_of(url).open_store(Slots())
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


def fill(url: DatabaseURL, records: Sequence[tuple[str, str, str]]) -> None:
    """Import records that the list does not have."""
    rows = [(number, *record) for number, record in enumerate(records, 2)]
    assert engine_of(url).merge(rows, update=False, dry_run=False).new == len(records)


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


def contents(path: Path) -> list[tuple[object, ...]]:
    return ask(path, "SELECT nim, nama, alamat FROM mahasiswa ORDER BY nim")


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
UPDATE mahasiswa_history SET moment = strftime('%Y-%m-%dT%H:%M:%fZ', moment, '{days:+} days');
UPDATE mahasiswa_history_state SET noted = strftime('%Y-%m-%dT%H:%M:%fZ', noted, '{noted}')"""
AGE_POSTGRES = """
UPDATE mahasiswa_history SET moment = moment + interval '{days} days';
UPDATE mahasiswa_history_state SET noted = noted + interval '{noted}'"""


def age_history(url: DatabaseURL, days: int, noted: str = "-2 minutes") -> None:
    """Make the whole history some days older, in another program. The clock was noted two minutes ago."""
    if isinstance(url, SQLiteURL):
        run_script(url.address, AGE_SQLITE.format(days=-days, noted=noted))
        return
    with psycopg.connect(url.address) as db:
        db.execute(AGE_POSTGRES.format(days=-days, noted=noted))


def leap(url: DatabaseURL, days: int) -> None:
    """Let the clock leap, as the database sees it: all that it holds is older by so many days."""
    age_history(url, days, f"{-days:+} days")
