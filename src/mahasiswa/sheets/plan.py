"""Compares the rows of a file with the stored records, and lists the changes that a confirmed preview writes."""

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import NamedTuple

from mahasiswa import wording
from mahasiswa.record import NIM_MAX_CHARACTERS, Mahasiswa, Write, digest, digest_or_dash, near_key
from mahasiswa.sheets.carried_file import VERSI_MAX_CHARACTERS, CarriedFile, CleanedFile
from mahasiswa.sheets.cells import Verbatim, has_digit, row_name
from mahasiswa.sheets.cleaning import CleanedRow, InvalidRow, NimCell, RowResult, SkippedRow
from mahasiswa.sheets.columns import Columns

NAMA_MAX_CHARACTERS = 60
"""Maximum length of a name in a notice about another record."""


class PlannedRow(NamedTuple):
    """A row of the file with the record that it would make. `before` is None if there is no such record yet."""

    row: CleanedRow
    before: Mahasiswa | None
    after: Mahasiswa
    notices: tuple[str, ...] = ()  # changes that were made to the texts, and doubts, in Indonesian
    near: Mahasiswa | None = None  # the stored record whose NIM is probably meant


class ImportPlan(NamedTuple):
    """The changes that a file would make, in the order of its rows."""

    new: list[PlannedRow]
    changed: list[PlannedRow]
    same: list[PlannedRow]
    wrong: list[InvalidRow]
    doubted: list[PlannedRow]  # new records whose NIM has no digit, until a person says that it is right
    skipped: list[SkippedRow]


def compare(cleaned: CleanedFile, existing: Mapping[str, Mahasiswa], near: Collection[Mahasiswa] = ()) -> ImportPlan:
    """Sort the rows into new, changed and unchanged records, and rows that are not written.

    A blank cell keeps the record's text. `near` are stored records whose NIM may be the same as that of a new one.
    """
    plan = ImportPlan([], [], [], [], [], [])
    neighbours = Neighbours(near, cleaned.file.read_sheets)
    for row in _as_stored(cleaned, existing):
        if isinstance(row, SkippedRow):
            plan.skipped.append(row)
            continue
        if isinstance(row, InvalidRow):
            plan.wrong.append(row)
            continue
        number, nim, nama, alamat, removed, warnings = row
        before = existing.get(nim)
        similar, meant = neighbours.look(row)
        if before is None:
            if alamat is None and cleaned.file.fills_alamat:
                alamat = wording.NO_ALAMAT
            if problem := _problem_of_new(nama, alamat, cleaned.file.columns):
                plan.wrong.append(InvalidRow(number, problem, (nim, nama or "", alamat or "")))
                continue
            notices = removed + ((similar,) if similar else warnings)
        else:
            notices, meant = removed, None
        after = Mahasiswa(str(nim), _text(nama, before and before.nama), _text(alamat, before and before.alamat))
        if after != before and (_is_joined(nama, after.nama) or _is_joined(alamat, after.alamat)):
            notices += (wording.LINE_BREAKS,)
        planned = PlannedRow(row, before, after, notices, meant)
        if before is not None:
            (plan.same if after == before else plan.changed).append(planned)
        elif number not in cleaned.file.accepted and not isinstance(nim, Verbatim) and not has_digit(nim):
            plan.doubted.append(planned)
        else:
            plan.new.append(planned)
    return plan


def with_stored_nims(cleaned: CleanedFile, plan: ImportPlan, numbers: AbstractSet[int] | None) -> CarriedFile:
    """The file with the NIMs that are probably meant in these rows, or in every row that may have lost zeros."""
    typed = dict(cleaned.file.typed)
    for row, *_, notices, near in plan.new:
        if near and (wording.LOST_ZEROS in notices if numbers is None else row.number in numbers):
            typed[row.number] = (near.nim, *typed.get(row.number, (None, None, None))[1:])
    return cleaned.file._replace(typed=typed)


def with_shown_changes(file: CarriedFile, plan: ImportPlan) -> CarriedFile:
    """The file with the changes that the preview shows, so that a confirmation writes only these."""
    new, changed = ([planned.row.number for planned in rows] for rows in (plan.new, plan.changed))
    return file._replace(new=new, changed=changed, versi=_versi(plan.changed))


