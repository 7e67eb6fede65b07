"""Questions about the rows of a file: cells that another program has damaged. A button repairs all rows of one question.

A question is about exactly the rows that its repair would change. So there is a question as long as
there is something to repair, and none after the repair.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from mahasiswa import wording
from mahasiswa.record import FIELDS, NIM_MAX_CHARACTERS
from mahasiswa.sheets.cell_rules import bare_nim, is_name, stands_for_nothing, unescaped
from mahasiswa.sheets.cells import Cell, Cells, SheetRow, SheetRows, cell_text, has_digit, is_blank
from mahasiswa.sheets.questions import Question

WITHOUT_HIDDEN = "tersembunyi"  # the name of the repair that leaves out the hidden rows
TOWNS_MIN_NAMES = 4  # minimum names under Alamat, beside at most half as many towns
EXAMPLE_MAX_CHARACTERS = 60  # of a text in a question

# The cells of each row that a repair changes, by its number. A row of blank cells is left out.
Changes = dict[int, Cells]

_is_address = re.compile(
    r"\b(?:jl|jln|jalan|gg|gang|rt|rw|dusun|dsn|desa|kel|kelurahan|kec|kecamatan|perum|perumahan|komplek|kompleks|blok|kab"
    r"|kabupaten|no\W{0,2}[0-9])\b",
    re.IGNORECASE,
).search
_degrees = re.compile(
    r"(?:(?:(?:[SM]|A\.?Md|Sp|Ph)\.[A-Z][A-Za-z.]{0,6}|S[EHT]|M[MT]|MBA|Ners|Apt)\.?, *)+(?=\S)"
).match
# Lines that no cell of a student has: the name of a group of students, and the date above signatures.
_is_no_rest = re.compile(
    r"\W*(?:kelas|program|prodi|jurusan|fakultas|semester|angkatan|kelompok|rombel|tingkat)\b"
    r"|(?!\W*asrama\b).*\b(?:mahasiswa|siswa|orang)\b"
    rf"|.*\b(?:{'|'.join(wording.MONTHS)}) [0-9]{{4}}",
    re.IGNORECASE,
).match
_before_name = re.compile(r"^\s*[0-9]{1,3}[.)]\s*(?=[^\W\d])").sub
_is_marked = re.compile(r"\s*[*_]+(.+?)[*_]+\s*").fullmatch
_has_date = re.compile(r"\b(?:[0-9]{1,2}-[A-Z][a-z]{2}|[A-Z][a-z]{2}-[0-9]{2})\b").search
# Lines of other students, because a quote was not closed. The number of the row may stand before the NIM.
_swallowed = re.compile(
    r"[\r\n]\W{0,3}(?:[0-9]{1,4}\W{0,2}[;,\t|]\W{0,2})?[0-9]{5,}\W{0,2}[;,\t|]"
).search
_lost = re.compile("\ufffd").search  # a letter that another program could not write
# UTF-8 that was read as Windows-1252: the first byte of a letter, and the others.
_decoded_twice = re.compile(
    r"[\u00c2-\u00f4][\u0080-\u00bf\u0152-\u0192\u02c6\u02dc\u2013-\u2122]+"
).sub
# Matches a row in which no check of a single row finds anything. Most rows match, and this takes
# less time than the checks.
_is_plain = re.compile(
    rf"[0-9]{{5,{NIM_MAX_CHARACTERS}}}\0[A-Za-z][A-Za-z .,']*\0[A-Za-z0-9 .,/']*"
).fullmatch


class _Check(NamedTuple):
    """A kind of damage: its question, the label of the button, and the function that finds and repairs the rows."""

    name: str
    sentence: str
    repair: str
    find: Callable[[SheetRows], Changes]
    sees_all: bool = False  # also the plain rows


def asked_about(
    rows: SheetRows, skipped: Collection[int], repairs: Collection[str]
) -> list[Question]:
    """The questions about these rows. Those in `skipped` are of no student; `repairs` were pressed already."""
    students = [row for row in rows if row[0] not in skipped]
    unusual = [row for row in students if not _is_plain_row(row[1])]
    cells_of = dict(students)
    questions = []

    for check in _CHECKS:
        looked_at = students if check.sees_all else unusual
        changes = {} if check.name in repairs else check.find(looked_at)
        if changes:
            questions.append(_question(check, changes, cells_of))

    return questions


def repaired_rows(
    rows: Sequence[SheetRow], skipped: Collection[int], repairs: Collection[str]
) -> list[SheetRow]:
    """The rows after the repairs that were pressed."""
    for check in _CHECKS:
        if check.name in repairs:
            changes = check.find(row for row in rows if row[0] not in skipped)
            changed = [(number, changes.get(number, cells)) for number, cells in rows]
            rows = [row for row in changed if not is_blank(row[1])]
    return list(rows)


def _is_plain_row(cells: Cells) -> bool:
    """Whether there is nothing to ask about a row alone, except a text that stands for nothing."""
    if len(cells) > len(FIELDS):  # it has a note
        return False
    try:
        return _is_plain("\0".join(cells)) is not None  # type: ignore[arg-type]  # a TypeError if a cell is no text
    except TypeError:
        return False


def _question(check: _Check, changes: Changes, cells_of: Mapping[int, Cells]) -> Question:
    pairs = (
        (cell_text(old), cell_text(new))
        for number, cells in changes.items()
        for old, new in zip(cells_of[number], cells, strict=False)
        if old != new
    )
    old, new = (text[:EXAMPLE_MAX_CHARACTERS] for text in next(pairs, ("", "")))
    left_out = sum(map(is_blank, changes.values()))
    count = wording.number(left_out or len(changes))

    sentence = check.sentence.format(old=old)
    repair = check.repair.format(count=count, old=old, new=new)
    return Question(check.name, sentence, sorted(changes), repair)


def _each(
    repaired: Callable[[Cells], Cells | None],
) -> Callable[[SheetRows], Changes]:
    """A function that looks at each row alone. `repaired` gives its new cells, or None if nothing is wrong with it."""

    def find(rows: SheetRows) -> Changes:
        found = ((number, repaired(cells)) for number, cells in rows)
        return {number: cells for number, cells in found if cells is not None}

    return find


def _with(is_damaged: Callable[[str], object]) -> Callable[[SheetRows], Changes]:
    """A function that finds the rows with a text that is damaged, which cannot be repaired here."""

    def found(cells: Cells) -> Cells | None:
        return cells if any(isinstance(cell, str) and is_damaged(cell) for cell in cells) else None

    return _each(found)


def _continued(rows: SheetRows) -> Changes:
    """Rows with one text and without a NIM, directly below a student: the text goes on with the one above it."""
    changes: Changes = {}
    student, last = 0, 0
    whole: list[Cell] = []

    for number, cells in rows:
        field = _field_of_rest(cells) if student and number == last + 1 else None
        if field is not None:
            rest = "".join(map(cell_text, cells[:3])).strip()
            whole[field] = f"{cell_text(whole[field]).rstrip()} {rest}".strip()
            # The first change is the example in the question. It shows the row with the rest.
            changes[number] = (None, None, None)
            changes[student] = whole
        else:
            student = number if has_digit(cell_text(cells[0])) else 0
            whole = list(cells)
        last = number

    return changes


def _field_of_rest(cells: Cells) -> int | None:
    """The field that a row continues, if the row has one text only.

    A text under NIM continues the address.
    """
    filled = [field for field, cell in enumerate(cells[:3]) if not is_blank((cell,))]
    if len(filled) != 1:
        return None
    text = cell_text(cells[filled[0]])
    if _is_no_rest(text) or (filled == [0] and has_digit(text) and not _is_address(text)):
        return None
    return filled[0] or 2


def _exchanged(rows: SheetRows) -> Changes:
    """Names and addresses that stand in each other's place: in a few rows, or else in all of them."""
    students = [(number, cells) for number, cells in rows if not is_blank(cells[1:3])]
    found = [row for row in students if _is_exchanged(row[1])]
    if 2 * len(found) > len(students) or _are_towns_and_names(students):
        found = students
    return {number: (nim, alamat, nama, *notes) for number, (nim, nama, alamat, *notes) in found}


