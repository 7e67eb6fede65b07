"""The rows of an upload between its preview and its confirmation: one SQLite file for each upload, in a private folder.

The child process fills it (`read`). A worker compares it with the list and shows it. Each change of a
person raises the version, and each button carries the version of its page, so a button does
exactly what its page has shown.
"""

import errno
import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import apsw

from mahasiswa.record import Mahasiswa
from mahasiswa.settings import DatabaseURL, SQLiteURL
from mahasiswa.sheets.cells import Bad, Cell, Row
from mahasiswa.work import Busy

STAGES_MAX = 64
STAGES_MAX_OF_ADDRESS = 16
MAX_AGE_SECONDS = 2 * 3600
MAX_BYTES = 16 * 1024 * 1024
PAGE_BYTES = 4096
BUSY_MILLISECONDS = 2000  # maximum time to wait for another worker

# The exit codes of the child process, besides 0. Every other one means that the file is too heavy.
EXIT_STALE = 3
EXIT_DISK_FULL = 5

Purpose = Literal["impor", "pilih"]
State = Literal["baru", "berubah", "sama", "salah", "dilewati"]

_folder = Path(__file__).parent
SCHEMA = (_folder / "stage.sql").read_text()
SETTLE = (_folder / "settle.sql").read_text()
_named = re.split(r"-- (\w+): .*\n", (_folder / "statements.sql").read_text())
STATEMENTS = dict(zip(_named[1::2], _named[2::2], strict=True))

is_identifier = re.compile("[0-9a-f]{32}").fullmatch


class Gone(Exception):
    """The upload is unknown, damaged or too old, or it belongs to another form."""


class Stale(Exception):
    """Another page has changed the upload since the button's page was made. Nothing was done."""


class TooHeavy(Exception):
    """The upload takes more than MAX_BYTES, or the child process could not read it within its limits."""


class Facts(NamedTuple):
    """The facts about an upload. `change` is the change of the history that has saved it, or None."""

    purpose: Purpose
    name: str
    address: str
    created: float
    version: int
    error: str
    change: str | None

    @property
    def has_ended(self) -> bool:
        return time.time() - self.created > MAX_AGE_SECONDS


class StagedSheet(NamedTuple):
    """A sheet: its titles, three examples of each column, and the part of a record that each column has, by its index."""

    id: int
    name: str
    header: int  # the number of the row with the titles; 0 without one
    titles: Sequence[str]
    examples: Sequence[Sequence[str]]
    columns: Mapping[int, str]
    doubt: str  # why a person must choose the columns; blank if they are sure
    is_read: bool


class Line(NamedTuple):
    """A line with the record that it would make. See stage.sql for the columns."""

    sheet: int
    number: int
    nim: str
    nama: str
    alamat: str
    own: str = ""
    skipped: str = ""
    accepted: str = ""
    stored_nama: str | None = None
    stored_alamat: str | None = None
    near: str | None = None
    near_nama: str | None = None
    problem: str = ""
    state: State = "baru"

    @property
    def stored(self) -> Mahasiswa | None:
        """The stored record with this nim."""
        if self.stored_nama is None or self.stored_alamat is None:
            return None
        return Mahasiswa(self.nim, self.stored_nama, self.stored_alamat)

    @property
    def record(self) -> Mahasiswa:
        """The record that the line makes. A blank text keeps the stored one."""
        kept = self.stored or Mahasiswa(self.nim, "", "")
        return Mahasiswa(self.nim, self.nama or kept.nama, self.alamat or kept.alamat)


