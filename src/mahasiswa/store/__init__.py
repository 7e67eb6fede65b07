"""The protocols Store and Reader: what each engine offers to the service. `engines` has the functions of commands."""

from collections.abc import AsyncGenerator, Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol

from mahasiswa.record import Field, Mahasiswa, Write
from mahasiswa.store.engines import migrate as migrate
from mahasiswa.store.engines import open_store as open_store
from mahasiswa.store.history import Batch, BatchKind, Days, Entry, HistoryPage, ItemKind
from mahasiswa.work import Kind

Version = Hashable
"""A value that changes with every commit of any program. It means nothing outside the store that returned it."""


SLICE_RECORDS = 100
"""Records of a slice of a snapshot."""

SNAPSHOT_MAX_BYTES = 32 * 1024 * 1024
"""Maximum bytes of all slices of a snapshot, so that long texts cannot fill the memory."""


AFTER_MAX_BYTES = 64 * 1024
"""Bytes of texts after which `after` reads no further record."""


class Snapshot(NamedTuple):
    """All records at one moment, in slices of SLICE_RECORDS; the last slice may have fewer.

    A slice is UTF-8: nim, nama and alamat of each record, with NUL between all of them. `slices` is None if there are
    more than the caller asked for, or if they are longer than SNAPSHOT_MAX_BYTES. `total` is the number of records in the slices.

    The records are at least as new as `version`, which is None if the database cannot tell its version. `last` is the
    newest item of the history at that moment, or None if there is no history.
    """

    version: Version | None
    total: int
    slices: Sequence[bytes] | None
    last: Entry | Batch | None = None


class Query(NamedTuple):
    """A search and the order of its records. It finds records that have every word of `cari` in any field (`folding`).

    `di` is the one field that is searched. A nim is found if it begins with `cari`, without its spaces.
    """

    cari: str = ""
    urut: Field = "nim"
    arah: Literal["naik", "turun"] = "naik"
    di: Field | Literal[""] = ""


NO_REMOVALS: Mapping[str, str | None] = MappingProxyType({})


class Found(NamedTuple):
    """One page of the records that a query finds, the number of all of them, and the newest item of the history.

    All are of one moment. `last` is None if there is no history.
    """

    total: int
    records: Sequence[Mahasiswa]
    last: Entry | Batch | None = None


Suspicion = Literal["near", "twins", "spaces", "length", "capitals"]
"""Why a record may be wrong: another nim is nearly the same, or another record has the same name and address; a text
holds spaces or characters that cannot be seen; nearly all nims have another length; the name is in capitals, and most
names are not."""


class Reader(Protocol):
    """Reads of one kind of work, which has its own connections and its own queue.

    Each read raises Unavailable, Busy, and TookTooLong if a step takes longer than STEP_TIMEOUT_SECONDS. If the task
    that waits for a read is cancelled, the read stops within a second.
    """

    async def snapshot(self, at_most: int) -> Snapshot:
        """Every record, ordered by the code points of nim; no slices instead of more than `at_most` records."""

    async def after(self, nim: str | None, limit: int) -> Sequence[Mahasiswa]:
        """The next records after `nim` in the same order, or the first ones if `nim` is None.

        At most `limit`, and no further one after AFTER_MAX_BYTES. It is empty if there are no more.
        """

    async def get(self, nim: str) -> Mahasiswa | None:
        """The record with that nim."""

    async def find(self, nims: Sequence[str]) -> Mapping[str, Mahasiswa]:
        """The records that exist among these nims, by nim."""

    async def near(self, nims: Sequence[str], limit: int) -> Sequence[Mahasiswa]:
        """At most `limit` records whose nim has the same `near_key` as one of these nims, unless that key is empty."""

    async def search(self, query: Query, offset: int, limit: int) -> Found:
        """At most `limit` of the records that a query finds, from `offset` on; none if `offset` is past the end.

        With `limit` 0, which takes a few milliseconds if there is no `cari`, the result is the number of all of them.
        Texts are ordered without regard to the case of ASCII letters; equal texts are ordered by nim.
        """

    async def spellings(self, query: Query, limit: int, *, is_found: bool) -> Sequence[tuple[str, int]]:
        """At most `limit` other spellings of a search, of words in the list, with the number of records that each finds.

        Each finds a record, and the most similar one comes first. If `is_found`, only those that are very similar.
        """

    async def prefixes(self, length: int, limit: int) -> Sequence[tuple[str, int]]:
        """The beginnings of nims, folded and of that length, each with the number of its records; at most `limit`."""

    async def suspects(self, suspicion: Suspicion, limit: int) -> Found:
        """At most `limit` records that may be wrong, similar ones together, and the number of all of them."""

    def chunks(self, query: Query) -> AsyncGenerator[Sequence[Mahasiswa]]:
        """All records that a query finds at one moment. Do not wait for a client between chunks: a transaction is open."""

    async def history(
        self,
        cari: str,
        batch: int | None,
        offset: int,
        limit: int,
        *,
        kind: ItemKind | None = None,
        days: Days | None = None,
    ) -> HistoryPage:
        """At most `limit` changes, newest first, from `offset` on.

        Without `batch`: the entries that belong to no batch, and the batches, each as one item. With `batch`: the
        entries of that batch. `cari` finds an entry as it finds a record, in the texts before and after, and a batch by
        any of its entries. `kind` and `days` are conditions on items.
        """

    async def entries_of(self, nim: str) -> Sequence[Entry]:
        """All entries of the history with that nim, oldest first, also those of batches."""


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
