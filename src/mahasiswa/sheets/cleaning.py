"""Turns the rows of a sheet into records, and says which rows cannot be written and why.

Rows that are not students, such as totals and signatures, and repetitions of a whole row are skipped.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from mahasiswa import wording
from mahasiswa.digits import is_digits
from mahasiswa.sheets.cell_rules import (
    clean_nim,
    clean_text,
    is_ordinary_name,
    is_ordinary_nim,
    is_ordinary_text,
    warnings_about,
)
from mahasiswa.sheets.cells import SheetRow, cell_text, is_blank, row_name
from mahasiswa.sheets.columns import TITLES, is_repeated_header
from mahasiswa.sheets.errors import SheetError
from mahasiswa.sheets.non_students import NonStudents, is_skipped_nim


class CleanedRow(NamedTuple):
    """A row that can be written. A blank cell is None: it keeps the text of a record that exists."""

    number: int  # as Excel shows it
    nim: str
    nama: str | None
    alamat: str | None
    cleaned: tuple[str, ...] = ()  # the characters removed from the NIM, in Indonesian
    warnings: tuple[str, ...] = ()  # reasons to check the row, in Indonesian


class InvalidRow(NamedTuple):
    """A row that cannot be written."""

    number: int  # as Excel shows it
    problem: str  # the fault and its correction, in Indonesian
    cells: tuple[str, str, str]  # NIM, Nama and Alamat as they are in the file
    twin: int | None = None  # the number of the first row with the same NIM


class SkippedRow(NamedTuple):
    """A row that is not a student, or that repeats another row."""

    number: int  # as Excel shows it
    reason: str  # in Indonesian
    cells: tuple[str, str, str]  # NIM, Nama and Alamat as they are in the file


class NimCell(NamedTuple):
    """The NIM in a row of a list of NIMs. If a spreadsheet has damaged it, `problem` says so in Indonesian."""

    number: int  # as Excel shows it
    nim: str  # the text of the cell if there is a problem
    problem: str = ""
    nama: str = ""  # blank if the file has no names


RowResult: TypeAlias = CleanedRow | InvalidRow | SkippedRow

_NO_TEXTS = -1  # no hash has this value


class Cleaner:
    """Cleans rows one by one. It remembers each NIM, its row and a hash of its texts: 230 MB for a million rows.

    `sheets` are the names of the sheets that are read, for sentences about another row.
    """

    def __init__(self, sheets: Sequence[str] = ()) -> None:
        self._name_of = partial(row_name, sheets=sheets)
        self._seen: dict[str, tuple[int, int]] = {}  # the number of the first row and the hash of its texts, by NIM
        self._non_students = NonStudents()

    def clean(self, rows: Iterable[SheetRow]) -> Iterator[RowResult]:
        """One result for each row. If an earlier row has the same NIM and other texts, the later row is invalid."""
        seen, non_students = self._seen, self._non_students
        for row in rows:
            number, nim, nama, alamat = row
            if (
                isinstance(nim, str)
                and nim not in seen
                and is_ordinary_nim(nim)
                and is_ordinary_name(nama)
                and is_ordinary_text(alamat)
            ):
                seen[nim] = number, hash((nama, alamat))
                non_students.in_signatures = False
                yield CleanedRow(number, nim, nama, alamat)  # type: ignore[arg-type]  # both are str
            else:
                yield self._clean_row(row)

    def twice(self, nim: str, first: int, second: int) -> str:
        """The problem of two rows with the same NIM."""
        return wording.NIM_TWICE.format(nim=nim, first=self._name_of(first), second=self._name_of(second))

    def suspects(self) -> dict[int, str]:
        """Warnings by row number about NIMs that may have lost leading zeros. Call it after the last row.

        If most NIMs that are all digits have the same length, a shorter one may have been a number in a spreadsheet.
        """
        lengths = Counter(len(nim) for nim in self._seen if is_digits(nim))
        (usual, count), *others = lengths.most_common() or [(0, 0)]
        if not others or count * 2 <= lengths.total():
            return {}
        return {
            number: wording.SHORT_NIM.format(length=usual)
            for nim, (number, _) in self._seen.items()
            if len(nim) < usual and is_digits(nim) and nim[0] != "0"
        }

    def _clean_row(self, row: SheetRow) -> RowResult:
        number, *cells = row
        nim_cell, nama_cell, alamat_cell = cells
        shown_cells = cell_text(nim_cell), cell_text(nama_cell), cell_text(alamat_cell)
        if reason := self._non_students.reason(cells):
            return SkippedRow(number, reason, shown_cells)
        problems: list[str] = []
        cleaned: list[str] = []
        nim = clean_nim(nim_cell, problems, cleaned)
        has_nim = not problems
        nama = clean_text("nama", nama_cell, problems)
        alamat = clean_text("alamat", alamat_cell, problems)
        texts = _NO_TEXTS if problems else hash((nama, alamat))
        # A NIM counts even if the rest of its row is invalid: only a person can tell which of two rows is right.
        first, first_texts = self._seen.setdefault(nim, (number, texts)) if has_nim else (number, texts)
        if first != number and not problems and first_texts == texts:
            reason = wording.SKIPPED_REPETITION.format(row=self._name_of(first))
            return SkippedRow(number, reason, (nim, nama or "", alamat or ""))
        if first != number:
            problems.append(self.twice(nim, first, number))
        if problems:
            return InvalidRow(number, " ".join(problems), shown_cells, first if first != number else None)
        return CleanedRow(number, nim, nama, alamat, tuple(cleaned), warnings_about(nim, nama))


def clean_all(rows: Iterable[SheetRow], sheets: Sequence[str] = ()) -> list[RowResult]:
    """Clean all rows of a file for the preview. Both rows of a NIM that occurs twice are invalid."""
    cleaner = Cleaner(sheets)
    results = list(cleaner.clean(rows))
    suspects = cleaner.suspects()
    twins = {result.twin: result.number for result in results if isinstance(result, InvalidRow) and result.twin}
    if not suspects and not twins:
        return results

    def reviewed(row: RowResult) -> RowResult:
        """The row with the problems that are known only after the last row of the file."""
        if isinstance(row, CleanedRow) and row.number in twins:
            problem = cleaner.twice(row.nim, row.number, twins[row.number])
            return InvalidRow(row.number, problem, (row.nim, row.nama or "", row.alamat or ""))
        if isinstance(row, CleanedRow) and row.number in suspects:
            return row._replace(warnings=(*row.warnings, suspects[row.number]))
        return row

    return list(map(reviewed, results))


def clean_nims(rows: Iterable[SheetRow]) -> list[NimCell]:
    """Each NIM once, at its first row. A row without a NIM is left out. Raises SheetError if that leaves none."""
    first: dict[str, NimCell] = {}
    for number, cell, nama, _ in rows:
        problems: list[str] = []
        nim = clean_nim(cell, problems, [])
        if not problems:
            first.setdefault(nim, NimCell(number, nim, nama=cell_text(nama)))
        elif not is_blank((cell,)):
            first.setdefault(cell_text(cell), NimCell(number, cell_text(cell), " ".join(problems)))
    if not first:
        raise SheetError(wording.NO_NIMS_READ)
    return list(first.values())


def is_kept(nim: str) -> bool:
    """Whether this NIM is imported unchanged, for any Nama and Alamat."""
    if is_ordinary_nim(nim):
        return True
    problems: list[str] = []
    kept = clean_nim(nim, problems, []) == nim and not problems
    return kept and not is_repeated_header((nim, *TITLES[1:])) and not is_skipped_nim(nim)
