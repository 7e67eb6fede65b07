"""The protocol Store: what each engine offers to the service. `engines` has the functions of commands."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from mahasiswa.record import Write
from mahasiswa.store.engines import migrate as migrate
from mahasiswa.store.engines import open_store as open_store
from mahasiswa.store.history import BatchKind
from mahasiswa.store.reader import SLICE_RECORDS as SLICE_RECORDS
from mahasiswa.store.reader import SNAPSHOT_MAX_BYTES as SNAPSHOT_MAX_BYTES
from mahasiswa.store.reader import Found as Found
from mahasiswa.store.reader import Query as Query
from mahasiswa.store.reader import Reader as Reader
from mahasiswa.store.reader import Snapshot as Snapshot
from mahasiswa.store.reader import Suspicion as Suspicion
from mahasiswa.store.reader import Version as Version
from mahasiswa.work import Kind

NO_REMOVALS: Mapping[str, str | None] = MappingProxyType({})


class Store(Protocol):
    """A collection of records keyed by nim. When a write returns, it is on disk.

    Writes raise Unavailable, Refused, Uncertain and Busy. A text that is None is missing, and the table's constraint
    refuses it.

    Triggers of the database keep a history of each change of any program, unless HISTORY_DAYS is 0.
    """

    def reader(self, kind: Kind) -> Reader:
        """The reads of that kind of work."""

    async def version(self) -> Version | None:
        """The version of the data now, or None if the database cannot tell it."""

    def version_now(self) -> Version | None:
        """The same without waiting; None if the caller must wait for the database."""

    def snapshot_now(self, at_most: int) -> Snapshot | None:
        """`Reader.snapshot` without waiting, if that takes at most a few milliseconds; otherwise None."""

    async def add(self, nim: str | None, nama: str | None, alamat: str | None) -> None:
        """Insert a record without changing its texts (specification 4.4.1)."""

    async def update(self, nim: str, nama: str | None, alamat: str | None, versi: str | None = None) -> None:
        """Set nama and alamat of the record with that nim, if it exists (specification 4.5).

        With `versi`, the digest of the record that the form showed, only the fields that the form changed are set.
        If someone else has changed one of these since, to another text, raise EditConflict (see `record.combine`); also
        if the record does not exist.
        """

    async def rename(self, old: str, nim: str | None) -> None:
        """Give the record `old` another nim, as one batch of kind "nim"; raise Changed if it does not exist."""

    async def delete(self, nim: str) -> None:
        """Remove the record with that nim, if it exists (specification 4.6)."""

    async def write_all(
        self, batch: BatchKind, writes: Sequence[Write] = (), removals: Mapping[str, str | None] = NO_REMOVALS
    ) -> None:
        """Make all of these changes or none, as one batch of that kind.

        `removals` are the nims of records to remove, each with the digest of that record, or with None if it is to be
        removed whatever it holds. A record that is already as it is to be is left alone.

        Raise Changed if a stored record does not match its digest, or if a nim would be changed twice.
        """

    async def undo(self, item: int, *, is_batch: bool, versi: str | None = None, only_unchanged: bool = False) -> None:
        """Restore the record of an entry, or all records of a batch, as a batch of kind "undo".

        All records are restored, or none. A record that is already as it was before the change counts as restored. Raise
        UndoConflict if a record has changed since. Raise NotInHistory if there is no such item, if the batch is silent,
        or if some of its entries have expired.

        With `only_unchanged`, the records of a batch that have changed since are left alone. A batch of kind "nim" is
        restored as a whole only, as a batch of the same kind; its entries alone are not in the history.

        With `versi`, the record of an entry may be overwritten if it has this digest, or if it does not exist and `versi`
        is "-". The person has seen that state.
        """

    async def purge(self) -> None:
        """Remove at most 100 expired entries, unless some program did so within the last minute.

        If nothing is expired, the version does not change.
        """

    async def close(self) -> None:
        """Wait for running work, then close every connection."""
