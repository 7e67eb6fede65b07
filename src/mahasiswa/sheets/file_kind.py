"""Recognises the kind and the encoding of a file by its bytes. Its name does not count."""

import codecs
from functools import partial
from typing import BinaryIO, Literal

from mahasiswa import wording
from mahasiswa.sheets.sheet_errors import SheetError

SAMPLE_BYTES = 1 << 16
STEP_BYTES = 1 << 18  # that one call of C code reads, because no other thread runs meanwhile

_PICTURES = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"BM", b"II*\0", b"MM\0*")
_OTHER_KINDS = b"{\\rtf"  # a document without a NUL, which every other kind has


def kind_of(file: BinaryIO) -> Literal["", "workbook", "html"]:
    """The kind of a file that is no CSV, or a blank text."""
    start = _start_of(file)
    if start.startswith((b"PK\3\4", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")):
        return "workbook"
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        start = start[: len(start) & ~1].decode("utf-16", "replace").encode("ascii", "replace")
    start = start.removeprefix(codecs.BOM_UTF8).lstrip()
    return (
        "html" if start[:1] == b"<" and (start[1:2].isalpha() or start[1:2] in (b"!", b"?")) else ""
    )


def encoding_of(file: BinaryIO) -> str:
    """UTF-8 or UTF-16 by the byte order mark, UTF-8 if the whole file is valid UTF-8, otherwise Windows-1252."""
    start = _start_of(file)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if not start.strip():
        raise SheetError(wording.EMPTY)
    if start.startswith(b"%PDF"):
        raise SheetError(wording.PDF)
    if (
        (start.startswith(_PICTURES) and b"\0" in start)
        or start[4:8] == b"ftyp"
        or start[8:12] == b"WEBP"
    ):
        raise SheetError(wording.PICTURE)
    if b"\0" in start or start.startswith(_OTHER_KINDS):
        raise SheetError(wording.NOT_A_SPREADSHEET)
    return "utf-8-sig" if is_utf8(file) else "windows-1252"


def is_utf8(file: BinaryIO) -> bool:
    """Whether all of the file is valid UTF-8. It is decoded in pieces, so the text never takes much memory."""
    file.seek(0)
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for piece in iter(partial(file.read, STEP_BYTES), b""):
            decoder.decode(piece)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    finally:
        file.seek(0)
    return True


def _start_of(file: BinaryIO) -> bytes:
    file.seek(0)
    start = file.read(SAMPLE_BYTES)
    file.seek(0)
    return start
