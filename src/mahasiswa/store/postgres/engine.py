"""The Engine for PostgreSQL. Each command has connections of its own."""

import json
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import errors

from mahasiswa.record import Incoming
from mahasiswa.store import commands, refuse_nul
from mahasiswa.store.backup_folder import (
    Backups,
    beside_dumps,
    find_backups,
    id_of_list,
    lack_of_room,
    own_backups,
    read_outcome,
)
from mahasiswa.store.engine import Engine
from mahasiswa.store.postgres import postgres_schema
from mahasiswa.store.postgres import postgres_sql as sql
from mahasiswa.store.postgres.pool import (
    SyncConnection,
    commit_checked,
    connect,
    do_steps,
    first_line,
    translate,
)
from mahasiswa.store.postgres.store import PostgresStore
from mahasiswa.store.results import Finding, Merged, Restored, good, wrong
from mahasiswa.store.shared_sql import COUNT, SIGNING_KEY
from mahasiswa.store.store_errors import Locked, TextsRemain, Unavailable, Unusable
from mahasiswa.system import interrupt
from mahasiswa.system.administrator import command_name, typed
from mahasiswa.work import Slots

OLDER_TRANSACTIONS_TIMEOUT_SECONDS = 10.0
"""Maximum time to wait for older transactions, because a table keeps the rows that they can still see."""

DUMP_START = b"PGDMP"  # of a dump in the custom format of pg_dump

LOCKED = "another program has locked the table; nothing was changed; try again when it has ended"
STANDBY = "the server is a standby, which takes no changes; nothing was changed; correct DATABASE_URL, or promote the server"
TABLE_FILES = "the files of the tables"


@dataclass
class PostgresEngine(Engine):
    _conninfo: str

    def migrate(
        self,
        history_days: int | None = None,
        *,
        create: bool = True,
        backups: Path | None = None,
    ) -> None:
        postgres_schema.migrate(self._conninfo, history_days)

    async def open_store(self, slots: Slots) -> PostgresStore:
        """See Engine. The database need not be reachable."""
        store = PostgresStore(self._conninfo, slots)
        await store.pool.connections.open()
        return store

    def examine(self, folder: Path | None, *, quick: bool = False) -> Iterator[Finding]:
        return postgres_schema.examine(self._conninfo, quick=quick)

    def merge(self, rows: Iterable[Incoming], *, update: bool, dry_run: bool) -> Merged:
        """See Engine. A dry run refuses a text with NUL too, because it cannot be copied to the server."""
        with _transaction(self._conninfo) as db:
            for (grant,) in db.execute(sql.GRANT_TO_IMPORT):
                raise Unusable(f"a right is missing; the owner of the database must run: {grant}")
            db.execute(sql.CREATE_INCOMING)
            with db.cursor().copy(sql.COPY_INCOMING) as copy:
                for row in rows:
                    refuse_nul(*row[1:])
                    copy.write_row(row)
            if not dry_run:
                db.execute(sql.LOCK_TABLE)
            locked = time.monotonic()
            merged = do_steps(db, commands.merge(update=update, dry_run=dry_run))
        return merged if dry_run else merged._replace(seconds=time.monotonic() - locked)

    def forget(self, nim: str) -> bool:
        """See Engine. The tables are rewritten for an unknown nim too.

        After a failed rewriting the nim is unknown, but the files still hold its texts. So the
        command can be repeated.
        """
        if "\0" in nim:  # no text of PostgreSQL holds one
            return False
        with _transaction(self._conninfo) as db:
            was_known = do_steps(db, commands.forget(nim))
            ((transaction,),) = db.execute(sql.TRANSACTION_ID).fetchall()
        try:
            with connect(self._conninfo) as db:
                _rewrite(db, transaction, was_known=was_known)
        except (
            psycopg.Error
        ) as error:  # for example another program holds a lock, or a right is missing
            reason = f": {first_line(error)}; the owner of the table must run: {sql.VACUUM}"
            if not was_known:  # the files cannot tell whether the owner has done so
                reason += "; if the owner has run it since the removal, this is done"
            raise TextsRemain(TABLE_FILES, reason, was_known=was_known) from error
        return was_known

    def backup(self, to: Path) -> None:
        command = "pg_dump --format=custom --file=mahasiswa.dump"
        raise Unusable(f"this is PostgreSQL: run systemctl start mahasiswa-pgdump, or {command}")

    def backup_into(self, folder: Path | None) -> None:
        self.backup(folder or Path())

    def restore(self, file: Path) -> Restored:
        with file.open("rb") as opened:
            is_of_sqlite = opened.read(16) == b"SQLite format 3\0"
        if is_of_sqlite:
            copy = typed(f"copy --from sqlite:///{file.absolute()}")
            remedy = f"To bring its records into an empty database: {copy}"
            raise Unusable(f"{file} is a back-up of SQLite, and this is PostgreSQL. {remedy}")
        command = "pg_restore --clean --if-exists --single-transaction --dbname=URL mahasiswa.dump"
        raise Unusable(f"this is PostgreSQL: stop the service, then run {command}")

    def missing(self, folder: Path) -> int:
        """See Engine. It is the noted result of the last dump, because reading dumps takes long."""
        return read_outcome(self.outcome_of(folder)).missing

    def outcome_of(self, folder: Path | None) -> Path:
        if folder is None:
            raise Unusable("set BACKUP_DIR to the folder of the dumps")
        return beside_dumps(folder, self.list_id() or "")

    def count(self) -> int:
        try:
            with connect(self._conninfo) as db:
                ((count,),) = db.execute(COUNT).fetchall()
        except psycopg.Error as error:
            raise Unusable(f"PostgreSQL cannot be used: {first_line(error)}") from error
        return int(count)

    def backup_files(self, folder: Path, *, from_future: bool = False) -> Backups:
        """See Engine. A dump whose name has no id counts, too: the unit of the next dump reads the id in it."""
        found = find_backups(folder, "mahasiswa-", ".dump", from_future=from_future)
        own = self.list_id()
        return own_backups(found, own, lambda _: own)

    def list_id(self) -> str | None:
        try:
            with connect(self._conninfo) as db:
                ((key,),) = db.execute(SIGNING_KEY).fetchall()
        except (psycopg.Error, ValueError):
            return None
        return id_of_list(key)

    def lack_of_room(self, folder: Path) -> str:
        """See Engine. It assumes that the next dump will be as large as the newest one."""
        newest = self.backup_files(folder)[:1]
        return lack_of_room(folder, sum(one.file.stat().st_size for one in newest))

    def backup_command(self) -> str:
        return "systemctl start mahasiswa-pgdump"

    def examine_backup(self, file: Path) -> Finding:
        """See Engine. pg_restore reads the whole file, and writes nothing. It may not be installed."""
        command = ["pg_restore", "--file=/dev/null", str(file)]
        remedy = f"Make one now: {self.backup_command()}"
        try:
            with file.open("rb") as dump:
                if dump.read(len(DUMP_START)) != DUMP_START:
                    return wrong(f"{file} cannot be restored: it is torn, or no dump. {remedy}")
            reading = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60)  # noqa: S603, PLW1510
        except (OSError, subprocess.TimeoutExpired) as error:
            return good(f"Its contents were not checked: {error}.")
        if reading.returncode:
            why = reading.stderr.partition("\n")[0]
            return wrong(f"{file} cannot be restored: {why}. {remedy}")
        return good(f"{file} can be restored.")


