"""Compares the rows of a file with the stored records: the changes of an import, or the records of a bulk delete."""

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import NamedTuple

from mahasiswa import wording
from mahasiswa.record import NIM_MAX_CHARACTERS, Mahasiswa, Write, digest, digest_or_dash, near_key
from mahasiswa.sheets.carried_file import REPLACED_DIGEST_MAX_CHARACTERS, CarriedFile, CleanedFile
from mahasiswa.sheets.cells import Sheet, SheetRow, Verbatim, has_digit, row_name
from mahasiswa.sheets.cleaning import CleanedRow, NimCell, RejectedRow
from mahasiswa.sheets.columns import IN_ORDER, Columns

_NO_RECORD = Mahasiswa("", "", "")
NAMA_MAX_CHARACTERS = 60  # of a name in a notice about another record


class PlannedRow(NamedTuple):
    """A row of the file with the record that it would make. `before` is None if there is no such record yet."""

    number: int  # as Excel shows it
    before: Mahasiswa | None
    after: Mahasiswa
    notices: tuple[str, ...] = ()  # changes that were made to the texts, and doubts, in Indonesian
    near: Mahasiswa | None = None  # the stored record whose NIM is probably meant


class ImportPlan(NamedTuple):
    """The changes that a file would make, in the order of its rows."""

    new: list[PlannedRow]
    changed: list[PlannedRow]
    same: list[PlannedRow]
    wrong: list[RejectedRow]
    doubted: list[PlannedRow]  # new records whose NIM has no digit, until a person says that it is right
    skipped: list[RejectedRow]


class FoundRow(NamedTuple):
    """A row of the file whose NIM is stored. `nama` is the beginning of the name in the file if it is another one."""

    number: int
    record: Mahasiswa
    nama: str = ""


def compare(cleaned: CleanedFile, existing: Mapping[str, Mahasiswa], near: Collection[Mahasiswa] = ()) -> ImportPlan:
    """Sort the rows into new, changed and unchanged records, and rows that are not written.

    A blank cell keeps the record's text. `near` are stored records whose NIM may be the same as that of a new one.
    """
    plan = ImportPlan([], [], [], [], [], [])
    neighbours = Neighbours(near, cleaned.file.read_sheets)
    for row in cleaned.results:
        if isinstance(row, RejectedRow):
            (plan.skipped if row.is_skipped else plan.wrong).append(row)
            continue
        number, nim, nama, alamat, removed, warnings, uncleaned = row
        if removed and uncleaned in existing:  # a record has the NIM as it stands in the file
            nim, removed = uncleaned, ()
        similar, meant = neighbours.look(number, nim)
        before = existing.get(nim)
        if before is not None:
            notices, meant = removed, None
        else:
            if alamat is None and cleaned.file.fills_alamat:
                alamat = wording.NO_ALAMAT
            if (nama is None or alamat is None) and (problem := _problem_of_new(nama, alamat, cleaned.file.columns)):
                plan.wrong.append(RejectedRow(number, problem, (nim, nama or "", alamat or "")))
                continue
            notices = removed + ((similar,) if similar else warnings)
        stored = before or _NO_RECORD
        after = Mahasiswa(str(nim), _replacement(nama, stored.nama), _replacement(alamat, stored.alamat))
        if after != before and (after.nama not in (nama, stored.nama) or after.alamat not in (alamat, stored.alamat)):
            notices += (wording.LINE_BREAKS,)
        planned = PlannedRow(number, before, after, notices, meant)
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
    for number, *_, notices, near in plan.new:
        if near and (wording.LOST_ZEROS in notices if numbers is None else number in numbers):
            typed[number] = (near.nim, *typed.get(number, (None, None, None))[1:])
    return cleaned.file._replace(typed=typed)


def with_shown_changes(file: CarriedFile, plan: ImportPlan) -> CarriedFile:
    """The file with the changes that the preview shows, so that a confirmation writes only these."""
    new, changed = ([planned.number for planned in rows] for rows in (plan.new, plan.changed))
    return file._replace(new=new, changed=changed, replaced_digest=_digest_of(plan.changed))


def confirmed_writes(file: CarriedFile, plan: ImportPlan, *, update: bool) -> list[Write] | None:
    """The changes that the preview of `file` showed, by a new comparison; None if a record has changed since."""
    now = {planned.number: planned for planned in chain(plan.new, plan.changed, plan.same)}
    shown = file.changed if update else ()
    if not now.keys() >= {*file.new, *shown}:
        return None
    new, changed = ([now[number] for number in numbers] for numbers in (file.new, shown))
    pending = [planned for planned in chain(new, changed) if planned.after != planned.before]
    if not pending:  # a confirmation that is sent twice, as by a double click
        return []
    if any(planned.before for planned in new if planned.after != planned.before):
        return None
    if changed and (_digest_of(changed) != file.replaced_digest or not all(planned.before for planned in changed)):
        return None
    return [Write(planned.after, digest(planned.before) if planned.before else None) for planned in pending]


