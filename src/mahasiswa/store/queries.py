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


Suspicion = Literal[
    "near", "duplicates", "spaces", "length", "letters", "digits", "swapped", "capitals"
]
"""The reason why a record may be wrong. "near": another nim is nearly the same. "duplicates": another record has the same
name and address but for case and punctuation. "spaces": a text holds needless spaces or characters that cannot be seen. "length": nearly all nims
have another length. "letters": the nim has letters among its digits, and nine tenths have none. "digits": the name has
digits. "swapped": the address begins like a name of the list. "capitals": the name is in capitals, and most names are
not."""
