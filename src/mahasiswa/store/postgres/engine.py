"""The functions of `store.engines` for a database in PostgreSQL."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from mahasiswa.record import Incoming
from mahasiswa.settings import PostgresURL
from mahasiswa.store.copies import copies
from mahasiswa.store.engines import Check, Merged, Restored
from mahasiswa.store.errors import Unusable
from mahasiswa.store.findings import Finding, good
from mahasiswa.store.postgres import commands, doctor, schema
from mahasiswa.store.postgres.store import PostgresStore
from mahasiswa.work import Slots


def migrate(url: PostgresURL, history_days: int | None, *, create: bool) -> None:  # noqa: ARG001 - see engines
    schema.migrate(url.conninfo, history_days)


async def open_store(url: PostgresURL, slots: Slots) -> PostgresStore:
    return await PostgresStore.open(url.conninfo, slots)


def merge(url: PostgresURL, rows: Iterable[Incoming], *, update: bool, dry_run: bool) -> Merged:
    return commands.merge(url.conninfo, rows, update=update, dry_run=dry_run)


def forget(url: PostgresURL, nim: str) -> bool:
    return commands.forget(url.conninfo, nim)


def backup(_url: PostgresURL, _to: Path, _check: Check) -> None:
    raise Unusable(
        "this is PostgreSQL: run systemctl start mahasiswa-pgdump, or pg_dump --format=custom --file=mahasiswa.dump"
    )


def backup_into(url: PostgresURL, folder: Path | None, check: Check, _max_age_seconds: float) -> None:
    backup(url, folder or Path(), check)


def restore(_url: PostgresURL, _file: Path, _check: Check) -> Restored:
    raise Unusable(
        "this is PostgreSQL: stop the service, then run"
        " pg_restore --clean --if-exists --single-transaction --dbname=URL mahasiswa.dump"
    )


def examine(url: PostgresURL, _check: Check, *, quick: bool) -> Iterator[Finding]:
    return doctor.examine(url.conninfo, quick=quick)


def backup_files(_url: PostgresURL, folder: Path) -> Sequence[Path]:
    return copies(folder, "mahasiswa", ".dump")


def backups_that_hold(_url: PostgresURL, folder: Path | None, _nim: str) -> Sequence[Path]:
    return copies(folder, "mahasiswa", ".dump") if folder else []


def examine_backup(_url: PostgresURL, file: Path, _check: Check) -> Finding:
    return good(f"Its contents were not checked. To check them: pg_restore --list {file}")
