"""Turns the cells of a sheet into records. It reports damage that a spreadsheet did, and never guesses a repair.

Rows that are not students, such as totals and signatures, and repetitions of a whole row are set aside.
"""

import re
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from mahasiswa import wording
from mahasiswa.record import NIM_MAX_CHARACTERS, UNADDRESSABLE_NIMS, Incoming
from mahasiswa.sheets.aside import AsideRows, is_aside_nim
from mahasiswa.sheets.columns import (
    CELL_MAX_CHARACTERS,
    BadCell,
    Batch,
    Cell,
    SheetRow,
    Verbatim,
    is_blank,
    is_repeated_header,
)
from mahasiswa.sheets.errors import SheetError

SPREADSHEET_DIGITS = 15
"""Maximum digits of a number that a spreadsheet keeps. A longer number has lost its last ones."""

FIRST_INEXACT = 10**SPREADSHEET_DIGITS

# The quick test for an ordinary NIM: at least one digit, nothing around it to remove, and not rounded by a spreadsheet.
_ROUNDED = r"[+-]?[0-9]+(?:[.,][0-9]+[eE][+-]?|[eE][+-])[0-9]+"
_DECIMAL = r"[0-9]+\.0"
_is_ordinary_nim = re.compile(
    rf"(?!(?:{_ROUNDED}|{_DECIMAL})\Z)(?=[^0-9]*[0-9])[0-9A-Za-z][0-9A-Za-z/._-]{{0,{NIM_MAX_CHARACTERS - 1}}}"
).fullmatch
# A faster test that most ordinary NIMs pass.
_PLAIN = rf"[0-9][0-9A-Za-z/]{{0,{NIM_MAX_CHARACTERS - 1}}}+"
_is_plain_nim = re.compile(_PLAIN).fullmatch
_are_plain_nims = re.compile(rf"{_PLAIN}(?:\n{_PLAIN})*+").fullmatch
_is_rounded = re.compile(_ROUNDED).fullmatch
_is_decimal = re.compile(_DECIMAL).fullmatch
# A spreadsheet shows this instead of a number if the column is too narrow, and some programs copy the shown text.
_is_masked = re.compile("##+").fullmatch

# White space, and the invisible characters that are copied along from web pages and chats.
_INVISIBLE = "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
# Every white space character of Unicode is below U+3001. str.strip() takes linear time, and a pattern for the spaces at
# the end of a text takes quadratic time.
_SPACES = "".join(filter(str.isspace, map(chr, range(0x3001)))) + _INVISIBLE
_APOSTROPHES = "'’‘"


class Row(NamedTuple):
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

    @property
    def message(self) -> str:
        """`Baris 12: …`."""
        return wording.ROW.format(row=self.number, problem=self.problem)


class Skipped(NamedTuple):
    """A row that is set aside: it is not a student, or it repeats another row."""

    number: int  # as Excel shows it
    reason: str  # in Indonesian
    cells: tuple[str, str, str]  # NIM, Nama and Alamat as they are in the file


class NimCell(NamedTuple):
    """The NIM in a row of a list of NIMs. If a spreadsheet has damaged it, `problem` says so in Indonesian."""

    number: int  # as Excel shows it
    nim: str  # the text of the cell if there is a problem
    problem: str = ""


Answer: TypeAlias = Row | InvalidRow | Skipped


def _are_ordinary(nims: Sequence[str]) -> bool:
    """Whether the quick test accepts each of these NIMs."""
    joined = "\n".join(nims)
    is_plain = joined.count("\n") == len(nims) - 1 and _are_plain_nims(joined)
    return bool(is_plain) or all(map(_is_ordinary_nim, nims))


class _Seen(NamedTuple):
    """Some rows: their numbers, their NIMs, and the hashes of their texts."""

    numbers: "range | array[int]"
    nims: Sequence[str]
    texts: "array[int]"


NO_TEXTS = -1  # no hash has this value
SEEN_ROWS = 100  # rows in one _Seen if they are cleaned one by one: an object for each row would take more memory


