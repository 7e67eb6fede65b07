"""The form of our own CSV export: its quotes, and its apostrophes before texts that a spreadsheet takes for formulas.

`;` separates the cells. A spreadsheet with other settings splits the same line at commas or tabs, and it ignores a quote
that does not follow its separator. So an apostrophe, the guard, stands before each character that could begin a formula
for any of them. The import removes guards only from a file that begins like our export, and only from a cell that our
export would write in the same way.
"""

import codecs
import re
from collections.abc import Callable, Iterable, Sequence
from typing import BinaryIO

from mahasiswa.record import Mahasiswa
from mahasiswa.sheets.cells import SheetRow, Verbatim, has_digit
from mahasiswa.sheets.cleaning import is_kept
from mahasiswa.sheets.columns import TITLES

START = codecs.BOM_UTF8 + ";".join(TITLES).encode() + b"\r\n"  # an import recognises our exports by it
GUARD = "'"

# The apostrophe is guarded like the rest, so that a guard differs from an apostrophe of the text. A program may drop
# the quotes before one of these characters, so quotes do not count.
_FORMULA = r"=+\-@＝＋－＠'"
_WITHIN = rf'(?="*+[{_FORMULA}])'
_needs_guard_at_start = re.compile(rf'"*+[{_FORMULA}\t\r\n]').match
_guard_within = re.compile(rf"(?<=[,;\t\r\n]){_WITHIN}").sub
_unguard_within = re.compile(rf"(?<=[,;\t\r\n]){GUARD}{_WITHIN}").sub
_needs_quotes = re.compile(r'[,;\t\r\n"]').search


def write_csv(records: Iterable[Mahasiswa], file: BinaryIO) -> int:
    """Write the records as UTF-8 with a byte order mark, `;` and CRLF, for an Indonesian Excel; return their number."""
    file.write(START)
    count = 0
    for record in records:
        file.write(line(record).encode())
        count += 1
    return count


def line(record: Mahasiswa) -> str:
    """A record as a line of the file."""
    nim, nama, alamat = record
    return f"{_quoted(_guarded_nim(nim))};{_quoted(_guarded(nama))};{_quoted(_guarded(alamat))}\r\n"


def read_row(number: int, cells: Sequence[str], row_lines: Sequence[str]) -> SheetRow:
    """NIM, Nama and Alamat in a row of a file that begins like our export. `row_lines` are the row's lines in the file.

    Another program may have changed the row. A cell that our export would not write in this way stays as it is.
    """
    width = len(Mahasiswa._fields)
    if len(cells) < width:
        return number, [*cells, *[None] * (width - len(cells))]
    nim, nama, alamat = cells[:width]
    raw = row_lines[0] if len(row_lines) == 1 else "".join(row_lines)
    nim_cell = nim
    if GUARD in raw:
        nim, nama, alamat = _unguarded(nim, _guarded_nim), _unguarded(nama), _unguarded(alamat)
    # Otherwise a preview would ask about a NIM without a digit, and skip a row that looks like the numbers of columns.
    if nim != nim_cell or (nim and (not has_digit(nim) or nama[:1] <= "9")):
        nim_cell = Verbatim(nim)
    is_blank = not nama or not alamat or nama.isspace() or alamat.isspace()
    if is_blank and '"' in raw and raw == line(Mahasiswa(nim, nama, alamat)):
        return number, (nim_cell, Verbatim(nama), Verbatim(alamat))
    return number, (nim_cell, nama, alamat)


def _guarded(text: str) -> str:
    guarded = _guard_within(GUARD, text)
    return GUARD + guarded if _needs_guard_at_start(text) else guarded


def _guarded_nim(nim: str) -> str:
    """A NIM that an import would change or refuse gets a guard, too, so that it is taken as it is."""
    guarded = _guarded(nim)
    return guarded if guarded.startswith(GUARD) or is_kept(nim) else GUARD + guarded


def _unguarded(cell: str, guarded: Callable[[str], str] = _guarded) -> str:
    text = _unguard_within("", cell.removeprefix(GUARD))
    return text if guarded(text) == cell else cell


def _quoted(text: str) -> str:
    # A blank text has quotes, so that an import can tell it from a cell without a text.
    if _needs_quotes(text) or not text or text.isspace():
        return '"' + text.replace('"', '""') + '"'
    return text
