"""The rules for one cell of an import: they clean a NIM, report the damage of a spreadsheet, and suggest repairs."""

import html
import re
import unicodedata

from mahasiswa import wording
from mahasiswa.digits import is_digits
from mahasiswa.record import (
    INVISIBLE,
    NIM_MAX_CHARACTERS,
    ODD_SPACES,
    UNADDRESSABLE_NIMS,
    Field,
    visible,
)
from mahasiswa.sheets.cells import (
    CELL_MAX_CHARACTERS,
    EXACT_DIGITS,
    FIRST_INEXACT,
    NIM_MIN_DIGITS,
    BadCell,
    Cell,
    cell_text,
    digits_in,
    has_digit,
    has_nim,
)

_ROUNDED = r"[+-]?[0-9]+(?:[.,][0-9]+[eE][+-]?|[eE][+-])[0-9]+"
_DECIMAL = r"[0-9]+(?:[.,]00?|\.0{6})"
_is_rounded = re.compile(_ROUNDED).fullmatch
_is_decimal = re.compile(_DECIMAL).fullmatch
# Academic systems write a NIM as a formula, so that Excel keeps its zeros.
_is_formula = re.compile('="([^"]*)"').fullmatch

_LETTER_FOR_DIGIT = r"[0-9/._-]*[OolI][0-9OolI/._-]*"
_has_letter_for_digit = re.compile(_LETTER_FOR_DIGIT).fullmatch

# Matches a NIM that begins with a digit and to which no rule applies. A row with such a NIM skips the rules, so an import
# of many rows takes half the time.
is_ordinary_nim = re.compile(
    rf"[0-9]{{1,{NIM_MAX_CHARACTERS}}}"
    rf"|(?!(?:{_ROUNDED}|{_DECIMAL}|{_LETTER_FOR_DIGIT})\Z)[0-9][0-9A-Za-z/._-]{{0,{NIM_MAX_CHARACTERS - 1}}}"
).fullmatch
# A spreadsheet shows this instead of a number if the column is too narrow, and some programs copy the shown text.
_is_masked = re.compile("##+").fullmatch
_ERROR = "#[A-Z0-9/]+[!?]"  # such as `#DIV/0!`
_is_error = re.compile(f"{_ERROR}|#N/A").fullmatch
_has_two_nims = re.compile(r"[0-9]{5,}\s*(?:[,;&\n]|\s/|/\s)\s*[0-9]{5,}").fullmatch
# Excel makes a date of a NIM such as `01-02-2023` or `2-23`.
_MONTH = "[A-Z][a-z]{2}"
_DAY = "(?:0?[1-9]|[12][0-9]|3[01])"
is_date = re.compile(
    rf"{_DAY}([-/.]){_DAY}\1(?:19|20)[0-9]{{2}}|{_DAY}([-/]){_DAY}\2[0-9]{{2}}"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}(?: [0-9:]+)?"
    rf"|[0-9]{{1,2}}-{_MONTH}(?:-[0-9]{{2,4}})?|{_MONTH}-[0-9]{{2,4}}"
).fullmatch


def is_like_a_nim(text: str) -> bool:
    """Whether a person would say that a text is a number and nothing else, and no date."""
    is_number = has_nim(text) and len(text) <= 2 * digits_in(text)
    return is_number and not is_date(text)


# str.strip() takes linear time, and a pattern for the spaces at the end of a text takes quadratic time.
_SPACES = " " + ODD_SPACES + INVISIBLE
_APOSTROPHES = "'’‘`´"

_entity = re.compile(r"&(?:#\d{2,6}|#[xX][\da-fA-F]{2,5}|[A-Za-z]{2,8});").sub

is_name = re.compile(r"\s*[^\W\d_][^\d_@:;/]{1,60}").fullmatch

# Maximum length of a text that stands for nothing, such as `belum ada`.
NOTHING_MAX_CHARACTERS = 20
_is_nothing = re.compile(
    rf"\W*(?:0+|null|none|nan|\\n|n\W?a\W*|{_ERROR}|idem|s\W?d\W?a\W*|(?:belum|tidak|tdk|blm) (?:ada|diketahui)"
    r"|kosong|nihil|sama(?: dengan)?(?: di)? ?(?:atas)?)?\W*",
    re.IGNORECASE,
).fullmatch

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
    has_letter = nama is None or any(map(str.isalpha, nama))
    of_nim = (wording.NIM_SPACES,) if any(map(str.isspace, nim)) else ()
    return of_nim if has_letter else (*of_nim, wording.NAMA_NO_LETTER)


def clean_nim(cell: Cell) -> tuple[str, str, tuple[str, ...]]:
    """The NIM in a cell, unless there is a problem; the problem or a blank text; and the characters that were removed."""
    text, problem = _text_of("nim", cell)
    # Other letters than those of ASCII may need the characters that cannot be seen.
    seen = visible(text)
    bare = (seen if seen.isascii() else text).strip(_SPACES)
    formula = _is_formula(bare)
    inner = formula[1].strip(_SPACES) if formula else bare
    unquoted = inner.lstrip(_APOSTROPHES + _SPACES)
    nim = re.split("[.,]", unquoted)[0] if _is_decimal(unquoted) else unquoted
    removed = {
        wording.SPACES_REMOVED: bare != text,
        wording.FORMULA_REMOVED: formula,
        wording.APOSTROPHE_REMOVED: unquoted != inner,
        wording.DECIMALS_REMOVED: nim != unquoted,
    }
    return nim, problem or _problem_of_nim(nim), tuple(filter(removed.get, removed))


