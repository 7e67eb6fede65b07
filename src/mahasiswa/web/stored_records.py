"""Reads the stored records with which a preview compares a file."""

from collections.abc import Collection, Mapping, Sequence

from mahasiswa.record import Mahasiswa
from mahasiswa.store import Reader

NEAR_MAX_RECORDS = 20_000
"""Maximum records that are compared with unknown NIMs of a file because their NIM looks the same."""

CHUNK_RECORDS = 1000


async def existing_and_near(reader: Reader, nims: Sequence[str]) -> tuple[Mapping[str, Mahasiswa], Sequence[Mahasiswa]]:
    """The records with these NIMs. For the NIMs without a record, also the records with a similar NIM."""
    existing = await reader.find(nims)
    unknown = [nim for nim in nims if nim not in existing]
    return existing, await reader.near(unknown, NEAR_MAX_RECORDS) if unknown else ()


async def absentees(reader: Reader, in_file: Collection[str], most: int) -> list[Mahasiswa]:
    """The first stored records that the file lacks. Besides them it reads at most as many records as the file has rows."""
    found: list[Mahasiswa] = []
    last: str | None = None
    while len(found) < most and (chunk := await reader.after(last, CHUNK_RECORDS)):
        found += [record for record in chunk if record.nim not in in_file]
        last = chunk[-1].nim
    return found[:most]
