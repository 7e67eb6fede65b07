"""The rows of an upload between its preview and its confirmation: one SQLite file for each upload, in a private folder.

The child process fills it (`read`). A worker compares it with the list and shows it. Each change of a
person raises the version, and each button carries the version of its page, so a button does
exactly what its page has shown.
"""

import errno
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
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import apsw

from mahasiswa.record import Mahasiswa
from mahasiswa.settings import DatabaseURL, SQLiteURL
from mahasiswa.sheets import rules
from mahasiswa.sheets.cells import Row, TooHeavy
from mahasiswa.sheets.columns import Table
from mahasiswa.system.folder_lock import folder_lock
from mahasiswa.work import Busy

STAGES_MAX = 64
STAGES_MAX_OF_ADDRESS = 16
MAX_AGE_SECONDS = 2 * 3600
MAX_BYTES = 16 << 20  # of an upload; see `open` in stage.sql

# The exit codes of the child process, besides 0. Every other one means that the file is too heavy.
EXIT_STALE = 3
EXIT_DISK_FULL = 5

Purpose = Literal["impor", "pilih"]
State = Literal["baru", "berubah", "sama", "ditemukan", "salah", "dilewati"]

Choice = Sequence[tuple[Sequence[tuple[int, str]], bool]]
"""How a person reads each sheet: the columns with their parts, and whether it is read at all."""

_named = re.split(
    r"^-- (\w+): ", Path(__file__).with_suffix(".sql").read_text(), flags=re.MULTILINE
)
# The text behind a name is a comment.
STATEMENTS = {name: f"-- {text}" for name, text in zip(_named[1::2], _named[2::2], strict=True)}

FUNCTIONS: Sequence[Callable[..., Any]] = (
    rules.cleaned,
    rules.cleaned_alamat,
    rules.first_open,
    rules.is_fault,
    rules.shares_no_word,
)
"""The functions of stage.sql that are in Python."""

is_identifier = re.compile("[0-9a-f]{32}").fullmatch


class Gone(Exception):
    """The upload is unknown, damaged or too old, or it belongs to another form."""


class Stale(Exception):
    """Another page has changed the upload since the button's page was made. Nothing was done."""


class Facts(NamedTuple):
    """The facts about an upload. `change` is the change of the history that has saved it, or None."""

    purpose: Purpose
    name: str
    address: str
    created: float
    version: int
    error: str
    change: str | None


class Line(NamedTuple):
    """A line with the record that it would make. See stage.sql for the columns."""

    sheet: int
    number: int
    nim: str
    nama: str
    alamat: str
    own: str
    skipped: str
    accepted: str
    stored_nama: str | None
    stored_alamat: str | None
    near: str | None
    near_nama: str | None
    problem: str
    state: State

    @property
    def stored(self) -> Mahasiswa | None:
        """The stored record with this nim."""
        if self.stored_nama is None:
            return None
        return Mahasiswa(self.nim, self.stored_nama, self.stored_alamat or "")

    @property
    def record(self) -> Mahasiswa:
        """The record that the line makes. A blank text keeps the stored one."""
        nama, alamat = self.nama or self.stored_nama, self.alamat or self.stored_alamat
        return Mahasiswa(self.nim, nama or "", alamat or "")


