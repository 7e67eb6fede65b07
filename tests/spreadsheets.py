"""Records for tests, and spreadsheets with them as CSV."""

from collections.abc import Sequence
from typing import cast

HEADER = ("NIM", "Nama", "Alamat")

Record = tuple[str, str, str]


def as_records(*lines: str) -> list[Record]:
    """Return the records that are written as lines, such as `1|Ani|Solo`."""
    return [cast("Record", tuple(line.split("|"))) for line in lines]


def csv(*rows: Sequence[str]) -> bytes:
    return "".join(";".join(row) + "\r\n" for row in rows).encode()


def numbered(
    count: int, nama: str = "Ani", alamat: str = "Solo", *, nim: str = "{:05}"
) -> list[Record]:
    """Return records whose texts are the same, except for their number in the place of `{}`."""
    return [(nim.format(n), nama.format(n), alamat.format(n)) for n in range(count)]
