"""Turns the cells of a file into records: what a spreadsheet damaged is found and said, never guessed."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mahasiswa import wording
from mahasiswa.sheets.columns import BadCell, Cell, Raw, is_header

LONGEST_NIM = 255  # characters; the store refuses longer ones too

# Almost every NIM is one of these: at least one digit, nothing around it to take off, not what a spreadsheet rounded.
_ROUNDED = r"[+-]?[0-9]+(?:[.,][0-9]+[eE][+-]?|[eE][+-])[0-9]+"
_DECIMAL = r"[0-9]+\.0"
_ORDINARY_NIM = re.compile(
    rf"(?!(?:{_ROUNDED}|{_DECIMAL})\Z)(?=[^0-9]*[0-9])[0-9A-Za-z][0-9A-Za-z/._-]{{0,{LONGEST_NIM - 1}}}"
).fullmatch
_PLAIN_NIM = re.compile(rf"[0-9][0-9A-Za-z/]{{0,{LONGEST_NIM - 1}}}").fullmatch  # of these the quickest to tell
_is_rounded = re.compile(_ROUNDED).fullmatch
_is_decimal = re.compile(_DECIMAL).fullmatch

# Beside what `str.strip` takes for a space: marks without width that come along from web pages and chats.
_INVISIBLE = "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
_APOSTROPHES = "'’‘"
_AROUND = re.compile(rf"^[\s{_INVISIBLE}]+|[\s{_INVISIBLE}]+$")

# A number of more digits has lost its last ones, for a spreadsheet keeps 15.
_TOO_BIG = 10**15


class Row(NamedTuple):
    """A row that can be written. A blank cell is None: it keeps the value that a record already has."""

    number: int  # as Excel shows it
    nim: str
    nama: str | None
    alamat: str | None
    cleaned: tuple[str, ...] = ()  # what was taken off, in Indonesian
    warnings: tuple[str, ...] = ()  # what a person should look at, in Indonesian


class InvalidRow(NamedTuple):
    """A row that cannot be written."""

    number: int  # as Excel shows it
    problem: str  # what is wrong and the cure, in Indonesian
    cells: tuple[str, str, str]  # NIM, Nama, Alamat as they stand in the file
    twin: int | None = None  # the row that first had this NIM

    @property
    def message(self) -> str:
        """`Baris 12: …`."""
        return wording.row(self.number, self.problem)


class Cleaner:
    """Cleans rows as they come; remembers each NIM and its row, nothing else, so a million rows are fine."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def clean(self, raws: Iterable[Raw]) -> Iterator[Row | InvalidRow]:
        """One answer for each row. A NIM that comes again is wrong there, with the number of its first row."""
        seen = self._seen
        new = tuple.__new__  # a third of the time of Row(…)
        for raw in raws:
            number, nim, nama, alamat = raw
            if (
                isinstance(nim, str)
                and nim not in seen
                and (_PLAIN_NIM(nim) or _ORDINARY_NIM(nim))
                and isinstance(nama, str)
                and isinstance(alamat, str)
                # What begins with a visible ASCII character is not blank.
                and "!" <= nama < "\x7f"
                and "!" <= alamat < "\x7f"
                and "\0" not in nama
                and "\0" not in alamat
            ):
                seen[nim] = number
                yield new(Row, (number, nim, nama, alamat, (), ()))
            else:
                yield self._look_closer(raw)

    def suspects(self) -> dict[int, str]:
        """Warnings by row number that only the end of the file can tell: NIMs that may have lost leading zeros.

        Where most NIMs made of digits have one length, a shorter one may have been a number in a spreadsheet.
        """
        lengths = Counter(map(len, self._seen))
        if len(lengths) == 1:
            return {}
        digits = [nim for nim in self._seen if nim.isascii() and nim.isdigit()]
        lengths = Counter(map(len, digits))
        usual, count = max(lengths.items(), key=lambda item: item[1], default=(0, 0))
        if count * 2 <= len(digits):
            return {}
        return {self._seen[nim]: wording.SHORT_NIM.format(nim=nim, length=usual) for nim in digits if len(nim) < usual}

    def _look_closer(self, raw: Raw) -> Row | InvalidRow:
        number, *cells = raw
        problems: list[str] = []
        cleaned: list[str] = []
        nim = _nim(cells[0], problems, cleaned)
        twin = None
        if is_header(cells):
            problems.append(wording.REPEATED_HEADER)
        elif not problems:
            # Also where the rest of the row turns out wrong: a NIM that comes twice is a question for a person.
            twin = self._seen.setdefault(nim, number)
        nama, alamat = (_text("Nama", cells[1], problems), _text("Alamat", cells[2], problems))
        if twin is not None and twin != number:
            problems.append(wording.NIM_TWICE.format(nim=nim, other=twin))
        if problems:
            first = twin if twin != number else None
            return InvalidRow(number, " ".join(problems), (shown(cells[0]), shown(cells[1]), shown(cells[2])), first)
        warnings = (wording.DECIMAL_NIM.format(nim=nim),) if _is_decimal(nim) else ()
        return Row(number, nim, nama, alamat, tuple(cleaned), warnings)


