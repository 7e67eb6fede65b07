"""Compares the rows of a file with the stored records: the changes of an import."""

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from mahasiswa import wording
from mahasiswa.record import Mahasiswa, Write, digest, near_key, tidy
from mahasiswa.sheets.carried_file import CarriedFile
from mahasiswa.sheets.cell_rules import doubt_about, ends_in_zeros, is_long
from mahasiswa.sheets.cells import row_name
from mahasiswa.sheets.cleaning import CleanedFile, CleanedRow, RejectedRow
from mahasiswa.sheets.questions import Question

_is_untidy = re.compile("[\r\n\u00a0]|  |^ | \\Z").search


class PlannedRow(NamedTuple):
    """A row of the file with the record that it would make. `before` is None if there is no such record yet."""

    number: int  # as Excel shows it
    before: Mahasiswa | None
    after: Mahasiswa
    notices: tuple[str, ...] = ()  # changes that were made to the texts, and doubts, in Indonesian
    near: Mahasiswa | None = None  # the stored record whose NIM is probably meant


# A file gets a question if at least so many of its changed rows, and one in so many, have another
# name.
OTHER_NAMES_MIN, OTHER_NAMES_PART = 3, 10


class ImportPlan(NamedTuple):
    """The changes that a file would make, in the order of its rows."""

    new: list[PlannedRow]
    changed: list[PlannedRow]
    same: list[PlannedRow]
    # It also has new records with a doubtful NIM, until a person says that it is right.
    wrong: list[RejectedRow]
    skipped: list[RejectedRow]

    @property
    def questions(self) -> list[Question]:
        """The question about many rows that have another name than their stored record."""
        rows = [row.number for row in self.changed if wording.OTHER_NAME in row.notices]
        if len(rows) < OTHER_NAMES_MIN or len(rows) * OTHER_NAMES_PART < len(self.changed):
            return []
        others = wording.number(len(rows))
        changed = wording.number(len(self.changed))
        sentence = wording.OTHER_NAMES.format(others=others, changed=changed)
        return [Question("nama", sentence, rows)]


def compare(
    cleaned: CleanedFile, existing: Mapping[str, Mahasiswa], near: Collection[Mahasiswa] = ()
) -> ImportPlan:
    """Sort the rows by what they do to the stored records. `near` are stored records whose NIM may be the same."""
    plan = ImportPlan([], [], [], [], [])
    neighbours = Neighbours(near, cleaned.file.places)
    accepted = cleaned.file.accepted
    are_rounded = _are_rounded(cleaned.results)
    for row in cleaned.results:
        planned = (
            _planned(row, cleaned.file, existing, neighbours)
            if isinstance(row, CleanedRow)
            else row
        )
        if isinstance(planned, RejectedRow):
            (plan.skipped if planned.is_skipped else plan.wrong).append(planned)
        elif planned.before is not None:
            part = plan.same if planned.after == planned.before else plan.changed
            part.append(planned)
        elif planned.number not in accepted and (
            doubt := doubt_about(planned.after.nim, are_rounded=are_rounded)
        ):
            plan.wrong.append(RejectedRow(planned.number, doubt, planned.after))
        else:
            plan.new.append(planned)
    return plan


def _are_rounded(rows: Iterable[CleanedRow | RejectedRow]) -> bool:
    """Whether a tenth of the long NIMs end in zeros. By chance, one in a hundred of 17 digits does."""
    nims = [row.nim for row in rows if isinstance(row, CleanedRow) and is_long(row.nim)]
    return 0 < len(nims) <= 10 * sum(map(ends_in_zeros, nims))


def _planned(
    row: CleanedRow, file: CarriedFile, existing: Mapping[str, Mahasiswa], neighbours: "Neighbours"
) -> PlannedRow | RejectedRow:
    """The record that a row would make, or the row with the reason why it cannot make one."""
    if row.uncleaned in existing:  # a record has the NIM as it stands in the file
        row = row._replace(nim=row.uncleaned, cleaned=())
    number, nim, nama, alamat, notices = row[:5]
    similar, meant = neighbours.look(number, nim)
    before = existing.get(nim)
    if before is None:
        if alamat is None and file.fills_alamat:
            alamat = wording.NO_ALAMAT
        if problem := _problem_of_new(number, nama, alamat, file):
            return RejectedRow(number, problem, (nim, nama or "", alamat or ""))
        notices += (similar,) if similar else row.warnings

    after, of_texts = _replaced(before, nim, nama, alamat)
    if after != before:
        notices += (*row.noted, *of_texts)
    if before and _are_of_others(before, after):
        notices += (wording.OTHER_NAME,)
    meant = None if before else meant
    return PlannedRow(number, before, after, (*dict.fromkeys(notices),), meant)


