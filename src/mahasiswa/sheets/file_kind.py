"""Recognises the kind and the encoding of a file by its bytes. Its name does not count."""

import codecs
import re
from collections.abc import Mapping
from functools import partial
from typing import BinaryIO

from mahasiswa import wording
from mahasiswa.sheets.cells import Refused

SAMPLE_BYTES = 1 << 20

# Some programs write UTF-16 without a mark. A list begins with at least four ASCII characters.
_UTF16 = {
    rb"\xff\xfe|\xfe\xff": "utf-16",
    rb"(?:[\t-~]\0){4}": "utf-16-le",
    rb"(?:\0[\t-~]){4}": "utf-16-be",
}
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
    rb"\x09(?:\x00\x04|[\x02\x04]\x06|\x08[\x08\x10])\x00": wording.OLD_EXCEL,
    rb"[\x03\x30\x83\x8b\xf5].[\x01-\x0c].*\0": wording.DBASE,
    rb"\s*\{.{,2000}(?:docs\.google\.com|\"doc_id\")": wording.GOOGLE_LINK,
}
_KINDS = {
    rb"PK\x03\x04|\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "workbook",
    rb"(?:\xef\xbb\xbf)?\s*<[A-Za-z!?]": "html",
}


def kind_of(file: BinaryIO) -> str:
    """The kind of a file: workbook, html or text. Raises Refused for a file of another kind."""
    start = _start_of(file)
    if encoding := _first(_UTF16, start):
        start = start.decode(encoding, "replace").encode("ascii", "replace")
    if sentence := _first(_OTHER_KINDS, start):
        raise Refused(sentence)
    return _first(_KINDS, start) or "text"


def encoding_of(file: BinaryIO) -> str:
    """The encoding of a text: UTF-16, UTF-8 if all of it is valid, or that of Windows. Letters of another one are a doubt."""
    start = _start_of(file)
    if encoding := _first(_UTF16, start):
        return encoding
    if b"\0" in start:
        raise Refused(wording.NOT_A_SPREADSHEET)
    # It is decoded in pieces, because the command reads files of any length.
    try:
        for _ in codecs.iterdecode(iter(partial(file.read, SAMPLE_BYTES), b""), "utf-8"):
            pass
    except UnicodeDecodeError:
        return "windows-1252"
    finally:
        file.seek(0)
    return "utf-8-sig"


def _first(values: Mapping[bytes, str], start: bytes) -> str:
    """The value of the first pattern that matches, or a blank text."""
    return next((value for form, value in values.items() if re.match(form, start, re.DOTALL)), "")


def _start_of(file: BinaryIO) -> bytes:
    file.seek(0)
    start = file.read(SAMPLE_BYTES)
    file.seek(0)
    return start
