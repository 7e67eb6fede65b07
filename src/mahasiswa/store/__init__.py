"""The Store protocol, and the functions that create, adopt, open, back up and restore a database of either engine."""

from collections.abc import AsyncGenerator, Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Literal, NamedTuple, Protocol

from mahasiswa.record import Field, Incoming, Mahasiswa, Write
from mahasiswa.settings import DatabaseURL, SQLiteURL
from mahasiswa.store.errors import Unusable
from mahasiswa.store.findings import Finding
from mahasiswa.store.history import Batch, Entry, HistoryPage
from mahasiswa.work import Slots

Version = Hashable
"""A value that changes with every commit of any program. It means nothing outside the store that returned it."""


SLICE_RECORDS = 100
"""Records of a slice of a snapshot."""

SNAPSHOT_MAX_BYTES = 32 * 1024 * 1024
"""Maximum bytes of all slices of a snapshot, so that long texts cannot fill the memory."""


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
    """A search and the order of its records. It finds records that have every word of `cari` in any field (`folding`)."""

    cari: str = ""
    urut: Field = "nim"
    arah: Literal["naik", "turun"] = "naik"


class Merged(NamedTuple):
    """The result of an import, also of a dry run: the numbers of new, changed and unchanged records.

    `incomplete` are the row numbers of new records that lack nama or alamat. If there are any, nothing was written.
    """

    new: int
    changed: int
    same: int
    incomplete: Sequence[int]
    seconds: float = 0.0
    """Time for which other programs could not write. Reading the rows of the import does not count."""


class Found(NamedTuple):
    """One page of the records that a query finds, the number of all of them, and the newest item of the history.

    All are of one moment. `last` is None if there is no history.
    """

    total: int
    records: Sequence[Mahasiswa]
    last: Entry | Batch | None = None


