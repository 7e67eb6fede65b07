"""The engine for PostgreSQL. Each command has connections of its own."""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from mahasiswa.record import Incoming, Mahasiswa
from mahasiswa.store import Query, commands
from mahasiswa.store.postgres import postgres_schema
from mahasiswa.store.postgres import postgres_sql as sql
from mahasiswa.store.postgres.pool import (
    SyncConnection,
    commit_checked,
    connected,
    do_steps,
)
from mahasiswa.store.postgres.store import PostgresStore, records
from mahasiswa.store.results import Finding, Merged, Restored, good, wrong
from mahasiswa.store.shared_sql import COUNT
from mahasiswa.store.store_errors import StoreError, Unavailable, Unusable
from mahasiswa.system.administrator import command_name, typed
from mahasiswa.work import Slots


@dataclass
class PostgresEngine:
    """See SQLiteEngine."""

    _conninfo: str

    def migrate(self, history_days: int | None = None, backups: Path | None = None) -> None:
        postgres_schema.migrate(self._conninfo, history_days)

    async def open_store(self, slots: Slots) -> PostgresStore:
        """See SQLiteEngine. The database need not be reachable. The pools have the limits of `slots`."""
        store = PostgresStore(self._conninfo, slots)
        for pool in store.pools.values():
            await pool.connections.open()
        return store

    def examine(self) -> tuple[Finding, str]:
        """See SQLiteEngine. Back-ups are PostgreSQL's own, so there is no id."""
        try:
            with connected(self._conninfo) as db:
                postgres_schema.find_table(db)
                return good(f"The table mahasiswa holds {_count(db)} records."), ""
        except StoreError as error:
            return wrong(f"{error}. Check DATABASE_URL and the server."), ""

    def merge(self, rows: Iterable[Incoming], *, update: bool, dry_run: bool) -> Merged:
        """See SQLiteEngine."""
        with _transaction(self._conninfo) as db:
            db.execute(sql.CREATE_INCOMING)
            with db.cursor().copy(sql.COPY_INCOMING) as copy:
                for row in rows:
                    copy.write_row(row)
            if not dry_run:
                db.execute(sql.LOCK_TABLE)
            return do_steps(db, commands.merge(update=update, dry_run=dry_run))

    def forget(self, nim: str) -> tuple[bool, Sequence[str]]:
        if "\0" in nim:  # no text of PostgreSQL holds one
            return False, []
        with _transaction(self._conninfo) as db:
            return do_steps(db, commands.forget(nim))

    def rewrite(self) -> None:
        try:
            with connected(self._conninfo) as db:
                db.execute(sql.SHORT_LOCK_TIMEOUT)  # others wait behind it
                db.execute(sql.REWRITE)
        except Unavailable as error:
            left = f"the files of the tables may still hold the texts ({error})"
            raise Unusable(f"{left}; run: {sql.REWRITE}") from error

    def backup(
        self, folder: Path | None, file: Path | None = None, due_hours: int = 0
    ) -> Sequence[str]:
        command = "pg_dump --format=custom --file=mahasiswa.dump"
        raise Unusable(f"this is PostgreSQL: run {command}")

    def restore(self, file: Path) -> Restored:
        command = "pg_restore --clean --if-exists --single-transaction --dbname=URL mahasiswa.dump"
        copy = typed(f"copy sqlite:///{file.absolute()}")
        remedy = f"For a back-up of SQLite and an empty database: {copy}"
        raise Unusable(f"this is PostgreSQL: stop the service, then run {command}. {remedy}")

    def records(self) -> Generator[Mahasiswa]:
        with connected(self._conninfo) as db:
            yield from records(db, Query())

    def count(self) -> int:
        with connected(self._conninfo) as db:
            return _count(db)


def _count(db: SyncConnection) -> int:
    ((count,),) = db.execute(COUNT).fetchall()
    return int(count)


@contextmanager
def _transaction(conninfo: str) -> Iterator[SyncConnection]:
    """Commit the changes of the block, or none; raise Refused, Unavailable or Uncertain."""
    with connected(conninfo) as db:
        cursor = psycopg.ClientCursor(db)
        cursor.execute(sql.BEGIN_CHANGE, {**sql.COMMAND, "oleh": command_name()})
        yield db
        with commit_checked(db):
            db.commit()
