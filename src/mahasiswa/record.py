"""The student record (specification, section 2): its fields, its limits, its digest, and the merge of two edits."""

import base64
import hashlib
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from string import ascii_lowercase, ascii_uppercase
from typing import Literal, NamedTuple, TypeVar, get_args

Field = Literal["nim", "nama", "alamat"]
FIELDS: Sequence[Field] = get_args(Field)

# Maximum characters of a text on a page of our own, because a few texts of 60 KB would make a page
# too long for everyone. `/` and the forms show the whole text.
SHOWN_MAX_CHARACTERS = 1000

# In code points. A link to a longer NIM would not fit into the address bar of every browser.
NIM_MAX_CHARACTERS = 255


class Mahasiswa(NamedTuple):
    """A student record. Its texts are stored unchanged. `nim` identifies the record, and an edit never changes it."""

    nim: str
    nama: str
    alamat: str


class Write(NamedTuple):
    """A record to write. `expected` is the digest of the stored record that it replaces, or None for a new record."""

    record: Mahasiswa
    expected: str | None


# A row of an import: nim, nama and alamat. None keeps the text that is stored. It is a plain tuple, because an import makes
# a million of them.
Incoming = tuple[str, str | None, str | None]

R = TypeVar("R", bound=Sequence[str])


def digest(record: Mahasiswa) -> str:
    """A digest of nama, then one of alamat: 11 characters each, without line breaks, which a browser removes."""
    return _digest(record.nama) + _digest(record.alamat)


def combine(stored: Mahasiswa, sent: Mahasiswa, expected: str) -> tuple[Mahasiswa, bool]:
    """Combine the record that an edit form sent with the stored one; return it, and whether there is a conflict.

    `expected` is the digest of the record that the form showed. A field that the form did not change keeps the stored
    text. A field that the form and someone else changed to different texts is a conflict and has the form's text.
    """
    texts = []
    is_conflict = False
    shown = expected[:_DIGEST_CHARACTERS], expected[_DIGEST_CHARACTERS:]
    for stored_text, sent_text, shown_digest in zip(stored[1:], sent[1:], shown, strict=True):
        is_changed = shown_digest != _digest(stored_text)  # by someone else
        is_same = sent_text in (stored_text, _without_line_breaks(stored_text))
        keeps_stored = is_same or (is_changed and shown_digest == _digest(sent_text))
        texts.append(stored_text if keeps_stored else sent_text)
        is_conflict |= is_changed and not keeps_stored
    return Mahasiswa(stored.nim, *texts), is_conflict


_DIGEST_CHARACTERS = 11  # of 8 bytes in base64 without padding


def _digest(text: str) -> str:
    shown = _without_line_breaks(text).encode("utf-8", "surrogatepass")
    short = hashlib.sha256(shown).digest()[:8]
    return base64.urlsafe_b64encode(short).rstrip(b"=").decode()


def _without_line_breaks(text: str) -> str:
    return text.replace("\r", "").replace("\n", "")


INVISIBLE = (
    "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
    "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)
"""Characters that cannot be seen. People copy them along from web pages, chats and the properties of files."""

ODD_SPACES = (
    "\x09\x0a\x0b\x0c\x0d\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2001"
    "\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
"""A line break, a tab or another kind of space of Unicode, except U+0020."""


def groups(records: Iterable[R], max_characters: int) -> Iterator[list[R]]:
    """The records in groups. Only its last record can make a group longer than `max_characters`. The last group may be empty."""
    group: list[R] = []
    length = 0
    for record in records:
        group.append(record)
        length += sum(map(len, record))
        if length >= max_characters:
            yield group
            group = []
            length = 0
    yield group


def tidy(text: str) -> str:
    """A text without spaces at its ends, with one space between words, and without characters that cannot be seen."""
    return " ".join(visible(text).split())


def visible(text: str) -> str:
    """A text without the characters that cannot be seen."""
    return text if text.isascii() else text.translate(_SEEN)


_SEEN = str.maketrans(dict.fromkeys(INVISIBLE, ""))

HYPHENS = (
    "\u02d7\u2043\u2212\U00010ead\u058a\u05be\u1400\u1806\u2010\u2011\u2012\u2013\u2014\u2015"
    "\u2e17\u2e1a\u2e3a\u2e3b\u2e40\u2e5d\u301c\u3030\u30a0"
)
"""Signs beyond ASCII that look like a hyphen. NFKC makes one of these, or a hyphen, of each other dash of Unicode."""

# Characters that people confuse in a nim, in lower case. A character of NEAR_FROM is replaced by the character of NEAR_TO
# at the same place, or removed if NEAR_TO is shorter.
NEAR_FROM = "lio .-" + HYPHENS + INVISIBLE
NEAR_TO = "110"


def near_key(nim: str) -> str:
    """The nim without the differences that people overlook. The engines' SQL does the same.

    These are the case of ASCII letters, leading zeros, spaces, dots, hyphens of every kind, invisible characters, the
    width of digits, l and I for 1, and O for 0. Two nims with the same key are probably the same one: a
    CSV file that a spreadsheet has saved loses zeros.
    """
    if not nim.isascii():
        nim = unicodedata.normalize("NFKC", nim)
    return nim.translate(_NEAR).lstrip("0")


_NEAR = str.maketrans(
    ascii_uppercase + NEAR_FROM[: len(NEAR_TO)] + "LIO",
    ascii_lowercase + NEAR_TO + "110",
    NEAR_FROM[len(NEAR_TO) :],
)
