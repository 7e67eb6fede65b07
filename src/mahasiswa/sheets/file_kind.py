"""Recognises the kind and the encoding of a file by its bytes. Its name does not count."""

import codecs
import re
from functools import partial
from typing import BinaryIO, Literal

from mahasiswa import wording
from mahasiswa.sheets.cells import ODD_LETTERS, Refused

SAMPLE_BYTES = 1 << 16
DECODED_BYTES = 1 << 20
# A UTF-16 file without a byte order mark has more NULs, as a part of its bytes. All of them are on
# the same side of each pair.
BLANKS_MIN = 0.4

_SINGLE_BYTE = ("windows-1252", "mac_roman", "cp850")
# The beginning of files of other kinds, of which the first that matches counts.
_OTHER_KINDS = {
    rb"\s*\Z": wording.EMPTY,
    rb"PK\x03\x04.*(?:word/document\.xml|mimetypeapplication/vnd\.oasis\.opendocument\.(?!spreadsheet))|\{\\rtf": wording.DOCUMENT,
    rb"PK\x03\x04.*Index(?:/Document\.iwa|\.zip)": wording.NUMBERS,
    rb"PK\x03\x04(?!.*(?:xl/|_rels/|opendocument))|Rar!|7z\xbc|\x1f\x8b": wording.PACKED,
    rb"\s*%PDF": wording.PDF,
    rb"\x89PNG|\xff\xd8\xff|GIF8|BM.*\0|II\*\0|MM\0\*|....ftyp|RIFF....WEBP": wording.PICTURE,
    rb"\s*BEGIN:VCARD": wording.CONTACTS,
    rb"\s*(?:MIME-Version:|From: <)": wording.WEB_ARCHIVE,
    rb"\x09(?:\x00\x04|[\x02\x04]\x06)\x00": wording.OLD_EXCEL,
    rb"[\x03\x30\x83\x8b\xf5].[\x01-\x0c].*\0": wording.DBASE,
    rb"\s*\{.{,2000}(?:docs\.google\.com|\"doc_id\")": wording.GOOGLE_LINK,
}
_KINDS: dict[bytes, Literal["workbook", "biff", "html"]] = {
    rb"PK\x03\x04|\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "workbook",
    rb"\x09\x08[\x08\x10]\0": "biff",
    rb"(?:\xef\xbb\xbf)?\s*<[A-Za-z!?]": "html",
}


def kind_of(file: BinaryIO) -> Literal["workbook", "biff", "html", "text"]:
    """The kind of a file. Raises Refused for a file of another kind."""
    start = _start_of(file)
    if encoding := _utf16_of(start):
        start = start[: len(start) & ~1].decode(encoding, "replace").encode("ascii", "replace")
    for beginning, sentence in _OTHER_KINDS.items():
        if re.match(beginning, start, re.DOTALL):
            raise Refused(sentence)
    return next((kind for beginning, kind in _KINDS.items() if re.match(beginning, start)), "text")


def encoding_of(file: BinaryIO) -> str:
    """The encoding of a text: UTF-16, UTF-8 if all of it is valid, or the single-byte one with the fewest odd letters."""
    start = _start_of(file)
    if encoding := _utf16_of(start):
        return encoding
    if b"\0" in start:
        raise Refused(wording.NOT_A_SPREADSHEET)
    # It is decoded in pieces, because the command reads files of any length.
    try:
        for _ in codecs.iterdecode(iter(partial(file.read, DECODED_BYTES), b""), "utf-8"):
            pass
    except UnicodeDecodeError:
        file.seek(0)
        sample = file.read(DECODED_BYTES)
        return min(
            _SINGLE_BYTE,
            key=lambda name: len(re.findall(ODD_LETTERS, sample.decode(name, "replace"))),
        )
    finally:
        file.seek(0)
    return "utf-8-sig"


def _utf16_of(start: bytes) -> str:
    """The name of the encoding if a file is UTF-16, or a blank text.

    Some programs write no mark.
    """
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    for encoding, blank in (("utf-16-le", 1), ("utf-16-be", 0)):
        has_blanks = start[blank::2].count(0) > BLANKS_MIN * len(start)
        if has_blanks and not start[1 - blank :: 2].count(0):
            return encoding
    return ""


def _start_of(file: BinaryIO) -> bytes:
    file.seek(0)
    start = file.read(SAMPLE_BYTES)
    file.seek(0)
    return start