def _problem_of_new(nama: str | None, alamat: str | None, columns: Columns) -> str:
    _, nama_column, alamat_column = columns.of_fields
    if nama is None and nama_column is None:
        return wording.NO_NAMA_COLUMN
    if alamat is None and alamat_column is None:
        return wording.NO_ALAMAT_COLUMN
    if nama is None:
        return wording.NEW_NEEDS_NAMA if alamat is not None else wording.NEW_NEEDS_BOTH
    return wording.NEW_NEEDS_ALAMAT if alamat is None else ""


def _replacement(cell: str | None, stored: str) -> str:
    """The text that replaces a stored one. A line break of the cell becomes a comma, unless the stored text has it too."""
    if cell is None:
        return stored
    joined = _on_one_line(cell)
    return stored if joined != cell and joined == _on_one_line(stored) else joined


def _on_one_line(text: str) -> str:
    """The text on one line, because the specification's inputs are single-line (4.2.2)."""
    if "\n" not in text and "\r" not in text:
        return text
    first, *others = re.split(r"[\r\n]+", text)
    return ", ".join(filter(None, (first.rstrip(), *map(str.strip, others[:-1]), others[-1].lstrip())))


def _digest_of(rows: Iterable[PlannedRow]) -> str:
    digests = (digest_or_dash(planned.before) for planned in rows)
    return hashlib.sha256(",".join(digests).encode()).hexdigest()[:REPLACED_DIGEST_MAX_CHARACTERS]


class Neighbours:
    """Finds NIMs that have the same `near_key`."""

    def __init__(self, near: Collection[Mahasiswa], sheets: Sequence[str] = ()) -> None:
        self._sheets = sheets
        self._stored = {near_key(record.nim): record for record in near}
        self._rows: dict[str, tuple[int, str]] = {}

    def look(self, number: int, nim: str) -> tuple[str, Mahasiswa | None]:
        """The notice about a row, or a blank text, and the stored record whose NIM is probably meant."""
        key = near_key(nim)
        row, other = self._rows.setdefault(key, (number, nim))
        if not key:
            return "", None
        if stored := self._stored.get(key):
            lost = stored.nim.startswith("0") and not nim.startswith("0")
            return wording.LOST_ZEROS if lost else wording.NEAR_STORED, stored
        if other != nim:
            return wording.NEAR_IN_FILE.format(nim=nim, other=other, row=row_name(row, self._sheets)), None
        return "", None


def nims(cleaned: CleanedFile) -> list[str]:
    """The NIMs of all rows, also of rows that cannot be written. A cleaned NIM is there twice: cleaned, and as in the file."""
    found: list[str] = []
    for row in cleaned.results:
        if isinstance(row, CleanedRow):
            found += (row.nim, row.uncleaned) if row.cleaned else (row.nim,)
        elif not row.is_skipped:
            found.append(row.cells[0])
    return [nim for nim in found if len(nim) <= NIM_MAX_CHARACTERS]


def file_of_nims(nims: Iterable[str]) -> CleanedFile:
    """A file of these NIMs, which are taken as they are."""
    rows: list[SheetRow] = [(number, (Verbatim(nim), None, None)) for number, nim in enumerate(nims, 1)]
    file = CarriedFile("", [""], [Sheet("", rows)], [], Columns(IN_ORDER, []), has_all_cells=False)
    return CleanedFile(file, rows, [])


def compare_nims(
    cells: Iterable[NimCell], existing: Mapping[str, Mahasiswa], near: Collection[Mahasiswa]
) -> tuple[list[FoundRow], list[NimCell]]:
    """The rows whose NIM is stored; and the others with the likely reason, such as a nearly equal NIM in `near`."""
    neighbours = Neighbours(near)
    found: list[FoundRow] = []
    missing: list[NimCell] = []
    for cell in cells:
        if cell.problem:
            missing.append(cell)
        elif record := existing.get(cell.nim):
            is_other = cell.nama and _letters(cell.nama) != _letters(record.nama)
            found.append(FoundRow(cell.number, record, cell.nama[:NAMA_MAX_CHARACTERS] if is_other else ""))
        else:
            message, meant = neighbours.look(cell.number, cell.nim)
            if meant:
                message = wording.NEAR_RECORD.format(nim=meant.nim, nama=meant.nama[:NAMA_MAX_CHARACTERS])
            elif not message and len(cell.nim.split()) > 1:
                message = wording.SEVERAL_NIMS
            missing.append(cell._replace(problem=message))
    return found, missing


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))
