"""Writes records as CSV, and guards texts that a spreadsheet takes for formulas: an import of CSV takes the guards away.

`;` separates the cells. A spreadsheet with other settings splits the same line at commas or tabs,
and it ignores a quote that does not follow its separator. So an apostrophe, the guard, stands
before each character that could begin a formula for any of them. A guard also stands before
apostrophes and quotes that stand before such a character. So reading takes away exactly one
apostrophe at each of these places, and keeps the apostrophes of the text.
"""

import codecs
import re
from collections.abc import Iterable
from typing import BinaryIO

from mahasiswa import wording
from mahasiswa.record import Mahasiswa

START = codecs.BOM_UTF8 + ";".join(wording.HEADER).encode() + b"\r\n"

# At the start of a text or of a part of it. A quote does not count, because a program may drop it.
_PLACE, _FORMULA = r"(?:^|(?<=[,;\t\r\n]))", r"""(?=['"]*+[=+\-@\t\r＝＋－＠])"""
_guard = re.compile(_PLACE + _FORMULA).sub
_has_special = re.compile(r'[,;\t\r\n"&]').search


def write_csv(records: Iterable[Mahasiswa], file: BinaryIO) -> int:
    """Write the records as UTF-8 with a byte order mark, `;` and CRLF, for an Indonesian Excel; return their number."""
    file.write(START)
    count = 0
    for record in records:
        file.write((";".join(map(_cell, record)) + "\r\n").encode())
        count += 1
    return count


def _cell(text: str) -> str:
    guarded = _guard("'", text)
    # In a line without quotes, an import drops spaces at the start of cells. It also reads `&amp;`
    # and `\'` as the letters that they stand for.
    if _has_special(guarded) or guarded.startswith(" ") or "\\'" in guarded:
        return '"' + guarded.replace('"', '""') + '"'
    return guarded
