"""Turns the rows of a sheet into records, and says which rows cannot be written and why.

Rows that are not students, such as totals and signatures, and repetitions of a whole row are skipped.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from mahasiswa import wording
from mahasiswa.digits import is_digits
from mahasiswa.sheets.cell_rules import clean_nim, clean_text, is_ordinary, is_ordinary_nim, warnings_about
from mahasiswa.sheets.cells import Cell, SheetRow, Verbatim, cell_text, has_digit, is_blank, row_name
from mahasiswa.sheets.columns import HEADER_MAX_CHARACTERS, TITLES, is_repeated_header
from mahasiswa.sheets.sheet_errors import SheetError

_is_total = re.compile(
    r"(?:sub\s?-?total|total|jumlah|rata-rata|keterangan|catatan|dicetak|laki-laki|perempuan)\b"
).match
_column_number = re.compile(r"\(?([0-9]{1,2})\)?").fullmatch
_is_signature = re.compile(
    r"(?:mengetahui|menyetujui|mengesahkan|kepala (?:sekolah|madrasah|program|jurusan|tata|bagian)|wali kelas|dekan"
    r"|rektor|ketua (?:program|prodi|jurusan|kelas)|tata usaha|nip\b|ttd\b|tanda tangan)"
).match


class CleanedRow(NamedTuple):
    """A row that can be written. A blank cell is None: it keeps the text of a record that exists."""

    number: int  # as Excel shows it
    nim: str
    nama: str | None
    alamat: str | None
    cleaned: tuple[str, ...] = ()  # the characters removed from the NIM, in Indonesian
    warnings: tuple[str, ...] = ()  # reasons to check the row, in Indonesian
    uncleaned: str = ""  # the NIM as it is in the file, if characters were removed


class RejectedRow(NamedTuple):
    """A row that cannot be written, or that is skipped, because it is not a student or repeats another row."""

    number: int  # as Excel shows it
    problem: str  # the fault and its correction, or the reason to skip the row, in Indonesian
    cells: tuple[str, str, str]  # NIM, Nama and Alamat as they are in the file
    repeats: int | None = None  # the number of the first row with the same NIM
    is_skipped: bool = False


class NimCell(NamedTuple):
    """The NIM in a row of a list of NIMs. If a spreadsheet has damaged it, `problem` says so in Indonesian."""

    number: int  # as Excel shows it
    nim: str  # the text of the cell if there is a problem
    problem: str = ""
    nama: str = ""  # blank if the file has no names


RowResult: TypeAlias = CleanedRow | RejectedRow

_NO_TEXTS = -1  # no hash has this value


class Cleaner:
    """Cleans rows one by one. It remembers each NIM, its row and a hash of its texts: 230 MB for a million rows.

    `sheets` are the names of the sheets that are read, for sentences about another row.
    """

    def __init__(self, sheets: Sequence[str] = ()) -> None:
        self._name_of = partial(row_name, sheets=sheets)
        self._seen: dict[str, tuple[int, int]] = {}  # the number of the first row and the hash of its texts, by NIM
        self._in_signatures = False

    def clean(self, rows: Iterable[SheetRow]) -> Iterator[RowResult]:
        """One result for each row. If an earlier row has the same NIM and other texts, the later row is invalid."""
        seen = self._seen
        for row in rows:
            number, (nim, nama, alamat) = row
            if is_ordinary(nim, nama, alamat) and nim not in seen:
                seen[nim] = number, hash((nama, alamat))  # type: ignore[index]  # all three are str
                self._in_signatures = False
                yield CleanedRow(number, nim, nama, alamat)  # type: ignore[arg-type]  # as above
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
        number, cells = row
        nim_cell, nama_cell, alamat_cell = cells
        shown_cells = cell_text(nim_cell), cell_text(nama_cell), cell_text(alamat_cell)
        if reason := self._reason_to_skip(cells):
            return RejectedRow(number, reason, shown_cells, is_skipped=True)
        nim, nim_problem, removed = clean_nim(nim_cell)
        nama, nama_problem = clean_text("nama", nama_cell)
        alamat, alamat_problem = clean_text("alamat", alamat_cell)
        problems = list(filter(None, (nim_problem, nama_problem, alamat_problem)))
        texts = _NO_TEXTS if problems else hash((nama, alamat))
        # A NIM counts even if the rest of its row is invalid: only a person can tell which of two rows is right.
        first, first_texts = (number, texts) if nim_problem else self._seen.setdefault(nim, (number, texts))
        is_repeated = first != number
        if is_repeated and not problems and first_texts == texts:
            reason = wording.SKIPPED_REPETITION.format(row=self._name_of(first))
            return RejectedRow(number, reason, (nim, nama or "", alamat or ""), is_skipped=True)
        if is_repeated:
            problems.append(self.twice(nim, first, number))
        if problems:
            return RejectedRow(number, " ".join(problems), shown_cells, first if is_repeated else None)
        uncleaned = str(nim_cell) if removed else ""
        return CleanedRow(number, nim, nama, alamat, removed, warnings_about(nim, nama), uncleaned)

    def _reason_to_skip(self, cells: Sequence[Cell]) -> str | None:
        """The reason to skip a row, or None. Everything below `Mengetahui,` are signatures until a student follows."""
        nim, *others = cells
        if any(isinstance(cell, Verbatim) for cell in cells):
            return None
        if is_repeated_header(cells) or _are_column_numbers(cells):
            return wording.SKIPPED_HEADER
        text = _folded(nim)
        is_alone = is_blank(others)
        is_student = has_digit(text) and not is_alone and not _is_signature(text) and not _is_total(text)
        if is_student or not (nim is None or isinstance(nim, str)):
            self._in_signatures = False
            return None
        # A student's name or address may begin with these words, too, but then no cell is blank.
        texts = [text, *(map(_folded, others) if is_blank((nim,)) or any(is_blank((cell,)) for cell in others) else ())]
        if any(map(_is_signature, texts)):
            self._in_signatures = True
        if self._in_signatures and not (has_digit(text) and not _is_signature(text)):
            return wording.SKIPPED_SIGNATURE
        if any(map(_is_total, texts)):
            return wording.SKIPPED_TOTAL
        is_title = is_alone and " " in text and text[:1].isalpha()
        return wording.SKIPPED_TITLE if is_title or is_blank(cells[:2]) else None


def clean_all(rows: Iterable[SheetRow], sheets: Sequence[str] = ()) -> list[RowResult]:
    """Clean all rows of a file for the preview. Both rows of a NIM that occurs twice are invalid."""
    cleaner = Cleaner(sheets)
    results = list(cleaner.clean(rows))
    suspects = cleaner.suspects()
    repeated = {row.repeats: row.number for row in results if isinstance(row, RejectedRow) and row.repeats}
    # Some problems are known only after the last row of the file.
    for index, row in enumerate(results):
        if isinstance(row, CleanedRow) and row.number in repeated:
            problem = cleaner.twice(row.nim, row.number, repeated[row.number])
            results[index] = RejectedRow(row.number, problem, (row.nim, row.nama or "", row.alamat or ""))
        elif isinstance(row, CleanedRow) and row.number in suspects:
            results[index] = row._replace(warnings=(*row.warnings, suspects[row.number]))
    return results


def clean_nims(rows: Iterable[SheetRow]) -> list[NimCell]:
    """Each NIM once, at its first row. A row without a NIM is left out. Raises SheetError if that leaves none."""
    first: dict[str, NimCell] = {}
    for number, (cell, nama, _) in rows:
        nim, problem, _ = clean_nim(cell)
        if not problem:
            first.setdefault(nim, NimCell(number, nim, nama=cell_text(nama)))
        elif not is_blank((cell,)):
            first.setdefault(cell_text(cell), NimCell(number, cell_text(cell), problem))
    if not first:
        raise SheetError(wording.NO_NIMS_READ)
    return list(first.values())


def is_kept(nim: str) -> bool:
    """Whether this NIM is imported unchanged, for any Nama and Alamat."""
    if is_ordinary_nim(nim):
        return True
    folded = _folded(nim)
    is_skipped = is_repeated_header((nim, *TITLES[1:])) or _is_signature(folded) or _is_total(folded)
    return clean_nim(nim) == (nim, "", ()) and not is_skipped


def _are_column_numbers(cells: Sequence[Cell]) -> bool:
    """Whether a row numbers the columns, such as `(2)`, `(3)`, `(4)`: the name of a student is no number."""
    matches = [_column_number(cell_text(cell)) for cell in cells if not is_blank((cell,))]
    numbers = [int(match[1]) for match in matches if match]
    return 1 < len(numbers) == len(matches) and all(first < second for first, second in pairwise(numbers))


def _folded(cell: Cell) -> str:
    """The beginning of a text, in lower case and with single spaces."""
    return " ".join(cell[:HEADER_MAX_CHARACTERS].casefold().split()) if isinstance(cell, str) else ""
