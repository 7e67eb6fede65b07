"""Splits lines of a text without separators, such as a chat, at the NIM and the first comma. A person confirms the columns."""

import re
from collections.abc import Iterable, Sequence

from mahasiswa import wording
from mahasiswa.record import tidy
from mahasiswa.sheets.cells import Refused, Row

NIM_MIN_DIGITS = 5

# The time and the sender of a message, as WhatsApp copies them.
_stamp = re.compile(
    r"\A\W{0,3}(?:"
    r"\[[\d/.,: ]{4,24}[APMapm. ]{0,5}\]\s?[^:]{1,60}: "
    r"|\d{1,2}/\d{1,2}/\d{2,4},? \d{1,2}[.:]\d\d[^:]{1,60}: )"
).sub
_runs = re.compile(r"(?<![\w+])[0-9][0-9A-Z]{0,40}(?:[./-][0-9A-Z]{1,20}){0,6}(?![^\W_])").findall
# A number of the line, a mark of a list, and the title of the NIM.
_list_mark = re.compile(r"\A\W*(?:\d{1,4}(?:\s*[.)]|\s+(?=\D|\Z)))?\W*").sub
_nim_title = re.compile(r"\b(?:nim|npm|nrp|nis|nisn|nipd)\b\W*\Z", re.IGNORECASE).sub
_AROUND = " \t,:;_|*/–—-"


def split_lines(lines: Iterable[str]) -> Sequence[Row]:
    """NIM, Nama and Alamat of each line with a NIM; other lines as one text. Raises Refused if most have no NIM."""
    texts = enumerate((_stamp("", line.strip()) for line in lines), 1)
    rows = [(number, _cells(text)) for number, text in texts if text.strip(" -=_|+")]
    names = [cells[1] for _, cells in rows if len(cells) > 1]
    if 2 * len(names) <= len(rows):
        raise Refused(wording.LINES_NOT_READ)
    if 10 * sum(_digits(name) > 0 for name in names) > len(names):
        raise Refused(wording.NAMES_NOT_PARTED)
    return [(0, wording.HEADER), *rows]


def _cells(line: str) -> Sequence[str]:
    nim = max(_runs(line), key=_digits, default="")
    if _digits(nim) < NIM_MIN_DIGITS:
        return [line]
    before, _, after = line.partition(nim)
    before = _bare(_list_mark("", _nim_title("", before)))
    after = _bare(after)
    if not (before and after):
        before, _, after = (before or after).partition(",")
    return [nim, _bare(before), _bare(after)]


def _digits(text: str) -> int:
    return sum(map(str.isdigit, text))


def _bare(text: str) -> str:
    """A text without the marks that part it from others."""
    return tidy(text).strip(_AROUND)
