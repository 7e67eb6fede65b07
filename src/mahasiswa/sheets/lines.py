"""Reads a pasted text without separators, such as a chat or a table of a PDF file, by the NIMs in its lines."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from mahasiswa import wording
from mahasiswa.record import tidy
from mahasiswa.sheets.cells import Cell, SheetRow, digits_in, has_digit, has_nim, most_common
from mahasiswa.sheets.limits import MAX_TITLES
from mahasiswa.sheets.sheet_errors import SheetError
from mahasiswa.sheets.titles import fields_in
from mahasiswa.work import slices

# A NIM may have so many digits more or less than most others. So a mistyped NIM is found in its
# line.
NIM_MAX_DIFFERENCE = 2
TEXT_MAX_CHARACTERS, LINE_MAX_CHARACTERS = 4 << 20, 2000

# The time and the sender of a message, as WhatsApp copies them.
_stamp = re.compile(
    r"\A\W{0,3}(?:"
    r"\[[\d/.,: ]{4,24}[APMapm. ]{0,5}\]\s?[^:]{1,60}: "
    r"|\d{1,2}/\d{1,2}/\d{2,4},? \d{1,2}[.:]\d\d[^:]{1,60}: )"
).sub
_is_rule = re.compile(r"[\s|+=:\u2500-\u257f_-]+").fullmatch
# Segments after the first one begin with a digit, so `2300018101-Siti` ends before the name. Between
# two of them may stand the letters of a faculty, as in `20/456839/TK/50663`.
_numbers = re.compile(
    r"(?<![\w+])[A-Z]{0,4}\d[\dA-Z]{0,40}(?:(?:[./-][A-Z]{2,4})?[./-]\d{1,20}){0,6}(?![^\W_])"
).finditer
# A date, a telephone number or a year.
is_no_nim = re.compile(
    r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}"
    r"|(?:\+?62|0)8[\d-]{7,14}|8\d\d-\d{3,4}-\d{3,5}"
    r"|(?:19|20)\d\d(?:/(?:19|20)?\d\d)?"
).fullmatch
# A number of the line, a mark of a list, and the title of the NIM.
_list_mark = re.compile(r"\A\W*(?:\d{1,4}(?:\s*[.)]|\s+(?=\D|\Z)))?\W*").sub
_nim_title = re.compile(r"\b(?:nim|npm|nrp|nis|nisn|nipd)\b\W*\Z", re.IGNORECASE).sub
_separators = (r" ?\| ?", r" ?; ?", r" [-–—] ?|[–—] ", r" ?_ ?", r" ?, ?", r" ?/ ?")
# `S.Pd` after a comma belongs to the name.
_degree = re.compile(r"(?:[A-Z][A-Za-z]{0,3}\.){1,3}[A-Za-z]{0,4}\.?|[A-Z]{2,3}|Ph\.?D").fullmatch
_inline_label = re.compile(
    r"[,;|]?[ \t](?=(?:nim|npm|nis|nama|alamat)(?: (?:lengkap|mahasiswa|siswa|rumah))?\s*[:=])",
    re.IGNORECASE,
).sub
_labelled = re.compile(r"\W*([A-Za-z][\w ./()-]{0,39}?)[\s*_]*[:=](?!//)\W*(.*)").fullmatch
_gaps = re.compile(r"\s{0,9}\|\s{0,9}|\t|\s{2,}").split


class Line(NamedTuple):
    """A line that is not blank. If it has a NIM, the texts on both sides of it are `before` and `after`."""

    number: int
    text: str
    before: str = ""
    nim: str = ""
    after: str = ""


Lines = Sequence[Line]


def rows_in_lines(text: str) -> list[SheetRow]:
    """The rows of a text, with titles that this function may add as row 0; none if the lines share no kind of number.

    Raises SheetError if only a guess could part the names and the addresses.
    """
    if len(text) > TEXT_MAX_CHARACTERS:
        return []
    lines = [
        Line(number, without_stamp(line))
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and not _is_rule(line)
    ]
    if any(len(line.text) > LINE_MAX_CHARACTERS for line in lines):
        return []
    if blocks := _blocks(lines):
        return blocks
    lines = _with_nims(lines)
    found = [line for line in lines if line.nim]
    if not found:
        return []
    return _cells_by_gaps(lines, found) or _stacked(lines, found) or _each_line(lines, found)


def _with_nims(lines: Lines) -> list[Line]:
    """The lines. Each line with a number like the numbers of most other lines gets it as its NIM.

    Numbers are alike if they have about as many digits.
    """
    candidates = [
        [nim for nim in _numbers(line.text) if has_nim(nim[0]) and not is_no_nim(nim[0])]
        for line in lines
    ]
    usual = most_common(
        digits for nims in candidates for digits in {digits_in(nim[0]) for nim in nims}
    )

    def difference(nim: re.Match[str]) -> int:
        return abs(digits_in(nim[0]) - usual)

    parted = []
    for line, nims in zip(lines, candidates, strict=True):
        nim = min(nims, key=difference, default=None)
        if nim and difference(nim) <= NIM_MAX_DIFFERENCE:
            before = _list_mark("", _nim_title("", line.text[: nim.start()]))
            after = line.text[nim.end() :]
            parted.append(Line(line.number, line.text, _bare(before), nim[0], _bare(after)))
        else:
            parted.append(line)
    return parted


def without_stamp(line: str) -> str:
    """A line without the time and the sender of a message."""
    return _stamp("", line)


def _blocks(lines: Lines) -> list[SheetRow]:
    """The rows of blocks such as `NIM : …`, `Nama : …`. A title that comes again begins a row."""
    titles: dict[str, str] = {}
    rows: list[tuple[int, dict[str, str]]] = []
    row: dict[str, str] = {}
    key = ""
    last = others = 0
    for number, title, text in _labelled_parts(lines):
        if title:
            key = title.casefold()
            titles.setdefault(key, title)
            if not rows or key in row:
                row = {}
                rows.append((number, row))
            row[key] = text
        elif rows and number <= last + 1:
            row[key] = ", ".join(filter(None, (row[key], text)))
        else:
            others += 1
        last = number

    return [] if others > len(lines) / 2 else _below_titles(titles, rows)


def _below_titles(
    titles: Mapping[str, str], rows: Iterable[tuple[int, Mapping[str, str]]]
) -> list[SheetRow]:
    """The rows below their titles, if these name the NIM and another field."""
    if len(titles) > MAX_TITLES or not fields_in(titles.values()) > {"nim"}:
        return []
    cells = [(number, [row.get(key) for key in titles]) for number, row in rows if len(row) > 1]
    return [(0, list(titles.values())), *cells]


def _labelled_parts(lines: Lines) -> Iterator[tuple[int, str, str]]:
    """The parts of lines such as `NIM : 23001, Nama : Ani`: the line, the title or a blank text, and what follows it."""
    for number, line, *_ in lines:
        for part in _inline_label("\n", line).split("\n"):
            if label := _labelled(part):
                yield number, label[1], _bare(label[2])
            elif _list_mark("", part):
                yield number, "", _bare(part)


def _cells_by_gaps(lines: Lines, found: Lines) -> list[SheetRow]:
    """The rows of a table whose columns are parted by `|` or by two spaces, if nine tenths have the same width."""
    rows = {line: _gaps(line.text.strip().strip("|").strip()) for line in lines}
    widths = Counter(len(rows[line]) for line in found)
    ((width, count),) = widths.most_common(1)
    nims = sum(line.nim in rows[line] for line in found)
    if width < 2 or 10 * min(count, nims) < 9 * len(found):
        return []

    # Between spaces, a blank cell would move the cells behind it.
    has_bars = any("|" in line.text for line in found)
    is_table = has_bars or count == len(found)
    return [(line.number, cells) for line, cells in rows.items()] if is_table else []


def _stacked(lines: Lines, found: Lines) -> list[SheetRow]:
    """The rows of a text with one cell on each line.

    In such a text the NIMs stand at equal distances.
    """
    at = [index for index, line in enumerate(lines) if line.nim]
    alone = sum(not (line.before or line.after) for line in found)
    distances = {second - first for first, second in pairwise(at)}
    if 10 * alone < 9 * len(found) or len(distances) != 1:
        return []
    (width,) = distances
    if width < 2 or len(lines) % width:
        return []
    rows = slices(lines, width)
    return [(row[0].number, [line.nim or line.text.strip() for line in row]) for row in rows]


def _each_line(lines: Lines, found: Lines) -> list[SheetRow]:
    """NIM, Nama and Alamat of each line with a NIM. The name stands before the NIM, or else after it."""
    if 2 * len(found) < len(lines):
        return []
    separator = _separator_of(found)
    rows: list[SheetRow] = [(0, list(wording.HEADER))]
    last = found[-1].number
    with_digits = 0
    for line in lines:
        cells: list[Cell] = [line.text.strip()]
        if line.nim:
            nama, alamat = _nama_and_alamat(line, separator)
            with_digits += bool(has_digit(nama))
            cells = [line.nim, nama, alamat]
        elif len(rows) > 1 and (line.number < last or not rows[-1][1][-1]):
            cells = [None, None, _bare(line.text)]
        rows.append((line.number, cells))
    if 10 * with_digits > len(found):
        raise SheetError(wording.NAMES_NOT_PARTED)
    return rows


def _separator_of(found: Lines) -> str:
    """The separator that most lines have on the one side of the NIM where they have a text."""
    rests = [line.before + line.after for line in found if not (line.before and line.after)]
    for separator in _separators:
        count = sum(bool(re.search(separator, rest)) for rest in rests)
        if 3 * count >= 2 * len(rests):
            return separator
    return _separators[0]


def _nama_and_alamat(line: Line, separator: str) -> tuple[str, str]:
    """The texts on both sides of the NIM, or those in its one text. A degree that follows a comma belongs to the name."""
    if line.before and line.after:
        return line.before, line.after
    # The separators stand between the texts.
    text = line.before + line.after
    parts = re.split(f"({separator})", text)
    end = 1
    while _degree("".join(parts[end + 1 : end + 2])):
        end += 2
    nama = ", ".join(parts[:end:2])
    alamat = "".join(parts[end + 1 :])
    return _bare(nama), _bare(alamat)


def _bare(text: str) -> str:
    """A text with single spaces and without the marks that part it from others."""
    return tidy(text).lstrip(" \t.,:;)]*_|/–—-").rstrip(" \t,:;([*_|–—-").strip()