def confirmed_writes(file: CarriedFile, plan: ImportPlan, *, update: bool) -> list[Write] | None:
    """The changes to write after the preview that showed `file`. None if a record has changed since.

    `plan` is a new comparison with the records that are stored now.
    """
    now = {planned.row.number: planned for planned in chain(plan.new, plan.changed, plan.same)}
    new, changed = ([now[number] for number in numbers if number in now] for numbers in (file.new, file.changed))
    if not update:
        changed = []
    elif len(changed) < len(file.changed):
        return None
    pending = [planned for planned in chain(new, changed) if planned.after != planned.before]
    if len(new) == len(file.new) and not pending:  # a confirmation that is sent twice, as by a double click
        return []
    if len(new) < len(file.new) or any(planned.before for planned in new if planned.after != planned.before):
        return None
    if changed and (_versi(changed) != file.versi or not all(planned.before for planned in changed)):
        return None
    return [Write(planned.after, digest(planned.before) if planned.before else None) for planned in pending]


def _as_stored(cleaned: CleanedFile, existing: Collection[str]) -> Iterator[RowResult]:
    """The results of the rows. A NIM stays uncleaned if a record has it so, as it stands in the file."""
    for (_, nim, *_), row in zip(cleaned.rows, cleaned.results, strict=True):
        if isinstance(row, CleanedRow) and row.cleaned and nim in existing:
            yield row._replace(nim=str(nim), cleaned=())
        else:
            yield row


def _problem_of_new(nama: str | None, alamat: str | None, columns: Columns) -> str:
    """The reason why these texts make no new record."""
    _, nama_column, alamat_column = columns.of_fields
    if nama is None and nama_column is None:
        return wording.NO_NAMA_COLUMN
    if alamat is None and alamat_column is None:
        return wording.NO_ALAMAT_COLUMN
    if nama is None:
        return wording.NEW_NEEDS_NAMA if alamat is not None else wording.NEW_NEEDS_BOTH
    return wording.NEW_NEEDS_ALAMAT if alamat is None else ""


_has_line_break = re.compile(r"[\r\n]").search


def _text(cell: str | None, stored: str | None) -> str:
    """The text that replaces a stored one. A line break of the cell becomes a comma, unless the stored text has it too."""
    if cell is None:
        return stored or ""
    if cell == stored or not _has_line_break(cell):
        return cell
    joined = _joined(cell)
    return stored if stored is not None and joined == _joined(stored) else joined


def _joined(text: str) -> str:
    """The text on one line, because the specification's inputs are single-line (4.2.2)."""
    if not _has_line_break(text):
        return text
    first, *middle, last = re.split(r"[\r\n]+", text)
    return ", ".join(filter(None, (first.rstrip(), *map(str.strip, middle), last.lstrip())))


def _is_joined(cell: str | None, text: str) -> bool:
    return bool(cell and _has_line_break(cell) and not _has_line_break(text))


def _versi(rows: Iterable[PlannedRow]) -> str:
    """One digest of the records that these rows replace."""
    digests = (digest_or_dash(planned.before) for planned in rows)
    return hashlib.sha256(",".join(digests).encode()).hexdigest()[:VERSI_MAX_CHARACTERS]


class Neighbours:
    """Finds NIMs that have the same `near_key`."""

    def __init__(self, near: Collection[Mahasiswa], sheets: Sequence[str] = ()) -> None:
        self._sheets = sheets
        self._stored = {near_key(record.nim): record for record in near}
        self._rows: dict[str, CleanedRow | NimCell] = {}

    def look(self, row: CleanedRow | NimCell) -> tuple[str, Mahasiswa | None]:
        """The notice about a row, or a blank text, and the stored record whose NIM is probably meant."""
        key = near_key(row.nim)
        earlier = self._rows.setdefault(key, row)
        if not key:
            return "", None
        if stored := self._stored.get(key):
            lost = stored.nim.startswith("0") and not row.nim.startswith("0")
            return wording.LOST_ZEROS if lost else wording.NEAR_STORED, stored
        if earlier.nim != row.nim:
            where = row_name(earlier.number, self._sheets)
            return wording.NEAR_IN_FILE.format(nim=row.nim, other=earlier.nim, row=where), None
        return "", None


def nims(cleaned: CleanedFile) -> list[str]:
    """The NIMs of all rows, also of rows that cannot be written. A cleaned NIM is there twice: cleaned, and as in the file."""
    found: list[str] = []
    for (_, cell, *_), row in zip(cleaned.rows, cleaned.results, strict=True):
        if isinstance(row, CleanedRow):
            found += (row.nim, str(cell)) if row.cleaned else (row.nim,)
        elif isinstance(row, InvalidRow):
            found.append(row.cells[0])
    return [nim for nim in found if len(nim) <= NIM_MAX_CHARACTERS]