def _is_exchanged(cells: Cells) -> bool:
    nama, alamat = map(cell_text, cells[1:3])
    # Most addresses have a digit, so this test ends early.
    is_swapped = is_name(alamat) and _is_address(nama)
    return bool(is_swapped) and not _is_address(alamat)


def _are_towns_and_names(rows: Sequence[SheetRow]) -> bool:
    """Whether the texts under Nama repeat, as towns do, and those under Alamat are many names."""
    towns = {cells[1] for _, cells in rows}
    names = {cells[2] for _, cells in rows}
    are_many = len(names) >= TOWNS_MIN_NAMES and len(names) >= 2 * len(towns)
    return are_many and all(map(is_name, map(cell_text, names)))


def _with_letters(cells: Cells) -> Cells | None:
    """Letters that were decoded twice, as in `Nurâ€™aini`, or that stand as in the source of a web page."""
    repaired = [
        _decoded_twice(_decoded, unescaped(cell)) if isinstance(cell, str) else cell
        for cell in cells
    ]
    return repaired if repaired != [*cells] else None


def _decoded(match: re.Match[str]) -> str:
    # Windows-1252 has no letter for five of the bytes, and programs then take the one of ISO 8859-1.
    data = b"".join(
        letter.encode("latin-1" if letter < "\u0100" else "cp1252", "replace")
        for letter in match[0]
    )
    try:
        return data.decode()
    except UnicodeDecodeError:
        return match[0]