class Cleaner:
    """Cleans rows. It remembers each NIM, its row and a hash of its texts: a million rows take 100 MB."""

    def __init__(self) -> None:
        # Batches in the order of their NIMs, each after the other, and the last NIM of each. They need no dictionary,
        # which would take 40 MB for a million rows and a quarter of the time of reading them.
        self._ordered: list[_Seen] = []
        self._ends: list[str] = []
        self._others: dict[str, _Seen] = {}
        self._numbers, self._nims, self._texts = array("q"), list[str](), array("q")
        self._all: list[_Seen] = []
        self._aside = AsideRows()

    def clean(self, rows: Iterable[SheetRow]) -> Iterator[Answer]:
        """One answer for each row. If an earlier row has the same NIM and other texts, the later row is invalid."""
        others, aside = self._others, self._aside
        last_ordered = self._ends[-1] if self._ends else ""
        new = tuple.__new__  # three times as fast as Row(…)
        for row in rows:
            number, nim, nama, alamat = row
            if (
                isinstance(nim, str)
                and nim not in others
                and (nim > last_ordered or not self._find(nim))
                and (_is_plain_nim(nim) or _is_ordinary_nim(nim))
                and isinstance(nama, str)
                and isinstance(alamat, str)
                # A text that begins with one of these visible ASCII characters is neither blank nor `####`.
                and "$" <= nama < "\x7f"
                and "$" <= alamat < "\x7f"
                and "\0" not in nama
                and "\0" not in alamat
            ):
                self._remember(number, nim, hash((nama, alamat)))
                aside.in_signatures = False
                yield new(Row, (number, nim, nama, alamat, (), ()))
            else:
                yield self._clean_row(row)

    def clean_batch(self, batch: Batch) -> Sequence[Incoming] | None:
        """The rows of a batch if all of them pass the quick test of `clean`, otherwise None.

        All cells of a column are tested at once. None does not mean that a row is wrong. Call `clean` then.
        """
        columns = batch.columns()
        if columns is None:
            return None
        nims, namas, alamats = columns
        if min(*namas, *alamats) < "$" or max(*namas, *alamats) >= "\x7f" or not _are_ordinary(nims):
            return None
        is_after_ordered = not self._ends or min(nims) > self._ends[-1]
        if (
            len(set(nims)) != len(nims)
            or not self._others.keys().isdisjoint(nims)
            or (not is_after_ordered and any(map(self._find, nims)))
        ):
            return None
        numbers = range(batch.number, batch.number + len(nims))
        rows = _Seen(numbers, nims, array("q", map(hash, zip(namas, alamats, strict=True))))
        if is_after_ordered and list(nims) == sorted(nims):
            self._ordered.append(rows)
            self._ends.append(nims[-1])
        else:
            self._others.update(dict.fromkeys(nims, rows))
        self._all.append(rows)
        self._aside.in_signatures = False
        return list(zip(numbers, nims, namas, alamats, strict=True))

    def _find(self, nim: str) -> tuple[_Seen, int] | None:
        """The rows with this NIM, and its index in them."""
        if self._ends and nim <= self._ends[-1]:
            rows = self._ordered[bisect_left(self._ends, nim)]
            index = bisect_left(rows.nims, nim)
            if rows.nims[index] == nim:
                return rows, index
        found = self._others.get(nim)
        return (found, found.nims.index(nim)) if found else None

    def _remember(self, number: int, nim: str, texts: int) -> None:
        if len(self._nims) % SEEN_ROWS == 0:
            self._numbers, self._nims, self._texts = array("q"), [], array("q")
            self._rows = _Seen(self._numbers, self._nims, self._texts)
            self._all.append(self._rows)
        self._numbers.append(number)
        self._nims.append(nim)
        self._texts.append(texts)
        self._others[nim] = self._rows

    def suspects(self) -> dict[int, str]:
        """Warnings by row number about NIMs that may have lost leading zeros. Call it after the last row.

        If most NIMs that are all digits have the same length, a shorter one may have been a number in a spreadsheet.
        """
        lengths = Counter(len(nim) for rows in self._all for nim in rows.nims)
        if len(lengths) == 1:
            return {}
        digits = [nim for rows in self._all for nim in rows.nims if nim.isascii() and nim.isdigit()]
        lengths = Counter(map(len, digits))
        usual, count = max(lengths.items(), key=lambda item: item[1], default=(0, 0))
        if count * 2 <= len(digits):
            return {}
        return {
            number: wording.SHORT_NIM.format(nim=nim, length=usual)
            for rows in self._all
            for number, nim in zip(rows.numbers, rows.nims, strict=True)
            if len(nim) < usual and nim.isascii() and nim.isdigit()
        }

    def _clean_row(self, row: SheetRow) -> Answer:
        number, *cells = row
        if reason := self._aside.reason(cells):
            return Skipped(number, reason, (shown(cells[0]), shown(cells[1]), shown(cells[2])))
        problems: list[str] = []
        cleaned: list[str] = []
        nim = _clean_nim(cells[0], problems, cleaned)
        first, first_texts = number, NO_TEXTS
        has_nim = not problems
        earlier = self._find(nim) if has_nim else None
        if earlier:
            rows, index = earlier
            first, first_texts = rows.numbers[index], rows.texts[index]
        nama = _clean_text(wording.NAMA, cells[1], problems)
        alamat = _clean_text(wording.ALAMAT, cells[2], problems)
        texts = NO_TEXTS if problems else hash((nama, alamat))
        if has_nim and not earlier:
            # A NIM counts even if the rest of its row is invalid: only a person can tell which of two rows is right.
            self._remember(number, nim, texts)
        elif first != number and not problems and first_texts == texts:
            return Skipped(number, wording.ASIDE_REPEATED.format(row=first), (nim, nama or "", alamat or ""))
        if first != number:
            problems.append(wording.NIM_TWICE.format(nim=nim, first=first, second=number))
        if problems:
            shown_cells = (shown(cells[0]), shown(cells[1]), shown(cells[2]))
            return InvalidRow(number, " ".join(problems), shown_cells, first if first != number else None)
        warnings = (wording.DECIMAL_NIM.format(nim=nim),) if _is_decimal(nim) else ()
        return Row(number, nim, nama, alamat, tuple(cleaned), warnings)


