"""The rows of an upload between its preview and its confirmation: one SQLite file for each upload, in a private folder.

The child process fills it (`read`). A worker compares it with the list and shows it. Each change of a
person raises the version, and each button carries the version of its page, so a button does
exactly what its page has shown.
"""

import json
import os
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple, Self

import apsw

from mahasiswa.record import Mahasiswa
from mahasiswa.intake.cells import Bad, Cell, Row

STAGES_MAX = 64
STAGES_MAX_OF_ADDRESS = 16
MAX_AGE_SECONDS = 2 * 3600
MAX_BYTES = 16 * 1024 * 1024
PAGE_BYTES = 4096
BUSY_MILLISECONDS = 2000  # maximum time to wait for another worker

Purpose = Literal["impor", "pilih"]
State = Literal["baru", "berubah", "sama", "salah", "dilewati"]

_folder = Path(__file__).parent
SCHEMA = (_folder / "stage.sql").read_text()
SETTLE = (_folder / "settle.sql").read_text()

is_identifier = re.compile("[0-9a-f]{32}").fullmatch


class Gone(Exception):
    """The upload is unknown, damaged or too old, or it belongs to another form."""


class Stale(Exception):
    """Another page has changed the upload since the button's page was made. Nothing was done."""


class Facts(NamedTuple):
    """The facts about an upload. `change` is the change of the history that has saved it, or None."""

    purpose: Purpose
    name: str
    version: int
    error: str
    change: str | None


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


LINE = ", ".join(Line._fields)


