"""The student record (specification, section 2): its fields, its limits and its digest."""

import base64
import hashlib
from typing import Literal, NamedTuple, TypeAlias

Field = Literal["nim", "nama", "alamat"]

NIM_MAX_CHARACTERS = 255
"""Maximum length of a nim, in code points. A link to a longer one would not fit into every browser's address bar."""

UNADDRESSABLE_NIMS = (".", "..")
"""A browser resolves these as steps in a path, even percent-encoded (URL Standard), so no link could reach them."""


class Mahasiswa(NamedTuple):
    """A student record. Its texts are stored unchanged; `nim` identifies the record and never changes."""

    nim: str
    nama: str
    alamat: str


class Write(NamedTuple):
    """A record to write. `versi` is the digest of the stored record that it replaces, or None for a new record."""

    record: Mahasiswa
    versi: str | None


Incoming: TypeAlias = tuple[int, str, str | None, str | None]
"""A row of an import: its number in the file, then nim, nama and alamat. None keeps the text that is stored.

A plain tuple, because an import makes a million of them.
"""


def digest(record: Mahasiswa) -> str:
    """The first 128 bits of SHA-256 over a record's texts, as 22 characters of URL-safe base64."""
    # Each text is preceded by its length, so two different records never give the same bytes.
    texts = [text.encode("utf-8", "surrogatepass") for text in record]
    joined = b"".join(b"%d:%b" % (len(text), text) for text in texts)
    return base64.urlsafe_b64encode(hashlib.sha256(joined).digest()[:16]).rstrip(b"=").decode()
