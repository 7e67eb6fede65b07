"""Turns rows into records, and says why others are not written: wrong rows, rows of no student, and repetitions."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import NamedTuple

from mahasiswa import wording
from mahasiswa.digits import is_digits
from mahasiswa.record import NIM_MAX_CHARACTERS
from mahasiswa.sheets.carried_file import LEFT_OUT, CarriedFile, Typed
from mahasiswa.sheets.cell_rules import clean_nim, clean_text, is_ordinary, warnings_about
from mahasiswa.sheets.cells import (
    NIM_MIN_DIGITS,
    Cell,
    Cells,
    Sheet,
    SheetRow,
    SheetRows,
    cell_text,
    has_digit,
    in_input,
    is_blank,
    most_common,
    row_name,
)
from mahasiswa.sheets.columns import problem_of, questions_about
from mahasiswa.sheets.limits import Choice, Roles
from mahasiswa.sheets.questions import Question
from mahasiswa.sheets.reading import Table, table_of
from mahasiswa.sheets.row_questions import WITHOUT_HIDDEN, asked_about, repaired_rows
from mahasiswa.sheets.titles import HEADER_MAX_CHARACTERS, is_header, is_total

_is_only_total = re.compile(
    r"(?:sub\s?-?total|total|jumlah|rata-rata|laki-laki|perempuan)[\s:=0-9]*"
).fullmatch
_column_number = re.compile(r"\(?[0-9]{1,2}\)?").fullmatch
# The numbers of the columns of an address, such as `4, Kec. 5`.
_column_numbers = re.compile(r"(?:(?:^|[/, ]+)(?:[A-Z][A-Za-z/]*\.? )*\(?[0-9]{1,2}\)?)+").fullmatch
_is_signature = re.compile(
    r"(?:mengetahui|menyetujui|mengesahkan|kepala (?:sekolah|madrasah|program|jurusan|tata|bagian)|wali kelas|dekan"
    r"|rektor|ketua (?:program|prodi|jurusan|kelas)|tata usaha|nip\b|ttd\b|tanda tangan)"
).match


# At most one NIM in so many may differ from the others. If more differ, none of them counts as odd.
COMMON_PART = 10


class CleanedRow(NamedTuple):
    """A row that can be written. A blank cell is None: it keeps the text of a record that exists."""

    number: int  # as Excel shows it
    nim: str
    nama: str | None
    alamat: str | None
    cleaned: tuple[str, ...] = ()  # the characters removed from the NIM, in Indonesian
    warnings: tuple[str, ...] = ()  # reasons to check the row, in Indonesian
    uncleaned: str = ""  # the NIM as it is in the file, if characters were removed
    noted: tuple[str, ...] = ()  # how its cells were read, in Indonesian
    is_odd: bool = False  # whether its NIM differs from most others in length or by a letter


class RejectedRow(NamedTuple):
    """A row that cannot be written, or that is skipped, because it is not a student or repeats another row."""

    number: int  # as Excel shows it
    problem: str  # the fault and its correction, or the reason to skip the row, in Indonesian
    cells: Sequence[str]  # NIM, Nama and Alamat as they are in the file
    is_skipped: bool = False


RowResult = CleanedRow | RejectedRow


class Cleaner:
    """Cleans rows one by one, and remembers their NIMs and a hash: 230 MB for a million. `sheets` are those read."""

    def __init__(self, sheets: Sequence[str] = ()) -> None:
        self._name_of = partial(row_name, sheets=sheets)
        # The number of the first row and the hash of its texts, by NIM.
        self._seen: dict[str, tuple[int, int]] = {}
        self._in_signatures = False
        # The problem of rows whose NIM comes again with other texts, by their numbers.
        self.twice: dict[int, str] = {}

    def clean(self, rows: SheetRows) -> Iterator[RowResult]:
        """One result for each row. If an earlier row has the same NIM and other texts, the later row is invalid."""
        seen = self._seen
        for row in rows:
            number, cells = row
            nim, nama, alamat = cells[:3]
            has_notice = len(cells) > 3
            if not has_notice and nim not in seen and is_ordinary(nim, nama, alamat):
                seen[nim] = number, hash((nama, alamat))  # type: ignore[index]  # all three are str
                self._in_signatures = False
                yield CleanedRow(number, nim, nama, alamat)  # type: ignore[arg-type]  # as above
            else:
                yield self._result(row)

    def suspects(self) -> dict[int, str]:
        """Warnings by row number about NIMs that may have lost or gained digits.

        Call it after the last row. If most NIMs have the same length, a shorter NIM may have been a
        number in a spreadsheet. If nine tenths have the same length, a NIM of another length, or
        with a letter among its digits, may be a mistake.
        """
        seen = self._seen
        usual, count = max(Counter(map(len, seen)).items(), key=itemgetter(1), default=(0, 0))
        digits = sum(map(is_digits, seen))
        if count == digits == len(seen) or count * 2 <= len(seen):
            return {}

        is_common, are_digits = (
            (len(seen) - found) * COMMON_PART <= len(seen) for found in (count, digits)
        )
        warnings = (
            (number, _odd_nim(nim, usual, is_common=is_common, are_digits=are_digits))
            for nim, (number, _) in seen.items()
        )
        return {number: text.format(length=usual) for number, text in warnings if text}

    def _result(self, row: SheetRow) -> RowResult:
        number, cells = row
        shown = list(map(cell_text, cells[:3]))
        if reason := self._reason_to_skip(cells[:3]):
            return RejectedRow(number, reason, shown, is_skipped=True)

        cleaned, nim_problem, problems = _cleaned(number, cells)
        texts = -1 if problems else hash(cleaned[2:4])  # no hash is -1
        own = number, texts
        # A NIM counts even if the rest of its row is invalid: only a person can tell which of two rows is right.
        nim = cleaned.nim
        first, first_texts = own if nim_problem else self._seen.setdefault(nim, own)

        is_repeated = first != number
        if is_repeated and first_texts == texts and not problems:
            reason = wording.SKIPPED_REPETITION.format(row=self._name_of(first))
            return RejectedRow(number, reason, shown, is_skipped=True)
        if is_repeated:
            names = {"first": self._name_of(first), "second": self._name_of(number)}
            self.twice[first] = wording.NIM_TWICE.format(nim=nim, **names)
            problems.append(self.twice[first])
        return RejectedRow(number, " ".join(problems), shown) if problems else cleaned

    def _reason_to_skip(self, cells: Cells) -> str:
        """The reason to skip a row, or a blank text. The rows below a signature are signatures until a student follows."""
        reason = _reason_to_skip(cells, in_signatures=self._in_signatures)
        is_below = self._in_signatures or reason == wording.SKIPPED_SIGNATURE
        self._in_signatures = bool(reason) and is_below
        return reason


def _cleaned(number: int, cells: Cells) -> tuple[CleanedRow, str, list[str]]:
    """A row as it can be written, the problem of its NIM, if there is one, and all problems of its cells."""
    nim, nim_problem, removed = clean_nim(cells[0])
    nama, nama_problem = clean_text("nama", cells[1])
    alamat, alamat_problem = clean_text("alamat", cells[2])
    problems = list(filter(None, (nim_problem, nama_problem, alamat_problem)))
    uncleaned = cell_text(cells[0]) if removed else ""
    noted = tuple(filter(None, map(cell_text, cells[3:])))
    warnings = warnings_about(nim, nama)
    row = CleanedRow(number, nim, nama, alamat, removed, warnings, uncleaned, noted)
    return row, nim_problem, problems


def _odd_nim(nim: str, usual: int, *, is_common: bool, are_digits: bool) -> str:
    """The warning about a NIM if most NIMs have the `usual` length, or a blank text."""
    if are_digits and is_digits(nim) and len(nim) < usual and nim[0] != "0":
        return wording.SHORT_NIM
    if is_common and len(nim) != usual:
        return wording.OTHER_LENGTH
    has_letter = is_common and are_digits and is_digits(re.sub("[A-Za-z]", "", nim, count=1))
    return wording.LETTER_NIM if has_letter and not is_digits(nim) else ""


def _reason_to_skip(cells: Cells, *, in_signatures: bool) -> str:
    """The reason to skip a row, or a blank text. Everything below `Mengetahui,` are signatures until a student follows."""
    nim = cells[0]
    if _are_titles(cells):
        return wording.SKIPPED_HEADER
    texts = list(map(_folded, cells))
    text = texts[0]
    blank = [is_blank((cell,)) for cell in cells]
    if any(blank) and any(map(_is_only_total, texts[1:])):
        return wording.SKIPPED_TOTAL
    is_alone = all(blank[1:])
    is_other = is_alone or _is_signature(text) or is_total(text)
    is_student = has_digit(text) and not is_other
    if is_student or (nim is not None and not isinstance(nim, str)):
        return ""

    # A student's name or address may begin with these words, too, but then no cell is blank.
    beginnings = texts if any(blank) else [text]
    is_below = in_signatures and not has_digit(text)
    if is_below or any(map(_is_signature, beginnings)):
        return wording.SKIPPED_SIGNATURE
    if any(map(is_total, beginnings)):
        return wording.SKIPPED_TOTAL
    is_title = is_alone and " " in text and text[:1].isalpha()
    return wording.SKIPPED_TITLE if is_title or all(blank[:2]) else ""


def clean_all(rows: SheetRows, sheets: Sequence[str] = ()) -> list[RowResult]:
    """Clean all rows of a file for the preview. Both rows of a NIM that occurs twice are invalid."""
    cleaner = Cleaner(sheets)
    results = list(cleaner.clean(rows))
    suspects = cleaner.suspects()
    # Some problems are known only after the last row of the file.
    for index, row in enumerate(results):
        if isinstance(row, CleanedRow) and row.number in cleaner.twice:
            cells = (row.nim, row.nama or "", row.alamat or "")
            results[index] = RejectedRow(row.number, cleaner.twice[row.number], cells)
        elif isinstance(row, CleanedRow) and row.number in suspects:
            warnings = (*row.warnings, suspects[row.number])
            results[index] = row._replace(warnings=warnings, is_odd=True)
    return results


class CleanedFile(NamedTuple):
    """A file with its rows, as they are in the file, and cleaned. There are none if `columns_problem` has a reason."""

    file: CarriedFile
    rows: list[SheetRow]
    results: list[RowResult]
    columns_problem: str

    def nims(self) -> list[str]:
        """The NIMs of all rows, also of rows that cannot be written. A cleaned NIM is there twice: cleaned, and as in the file."""
        found = [
            (row.nim, row.uncleaned) if isinstance(row, CleanedRow) else row.cells[:1]
            for row in self.results
        ]
        return [nim for nims in found for nim in nims if 0 < len(nim) <= NIM_MAX_CHARACTERS]

    def has_all_rows(self) -> bool:
        """Whether all sheets and tables are read, and no student in them is left out by a person."""
        file = self.file
        is_read = not file.unread_sheets and all(table.is_readable for table in file.tables)
        left_out = file.typed.keys() - dict(self.rows).keys()
        return is_read and not left_out and WITHOUT_HIDDEN not in file.repairs


def clean_table(table: Table, name: str, chosen: Mapping[str, Roles]) -> CleanedFile:
    """Read and clean all rows of a file with this name, by these columns, if any are chosen. Raises SheetError."""
    file = table.file._replace(name=name, chosen_columns=chosen)
    if not file.has_all_cells:
        file = file._replace(sheets=[Sheet("", list(table.rows))])
    return clean_again(file)


def clean_again(file: CarriedFile) -> CleanedFile:
    """Select the rows of a file as it is now, with its repairs, and clean them. Raises SheetError."""
    rows = file.sheets[0].rows
    if file.has_all_cells:
        rows, file = table_of(file, (), Choice(columns=file.chosen_columns))
    rows = list(rows)
    if file.repairs:
        rows = repaired_rows(rows, _of_no_student(clean_all(rows)), file.repairs)
    rows = list(_with_typed(rows, file.typed))
    results = clean_all(rows, file.places)
    return CleanedFile(file, rows, results, problem_of(file.tables))


def questions_of(cleaned: CleanedFile) -> list[Question]:
    """The questions that do not depend on the stored records."""
    file, rows, results, _ = cleaned
    return [
        # Several sheets may have the same question.
        *{question.name: question for question in file.asked}.values(),
        *questions_about(file.tables),
        *asked_about(rows, _of_no_student(results), file.repairs),
        *_about_odd_nims(results),
    ]


def _of_no_student(results: Iterable[RowResult]) -> set[int]:
    """The rows that are skipped. A row that looks like a title may be the rest of a long address."""
    skipped = [row for row in results if isinstance(row, RejectedRow) and row.is_skipped]
    return {row.number for row in skipped if row.problem != wording.SKIPPED_TITLE}


def _about_odd_nims(results: Iterable[RowResult]) -> list[Question]:
    """The questions about NIMs that differ from nine tenths of all, or may have lost zeros."""
    rows = [row for row in results if isinstance(row, CleanedRow)]
    odd = [row.number for row in rows if row.is_odd]
    is_few = 0 < len(odd) * COMMON_PART <= len(rows)
    questions = [Question("panjang", wording.ODD_NIMS, odd)] if is_few else []

    numbers = [row for row in rows if is_digits(row.nim) and len(row.nim) >= NIM_MIN_DIGITS]
    usual = most_common(len(row.nim) for row in numbers)
    shorter = [row.number for row in numbers if len(row.nim) == usual - 1 and row.nim[0] != "0"]
    if shorter and not is_few:
        questions.append(Question("nol", wording.SHORTER_NIMS, shorter))
    return questions


def repaired(
    cleaned: CleanedFile,
    choice: Choice,
    typed: Mapping[int, Typed],
    accepted: Iterable[int],
    repairs: Iterable[str],
    *,
    fills_alamat: bool,
) -> CarriedFile:
    """The file with a person's texts and ticks, by the number of the row.

    A text that equals that of the preview is no change.
    """
    file = cleaned.file
    numbers = {number for number, _ in cleaned.rows}
    file = file._replace(
        typed=_typed_anew(cleaned, typed),
        accepted=file.accepted | numbers.intersection(accepted),
        fills_alamat=fills_alamat or file.fills_alamat,
        repairs=tuple(sorted({*file.repairs, *repairs})),
    )
    return _with_choice(file, choice) if file.has_all_cells else file


def _with_choice(file: CarriedFile, choice: Choice) -> CarriedFile:
    """The file with the sheets and the columns that a person has chosen. Other cells need other repairs."""
    found = {columns.key: columns.roles for columns in file.tables}
    chosen = {key: roles for key, roles in choice.columns.items() if roles != found.get(key)}
    before = list(file.read_sheets)
    names = [sheet.name for sheet in file.sheets if sheet.name in choice.sheets] or before
    if not chosen and names == before:
        return file

    file = file._replace(
        read_sheets=names,
        sheets=sorted(file.sheets, key=lambda sheet: sheet.name not in names),
        chosen_columns={**file.chosen_columns, **chosen},
        repairs=(),
    )
    # The rows of the first sheets keep their numbers.
    keeps_numbers = names[: len(before)] == before
    return file if keeps_numbers else file._replace(typed={}, accepted=frozenset())


def _typed_anew(cleaned: CleanedFile, typed: Mapping[int, Typed]) -> Mapping[int, Typed]:
    """The texts that were typed before, with the new ones.

    A text as in the preview changes nothing.
    """
    changes = dict(cleaned.file.typed)

    for number, cells in cleaned.rows:
        if number not in typed:
            continue
        texts = typed[number]
        before = changes.get(number, (None, None, None))
        new = tuple(
            old if text == in_input(cell) else text
            for text, cell, old in zip(texts, cells, before, strict=False)
        )
        if new not in ((), (None, None, None)):
            changes[number] = LEFT_OUT if texts == LEFT_OUT else new

    return changes


def _with_typed(rows: SheetRows, typed: Mapping[int, Typed]) -> Iterator[SheetRow]:
    """The rows with the cells that a person has typed. A row whose cells were all cleared is left out."""
    for number, row in rows:
        cells = row
        if number in typed:
            cells = [
                cell if text is None else text
                for text, cell in zip(typed[number], row, strict=False)
            ]
            if is_blank(cells):
                continue
        yield number, cells


def _are_titles(cells: Cells) -> bool:
    """Whether a row names the columns, or numbers them as `(2)`, `(3)`, `(4)`.

    The name of a student is no number.
    """
    if is_header(cells[:1], nim_only=True) and is_header(cells):
        return True
    texts = [cell_text(cell) for cell in cells if not is_blank((cell,))]
    return (
        len(texts) > 1 and all(map(_column_number, texts[:2])) and all(map(_column_numbers, texts))
    )


def _folded(cell: Cell) -> str:
    """The beginning of a text, in lower case and with single spaces."""
    if not isinstance(cell, str):
        return ""
    return " ".join(cell[:HEADER_MAX_CHARACTERS].casefold().split())