def _are_of_others(*records: Mahasiswa) -> bool:
    """Whether the names of two records have no word in common."""
    words, others = (set(re.findall(r"\w{2,}", of.nama.casefold())) for of in records)
    return bool(words and others and not words & others)


def with_shown_changes(file: CarriedFile, plan: ImportPlan, *, has_questions: bool) -> CarriedFile:
    """The file with the changes that the preview shows, so that a confirmation writes only these."""
    new, changed = ([planned.number for planned in rows] for rows in (plan.new, plan.changed))
    digests = [_digest_of(_writes(rows)) for rows in (plan.new, plan.changed)]
    return file._replace(
        new=new, changed=changed, shown_digests=digests, has_questions=has_questions
    )


def confirmed_writes(file: CarriedFile, plan: ImportPlan, *, update: bool) -> list[Write] | None:
    """The changes that a button makes, by a new comparison.

    The result is None if they are not those that the preview of `file` showed. If all that it
    showed is stored already, there is nothing to write: the button was pressed twice.
    """
    parts = [_writes(plan.new)]
    shown = {*file.new}
    if update:
        parts.append(_writes(plan.changed))
        shown |= {*file.changed}
    if [*map(_digest_of, parts)] == list(file.shown_digests[: len(parts)]):
        return [*chain.from_iterable(parts)]
    is_stored = shown <= {planned.number for planned in plan.same}
    return [] if is_stored else None


def _writes(rows: Iterable[PlannedRow]) -> list[Write]:
    return [
        Write(planned.after, digest(planned.before) if planned.before else None) for planned in rows
    ]


def _problem_of_new(number: int, nama: str | None, alamat: str | None, file: CarriedFile) -> str:
    if nama is None and not file.has_column("nama", number):
        return wording.NO_NAMA_COLUMN
    if alamat is None and not file.has_column("alamat", number):
        return wording.NO_ALAMAT_COLUMN
    if nama is None:
        return wording.NEW_NEEDS_BOTH if alamat is None else wording.NEW_NEEDS_NAMA
    return wording.NEW_NEEDS_ALAMAT if alamat is None else ""


def _replaced(
    before: Mahasiswa | None, nim: str, nama: str | None, alamat: str | None
) -> tuple[Mahasiswa, Sequence[str]]:
    """The record with the texts of a row, and notices about them."""
    _, old_nama, old_alamat = before or (nim, "", "")
    new_nama, of_nama = _replacement(nama, old_nama, " ", wording.NAMA_LINE_BREAKS)
    new_alamat, of_alamat = _replacement(alamat, old_alamat, ", ", wording.LINE_BREAKS)
    return Mahasiswa(nim, new_nama, new_alamat), (*of_nama, *of_alamat)


def _replacement(
    cell: str | None, stored: str, separator: str, line_breaks: str
) -> tuple[str, Sequence[str]]:
    """The text to store, and a notice.

    The stored text stays if the cell is blank, or differs only in spaces and in characters that
    cannot be seen.
    """
    if cell is None:
        return stored, ()
    tidied = _tidied(cell, separator)
    if stored and tidy(tidied) == tidy(_tidied(stored, separator)):
        return stored, ()
    if tidied == cell:
        return cell, ()
    has_line_break = "\n" in cell or "\r" in cell
    return tidied, (line_breaks if has_line_break else wording.SPACES_TIDIED,)


def _tidied(text: str, separator: str) -> str:
    """The text on one line, because the specification's inputs are single-line (4.2.2), with single spaces.

    Other spaces than those of ASCII and of web pages stay.
    """
    # Most texts have only single spaces. This test finds them in a third of the time of the pattern.
    if text == " ".join(text.split()) or not _is_untidy(text):
        return text
    # "Jl. Mawar 5,\nSolo" must not become "Jl. Mawar 5,, Solo".
    lines = (
        " ".join(filter(None, line.split(" "))).removesuffix(separator.strip())
        for line in text.replace("\u00a0", " ").replace("\r", "\n").split("\n")
    )
    return separator.join(filter(None, lines))


def _digest_of(writes: Sequence[Write]) -> str:
    return hashlib.sha256(json.dumps(writes).encode()).hexdigest()


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
            place = row_name(row, self._sheets)
            return wording.NEAR_IN_FILE.format(nim=nim, other=other, row=place), None
        return "", None
