"""The form of our own CSV export: its quotes, and its apostrophes before texts that a spreadsheet takes for formulas.

`;` separates the cells. A spreadsheet with other settings splits the same line at commas or tabs, and it ignores a quote
that does not follow its separator. So an apostrophe, the guard, stands before each character that could begin a formula
for any of them. The import removes guards only from a file that begins like our export, and only from a cell that our
export would write in the same way.
"""

import codecs
import re
from collections.abc import Callable, Iterable, Sequence

from mahasiswa.record import Mahasiswa
from mahasiswa.sheets.cleaning import is_kept
from mahasiswa.sheets.columns import SheetRow, Verbatim
from mahasiswa.wording import HEADER

START = codecs.BOM_UTF8 + (";".join(HEADER) + "\r\n").encode()
"""The first bytes of each of our exports."""

JOINED_MAX_CHARACTERS = 1 << 20
"""Maximum length of lines that are joined. In a call of C code on more than this, no other thread would run."""

DECODED_BYTES = 1 << 14
"""Bytes that are decoded at a time to see whether they are UTF-8. All lines at once would take 9 MB more."""

GUARD = "'"

# The apostrophe is guarded like the rest, so that a guard differs from an apostrophe of the text. A program may drop
# the quotes before one of these characters, so quotes do not count.
_FORMULA = r"=+\-@＝＋－＠'"
_WITHIN = rf'(?="*+[{_FORMULA}])'
_needs_guard_at_start = re.compile(rf'"*+[{_FORMULA}\t\r\n]').match
_guard_within = re.compile(rf"(?<=[,;\t\r\n]){_WITHIN}").sub
_unguard_within = re.compile(rf"(?<=[,;\t\r\n]){GUARD}{_WITHIN}").sub
_has_digit = re.compile("[0-9]").search
_needs_quotes = re.compile(r'[,;\t\r\n"]').search

# Lines that need no guard and, unless they have a comma, no quotes. To test 500 lines takes a tenth of the time that
# `_line` takes to write them. `is_kept` accepts every NIM that this pattern matches.
_NIM = r"(?:[0-9]++(?!\.[0-9]+[eE]|[eE][+-])|[A-Za-z][A-Za-z/._-]*+[0-9])[0-9A-Za-z/._-]*+"
_TEXT = rf'[^\s,;"{_FORMULA}][^,;\t\r\n"]*+(?:,(?![{_FORMULA}])[^,;\t\r\n"]*+)*+'
_ordinary_lines = re.compile(rf"(?:{_NIM};{_TEXT};{_TEXT}\r\n)*+").fullmatch


# The same for lines as bytes in which each cell with a comma has quotes, and nothing else has. A text begins with a
# visible ASCII character or with a letter from U+00C0 to U+07FF, so it is not blank. The frame is all that is left
# without the bytes that need no quotes: if it has one line for each record, no text has a separator, a line break or a
# quote. One pattern for the frame and the rest takes a fifth longer.
_PLAIN_BYTES = bytes(set(range(256)) - set(b',;\t\r\n"'))
_are_framed = re.compile(rb'(?:;(?:",++")?+;(?:",++")?+\r\n)*+').fullmatch
_CELL_START = rb"[^\x00-\x20,;\"=+\-@'\x7f-\xc2\xe0-\xff]"
# Most NIMs are digits; without an alternative of their own, this test takes a tenth longer.
_begin_ordinarily = re.compile(
    rb'(?:(?:[0-9]++;|%b;)"?+%b[^;]*+;"?+%b[^\n]*+\n)*+' % (_NIM.encode(), _CELL_START, _CELL_START)
).fullmatch
_formula_after_comma = re.compile(rb",[\"=+\-@'\xef]").search  # the wide characters of _FORMULA begin with EF


def is_ordinary(joined: bytes, count: int) -> bool:
    """Whether the lines of `count` records, which a database has joined, are those that `lines` would write.

    False also if this is not certain. The database has put quotes around each cell with a comma and nothing else.
    """
    frame = joined.translate(None, delete=_PLAIN_BYTES)
    if frame.count(b"\n") != count or not _are_framed(frame) or not _begin_ordinarily(joined):
        return False
    if b"," in frame and _formula_after_comma(joined):
        return False
    return joined.isascii() or is_utf8(
        joined[start : start + DECODED_BYTES] for start in range(0, len(joined), DECODED_BYTES)
    )


def is_utf8(chunks: Iterable[bytes]) -> bool:
    """Whether these bytes together are UTF-8. A chunk may end within a character."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for chunk in chunks:
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def lines(records: Sequence[Mahasiswa]) -> list[str]:
    """The records as lines of the file."""
    plain = [f"{nim};{nama};{alamat}\r\n" for nim, nama, alamat in records]
    joined = "".join(plain) if sum(map(len, plain)) <= JOINED_MAX_CHARACTERS else ""
    # The count tells separators from a `;` in a text.
    if joined.count(";") != 2 * len(plain) or not _ordinary_lines(joined):
        return [_line(record) for record in records]
    if "," not in joined:
        return plain
    quoted = []
    for nim, nama, alamat in records:
        nama_cell = f'"{nama}"' if "," in nama else nama
        alamat_cell = f'"{alamat}"' if "," in alamat else alamat
        quoted.append(f"{nim};{nama_cell};{alamat_cell}\r\n")
    return quoted


def read_row(number: int, cells: Sequence[str], row_lines: Sequence[str]) -> SheetRow:
    """A row of a file that begins like our export. `row_lines` are the row's lines in the file.

    Another program may have changed the row. A cell that our export would not write in this way stays as it is.
    """
    if len(cells) < len(HEADER):
        nim, nama, alamat = [*cells, None, None, None][: len(HEADER)]
        return number, nim, nama, alamat
    nim, nama, alamat = cells[: len(HEADER)]
    raw = row_lines[0] if len(row_lines) == 1 else "".join(row_lines)
    nim_cell = nim
    if GUARD in raw:
        nim, nama, alamat = _unguarded(nim, _guarded_nim), _unguarded(nama), _unguarded(alamat)
    if nim != nim_cell or (nim and not _has_digit(nim)):  # a preview asks whether a NIM without a digit is right
        nim_cell = Verbatim(nim)
    blank = not nama or not alamat or nama.isspace() or alamat.isspace()
    if blank and '"' in raw and raw == _line(Mahasiswa(nim, nama, alamat)):
        return number, nim_cell, Verbatim(nama), Verbatim(alamat)
    return number, nim_cell, nama, alamat


def _line(record: Mahasiswa) -> str:
    nim, nama, alamat = record
    return f"{_quoted(_guarded_nim(nim))};{_quoted(_guarded(nama))};{_quoted(_guarded(alamat))}\r\n"


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
