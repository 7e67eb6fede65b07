"""Where the records are kept: one protocol, an engine behind it, and what can go wrong."""

from collections.abc import AsyncGenerator, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from mahasiswa.record import Field, Incoming, Mahasiswa, Write
from mahasiswa.settings import DatabaseURL, SQLiteURL

Reason = Literal["missing", "duplicate", "unaddressable", "too_long", "nul", "rule"]


class StoreError(Exception):
    """Base of everything a store raises on purpose.

    StoreError
    ├── Refused       a rule of the database refuses the record; nothing was done
    ├── Changed       someone else changed the record meanwhile; nothing was done
    ├── Unavailable   the database cannot be read or written now; nothing was done
    ├── Uncertain     the database did not say whether it was done; it may or may not have been
    └── Unusable      the database cannot be used at all; raised at start only
    """


class Refused(StoreError):
    """A rule of the database refuses the record: which field ("" for the whole record), and why."""

    def __init__(self, field: str, reason: Reason) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class Changed(StoreError):
    """The record is no longer what the change was based on: `current` is what it is now, None where it is gone."""

    def __init__(self, nim: str, current: Mahasiswa | None) -> None:
        super().__init__(nim)
        self.nim = nim
        self.current = current


class Unavailable(StoreError):
    """The database cannot be read or written now; nothing was done."""


class Uncertain(StoreError):
    """The connection broke at the moment of the commit: the change may or may not have been made.

    To repeat an addition is safe: it is refused as a duplicate where it had been made.
    """


class Unusable(StoreError):
    """The database cannot be used. The text is one line for the operator."""


Version = Hashable
"""Changes with every commit, by anyone. Two stores' versions have nothing to do with each other."""


class Snapshot(NamedTuple):
    """Records as they stood at one moment, at `version` or later; None for both where there is none to tell."""

    version: Version | None
    records: Sequence[tuple[str, str, str]] | None


class Query(NamedTuple):
    """Which records, in which order: those with `cari` in any field, ignoring the case of Latin letters."""

    cari: str = ""
    urut: Field = "nim"
    arah: Literal["naik", "turun"] = "naik"

    @property
    def turned(self) -> "Query":
        """The same records in exactly the opposite order."""
        return self._replace(arah="naik" if self.arah == "turun" else "turun")


class Merged(NamedTuple):
    """What an import did, or would do: how many records were new, changed, the same.

    `incomplete` are the row numbers of new records that lack a text; where there are any, nothing was done.
    """

    new: int
    changed: int
    same: int
    incomplete: Sequence[int]


class Store(Protocol):
    """A collection of records keyed by nim. Every write has reached the disk when its call returns.

    Reads and writes raise Unavailable; writes raise Refused and Uncertain. A missing text is None, and refused by the database.
    """

    async def version(self) -> Version | None:
        """What stands for the data as they are now; None where that cannot be told."""

    async def snapshot(self, at_most: int) -> Snapshot:
        """Every record, ordered by nim's code points; no records where there are more than `at_most`."""

    async def after(self, nim: str | None, limit: int) -> Sequence[Mahasiswa]:
        """The next `limit` records in that order, from the start where `nim` is None."""

    async def get(self, nim: str) -> Mahasiswa | None:
        """The record with that nim."""

    async def find(self, nims: Sequence[str]) -> Mapping[str, Mahasiswa]:
        """Those of the records with these nims that exist, by nim."""

    async def count(self, query: Query) -> int:
        """How many records a query finds."""

    async def page(self, query: Query, offset: int, limit: int) -> Sequence[Mahasiswa]:
        """A piece of what a query finds. Texts are ordered without regard to ASCII case, equal ones by nim."""

    def chunks(self, query: Query) -> AsyncGenerator[Sequence[Mahasiswa]]:
        """All that a query finds, as it stands at one moment. Read it without waiting for anyone."""

    async def add(self, nim: str | None, nama: str | None, alamat: str | None) -> None:
        """Insert a record as it came (specification 4.4.1)."""

    async def update(self, nim: str, nama: str | None, alamat: str | None, versi: str | None = None) -> None:
        """Set nama and alamat of the record with that nim, if there is one (specification 4.5).

        With `versi`, the digest of the record that the change was based on, raise Changed where it is another now.
        """

    async def delete(self, nim: str) -> None:
        """Remove the record with that nim, if there is one (specification 4.6)."""

    async def write_all(self, writes: Sequence[Write]) -> None:
        """Make all of these changes or none; raise Changed where a record is not, or no longer, what it should be."""

    async def merge(self, batches: Iterable[Sequence[Incoming]], *, update: bool, dry_run: bool) -> Merged:
        """Bring any number of rows in, each nim once, all or none; `update` lets them change records that exist."""

    async def close(self) -> None:
        """Let running work finish, then let go of the database."""


def prepare(url: DatabaseURL) -> None:
    """Make the database and its table where they do not exist; raise Unusable where they cannot be used.

    Leaves nothing open, yet is best run in a process of its own: no handle may cross a fork.
    """
    if isinstance(url, SQLiteURL):
        from mahasiswa.store import sqlite_file  # noqa: PLC0415 - an engine is loaded when it is chosen

        sqlite_file.prepare(url.path)
    else:
        try:
            from mahasiswa.store import postgres_table  # noqa: PLC0415 - as above
        except ImportError as error:
            raise Unusable(f"PostgreSQL needs mahasiswa[postgres]: {error}") from error

        postgres_table.prepare(url.conninfo)


async def open_store(url: DatabaseURL) -> Store:
    """Open the database that `prepare` made ready; raise Unusable."""
    if isinstance(url, SQLiteURL):
        from mahasiswa.store.sqlite import SQLiteStore  # noqa: PLC0415 - as above

        return SQLiteStore.open(url.path)
    from mahasiswa.store.postgres import PostgresStore  # noqa: PLC0415 - as above

    return await PostgresStore.open(url.conninfo)


def backup(url: DatabaseURL, to: Path) -> None:
    """Write a copy of the whole database, verified, to a file that does not exist; raise Unusable."""
    if not isinstance(url, SQLiteURL):
        raise Unusable("this is PostgreSQL: use its own pg_dump, as in pg_dump --format=custom --file=mahasiswa.dump")
    from mahasiswa.store import sqlite_backup  # noqa: PLC0415 - as above

    sqlite_backup.backup(url.path, to)
