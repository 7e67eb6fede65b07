"""Computes the records that a batch adds, changes and removes, for both engines."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mahasiswa.record import Mahasiswa, Write, digest
from mahasiswa.store.errors import Changed


class Changes(NamedTuple):
    """Records to add, records to overwrite, each by nim, and nims to remove."""

    added: dict[str, Mahasiswa]
    changed: dict[str, Mahasiswa]
    removed: Sequence[str]


def planned(
    stored: Mapping[str, Mahasiswa], writes: Sequence[Write], removals: Mapping[str, str | None]
) -> Changes | None:
    """The changes to make to the stored records; None if there are none. Raise Changed as `Store.write_all` says."""
    added: dict[str, Mahasiswa] = {}
    changed: dict[str, Mahasiswa] = {}
    for record, versi in writes:
        nim = record.nim
        written = added.get(nim) or changed.get(nim)
        current = written or stored.get(nim)
        if current == record:  # a double click sends the same confirmation twice
            continue
        if written or versi != (digest(current) if current else None):
            raise Changed(nim)
        (changed if current else added)[nim] = record
    removed = [nim for nim in removals if nim in stored]
    if not (added or changed or removed):
        return None
    for nim, versi in removals.items():
        if versi and versi != (digest(stored[nim]) if nim in stored else None):
            raise Changed(nim)
    return Changes(added, changed, removed)
