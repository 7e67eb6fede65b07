"""Creates and upgrades the table in an SQLite file."""

import re
from pathlib import Path

import apsw

from mahasiswa.record import Mahasiswa
from mahasiswa.store import Adopted, statements
from mahasiswa.store.errors import Unusable
from mahasiswa.store.sqlite.connection import PATIENCE, connect, folder_lock

# As SQLite itself tells: INT goes first.
type_affinity_text = re.compile("^(?!.*INT).*(CHAR|CLOB|TEXT)", re.IGNORECASE)


def migrate(path: Path) -> None:
    """Make the file and its table where they do not exist; raise Unusable. Leaves nothing open."""
    try:
        if not path.parent.is_dir():
            raise Unusable(f"the folder {path.parent} does not exist")
        # To begin a log takes the file alone, and SQLite does not wait for that.
        with folder_lock(path.parent):
            _migrate(path)
    except OSError as error:
        raise Unusable(f"{path} cannot be opened: {error.strerror}") from error


def _migrate(path: Path) -> None:
    try:
        db = apsw.Connection(str(path.absolute()))
    except apsw.Error as error:
        raise Unusable(f"{path} cannot be opened: {error}") from error
    try:
        db.set_busy_timeout(int(PATIENCE * 1000))
        if db.readonly("main"):
            raise Unusable(f"{path} cannot be written")
        _prepare_table(db, path)
        if db.execute("PRAGMA journal_mode = WAL").get != "wal":
            raise Unusable(f"{path} cannot have a write-ahead log; is it on a network drive?")
        connect(path).close()
    except apsw.NotADBError:
        raise Unusable(f"{path} is not an SQLite database") from None
    except apsw.Error as error:
        raise Unusable(f"{path} cannot be used: {error}") from error
    finally:
        db.close()


def _prepare_table(db: apsw.Connection, path: Path) -> None:
    with db:
        db.execute(statements.CREATE_TABLE)
        kind = db.execute("SELECT type FROM sqlite_schema WHERE lower(name) = 'mahasiswa'").get
        columns = {name.lower(): declared for _, name, declared, *_ in db.execute("PRAGMA table_info(mahasiswa)")}
        if kind != "table" or columns.keys() != set(Mahasiswa._fields):
            raise Unusable(f"{path} holds a {kind} mahasiswa with other columns: {', '.join(columns)}")
        if not all(type_affinity_text.search(declared) for declared in columns.values()):
            raise Unusable(f"{path} holds a table mahasiswa whose columns are not TEXT")
        if not _is_key(db, "nim"):
            raise Unusable(f"{path} holds a table mahasiswa whose nim is not its key")


def _is_key(db: apsw.Connection, column: str) -> bool:
    """Whether a unique index stands on that column alone, and on every row."""
    indexes = [name for _, name, unique, _, partial in db.execute("PRAGMA index_list(mahasiswa)") if unique > partial]
    return any(
        [column] == [(name or "").lower() for _, _, name in db.execute(f'PRAGMA index_info("{index}")')]
        for index in indexes
    )


def adopt(path: Path) -> Adopted:
    raise NotImplementedError