def _with_bare_nim(cells: Cells) -> Cells | None:
    """A NIM that carries something else. A name beside it goes to its place, if that is blank."""
    nim, nama, alamat, *notes = cells
    if not isinstance(nim, str) or is_blank((nama, alamat)):
        return None
    bare, rest = bare_nim(nim)
    if not bare:
        return None
    if is_blank((nama,)) and is_name(rest):
        nama = rest
    return bare, nama, alamat, *notes


def _with_bare_name(cells: Cells) -> Cells | None:
    """A name behind a row number, or between marks, such as `*Siti*`."""
    nim, nama, *others = cells
    if not isinstance(nama, str) or nama[:1].isalpha():
        return None
    bare = _before_name("", nama)
    if marked := _is_marked(bare):
        bare = marked[1]
    return (nim, bare, *others) if bare != nama else None


def _with_date(cells: Cells) -> Cells | None:
    """A row whose address has a date such as 03-Jul, which was `3/7`."""
    alamat = cells[2]
    return cells if isinstance(alamat, str) and _has_date(alamat) else None


def _without_nothing(cells: Cells) -> Cells | None:
    """Texts that stand for nothing, such as `NULL` or `idem`."""
    nim, *texts = cells
    if not any(map(stands_for_nothing, texts)):
        return None
    return nim, *(None if stands_for_nothing(cell) else cell for cell in texts)


def _with_degree(cells: Cells) -> Cells | None:
    """An academic degree that a comma has moved from the name to the address, as in `Fauzi, S.Pd`."""
    nim, nama, alamat, *notes = cells
    text = cell_text(alamat).lstrip()
    degrees = _degrees(text) if wording.JOINED_CELLS in notes else None
    if not degrees:
        return None
    whole = f"{cell_text(nama)}, {degrees[0]}".rstrip(", ")
    return nim, whole, text[degrees.end() :]


def _without_hidden(cells: Cells) -> Cells | None:
    """A row that Excel does not show is left out."""
    return (None, None, None) if wording.HIDDEN_ROWS in cells[3:] else None


def _with_more_cells(cells: Cells) -> Cells | None:
    """A row with more cells than titles, which cannot be repaired here."""
    is_moved = wording.MORE_CELLS in cells[3:] or wording.JOINED_CELLS in cells[3:]
    return cells if is_moved and not _with_degree(cells) else None


_CHECKS = (
    _Check(
        WITHOUT_HIDDEN, wording.HIDDEN_ROWS, wording.WITHOUT_HIDDEN_ROWS, _each(_without_hidden)
    ),
    _Check("kutip", wording.SWALLOWED, "", _with(_swallowed)),
    _Check("sambung", wording.CONTINUED, wording.CONTINUE, _continued, sees_all=True),
    _Check("gelar", wording.DEGREE, wording.MOVE_DEGREE, _each(_with_degree)),
    _Check("sel", wording.MORE_CELLS, "", _each(_with_more_cells)),
    _Check("tukar", wording.EXCHANGED, wording.EXCHANGE, _exchanged, sees_all=True),
    _Check("huruf", wording.TWICE_DECODED, wording.DECODE, _each(_with_letters)),
    _Check("hilang", wording.LOST_LETTERS, "", _with(_lost)),
    _Check("tanggal", wording.ADDRESS_LIKE_DATE, "", _each(_with_date)),
    _Check("tanda", wording.NAME_CARRIES, wording.CLEAN_NAMES, _each(_with_bare_name)),
    _Check("nim", wording.NIM_CARRIES, wording.CLEAN_NIMS, _each(_with_bare_nim)),
    _Check("kosong", wording.NOTHING, wording.EMPTY_CELLS, _each(_without_nothing), sees_all=True),
)
