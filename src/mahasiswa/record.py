"""The one record the service keeps (specification, section 2), and what is done with it as a whole."""

import base64
import hashlib
from typing import Literal, NamedTuple, TypeAlias

Field = Literal["nim", "nama", "alamat"]


class Mahasiswa(NamedTuple):
    """A student record. Texts are kept exactly as they came; `nim` identifies the record and never changes."""

    nim: str
    nama: str
    alamat: str


class Write(NamedTuple):
    """One record to write. `versi` is the digest of the record it replaces, None for a new one."""

    record: Mahasiswa
    versi: str | None


# A row on its way in from a file: its number as the file counts rows, then nim, nama and alamat. A None keeps what the
# record has. A bare tuple, for a million of them are made.
Incoming: TypeAlias = tuple[int, str, str | None, str | None]


def digest(record: Mahasiswa) -> str:
    """22 characters that stand for a record's exact texts: 128 bits of SHA-256, in base64 for URLs."""
    # Each length goes before its text, so no two records give the same bytes.
    texts = [text.encode("utf-8", "surrogatepass") for text in record]
    joined = b"".join(b"%d:%b" % (len(text), text) for text in texts)
    return base64.urlsafe_b64encode(hashlib.sha256(joined).digest()[:16]).rstrip(b"=").decode()
