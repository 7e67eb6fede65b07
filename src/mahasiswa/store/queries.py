"""The queries of a list: a search with its order, and the reasons why a record may be wrong."""

from typing import Literal, NamedTuple

from mahasiswa.record import Field


class Query(NamedTuple):
    """A search and the order of its records. It finds records that have every word of `cari` in any field (`folding`).

    `di` is the one field that is searched. A nim is found if it begins with `cari`, without its spaces.
    """

    cari: str = ""
    urut: Field = "nim"
    arah: Literal["naik", "turun"] = "naik"
    di: Field | Literal[""] = ""


Suspicion = Literal["near", "twins", "spaces"]
"""The reason why a record may be wrong. "near": another nim is nearly the same. "twins": another record has the same name
and address but for case and punctuation. "spaces": a text has needless spaces or characters that cannot be seen."""