_is_plain = re.compile("[0-9A-Za-z/._-]+").fullmatch
_has_thousands = re.compile(r"[0-9]{1,3}([.,])[0-9]{3}(?:\1[0-9]{3})+").fullmatch
_running_number = re.compile(r"[0-9]{1,3}(?:[.)]\s*(?=[0-9]{5})|\s+(?=[0-9]{8}))").match
_word_nim = re.compile(
    r"\W*(?:NIM|NPM|NRP|NISN?|NIPD|NO(?:MOR)?\W*(?:INDUK|MHS|MAHASISWA))(?![A-Z])[\W_]*",
    re.IGNORECASE,
).match
_run_of_digits = re.compile(rf"[0-9](?:[ .]?[0-9]){{{NIM_MIN_DIGITS - 1},}}")
_AROUND_NIM = " *#:;,.'\"()[]-_" + _SPACES
_AS_DIGITS = str.maketrans("OoIl", "0011")


def doubt_about(nim: str, *, are_rounded: bool) -> str:
    """The reason not to write a new NIM before a person has confirmed it, or a blank text.

    `are_rounded` says that a part of the long NIMs of the file ends in zeros, as a spreadsheet writes such a number.
    """
    if not has_digit(nim):
        return wording.NO_DIGIT
    if is_date(nim):
        return wording.NIM_LIKE_DATE
    return wording.NIM_ENDS_IN_ZEROS if are_rounded and ends_in_zeros(nim) else ""


def is_long(nim: str) -> bool:
    """Whether a NIM has more digits than a spreadsheet keeps of a number."""
    return len(nim) > EXACT_DIGITS and is_digits(nim)


def ends_in_zeros(nim: str) -> bool:
    """Whether a NIM is long, and has zeros in place of the digits that a spreadsheet does not keep."""
    return is_long(nim) and not nim[EXACT_DIGITS:].strip("0")


def bare_nim(cell: str) -> tuple[str, str]:
    """The NIM in a text that carries more, such as `NIM. 123456` or `2.300.018`, and the rest; or two blank texts."""
    text, problem, _ = ("", "", ()) if is_digits(cell) else clean_nim(cell)
    if problem or not text or is_digits(text):
        return "", ""

    digits = "".join(str(unicodedata.decimal(letter, letter)) for letter in text)
    if _has_thousands(digits):
        return re.sub("[.,]", "", digits), ""
    if has_nim(digits) and _has_letter_for_digit(digits):  # `I123` may be right
        return digits.translate(_AS_DIGITS), ""

    start = _word_nim(digits) or _running_number(digits)
    if _is_plain(digits) and not start:
        bare = digits.strip("._-")
        return bare if bare != text else "", ""
    return _bare(digits[start.end() if start else 0 :].strip(_AROUND_NIM))


def _bare(text: str) -> tuple[str, str]:
    """The only NIM in a text, and the rest; or two blank texts."""
    if _is_plain(text) and has_nim(text):
        return text, ""
    runs = [*_run_of_digits.finditer(text)]
    if len(runs) != 1:
        return "", ""
    (run,) = runs
    rest = text[: run.start()] + text[run.end() :]
    return re.sub("[ .]", "", run[0]), rest.strip(_AROUND_NIM)


def unescaped(text: str) -> str:
    """A text in which escapes of HTML and of programs, such as `&amp;`, become their letters."""
    plain = _entity(lambda found: html.unescape(found[0]).replace("\xa0", " "), text)
    return plain.replace("\\'", "'")


def stands_for_nothing(cell: Cell) -> bool:
    """Whether a cell has a text that is neither a name nor an address, such as `NULL`, 0 or the error #N/A."""
    if isinstance(cell, BadCell):
        return cell.kind == "error"
    if not isinstance(cell, str):
        return cell == 0
    is_short = 0 < len(cell) <= NOTHING_MAX_CHARACTERS and not cell.isspace()
    return is_short and bool(_is_nothing(cell.strip()))


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
    elif field != "nim":  # a number does not tell if it was written as `10,5` or `10.50`
        problem = wording.NOT_TEXT
    else:
        problem = (
            wording.NIM_TOO_MANY_DIGITS if abs(cell) >= FIRST_INEXACT else wording.NIM_NOT_WHOLE
        )
    limit = wording.number(CELL_MAX_CHARACTERS if isinstance(cell, BadCell) else EXACT_DIGITS)
    return "", problem.format(field=wording.LABELS[field], text=cell_text(cell), limit=limit)


def _problem_of_nim(nim: str) -> str:
    """The reason why no record can have this NIM, or why a spreadsheet has probably damaged it."""
    # Test the length first: for a NIM of 100,000 characters the other tests would only cost time.
    if len(nim) > NIM_MAX_CHARACTERS:
        return wording.NIM_TOO_LONG.format(limit=NIM_MAX_CHARACTERS)
    problems = {
        wording.NIM_UNADDRESSABLE: nim in UNADDRESSABLE_NIMS,
        wording.NUL.format(field=wording.LABELS["nim"]): "\0" in nim,
        wording.NIM_BLANK: not nim,
        wording.NIM_MASKED: _is_masked(nim),
        wording.ERROR.format(field=wording.LABELS["nim"], text=nim): _is_error(nim),
        wording.NIM_ROUNDED.format(text=nim): _is_rounded(nim),
        wording.TWO_NIMS: _has_two_nims(nim),
    }
    return next(filter(problems.get, problems), "")