class Stage:
    """One upload. Its methods take milliseconds. Call them in a thread, one at a time.

    A `with` block closes it, which takes an open transaction back. The block raises Gone for a damaged file, OSError
    for a full disk, TooHeavy, and Busy if another worker changes the upload for long.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._changes = 0  # at the beginning of the transaction
        self.db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        self.db.set_busy_timeout(BUSY_MILLISECONDS)
        # After a power cut the upload may be lost, but no process that dies can damage it.
        self.db.execute(
            "PRAGMA trusted_schema = OFF; PRAGMA secure_delete = ON; PRAGMA synchronous = OFF;"
            f"PRAGMA max_page_count = {MAX_BYTES // PAGE_BYTES}"
        ).fetchall()

    @classmethod
    def create(cls, folder: Path, purpose: Purpose, name: str, address: str) -> Self:
        """Begin an upload. Remove those that have ended, and another one if there are too many."""
        with _locked(folder), _sqlite_errors(folder):
            _make_room(folder, address)
            path = folder / secrets.token_hex(16)
            os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
            stage = cls(path)
            stage.db.execute(SCHEMA)
            stage.do("begin", [(purpose, name, address, time.time())])
            return stage

    @classmethod
    def find(cls, folder: Path, identifier: str, purpose: Purpose) -> Self:
        """An upload that has not ended; raise Gone."""
        if not is_identifier(identifier):
            raise Gone
        path = folder / identifier
        with _sqlite_errors(path):
            stage = cls(path)
            facts = stage.facts()
            if facts.purpose != purpose or facts.has_ended:
                raise Gone
            os.utime(path)  # it was opened now
            return stage

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        self.db.close()
        with _sqlite_errors(self.path):
            if isinstance(error, apsw.Error):
                raise error

    def remove(self) -> None:
        self.db.close()
        _remove(self.path)

    def facts(self) -> Facts:
        try:
            (row,) = self.ask("facts")
        except (apsw.SQLError, ValueError):  # the process that began it was killed
            raise Gone from None
        return Facts(*row)

    def begin(self, version: int) -> None:
        """Begin a change, which no other worker can interrupt; raise Stale."""
        self.db.execute("BEGIN IMMEDIATE")
        self._changes = self.db.total_changes()
        if self.facts().version != version:
            self.db.execute("ROLLBACK")
            raise Stale

    def commit(self) -> None:
        """End the change. Raise the version if anything has changed."""
        if self.db.total_changes() > self._changes:
            self.db.execute("UPDATE stage SET version = version + 1")
        self.db.execute("COMMIT")

    def put_sheets(
        self, sheets: Iterable[tuple[StagedSheet, Iterable[Row], frozenset[int]]]
    ) -> None:
        """Keep the sheets of a file, each with its rows and the numbers of its hidden rows."""
        with self.db:
            for sheet, rows, hidden in sheets:
                self.do("put_sheet", [_packed(sheet)])
                self.do(
                    "put_row",
                    (
                        (sheet.id, number, as_json(cells), number in hidden)
                        for number, cells in rows
                    ),
                )

    def put_lines(self, sheets: Iterable[StagedSheet], lines: Iterable[Line], version: int) -> None:
        """Replace all lines, and note how the sheets are read now; raise Stale."""
        self.begin(version)
        self.db.execute("DELETE FROM line; DELETE FROM sheet")
        self.do("put_sheet", map(_packed, sheets))
        self.do("put_line", (line[:7] for line in lines))
        self.commit()

    def fail(self, error: str) -> None:
        """Note why the file cannot be read."""
        self.do("fail", [(error,)])

    def sheets(self) -> list[StagedSheet]:
        return [
            StagedSheet._make(
                (*row[:3], *map(json.loads, row[3:5]), dict(json.loads(row[5])), *row[6:])
            )
            for row in self.ask("sheets")
        ]

    def rows(self, sheet: int) -> Iterator[tuple[int, list[Cell], bool]]:
        """The number and the cells of each row of a sheet, and whether Excel hides it."""
        for number, cells, is_hidden in self.db.execute(STATEMENTS["rows"], (sheet,)):
            yield number, from_json(cells), bool(is_hidden)

    def ask(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """The rows of a statement of statements.sql."""
        return self.db.execute(STATEMENTS[statement], parameters).fetchall()

    def column(self, statement: str) -> list[str]:
        """The only column of the rows of a statement."""
        return [value for (value,) in self.ask(statement)]

    def counts(self) -> Counter[str]:
        """The number of lines of each state."""
        return Counter(dict(self.ask("counts")))

    def lines(self, statement: str, *parameters: object) -> list[Line]:
        """The lines that a statement selects."""
        return [Line(*row) for row in self.ask(statement, *parameters)]

    def do(self, statement: str, rows: Iterable[Sequence[object]]) -> bool:
        """Do a statement for each of these rows of parameters; return whether it has changed anything."""
        before = self.db.total_changes()
        self.db.executemany(STATEMENTS[statement], rows)
        return self.db.total_changes() > before

    def settle(
        self,
        first_open: Callable[[str, str], str],
        is_fault: Callable[[str], bool],
        shares_no_word: Callable[[str, str], bool],
    ) -> bool:
        """Give each line its problem; return whether one has another problem than before. See rules.py for the functions."""
        self._register(first_open, is_fault, shares_no_word)
        before = self.db.total_changes()
        self.db.execute(SETTLE)
        return self.db.total_changes() > before

    def settle_selection(
        self, first_open: Callable[[str, str], str], shares_no_word: Callable[[str, str], bool]
    ) -> None:
        """Give each line of a selection its problem."""
        self._register(first_open, shares_no_word)
        self.do("settle_selection", [()])

    def _register(self, *functions: Callable[..., Any]) -> None:
        for function in functions:
            self.db.create_scalar_function(function.__name__, function)


def folder_of(url: DatabaseURL) -> Path:
    """The folder of the stages of a database: beside an SQLite file, or among the temporary files."""
    if isinstance(url, SQLiteURL):
        path = os.path.realpath(url.address)
        return Path(f"{path}-unggahan")
    name = hashlib.sha256(url.address.encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir(), f"mahasiswa-unggahan-{os.geteuid()}-{name}")


def remove_ended(folder: Path) -> None:
    """Make the folder, if there is none, and remove the uploads that have ended; raise OSError."""
    with _locked(folder):
        _held(folder)


def remove_all(folder: Path) -> None:
    """Remove all uploads; raise OSError, also if there is no folder."""
    for path in folder.iterdir():
        path.unlink(missing_ok=True)


def as_json(cells: Sequence[Cell]) -> str:
    return json.dumps(cells, ensure_ascii=False)  # a Bad is an array


def from_json(text: str) -> list[Cell]:
    return [Bad(*cell) if isinstance(cell, list) else cell for cell in json.loads(text)]


def _packed(sheet: StagedSheet) -> Sequence[object]:
    columns = list(sheet.columns.items())
    return (*sheet[:3], *map(json.dumps, (*sheet[3:5], columns)), sheet.doubt, sheet.is_read)


class _Held(NamedTuple):
    """An upload that has not ended."""

    path: Path
    facts: Facts
    opened: float  # the last time, in seconds since 1970


def _make_room(folder: Path, address: str) -> None:
    """Remove an upload if no further one may begin.

    First those that are saved go, then selections, then of the address with most the one that was not opened for longest.
    """
    held = _held(folder)
    counts = Counter(one.facts.address for one in held)
    if counts[address] >= STAGES_MAX_OF_ADDRESS:
        held = [one for one in held if one.facts.address == address]
    elif len(held) < STAGES_MAX:
        return

    def rank(one: _Held) -> tuple[bool, bool, int, float]:
        facts = one.facts
        is_open = facts.change is None
        return is_open, facts.purpose != "pilih", -counts[facts.address], one.opened

    _remove(min(held, key=rank).path)


def _held(folder: Path) -> list[_Held]:
    """The uploads that have not ended. The others, and damaged ones, are removed."""
    held = []
    for path in folder.iterdir():
        if not is_identifier(path.name):
            continue
        with suppress(Gone), _sqlite_errors(path), Stage(path) as stage:
            facts = stage.facts()
            if not facts.has_ended:
                held.append(_Held(path, facts, path.stat().st_mtime))
                continue
        _remove(path)
    return held


def _remove(path: Path) -> None:
    for name in (path, f"{path}-journal"):
        Path(name).unlink(missing_ok=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Let no other worker begin or remove uploads. Raise OSError if other users can read or replace them."""
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    if not is_ours or found.st_mode & 0o077:
        raise PermissionError(errno.EACCES, "other users have access to this folder", str(folder))
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


@contextmanager
def _sqlite_errors(path: Path) -> Iterator[None]:
    """Raise the errors of this module in the place of SQLite's."""
    try:
        yield
    except apsw.BusyError as error:
        raise Busy(f"another worker changes the upload {path.name[:8]}") from error
    except apsw.FullError as error:
        if shutil.disk_usage(path.parent).free > MAX_BYTES:
            raise TooHeavy from error
        raise OSError(errno.ENOSPC, str(error), str(path)) from error
    except (apsw.CantOpenError, apsw.NotADBError, apsw.CorruptError) as error:
        raise Gone from error
    except apsw.IOError as error:
        raise OSError(errno.EIO, str(error), str(path)) from error