class Stage:
    """One upload. Its methods take milliseconds. Call them in a thread, one at a time.

    Each may raise Gone for a damaged file, and OSError for a full disk.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.id = path.name
        try:
            self.db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        except apsw.CantOpenError:
            raise Gone from None
        self.db.set_busy_timeout(BUSY_MILLISECONDS)
        # After a power cut the upload may be lost, but no process that dies can damage it.
        self.db.execute(
            "PRAGMA trusted_schema = OFF; PRAGMA secure_delete = ON; PRAGMA synchronous = OFF;"
            f"PRAGMA journal_mode = TRUNCATE; PRAGMA max_page_count = {MAX_BYTES // PAGE_BYTES}"
        )

    @classmethod
    def create(cls, folder: Path, purpose: Purpose, name: str, address: str) -> Self:
        """Begin an upload. Remove those that have ended, and others if there are too many."""
        folder.mkdir(mode=0o700, exist_ok=True)
        make_room(folder, address)
        path = folder / secrets.token_hex(16)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
        stage = cls(path)
        stage.db.execute(SCHEMA)
        stage.db.execute(
            "INSERT INTO stage (purpose, name, address, created, version) VALUES (?, ?, ?, ?, 1)",
            (purpose, name, address, time.time()),
        )
        return stage

    @classmethod
    def find(cls, folder: Path, identifier: str, purpose: Purpose) -> Self:
        """An upload that has not ended; raise Gone."""
        if not is_identifier(identifier):
            raise Gone
        stage = cls(folder / identifier)
        if stage.facts().purpose != purpose or stage.has_ended():
            stage.close()
            raise Gone
        os.utime(stage.path)  # it was opened now
        return stage

    def close(self) -> None:
        self.db.close()

    def remove(self) -> None:
        self.db.close()
        self.path.unlink(missing_ok=True)

    def facts(self) -> Facts:
        return Facts(*self._one("SELECT purpose, name, version, error, change FROM stage"))

    def has_ended(self) -> bool:
        (created,) = self._one("SELECT created FROM stage")
        return time.time() - created > MAX_AGE_SECONDS

    @contextmanager
    def changing(self, version: int) -> Iterator[None]:
        """Make a change of a person in one transaction, and raise the version; raise Stale."""
        with self._writing():
            if self._one("SELECT version FROM stage") != (version,):
                raise Stale
            yield
            self.db.execute("UPDATE stage SET version = version + 1")

    # What the child process writes.

    def put_sheets(self, sheets: Iterable[tuple[StagedSheet, Iterable[Row], frozenset[int]]]) -> None:
        """Keep the sheets of a file, each with its rows and the numbers of its hidden rows."""
        with self._writing():
            for sheet, rows, hidden in sheets:
                self._put_sheet(sheet)
                self.db.executemany(
                    "INSERT INTO cell_row VALUES (?, ?, ?, ?)",
                    ((sheet.id, number, as_json(cells), number in hidden) for number, cells in rows),
                )

    def put_lines(self, sheets: Iterable[StagedSheet], lines: Iterable[Line], version: int) -> None:
        """Replace all lines, and note how the sheets are read now; raise Stale."""
        with self.changing(version):
            self.db.execute("DELETE FROM line; DELETE FROM sheet")
            for sheet in sheets:
                self._put_sheet(sheet)
            self.db.executemany(
                "INSERT INTO line (sheet, number, nim, nama, alamat, own, skipped)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (line[:7] for line in lines),
            )

    def fail(self, error: str) -> None:
        """Note why the file cannot be read."""
        self.db.execute("UPDATE stage SET error = ?", (error,))

    def sheets(self) -> list[StagedSheet]:
        rows = self.db.execute("SELECT * FROM sheet ORDER BY id")
        return [_staged_sheet(row) for row in rows]

    def rows(self, sheet: int) -> Iterator[tuple[int, list[Cell], bool]]:
        """The number and the cells of each row of a sheet, and whether Excel hides it."""
        statement = "SELECT number, cells, is_hidden FROM cell_row WHERE sheet = ? ORDER BY number"
        for number, cells, is_hidden in self.db.execute(statement, (sheet,)):
            yield number, from_json(cells), bool(is_hidden)

    # What a worker does.

    def lines(self, where: str = "1", parameters: Sequence[object] = (), limit: int = -1, start: int = 0) -> list[Line]:
        """The lines that meet a condition, in the order of the file."""
        statement = f"SELECT {LINE} FROM shown WHERE {where} ORDER BY sheet, number LIMIT ? OFFSET ?"
        rows = self.db.execute(statement, (*parameters, limit, start))
        return [Line(*row) for row in rows]

    def change_lines(self, lines: Iterable[Line], version: int) -> None:
        """Replace the texts of lines, and what a person has decided about them; raise Stale.

        Then compare the lines with the stored records, because their nims may be others.
        """
        with self.changing(version):
            self.db.executemany(
                "UPDATE line SET nim = ?, nama = ?, alamat = ?, own = ?, skipped = ?, accepted = ?,"
                " stored_nama = NULL, stored_alamat = NULL, near = NULL, near_nama = NULL"
                " WHERE sheet = ? AND number = ?",
                ((*line[2:8], *line[:2]) for line in lines),
            )

    def nims(self) -> list[str]:
        """The nims of all lines that are not skipped."""
        return self._column("SELECT DISTINCT nim FROM line WHERE skipped = '' AND nim <> '' ORDER BY nim")

    def note_stored(self, nims: Sequence[str], stored: Mapping[str, Mahasiswa]) -> bool:
        """Note the stored records with these nims; return whether one is not as it was noted before."""
        before = self.db.total_changes()
        with self._writing():
            self.db.executemany(
                "UPDATE line SET stored_nama = ?2, stored_alamat = ?3"
                " WHERE nim = ?1 AND (stored_nama IS NOT ?2 OR stored_alamat IS NOT ?3)",
                (stored.get(nim) or (nim, None, None) for nim in nims),
            )
        return self.db.total_changes() > before

    def nims_without_near(self) -> list[str]:
        """The nims of lines that are not stored, for which no near nim was looked up yet."""
        return self._column(
            "SELECT DISTINCT nim FROM line"
            " WHERE skipped = '' AND nim <> '' AND stored_nama IS NULL AND near IS NULL ORDER BY nim"
        )

    def note_near(self, near: Mapping[str, Mahasiswa], nims: Iterable[str]) -> None:
        """Note the stored record whose nim is nearly one of these nims, or that there is none."""
        with self._writing():
            self.db.executemany(
                "UPDATE line SET near = ?2, near_nama = ?3 WHERE nim = ?1",
                ((nim, *(near[nim][:2] if nim in near else ("", None))) for nim in nims),
            )

    def settle(self, is_fault: Callable[[str], bool], shares_no_word: Callable[[str, str], bool]) -> None:
        """Give each line its problem, after the lines or the stored records have changed."""
        self.db.create_scalar_function("is_fault", is_fault, 1, deterministic=True)
        self.db.create_scalar_function("shares_no_word", shares_no_word, 2, deterministic=True)
        self.db.execute(SETTLE)

    def counts(self) -> dict[State, int]:
        """The number of lines by their state."""
        return dict(self.db.execute("SELECT state, count(*) FROM shown GROUP BY state"))

    def problems(self) -> list[tuple[str, int]]:
        """The codes of the problems of lines that are not saved, each with the number of its lines, in the order of the file."""
        statement = "SELECT problem, count(*) FROM shown WHERE state = 'salah' GROUP BY problem ORDER BY min(sheet), min(number)"
        return list(self.db.execute(statement))

    def skip_reasons(self) -> list[tuple[str, int]]:
        """The reasons why lines are skipped, each with the number of its lines."""
        return list(self.db.execute("SELECT skipped, count(*) FROM line WHERE skipped <> '' GROUP BY 1 ORDER BY min(sheet), min(number)"))

    def finish(self, change: str) -> None:
        """Note the change that has saved the lines, so that a second click leads to the same page; drop the texts."""
        with self._writing():
            self.db.execute("UPDATE stage SET change = ?", (change,))
            self.db.execute("DELETE FROM line; DELETE FROM cell_row; DELETE FROM sheet")

    def _put_sheet(self, sheet: StagedSheet) -> None:
        self.db.execute(
            "INSERT INTO sheet VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *sheet[:3],
                json.dumps(sheet.titles),
                json.dumps(sheet.examples),
                json.dumps(sheet.columns),
                sheet.doubt,
                sheet.is_read,
            ),
        )

    def _one(self, statement: str) -> tuple[Any, ...]:
        """The only row of a statement; raise Gone if the file is no stage."""
        try:
            return self.db.execute(statement).fetchone() or _raise(Gone)
        except apsw.Error:
            raise Gone from None

    def _column(self, statement: str) -> list[str]:
        return [value for (value,) in self.db.execute(statement)]

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A transaction that no other worker interrupts."""
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.db.execute("ROLLBACK")
            raise
        self.db.execute("COMMIT")


def as_json(cells: Sequence[Cell]) -> str:
    return json.dumps(cells, ensure_ascii=False)  # a Bad is an array


def from_json(text: str) -> list[Cell]:
    return [Bad(*cell) if isinstance(cell, list) else cell for cell in json.loads(text)]