@contextmanager
def _transaction(conninfo: str) -> Iterator[SyncConnection]:
    """Commit the changes of the block, or none; raise Refused, Unavailable, Uncertain or Interrupted.

    Ctrl-C cancels the statement that runs. A commit can also wait for a standby that does not answer.
    """
    try:
        with connect(conninfo) as db, interrupt.at_once(db.cancel):
            db.execute(sql.BEGIN_COMMAND)
            db.execute(sql.NAME, {"oleh": json.dumps(command_name())})
            yield db
            interrupt.check()
            with commit_checked(db):
                db.execute(sql.COMMIT)
    except psycopg.Error as error:
        interrupt.check()  # the error may only say that the statement was cancelled
        if isinstance(error, errors.LockNotAvailable):
            raise Locked(LOCKED) from error
        if isinstance(error, errors.FeatureNotSupported):  # "during recovery"
            raise Unavailable(STANDBY) from error
        raise translate(error) from error


def _rewrite(db: SyncConnection, transaction: str, *, was_known: bool) -> None:
    """Remove the rows that a committed transaction has deleted from the tables' files; raise TextsRemain, psycopg.Error."""
    deadline = time.monotonic() + OLDER_TRANSACTIONS_TIMEOUT_SECONDS
    while older := db.execute(sql.FIND_OLDER_TRANSACTIONS, (transaction,)).fetchall():
        if time.monotonic() > deadline:
            seen_by = ", ".join(str(pid) for (pid,) in older)
            remedy = f"end these, then run: {sql.VACUUM}"
            reason = f": the server processes {seen_by} still see them; {remedy}"
            raise TextsRemain(TABLE_FILES, reason, was_known=was_known)
        time.sleep(0.1)
    with db.transaction():
        db.execute(sql.ALTER_LOCK_TIMEOUT)
        db.execute(sql.REWRITE)
