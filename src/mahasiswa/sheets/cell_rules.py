"""The rules for a single cell of an import: its text, or the reason why it cannot be imported.

The rules report damage that a spreadsheet did, and never guess a repair.
"""

import re

from mahasiswa import wording
from mahasiswa.record import INVISIBLE, NIM_MAX_CHARACTERS, UNADDRESSABLE_NIMS, Field
from mahasiswa.sheets.cells import CELL_MAX_CHARACTERS, EXACT_DIGITS, FIRST_INEXACT, BadCell, Cell, cell_text

_ROUNDED = r"[+-]?[0-9]+(?:[.,][0-9]+[eE][+-]?|[eE][+-])[0-9]+"
_DECIMAL = r"[0-9]+\.0"
_is_rounded = re.compile(_ROUNDED).fullmatch
_is_decimal = re.compile(_DECIMAL).fullmatch

_LETTER_FOR_DIGIT = r"[0-9/._-]*[OolI][0-9OolI/._-]*"
_has_letter_for_digit = re.compile(_LETTER_FOR_DIGIT).fullmatch
LETTER_FOR_DIGIT_MIN_DIGITS = 5  # of a NIM in which the letters O, o, l and I are probably digits; `I123` may be right

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

_PROBLEMS = {"date": wording.DATE, "error": wording.ERROR, "formula": wording.FORMULA, "long": wording.TOO_LONG}


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
    name = "A" if nama is None else nama
    warnings = {
        wording.DECIMAL_NIM: _is_decimal(nim),
        wording.NIM_SPACES: any(map(str.isspace, nim)),
        wording.NIM_LETTERS: _has_letter_for_digit(nim) and sum(map(str.isdecimal, nim)) >= LETTER_FOR_DIGIT_MIN_DIGITS,
        wording.NAMA_NO_LETTER: not any(map(str.isalpha, name)),
    }
    return tuple(warning for warning, applies in warnings.items() if applies)


def clean_nim(cell: Cell) -> tuple[str, str, tuple[str, ...]]:
    """The NIM in a cell, unless there is a problem; the problem or a blank text; and the characters that were removed."""
    nim, problem = "", ""
    removed: tuple[str, ...] = ()
    if isinstance(cell, str):
        bare = cell.strip(_SPACES)
        nim = bare.lstrip(_APOSTROPHES + _SPACES)
        checks = ((wording.SPACES_REMOVED, bare != cell), (wording.APOSTROPHE_REMOVED, nim != bare))
        removed = tuple(notice for notice, applies in checks if applies)
        problem = _problem_of_nim(nim)
    elif cell is None:
        problem = wording.NIM_BLANK
    elif isinstance(cell, bool | BadCell):
        problem = _problem_of_kind("nim", cell)
    elif abs(cell) >= FIRST_INEXACT:
        problem = wording.NIM_TOO_MANY_DIGITS.format(limit=EXACT_DIGITS)
    elif cell < 0 or cell % 1:
        problem = wording.NIM_NOT_WHOLE.format(text=cell_text(cell))
    else:
        nim = str(int(cell))
    return nim, problem, removed


def clean_text(field: Field, cell: Cell) -> tuple[str | None, str]:
    """The text in a cell, unchanged, or None if it is blank; and the problem or a blank text."""
    label = wording.LABELS[field]
    text, problem = None, ""
    if isinstance(cell, str):
        if "\0" in cell:
            problem = wording.NUL.format(field=label)
        elif _is_masked(cell):
            problem = wording.MASKED.format(field=label)
        elif cell and not cell.isspace():
            text = cell
    elif isinstance(cell, bool | BadCell):
        problem = _problem_of_kind(field, cell)
    elif cell is not None and abs(cell) < FIRST_INEXACT and not cell % 1:
        text = str(int(cell))
    elif cell is not None:  # the number does not tell whether it was written `10,5` or `10.50`
        problem = wording.NOT_TEXT.format(field=label, text=cell_text(cell))
    return text, problem


def _problem_of_nim(nim: str) -> str:
    """The reason why no record can have this NIM, or to believe that a spreadsheet has damaged it."""
    problem = ""
    # Test the length first: for a NIM of 100,000 characters the other tests would only cost time.
    if len(nim) > NIM_MAX_CHARACTERS:
        problem = wording.NIM_TOO_LONG.format(limit=NIM_MAX_CHARACTERS)
    elif nim in UNADDRESSABLE_NIMS:
        problem = wording.NIM_UNADDRESSABLE
    elif "\0" in nim:
        problem = wording.NUL.format(field=wording.LABELS["nim"])
    elif not nim:
        problem = wording.NIM_BLANK
    elif _is_masked(nim):
        problem = wording.NIM_MASKED
    elif _is_rounded(nim):
        problem = wording.NIM_ROUNDED.format(text=nim)
    return problem


def _problem_of_kind(field: Field, cell: BadCell | bool) -> str:  # noqa: FBT001 - a cell that is a boolean
    template = _PROBLEMS[cell.kind] if isinstance(cell, BadCell) else wording.BOOLEAN
    limit = wording.number(CELL_MAX_CHARACTERS)
    return template.format(field=wording.LABELS[field], text=cell_text(cell), limit=limit)