def check(raws: Iterable[Raw]) -> list[Row | InvalidRow]:
    """All rows of a file at once, for the preview: with the late warnings, and with both rows of a NIM found wrong."""
    cleaner = Cleaner()
    answers = list(cleaner.clean(raws))
    suspects = cleaner.suspects()
    again = {answer.twin: answer.number for answer in answers if isinstance(answer, InvalidRow) and answer.twin}
    if not suspects and not again:
        return answers
    return [_second_thought(answer, suspects, again) if isinstance(answer, Row) else answer for answer in answers]


def _second_thought(row: Row, suspects: dict[int, str], again: dict[int, int]) -> Row | InvalidRow:
    if row.number in again:
        # Which of the two is right only a person can tell.
        problem = wording.NIM_AGAIN.format(nim=row.nim, other=again[row.number])
        return InvalidRow(row.number, problem, (row.nim, row.nama or "", row.alamat or ""))
    if row.number in suspects:
        return row._replace(warnings=(*row.warnings, suspects[row.number]))
    return row


def shown(cell: Cell) -> str:
    """A cell as text, for a person to recognise it."""
    if cell is None:
        return ""
    if isinstance(cell, BadCell):
        return cell.text
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < _TOO_BIG else f"{cell:.15G}".replace(".", ",")
    return str(cell)


def _nim(cell: Cell, problems: list[str], cleaned: list[str]) -> str:
    """The NIM of a cell; meaningless where a problem was added."""
    if isinstance(cell, str):
        nim = _taken_off(cell, cleaned)
        problem = _problem_of_nim(nim)
        if problem:
            problems.append(problem)
        return nim
    if cell is None:
        problems.append(wording.NIM_BLANK)
    elif isinstance(cell, int | float) and not isinstance(cell, bool):
        if abs(cell) >= _TOO_BIG:
            problems.append(wording.NIM_TOO_MANY_DIGITS)
        elif cell < 0 or cell % 1:
            problems.append(wording.NIM_NOT_WHOLE.format(text=shown(cell)))
        else:
            return str(int(cell))
    else:
        problems.append(_problem_of_kind("NIM", cell))
    return ""


def _taken_off(text: str, cleaned: list[str]) -> str:
    """The text without spaces around it and apostrophes before it."""
    bare = _AROUND.sub("", text)
    nim = bare
    while nim[:1] and nim[0] in _APOSTROPHES:
        nim = _AROUND.sub("", nim[1:])
    if bare != text:
        cleaned.append(wording.SPACES_TAKEN_OFF)
    if nim != bare:
        cleaned.append(wording.APOSTROPHE_TAKEN_OFF)
    return nim


def _problem_of_nim(nim: str) -> str | None:
    if not nim:
        return wording.NIM_BLANK
    if _is_rounded(nim):
        return wording.NIM_ROUNDED.format(text=nim)
    if nim in (".", ".."):
        # A browser takes these for a step in the path, so no link could reach the record.
        return wording.NIM_DOTS
    if len(nim) > LONGEST_NIM:
        return wording.NIM_LONG
    return _problem_of_text("NIM", nim)


def _text(field: str, cell: Cell, problems: list[str]) -> str | None:
    """The text of a cell exactly as it stands; None where it is blank, or a problem was added."""
    if cell is None:
        return None
    if isinstance(cell, str):
        problem = _problem_of_text(field, cell)
        if problem:
            problems.append(problem)
        return None if problem or not cell or cell.isspace() else cell
    if isinstance(cell, int | float) and not isinstance(cell, bool):
        if abs(cell) < _TOO_BIG and not cell % 1:
            return str(int(cell))
        # How a fraction was written, `10,5` or `10.50`, cannot be told from the number.
        problems.append(wording.NOT_TEXT.format(field=field, text=shown(cell)))
        return None
    problems.append(_problem_of_kind(field, cell))
    return None


def _problem_of_text(field: str, text: str) -> str | None:
    return wording.NUL.format(field=field) if "\0" in text else None


def _problem_of_kind(field: str, cell: BadCell | bool) -> str:  # noqa: FBT001 - a cell that is a boolean
    if isinstance(cell, bool):
        return wording.BOOLEAN.format(field=field, text=shown(cell))
    template = {"date": wording.DATE, "formula": wording.FORMULA, "long": wording.LONG}.get(cell.kind, wording.ERROR)
    return template.format(field=field, text=cell.text, limit=wording.number(LONGEST_CELL))


# Characters. Four times what Excel holds, and what Python's CSV reader takes.
LONGEST_CELL = 131_072
