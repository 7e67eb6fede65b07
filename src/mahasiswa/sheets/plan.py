"""Compares the rows of a file with the stored records, and lists the changes that a confirmed preview writes."""

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import NamedTuple

from mahasiswa import wording
from mahasiswa.record import NIM_MAX_CHARACTERS, Mahasiswa, Write, digest, digest_or_dash, near_key
from mahasiswa.sheets.carried_file import VERSI_MAX_CHARACTERS, CarriedFile
from mahasiswa.sheets.cells import Verbatim, has_digit
from mahasiswa.sheets.cleaning import CleanedRow, InvalidRow, NimCell, RowResult, SkippedRow

NAMA_MAX_CHARACTERS = 60
"""Maximum length of a name in a notice about another record."""


class PlannedRow(NamedTuple):
    """A row of the file with the record that it would make. `before` is None if there is no such record yet."""

    row: CleanedRow
    before: Mahasiswa | None
    after: Mahasiswa
    notices: tuple[str, ...] = ()  # changes that were made to the texts, and doubts, in Indonesian


class ImportPlan(NamedTuple):
    """The changes that a file would make, in the order of its rows."""

    new: list[PlannedRow]
    changed: list[PlannedRow]
    same: list[PlannedRow]
    wrong: list[InvalidRow]
    doubted: list[PlannedRow]  # new records whose NIM has no digit, until a person says that it is right
    skipped: list[SkippedRow]


def compare(
    results: Iterable[RowResult],
    existing: Mapping[str, Mahasiswa],
    near: Collection[Mahasiswa] = (),
    accepted: AbstractSet[int] = frozenset(),
) -> ImportPlan:
    """Sort the rows into new, changed and unchanged records, and rows that are not written.

    A blank cell keeps the record's text. `near` are stored records whose NIM may be the same as that of a new one.
    `accepted` are the rows whose NIM without a digit a person has confirmed.
    """
    plan = ImportPlan([], [], [], [], [], [])
    neighbours = _Neighbours(near)
    for row in results:
        if isinstance(row, SkippedRow):
            plan.skipped.append(row)
            continue
        if isinstance(row, InvalidRow):
            plan.wrong.append(row)
            continue
        number, nim, nama, alamat, cleaned, warnings = row
        before = existing.get(nim)
        similar = neighbours.notices(row, is_new=before is None)
        if before is None and (nama is None or alamat is None):
            needs = ((nama, wording.NEW_NEEDS_NAMA), (alamat, wording.NEW_NEEDS_ALAMAT))
            problem = " ".join(sentence for text, sentence in needs if text is None)
            plan.wrong.append(InvalidRow(number, problem, (nim, nama or "", alamat or "")))
            continue
        after = Mahasiswa(str(nim), _text(nama, before and before.nama), _text(alamat, before and before.alamat))
        notices = cleaned + warnings + similar
        if after != before and (_is_joined(nama, after.nama) or _is_joined(alamat, after.alamat)):
            notices += (wording.LINE_BREAKS,)
        planned = PlannedRow(row, before, after, notices)
        if before is not None:
            (plan.same if after == before else plan.changed).append(planned)
        elif number not in accepted and not isinstance(nim, Verbatim) and not has_digit(nim):
            plan.doubted.append(planned)
        else:
            plan.new.append(planned)
    return plan


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


def not_found(cells: Iterable[NimCell], existing: Collection[str], near: Collection[Mahasiswa]) -> list[NimCell]:
    """The cells whose NIM has no record, each with the likely reason. `near` are records whose NIM may be meant."""
    neighbours = _Neighbours(near)

    def reason(cell: NimCell) -> str:
        several = wording.SEVERAL_NIMS if len(cell.nim.split()) > 1 else ""
        return "".join(neighbours.notices(cell, is_new=True)) or several

    return [
        cell if cell.problem else cell._replace(problem=reason(cell))
        for cell in cells
        if cell.problem or cell.nim not in existing
    ]


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


class _Neighbours:
    """Finds NIMs that differ only by leading zeros, spaces, dots, dashes or the case of letters."""

    def __init__(self, near: Collection[Mahasiswa]) -> None:
        self._stored = {near_key(record.nim): record for record in near}
        self._rows: dict[str, CleanedRow | NimCell] = {}

    def notices(self, row: CleanedRow | NimCell, *, is_new: bool) -> tuple[str, ...]:
        """The notice about a row, if there is one. A row of a record that exists needs none."""
        key = near_key(row.nim)
        earlier = self._rows.setdefault(key, row)
        if not is_new or not key:
            return ()
        found: list[str] = []
        other = ""
        if stored := self._stored.get(key):
            other = stored.nim
            found.append(wording.NEAR_STORED.format(nim=row.nim, other=other, nama=stored.nama[:NAMA_MAX_CHARACTERS]))
        elif earlier.nim != row.nim:
            other = earlier.nim
            found.append(wording.NEAR_IN_FILE.format(nim=row.nim, other=other, row=earlier.number))
        if other.startswith("0") and not row.nim.startswith("0"):
            found.append(wording.LOST_ZEROS)
        return (" ".join(found),) if found else ()


def near_nims(results: Sequence[RowResult], existing: Mapping[str, Mahasiswa]) -> list[str]:
    """The NIMs of new records, whose neighbours in the database are to be found."""
    return [row.nim for row in results if isinstance(row, CleanedRow) and row.nim not in existing]


def nims(results: Sequence[RowResult]) -> list[str]:
    """The NIMs that stand in a file, also in rows that cannot be written."""
    found = (
        row.nim if isinstance(row, CleanedRow) else row.cells[0] for row in results if not isinstance(row, SkippedRow)
    )
    return [nim for nim in found if len(nim) <= NIM_MAX_CHARACTERS]
