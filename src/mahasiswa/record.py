"""The one record the service keeps (specification, section 2)."""

from typing import NamedTuple


class Mahasiswa(NamedTuple):
    """A student record. Texts are kept exactly as they came; `nim` identifies the record and never changes."""

    nim: str
    nama: str
    alamat: str