def check(rows: Iterable[SheetRow]) -> list[Answer]:
    """Clean all rows of a file for the preview. Both rows of a NIM that occurs twice are invalid."""
    cleaner = Cleaner()
    answers = list(cleaner.clean(rows))
    suspects = cleaner.suspects()
    repeated = {answer.twin: answer.number for answer in answers if isinstance(answer, InvalidRow) and answer.twin}
    if not suspects and not repeated:
        return answers
    return [_reviewed(answer, suspects, repeated) if isinstance(answer, Row) else answer for answer in answers]


def _reviewed(row: Row, suspects: dict[int, str], repeated: dict[int, int]) -> Row | InvalidRow:
    """The row with the problems that are known only after the last row of the file."""
    if row.number in repeated:
        problem = wording.NIM_TWICE.format(nim=row.nim, first=row.number, second=repeated[row.number])
        return InvalidRow(row.number, problem, (row.nim, row.nama or "", row.alamat or ""))
    if row.number in suspects:
        return row._replace(warnings=(*row.warnings, suspects[row.number]))
    return row


def clean_nims(rows: Iterable[SheetRow]) -> list[NimCell]:
    """Each NIM once, at its first row. A row without a NIM is left out. Raises SheetError if that leaves none."""
    first: dict[str, NimCell] = {}
    for number, cell, _, _ in rows:
        problems: list[str] = []
        nim = _clean_nim(cell, problems, [])
        if not problems:
            first.setdefault(nim, NimCell(number, nim))
        elif not is_blank((cell,)):
            first.setdefault(shown(cell), NimCell(number, shown(cell), " ".join(problems)))
    if not first:
        raise SheetError(wording.NO_NIMS_READ)
    return list(first.values())


def is_kept(nim: str) -> bool:
    """Whether this NIM is imported unchanged, for any Nama and Alamat."""
    if _is_plain_nim(nim) or _is_ordinary_nim(nim):
        return True
    problems: list[str] = []
    kept = _clean_nim(nim, problems, []) == nim and not problems
    return kept and not is_repeated_header((nim, wording.NAMA, wording.ALAMAT)) and not is_aside_nim(nim)