class Stage:
    """One upload. Its methods take milliseconds. Call them in a thread, one at a time.

    A `with` block closes it, which takes an open transaction back. The methods raise Gone for a damaged file, OSError
    for a full disk, TooHeavy, and Busy if another worker changes the upload for long.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with _sqlite_errors(path):
            self.db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        for function in FUNCTIONS:
            self.db.create_scalar_function(function.__name__, function)
        self.ask("open")

    @classmethod
    def create(cls, folder: Path, purpose: Purpose, name: str, address: str) -> Self:
        """Begin an upload. Remove those that have ended, and another one if there are too many."""
        with _locked(folder):
            uploads = json.dumps(_uploads(folder))
            path = folder / secrets.token_hex(16)
            os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
            stage = cls(path)
            bounds = (STAGES_MAX, STAGES_MAX_OF_ADDRESS)
            for (crowded_out,) in stage.ask("crowded_out", uploads, address, *bounds):
                remove(folder, crowded_out)
            stage.do("create", [(purpose, name, address, time.time())])
            return stage

    @classmethod
    def find(cls, folder: Path, identifier: str, purpose: Purpose) -> Self:
        """An upload that has not ended; raise Gone."""
        if not is_identifier(identifier):
            raise Gone
        stage = cls(folder / identifier)
        if stage.facts().purpose != purpose:
            raise Gone
        os.utime(stage.path)  # it was opened now
        return stage

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.db.close()

    def ask(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """The rows of a statement of stage.sql."""
        with _sqlite_errors(self.path):
            return self.db.execute(STATEMENTS[statement], parameters).fetchall()

    def do(self, statement: str, rows: Iterable[Sequence[object]] = ((),)) -> bool:
        """Do a statement for each of these rows of parameters; return whether it has changed anything."""
        before = self.db.total_changes()
        with _sqlite_errors(self.path):
            self.db.executemany(STATEMENTS[statement], rows)
        return self.db.total_changes() > before

    def facts(self) -> Facts:
        """Raises Gone, also if the upload has ended."""
        try:
            facts = Facts(*self.ask("facts")[0])
        except apsw.SQLError:  # the process that began it was killed
            raise Gone from None
        if time.time() - facts.created > MAX_AGE_SECONDS:
            raise Gone
        return facts

    def begin(self, version: int) -> None:
        """Begin a change, which no other worker can interrupt; raise Stale."""
        if not self.do("begin", [(version,)]):
            self.db.execute("ROLLBACK")  # at once, because other workers wait
            raise Stale

    def commit(self) -> None:
        """End the change. Raise the version if anything has changed."""
        self.do("commit")

    def put_sheets(self, sheets: Iterable[tuple[Table, Sequence[Row]]]) -> None:
        """Keep the sheets of a file."""
        packed = ((sheet.id, _packed(sheet), json.dumps(rows)) for sheet, rows in sheets)
        self.do("put_sheet", packed)

    def put_lines(
        self, sheets: Iterable[Table], lines: Iterable[Sequence[object]], version: int
    ) -> None:
        """Replace all lines, and note how the sheets are read now; raise Stale."""
        self.begin(version)
        self.do("change_sheet", ((_packed(sheet), sheet.id) for sheet in sheets))
        self.do("drop_lines")
        self.do("fail", [("",)])  # other columns may have been refused before
        self.do("put_line", lines)
        self.commit()

    def sheets(self) -> list[Table]:
        packed = map(json.loads, self.column("sheets"))
        return [Table(*facts)._replace(columns=dict(columns)) for *facts, columns in packed]

    def rows(self, sheet: int) -> Sequence[Row]:
        ((cells,),) = self.ask("cells", sheet)
        rows: Sequence[Row] = json.loads(cells)
        return rows

    def column(self, statement: str) -> list[str]:
        """The only column of the rows of a statement."""
        return [value for (value,) in self.ask(statement)]

    def counts(self) -> Counter[str]:
        """The number of lines of each state."""
        return Counter(dict(self.ask("counts")))

    def lines(self, statement: str, *parameters: object) -> list[Line]:
        """The lines that a statement selects."""
        return [Line(*row[: len(Line._fields)]) for row in self.ask(statement, *parameters)]


def folder_of(url: DatabaseURL) -> Path:
    """The folder of the stages of a database: beside an SQLite file, or among the temporary files."""
    if isinstance(url, SQLiteURL):
        return Path(f"{os.path.realpath(url.address)}-unggahan")
    name = hashlib.sha256(url.address.encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir(), f"mahasiswa-unggahan-{os.geteuid()}-{name}")


def remove_ended(folder: Path) -> None:
    """Make the folder, if there is none, and remove the uploads that have ended; raise OSError."""
    with _locked(folder):
        _uploads(folder)


def remove(folder: Path, name: str = "") -> None:
    """Remove an upload, or without a name all of them; raise OSError, also if there is no folder."""
    for path in folder.iterdir():
        if path.name.startswith(name):
            path.unlink(missing_ok=True)


def _packed(sheet: Table) -> str:
    """A table as JSON, which has no numbers as keys."""
    return json.dumps([*sheet, list(sheet.columns.items())])


def _uploads(folder: Path) -> Sequence[Sequence[object]]:
    """The uploads: each with its name, the time when it was last opened, and its facts. Remove those that are Gone."""
    uploads = []
    for path in folder.iterdir():
        if is_identifier(path.name):
            try:
                with Stage(path) as stage:
                    uploads.append((path.name, path.stat().st_mtime, *stage.facts()))
            except Gone:
                remove(folder, path.name)
    return uploads


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Let no other worker begin or remove uploads. Raise OSError if other users can read or replace them."""
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if (found.st_uid, found.st_mode & 0o170077) != (os.geteuid(), stat.S_IFDIR):
        raise PermissionError(errno.EACCES, "other users have access to this folder", str(folder))
    with folder_lock(folder):
        yield


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