class Store(Protocol):
    """A collection of records keyed by nim. When a write returns, it is on disk.

    Reads raise Unavailable. Writes raise Unavailable, Refused and Uncertain. A text that is None is missing, and the
    table's constraint refuses it.

    Triggers of the database keep a history of each change of any program, unless HISTORY_DAYS is 0.

    A store that was opened with slots also raises Busy, and TookTooLong if a step takes longer than
    STEP_TIMEOUT_SECONDS. If the task that waits for a read is cancelled, the read stops within a second.
    """

    @property
    def changes_waiting(self) -> int:
        """The number of changes that wait for the next group commit, at most RECORD.waiting for the service."""

    async def version(self) -> Version | None:
        """The version of the data now, or None if the database cannot tell it."""

    def version_now(self) -> Version | None:
        """The same without waiting; None if the caller must wait for the database."""

    async def snapshot(self, at_most: int) -> Snapshot:
        """Every record, ordered by the code points of nim; no slices instead of more than `at_most` records."""

    def snapshot_now(self, at_most: int) -> Snapshot | None:
        """The same without waiting, if that takes at most a few milliseconds; otherwise None."""

    async def after(self, nim: str | None, limit: int) -> Sequence[Mahasiswa]:
        """The next `limit` records after `nim` in the same order, or the first ones if `nim` is None."""

    async def get(self, nim: str) -> Mahasiswa | None:
        """The record with that nim."""

    async def find(self, nims: Sequence[str]) -> Mapping[str, Mahasiswa]:
        """The records that exist among these nims, by nim."""

    async def near(self, nims: Sequence[str], limit: int) -> Sequence[Mahasiswa]:
        """At most `limit` records whose nim has the same `near_key` as one of these nims, unless that key is empty."""

    async def count(self, query: Query) -> int:
        """The number of records that a query finds, for a progress bar."""

    async def search(self, query: Query, offset: int, limit: int) -> Found:
        """At most `limit` of the records that a query finds, from `offset` on; none if `offset` is past the end.

        Texts are ordered without regard to the case of ASCII letters; equal texts are ordered by nim.
        """

    async def nearest(self, cari: str, limit: int) -> Sequence[str]:
        """At most `limit` corrections of a search that found nothing, made of the words of names in the list.

        Each correction finds a record. The most similar one comes first.
        """

    def chunks(self, query: Query) -> AsyncGenerator[Sequence[Mahasiswa]]:
        """All records that a query finds at one moment. Do not wait for a client between chunks: a transaction is open."""

    def lines(
        self, query: Query, is_ordinary: Callable[[bytes, int], bool]
    ) -> AsyncGenerator[Sequence[Mahasiswa | bytes]]:
        """The same for an export as CSV: a store may give several records as lines, if it finds them `is_ordinary`.

        A line has `;` between its cells and ends with CRLF. A cell of nama or alamat with a comma has quotes around it,
        and every other cell is as it is.
        """

    async def add(self, nim: str | None, nama: str | None, alamat: str | None) -> None:
        """Insert a record without changing its texts (specification 4.4.1)."""

    async def update(self, nim: str, nama: str | None, alamat: str | None, versi: str | None = None) -> None:
        """Set nama and alamat of the record with that nim, if it exists (specification 4.5).

        With `versi`, the digest of the record that the form showed, only the fields that the form changed are set.
        If someone else has changed one of these since, to another text, raise EditConflict (see `record.combine`).
        """

    async def delete(self, nim: str) -> None:
        """Remove the record with that nim, if it exists (specification 4.6)."""

    async def write_all(self, writes: Sequence[Write]) -> None:
        """Make all of these changes or none, as one batch of kind "import".

        Raise Changed if a stored record does not match its `versi`, or if a nim would be changed twice.
        """

    async def merge(self, rows: Iterable[Incoming], *, update: bool, dry_run: bool) -> Merged:
        """Import any number of rows, each nim at most once, all or none. With `update`, existing records may change.

        The history has them as one batch of kind "import". More than UNDOABLE_ROWS_MAX rows make a silent batch.
        """

    async def delete_all(self, nims: Sequence[str]) -> int:
        """Remove the records with these nims, as one batch of kind "delete". Return the number of removed records."""

    async def history(self, cari: str, batch: int | None, offset: int, limit: int) -> HistoryPage:
        """At most `limit` changes, newest first, from `offset` on.

        Without `batch`: the entries that belong to no batch, and the batches, each as one item. With `batch`: the
        entries of that batch. `cari` finds an entry as it finds a record, in the texts before and after, and a batch by
        any of its entries.
        """

    async def undo(self, entry: int, versi: str | None = None) -> None:
        """Restore the record of an entry that belongs to no batch, as a new batch of kind "undo".

        A record that is already as it was before the change counts as restored. Raise NotInHistory, or UndoConflict if
        the record has changed since. With `versi`, the record may be overwritten if it has this digest, or if it does
        not exist and `versi` is "-". The person has seen that state.
        """

    async def undo_batch(self, batch: int) -> None:
        """Restore all records of a batch or none, as a new batch of kind "undo". Raise as `undo` does.

        NotInHistory is also raised for a silent batch and for a batch of which some entries have expired.
        """

    async def purge(self) -> None:
        """Remove at most 100 expired entries, unless some program did so within the last minute.

        If nothing is expired, the version does not change.
        """

    async def forget(self, nim: str) -> bool:
        """Remove the record with that nim and all its history. Return False if there was neither.

        Raise TextsRemain if old copies of the texts could not be removed from the database's files.
        """

    async def close(self) -> None:
        """Wait for running work, then close every connection."""


class Adopted(NamedTuple):
    """The result of `adopt`: the number of records, and the file with the database as it was before (SQLite only)."""

    records: int
    backup: Path | None


class Restored(NamedTuple):
    """The result of `restore`: the number of records now, and of those that were added, changed and removed.

    `backup` is the file with the database as it was before, or None if nothing had to be changed.
    """

    records: int
    added: int
    changed: int
    removed: int
    backup: Path | None = None
    seconds: float = 0.0
    """Time for which other programs could not write."""


# An engine's modules are imported only if it is chosen: SQLite alone needs no psycopg.


