"""Additions to PostgreSQL: all that wait are made in one transaction, then answered together."""

import json
import logging
from collections.abc import Collection, Sequence

import psycopg

from mahasiswa.record import Mahasiswa
from mahasiswa.store import statements
from mahasiswa.store.errors import Locked, Refused, StoreError, Unavailable, Uncertain
from mahasiswa.store.group_commit import GroupCommit, QueuedChange
from mahasiswa.store.postgres.pool import PATIENCE, Connection, Pool

log = logging.getLogger(__name__)


def refuse(nim: str | None, nama: str | None, alamat: str | None) -> None:
    """Raise Refused for what no table takes from us, whether or not it has constraints of its own.

    On SQLite a trigger does it. Here one would have to stay in the database, and NUL does not even get there.
    """
    if nim is None:
        raise Refused("nim", "missing")
    if nim in (".", ".."):
        raise Refused("nim", "unaddressable")
    if "\0" in nim:
        raise Refused("nim", "nul")
    if len(nim) > 255:
        raise Refused("nim", "too_long")
    refuse_texts(nama, alamat)


def refuse_texts(nama: str | None, alamat: str | None) -> None:
    """Raise Refused for texts that no record may have."""
    for field, text in (("nama", nama), ("alamat", alamat)):
        if text is None:
            raise Refused(field, "missing")
    refuse_nul(None, nama, alamat)


def refuse_nul(nim: str | None, nama: str | None, alamat: str | None) -> None:
    """Raise Refused for a NUL, which no text of PostgreSQL can hold."""
    for field, text in (("nim", nim), ("nama", nama), ("alamat", alamat)):
        if text and "\0" in text:
            raise Refused(field, "nul")


async def add_all(db: Connection, records: Collection[Mahasiswa], *, begin: bool = False) -> set[Mahasiswa]:
    """Add those records whose nim is new, the first where several have the same; return what was added.

    With `begin` a transaction begins here, so that the two take one way to the server and back.
    """
    statement = f"{statements.BEGIN}; {statements.ADD_ALL}" if begin else statements.ADD_ALL
    cursor = psycopg.AsyncClientCursor(db)  # as a server takes parameters for a single statement only
    await cursor.execute(statements.postgres(statement), [as_json(records)])
    while cursor.nextset():
        pass
    added = {Mahasiswa(*row) for row in await cursor.fetchall()}
    # A type or a trigger of the table's own would keep another text than the one that came.
    if not added.issubset(records):
        raise Refused("nim", "duplicate")
    return added


def as_json(records: Collection[Mahasiswa]) -> str:
    """The records as one array of arrays, which takes a seventh of the time that three arrays of texts take."""
    return json.dumps(list(records), ensure_ascii=False)


class AddBatcher:
    """A queue of additions. A transaction for each, on ten connections, makes an eighth as many in a second."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._records = GroupCommit(self._commit)

    async def add(self, record: Mahasiswa) -> None:
        """Add a record and wait until it is on disk; raise Refused, Unavailable or Uncertain."""
        await self._records.write(record, PATIENCE)

    async def close(self) -> None:
        """Let what waits be done."""
        await self._records.close()

    async def _commit(self, group: Sequence[QueuedChange[Mahasiswa]]) -> Sequence[StoreError | None]:
        records = [waiting.change for waiting in group]
        deadline = min(waiting.deadline for waiting in group)
        try:
            added = await self._pool.write(lambda db: add_all(db, records, begin=True), begins=True, deadline=deadline)
        except Uncertain as error:
            return [error] * len(group)
        except Exception as error:
            if not isinstance(error, StoreError):
                log.exception("an addition was not stored")
                return [Unavailable(str(error))]
            return [Locked(str(error)) if isinstance(error, Unavailable) else error for _ in group]
        outcomes: list[StoreError | None] = []
        for record in records:
            outcomes.append(None if record in added else Refused("nim", "duplicate"))
            added.discard(record)
        return outcomes
