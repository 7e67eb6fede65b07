"""The rules for a single cell of an import: its text, or the reason why it cannot be imported.

The rules report damage that a spreadsheet did, and never guess a repair.
"""

import re

from mahasiswa import wording
from mahasiswa.record import NIM_MAX_CHARACTERS, UNADDRESSABLE_NIMS, Field
from mahasiswa.sheets.cells import (
    CELL_MAX_CHARACTERS,
    FIRST_INEXACT,
    SPREADSHEET_DIGITS,
    BadCell,
    Cell,
    Verbatim,
    cell_text,
)

_ROUNDED = r"[+-]?[0-9]+(?:[.,][0-9]+[eE][+-]?|[eE][+-])[0-9]+"
_DECIMAL = r"[0-9]+\.0"
_is_rounded = re.compile(_ROUNDED).fullmatch
_is_decimal = re.compile(_DECIMAL).fullmatch

_LETTER_FOR_DIGIT = r"[0-9/._-]*[OolI][0-9OolI/._-]*"
_has_letter_for_digit = re.compile(_LETTER_FOR_DIGIT).fullmatch
LETTER_FOR_DIGIT_MIN_DIGITS = 5
"""Minimum digits of a NIM in which the letters O, o, l and I are probably digits. `I123` may be right."""

# A NIM that begins with a digit and that no rule changes, refuses or takes for a title. Such a row takes 2 us, and any
# other row 8 us, so an import of a million rows takes 6 s instead of 12.
is_ordinary_nim = re.compile(
    rf"(?!(?:{_ROUNDED}|{_DECIMAL}|{_LETTER_FOR_DIGIT})\Z)[0-9][0-9A-Za-z/._-]{{0,{NIM_MAX_CHARACTERS - 1}}}"
).fullmatch
# A spreadsheet shows this instead of a number if the column is too narrow, and some programs copy the shown text.
_is_masked = re.compile("##+").fullmatch

# White space, and the invisible characters that are copied along from web pages and chats.
_INVISIBLE = "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
# Every white space character of Unicode is below U+3001. str.strip() takes linear time, and a pattern for the spaces at
# the end of a text takes quadratic time.
_SPACES = "".join(filter(str.isspace, map(chr, range(0x3001)))) + _INVISIBLE
_APOSTROPHES = "'’‘"


def is_ordinary_text(cell: Cell) -> bool:
    """Whether a text begins with a visible ASCII character after `#`, so it is neither blank nor `####`."""
    return isinstance(cell, str) and "$" <= cell < "\x7f" and "\0" not in cell


def is_ordinary_name(cell: Cell) -> bool:
    """Whether an ordinary text also begins with a letter and does not end with a space."""
    return is_ordinary_text(cell) and cell[0].isalpha() and not cell[-1].isspace()  # type: ignore[index]  # a text


def warnings_about(nim: str, nama: str | None) -> tuple[str, ...]:
    """The reasons to check a row that can be written, in Indonesian."""
    warnings = []
    if _is_decimal(nim):
        warnings.append(wording.DECIMAL_NIM)
    if any(map(str.isspace, nim)):
        warnings.append(wording.NIM_SPACES)
    if _has_letter_for_digit(nim) and sum(map(str.isdecimal, nim)) >= LETTER_FOR_DIGIT_MIN_DIGITS:
        warnings.append(wording.NIM_LETTERS)
    if nama is not None and nama != nama.strip():
        warnings.append(wording.NAMA_SPACES)
    if nama is not None and not any(map(str.isalpha, nama)):
        warnings.append(wording.NAMA_NO_LETTER)
    return tuple(warnings)


def clean_nim(cell: Cell, problems: list[str], cleaned: list[str]) -> str:
    """The NIM in a cell. Ignore the result if a problem was added. `cleaned` gets the characters that were removed."""
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
            problems.append(wording.NIM_NOT_WHOLE.format(text=cell_text(cell)))
        else:
            return str(int(cell))
    else:
        problems.append(_problem_of_kind("nim", cell))
    return ""


def clean_text(field: Field, cell: Cell, problems: list[str]) -> str | None:
    """The text in a cell, unchanged. None if it is blank, or if a problem was added."""
    if cell is None:
        return None
    if isinstance(cell, str):
        problem = _problem_of_text(field, cell)
        if not problem and not isinstance(cell, Verbatim) and _is_masked(cell):
            problem = wording.MASKED.format(field=wording.LABELS[field])
        if problem:
            problems.append(problem)
        if isinstance(cell, Verbatim) and not problem:
            return str(cell)
        return None if problem or not cell or cell.isspace() else cell
    if isinstance(cell, int | float) and not isinstance(cell, bool):
        if abs(cell) < FIRST_INEXACT and not cell % 1:
            return str(int(cell))
        # The number does not tell whether it was written `10,5` or `10.50`.
        problems.append(wording.NOT_TEXT.format(field=wording.LABELS[field], text=cell_text(cell)))
        return None
    problems.append(_problem_of_kind(field, cell))
    return None


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
    return _problem_of_text("nim", nim)


def _damage_of_nim(nim: str) -> str | None:
    """The reason to believe that a spreadsheet has damaged this NIM."""
    if not nim:
        return wording.NIM_BLANK
    if _is_masked(nim):
        return wording.NIM_MASKED
    return wording.NIM_ROUNDED.format(text=nim) if _is_rounded(nim) else None


def _problem_of_text(field: Field, text: str) -> str | None:
    return wording.NUL.format(field=wording.LABELS[field]) if "\0" in text else None


def _problem_of_kind(field: Field, cell: BadCell | bool) -> str:  # noqa: FBT001 - a cell that is a boolean
    label = wording.LABELS[field]
    if isinstance(cell, bool):
        return wording.BOOLEAN.format(field=label, text=cell_text(cell))
    template = {
        "date": wording.DATE,
        "error": wording.ERROR,
        "formula": wording.FORMULA,
        "long": wording.TOO_LONG,
    }[cell.kind]
    return template.format(field=label, text=cell.text, limit=wording.number(CELL_MAX_CHARACTERS))
