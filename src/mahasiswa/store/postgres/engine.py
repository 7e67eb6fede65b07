"""The functions of `store.engines` for a database in PostgreSQL."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from mahasiswa.store.copies import copies
from mahasiswa.store.engines import Check, Restored
from mahasiswa.store.errors import Unusable
from mahasiswa.store.findings import Finding, good
from mahasiswa.store.postgres import doctor, schema
from mahasiswa.store.postgres.commands import forget, merge  # noqa: F401 - `engines` calls them here
from mahasiswa.store.postgres.store import open_store  # noqa: F401 - as above


def migrate(conninfo: str, history_days: int | None, *, create: bool) -> None:  # noqa: ARG001 - see engines
    schema.migrate(conninfo, history_days)


def backup(_conninfo: str, _to: Path, _check: Check) -> None:
    raise Unusable(
        "this is PostgreSQL: run systemctl start mahasiswa-pgdump, or pg_dump --format=custom --file=mahasiswa.dump"
    )


def backup_into(conninfo: str, folder: Path | None, check: Check, _max_age_seconds: float) -> None:
    backup(conninfo, folder or Path(), check)


def restore(_conninfo: str, _file: Path, _check: Check) -> Restored:
    raise Unusable(
        "this is PostgreSQL: stop the service, then run"
        " pg_restore --clean --if-exists --single-transaction --dbname=URL mahasiswa.dump"
    )


def examine(conninfo: str, _check: Check, *, quick: bool) -> Iterator[Finding]:
    return doctor.examine(conninfo, quick=quick)


def backup_files(_conninfo: str, folder: Path) -> Sequence[Path]:
    return copies(folder, "mahasiswa", ".dump")


def backups_that_hold(conninfo: str, folder: Path | None, _nim: str) -> Sequence[Path]:
    return backup_files(conninfo, folder) if folder else []


def examine_backup(file: Path, _check: Check) -> Finding:
    return good(f"Its contents were not checked. To check them: pg_restore --list {file}")
