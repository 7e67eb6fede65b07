"""The rules for one cell of an import. They report damage that a spreadsheet did, and never guess a repair."""

import re

from mahasiswa import wording
from mahasiswa.record import INVISIBLE, NIM_MAX_CHARACTERS, UNADDRESSABLE_NIMS, Field
from mahasiswa.sheets.cells import (
    CELL_MAX_CHARACTERS,
    EXACT_DIGITS,
    FIRST_INEXACT,
    BadCell,
    Cell,
    cell_text,
)

_ROUNDED = r"[+-]?[0-9]+(?:[.,][0-9]+[eE][+-]?|[eE][+-])[0-9]+"
_DECIMAL = r"[0-9]+\.0"
_is_rounded = re.compile(_ROUNDED).fullmatch
_is_decimal = re.compile(_DECIMAL).fullmatch

_LETTER_FOR_DIGIT = r"[0-9/._-]*[OolI][0-9OolI/._-]*"
_has_letter_for_digit = re.compile(_LETTER_FOR_DIGIT).fullmatch
# Of a NIM in which the letters O, o, l and I are probably digits; `I123` may be right.
LETTER_FOR_DIGIT_MIN_DIGITS = 5

# Matches a NIM that begins with a digit and to which no rule applies. A row with such a NIM takes 2 us, because it skips
# the rules. Any other row takes 8 us. An import of a million rows takes 6 s instead of 12 s.
is_ordinary_nim = re.compile(
    rf"[0-9]{{1,{NIM_MAX_CHARACTERS}}}"
    rf"|(?!(?:{_ROUNDED}|{_DECIMAL}|{_LETTER_FOR_DIGIT})\Z)[0-9][0-9A-Za-z/._-]{{0,{NIM_MAX_CHARACTERS - 1}}}"
).fullmatch
# A spreadsheet shows this instead of a number if the column is too narrow, and some programs copy the shown text.
_is_masked = re.compile("##+").fullmatch

# Every white space character of Unicode is below U+3001. str.strip() takes linear time, and a pattern for the spaces at
# the end of a text takes quadratic time.
_SPACES = "".join(filter(str.isspace, map(chr, range(0x3001)))) + INVISIBLE
_APOSTROPHES = "'’‘"

_PROBLEMS = {
    "date": wording.DATE,
    "error": wording.ERROR,
    "formula": wording.FORMULA,
    "long": wording.TOO_LONG,
}


def is_ordinary(nim: Cell, nama: Cell, alamat: Cell) -> bool:
    """Whether no rule concerns a row, because its texts begin with ordinary characters."""
    return (
        isinstance(nim, str)
        and isinstance(nama, str)
        and isinstance(alamat, str)
        and is_ordinary_nim(nim) is not None
        and "A" <= nama < "\x7f"
        and nama[0].isalpha()
        and not nama[-1].isspace()
        and "$" <= alamat < "\x7f"  # neither blank nor `####`
        and "\0" not in nama + alamat
    )


def warnings_about(nim: str, nama: str | None) -> tuple[str, ...]:
    """The reasons to check a row that can be written, in Indonesian."""
    warnings = {
        wording.DECIMAL_NIM: _is_decimal(nim),
        wording.NIM_SPACES: any(map(str.isspace, nim)),
        wording.NIM_LETTERS: _has_letter_for_digit(nim)
        and sum(map(str.isdecimal, nim)) >= LETTER_FOR_DIGIT_MIN_DIGITS,
        wording.NAMA_NO_LETTER: nama is not None and not any(map(str.isalpha, nama)),
    }
    return tuple(warning for warning, applies in warnings.items() if applies)


def clean_nim(cell: Cell) -> tuple[str, str, tuple[str, ...]]:
    """The NIM in a cell, unless there is a problem; the problem or a blank text; and the characters that were removed."""
    text, problem = _text_of("nim", cell)
    bare = text.strip(_SPACES)
    nim = bare.lstrip(_APOSTROPHES + _SPACES)
    checks = ((wording.SPACES_REMOVED, bare != text), (wording.APOSTROPHE_REMOVED, nim != bare))
    return (
        nim,
        problem or _problem_of_nim(nim),
        tuple(notice for notice, applies in checks if applies),
    )


def clean_text(field: Field, cell: Cell) -> tuple[str | None, str]:
    """The text in a cell, unchanged, or None if it is blank; and the problem or a blank text."""
    text, problem = _text_of(field, cell)
    if "\0" in text:
        problem = wording.NUL.format(field=wording.LABELS[field])
    elif _is_masked(text):
        problem = wording.MASKED.format(field=wording.LABELS[field])
    return None if not text or text.isspace() else text, problem


def _text_of(field: Field, cell: Cell) -> tuple[str, str]:
    """The text of a cell, or a blank text and the problem."""
    if cell is None or isinstance(cell, str):
        return cell or "", ""
    if isinstance(cell, BadCell):
        problem = _PROBLEMS[cell.kind]
    elif isinstance(cell, bool):
        problem = wording.BOOLEAN
    elif abs(cell) < FIRST_INEXACT and not cell % 1 and (cell >= 0 or field != "nim"):
        return str(int(cell)), ""
    elif field != "nim":  # the number does not tell whether it was written `10,5` or `10.50`
        problem = wording.NOT_TEXT
    else:
        problem = (
            wording.NIM_TOO_MANY_DIGITS if abs(cell) >= FIRST_INEXACT else wording.NIM_NOT_WHOLE
        )
    limit = wording.number(CELL_MAX_CHARACTERS if isinstance(cell, BadCell) else EXACT_DIGITS)
    return "", problem.format(field=wording.LABELS[field], text=cell_text(cell), limit=limit)


def _problem_of_nim(nim: str) -> str:
    """The reason why no record can have this NIM, or to believe that a spreadsheet has damaged it."""
    # Test the length first: for a NIM of 100,000 characters the other tests would only cost time.
    if len(nim) > NIM_MAX_CHARACTERS:
        return wording.NIM_TOO_LONG.format(limit=NIM_MAX_CHARACTERS)
    problems = {
        wording.NIM_UNADDRESSABLE: nim in UNADDRESSABLE_NIMS,
        wording.NUL.format(field=wording.LABELS["nim"]): "\0" in nim,
        wording.NIM_BLANK: not nim,
        wording.NIM_MASKED: _is_masked(nim),
        wording.NIM_ROUNDED.format(text=nim): _is_rounded(nim),
    }
    return next((problem for problem, applies in problems.items() if applies), "")