def migrate(url: DatabaseURL, history_days: int | None = None) -> str | None:
    """Create the tables, or upgrade those of an earlier version of this program; raise Unusable.

    `history_days` is the setting HISTORY_DAYS, which is written into the database: 0 removes the triggers and the
    history. None, as for a command, keeps the value of the database; a new database gets DEFAULT_HISTORY_DAYS.

    Return a warning if the server's settings can lose an acknowledged change.
    All handles are closed when it returns. The service calls it in a process of its own, because no handle of SQLite
    may be open when the workers are forked.
    """
    if isinstance(url, SQLiteURL):
        from mahasiswa.store.sqlite import schema  # noqa: PLC0415

        schema.migrate(url.path, history_days)
        return None
    warning: str | None = _postgres_schema().migrate(url.conninfo, history_days)
    return warning


def adopt(url: DatabaseURL) -> Adopted:
    """Turn a table `mahasiswa` that another program made into this program's own; raise Unusable.

    SQLite: a back-up file is written first, then the table is rebuilt in one transaction. PostgreSQL: the table is
    altered in one transaction; if someone else owns it, the error holds the SQL for the owner.
    """
    if isinstance(url, SQLiteURL):
        from mahasiswa.store.sqlite import schema  # noqa: PLC0415

        return schema.adopt(url.path)
    adopted: Adopted = _postgres_schema().adopt(url.conninfo)
    return adopted


async def open_store(url: DatabaseURL, slots: Slots | None = None) -> Store:
    """Open a database that `migrate` has made ready; raise Unusable.

    The service gives the slots of its worker. Without them, as for a command, no queue is bounded and no read has a
    deadline.
    """
    if isinstance(url, SQLiteURL):
        from mahasiswa.store.sqlite.store import SQLiteStore  # noqa: PLC0415

        return SQLiteStore.open(url.path, slots)
    from mahasiswa.store.postgres.store import PostgresStore  # noqa: PLC0415

    return await PostgresStore.open(url.conninfo, slots)


def backup(url: DatabaseURL, to: Path) -> None:
    """Write a verified copy of the whole database to a file that does not exist yet; raise Unusable."""
    if not isinstance(url, SQLiteURL):
        raise Unusable("this is PostgreSQL: use pg_dump, for example pg_dump --format=custom --file=mahasiswa.dump")
    from mahasiswa.store.sqlite import backup  # noqa: PLC0415

    backup.backup(url.path, to)


def restore(url: DatabaseURL, file: Path) -> Restored:
    """Replace every record by those of a back-up file, in one transaction; raise Unusable.

    The history stays, and the restore is one silent batch in it. The present records are written to a back-up file first.
    """
    if not isinstance(url, SQLiteURL):
        raise Unusable(
            "this is PostgreSQL: use pg_restore, for example pg_restore --clean --if-exists --dbname=URL mahasiswa.dump"
        )
    from mahasiswa.store.sqlite import restore  # noqa: PLC0415

    return restore.restore(url.path, file)


def examine(url: DatabaseURL, workers: int) -> Iterator[Finding]:
    """Check the database for `mahasiswa doctor`. Nothing is written to it."""
    if isinstance(url, SQLiteURL):
        from mahasiswa.store.sqlite import doctor  # noqa: PLC0415

        yield from doctor.examine(url.path)
        return
    _postgres_schema()
    from mahasiswa.store.postgres import doctor as postgres_doctor  # noqa: PLC0415

    yield from postgres_doctor.examine(url.conninfo, workers)


def examine_backup(file: Path) -> Finding:
    """Check that a back-up of an SQLite file can be restored."""
    from mahasiswa.store.sqlite import doctor  # noqa: PLC0415

    return doctor.examine_backup(file)


def _postgres_schema() -> ModuleType:
    try:
        from mahasiswa.store.postgres import schema  # noqa: PLC0415
    except ImportError as error:
        raise Unusable(f"PostgreSQL needs mahasiswa[postgres]: {error}") from error
    return schema
