"""Recognises the kind and the encoding of a file by its bytes. Its name does not count."""

import codecs
import re
import zipfile
from functools import partial
from typing import BinaryIO, Literal

from mahasiswa import wording
from mahasiswa.intake.cells import ODD_LETTERS, Refused

SAMPLE_BYTES = 1 << 16
DECODED_BYTES = 1 << 20
# A UTF-16 file without a byte order mark has more NULs, as a part of its bytes. All of them are on
# the same side of each pair.
BLANKS_MIN = 0.4

_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_SINGLE_BYTE = ("windows-1252", "mac_roman", "cp850")
# Parts of a package that is no workbook.
_PACKAGES = {
    "word/document.xml": wording.DOCUMENT,
    "Index/Document.iwa": wording.NUMBERS,
    "Index.zip": wording.NUMBERS,
}
# The beginning of files of other kinds.
_OTHER_KINDS = {
    b"%PDF": wording.PDF,
    b"\x89PNG": wording.PICTURE,
    b"\xff\xd8\xff": wording.PICTURE,
    b"GIF8": wording.PICTURE,
    b"BM": wording.PICTURE,
    b"II*\0": wording.PICTURE,
    b"MM\0*": wording.PICTURE,
    b"{\\rtf": wording.DOCUMENT,
    b"BEGIN:VCARD": wording.CONTACTS,
    b"MIME-Version:": wording.WEB_ARCHIVE,
    b"From: <": wording.WEB_ARCHIVE,
    b"Rar!": wording.PACKED,
    b"7z\xbc": wording.PACKED,
    b"\x1f\x8b": wording.PACKED,
    b"\x09\x00\x04\x00": wording.OLD_EXCEL,
    b"\x09\x02\x06\x00": wording.OLD_EXCEL,
    b"\x09\x04\x06\x00": wording.OLD_EXCEL,
}
# The version of a dBase table, which is followed by a date.
_DBASE = (0x03, 0x30, 0x83, 0x8B, 0xF5)


def kind_of(file: BinaryIO) -> Literal["workbook", "biff", "html", "text"]:
    """The kind of a file. Raises Refused for a package of another kind."""
    start = _start_of(file)
    if start.startswith(b"PK\3\4"):
        _check_package(file)
        return "workbook"
    if start.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        return "workbook"
    if start.startswith((b"\x09\x08\x08\0", b"\x09\x08\x10\0")):
        return "biff"
    if encoding := _utf16_of(start):
        start = start[: len(start) & ~1].decode(encoding, "replace").encode("ascii", "replace")
    is_tag = re.match(rb"\s*<[A-Za-z!?]", start.removeprefix(codecs.BOM_UTF8))
    return "html" if is_tag else "text"


def _check_package(file: BinaryIO) -> None:
    """Raise Refused if a package surely holds no workbook. A damaged one is left to the reader."""
    try:
        with zipfile.ZipFile(file) as package:
            names = package.namelist()
            kind = package.read("mimetype")[:80] if "mimetype" in names else b""
    except (zipfile.BadZipFile, KeyError, ValueError, RuntimeError, OSError):
        return
    finally:
        file.seek(0)
    for part, sentence in _PACKAGES.items():
        if part in names:
            raise Refused(sentence)
    if b"opendocument" in kind and b"spreadsheet" not in kind:
        raise Refused(wording.DOCUMENT)
    if not kind and not any(name.startswith(("xl/", "_rels/")) for name in names):
        raise Refused(wording.PACKED)


def encoding_of(file: BinaryIO) -> str:
    """The encoding of a text: UTF-16, UTF-8 if all of it is valid, or the single-byte one with the fewest odd letters.

    Raises Refused for files of other kinds.
    """
    start = _start_of(file)
    if encoding := _utf16_of(start):
        return encoding
    if not start.strip():
        raise Refused(wording.EMPTY)
    for beginning, sentence in _OTHER_KINDS.items():
        if start.lstrip().startswith(beginning) and (sentence != wording.PICTURE or b"\0" in start):
            raise Refused(sentence)
    if start[4:8] == b"ftyp" or start[8:12] == b"WEBP":
        raise Refused(wording.PICTURE)
    if start[0] in _DBASE and start[2:3] <= b"\x0c" and b"\0" in start:
        raise Refused(wording.DBASE)
    if b"\0" in start:
        raise Refused(wording.NOT_A_SPREADSHEET)
    is_link = b"docs.google.com" in start[:2000] or b'"doc_id"' in start[:2000]
    if is_link and start.lstrip().startswith(b"{"):
        raise Refused(wording.GOOGLE_LINK)
    return "utf-8-sig" if is_utf8(file) else _single_byte_encoding(file)


def _single_byte_encoding(file: BinaryIO) -> str:
    sample = file.read(DECODED_BYTES)
    file.seek(0)
    return min(
        _SINGLE_BYTE,
        key=lambda encoding: len(re.findall(ODD_LETTERS, sample.decode(encoding, "replace"))),
    )


def _utf16_of(start: bytes) -> str:
    """The name of the encoding if a file is UTF-16, or a blank text.

    Some programs write no mark.
    """
    if start.startswith(_MARKS):
        return "utf-16"
    for encoding, blank in (("utf-16-le", 1), ("utf-16-be", 0)):
        has_blanks = start[blank::2].count(0) > BLANKS_MIN * len(start)
        if has_blanks and not start[1 - blank :: 2].count(0):
            return encoding
    return ""


def is_utf8(file: BinaryIO) -> bool:
    """Whether all of the file is valid UTF-8. It is decoded in pieces, because the command reads files of any length."""
    file.seek(0)
    pieces = iter(partial(file.read, DECODED_BYTES), b"")
    try:
        for _ in codecs.iterdecode(pieces, "utf-8"):
            pass
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