def shown(cell: Cell) -> str:
    """A cell as text by which a person recognises it."""
    if cell is None:
        return ""
    if isinstance(cell, BadCell):
        return cell.text
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE"
    if isinstance(cell, float):
        exact = cell.is_integer() and abs(cell) < FIRST_INEXACT
        return str(int(cell)) if exact else f"{cell:.{SPREADSHEET_DIGITS}G}".replace(".", ",")
    return str(cell)


def _clean_nim(cell: Cell, problems: list[str], cleaned: list[str]) -> str:
    """The NIM in a cell. Ignore the result if a problem was added."""
    if isinstance(cell, str):
        nim = cell if isinstance(cell, Verbatim) else _stripped(cell, cleaned)
        # Test the length first: for a NIM of 100,000 characters the other tests would only cost time.
        problem = _problem_of_nim(nim) or (None if isinstance(cell, Verbatim) else _damage_of_nim(nim))
        if problem:
            problems.append(problem)
        return nim
    if cell is None:
        problems.append(wording.NIM_BLANK)
    elif isinstance(cell, int | float) and not isinstance(cell, bool):
        if abs(cell) >= FIRST_INEXACT:
            problems.append(wording.NIM_TOO_MANY_DIGITS.format(limit=SPREADSHEET_DIGITS))
        elif cell < 0 or cell % 1:
            problems.append(wording.NIM_NOT_WHOLE.format(text=shown(cell)))
        else:
            return str(int(cell))
    else:
        problems.append(_problem_of_kind(wording.NIM, cell))
    return ""


def _stripped(text: str, cleaned: list[str]) -> str:
    """The text without spaces around it and apostrophes before it."""
    bare = text.strip(_SPACES)
    nim = bare.lstrip(_APOSTROPHES + _SPACES)
    if bare != text:
        cleaned.append(wording.SPACES_REMOVED)
    if nim != bare:
        cleaned.append(wording.APOSTROPHE_REMOVED)
    return nim


def _problem_of_nim(nim: str) -> str | None:
    """The reason why no record can have this NIM."""
    if len(nim) > NIM_MAX_CHARACTERS:
        return wording.NIM_TOO_LONG.format(limit=NIM_MAX_CHARACTERS)
    if nim in UNADDRESSABLE_NIMS:
        return wording.NIM_UNADDRESSABLE
    return _problem_of_text(wording.NIM, nim)


def _damage_of_nim(nim: str) -> str | None:
    """The reason to believe that a spreadsheet has damaged this NIM."""
    if not nim:
        return wording.NIM_BLANK
    if _is_masked(nim):
        return wording.NIM_MASKED
    return wording.NIM_ROUNDED.format(text=nim) if _is_rounded(nim) else None


def _clean_text(field: str, cell: Cell, problems: list[str]) -> str | None:
    """The text in a cell, unchanged. None if it is blank, or if a problem was added."""
    if cell is None:
        return None
    if isinstance(cell, str):
        problem = _problem_of_text(field, cell)
        if not problem and not isinstance(cell, Verbatim) and _is_masked(cell):
            problem = wording.MASKED.format(field=field)
        if problem:
            problems.append(problem)
        if isinstance(cell, Verbatim) and not problem:
            return str(cell)
        return None if problem or not cell or cell.isspace() else cell
    if isinstance(cell, int | float) and not isinstance(cell, bool):
        if abs(cell) < FIRST_INEXACT and not cell % 1:
            return str(int(cell))
        # The number does not tell whether it was written `10,5` or `10.50`.
        problems.append(wording.NOT_TEXT.format(field=field, text=shown(cell)))
        return None
    problems.append(_problem_of_kind(field, cell))
    return None


def _problem_of_text(field: str, text: str) -> str | None:
    return wording.NUL.format(field=field) if "\0" in text else None


def _problem_of_kind(field: str, cell: BadCell | bool) -> str:  # noqa: FBT001 - a cell that is a boolean
    if isinstance(cell, bool):
        return wording.BOOLEAN.format(field=field, text=shown(cell))
    template = {
        "date": wording.DATE,
        "error": wording.ERROR,
        "formula": wording.FORMULA,
        "long": wording.TOO_LONG,
    }[cell.kind]
    return template.format(field=field, text=cell.text, limit=wording.number(CELL_MAX_CHARACTERS))
