"""Names the new dump of PostgreSQL, `.unfinished` in the folder of the call, and removes the dumps that keep.md does not keep."""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mahasiswa.store.backup_folder import (
    Backup,
    beside_dumps,
    expired,
    find_backups,
    free_name,
    id_of_list,
    missing_records,
    own_backups,
    read_outcome,
    write_outcome,
)

STATE = "mahasiswa_history_state"


@contextmanager
def rows(dump: Path, table: str) -> Iterator[Iterator[bytes]]:
    """Yield the lines that COPY would read, the first one with the columns; raise CalledProcessError at the end."""
    command = ["pg_restore", "--data-only", f"--table={table}", "--file=-", str(dump)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as restore:  # noqa: S603 - all of it is ours
        lines = iter(restore.stdout or ())
        yield copied(lines)
        for _ in lines:
            pass
    if restore.returncode:
        raise subprocess.CalledProcessError(restore.returncode, command)


def copied(lines: Iterator[bytes]) -> Iterator[bytes]:
    for line in lines:
        if line.startswith(b"COPY "):
            yield line
            break
    for line in lines:
        if line == b"\\.\n":
            break
        yield line


def records(dump: Path) -> int | None:
    """Return how many records a dump holds, None if pg_restore cannot read it."""
    try:
        with rows(dump, "mahasiswa") as lines:
            return sum(1 for _ in lines) - 1
    except subprocess.CalledProcessError:
        return None


def list_id(dump: Path) -> str | None:
    """Return the id of the list in a dump, None if pg_restore cannot read it."""
    try:
        with rows(dump, STATE) as lines:
            columns, values = next(lines, b""), next(lines, b"")
    except subprocess.CalledProcessError:
        return None
    names = columns.partition(b"(")[2].partition(b")")[0].split(b", ")
    found = dict(zip(names, values.rstrip(b"\n").split(b"\t"), strict=False))
    return id_of_list(found[b"signing_key"].decode()) if b"signing_key" in found else None


def note(place: Path, count: int, found: Sequence[Backup]) -> None:
    """Note the dump, and how many records it lacks, for `mahasiswa doctor` and the metrics."""
    now, last = time.time(), read_outcome(place)
    missing = missing_records(count, found, records, last)
    write_outcome(place, last._replace(moment=now, succeeded=now, newest=now, missing=missing))


def main() -> None:
    """Raise an error if the new dump cannot be read; then it has no name, and nothing is removed."""
    folder = Path.cwd()
    new = folder / ".unfinished"
    own, count = list_id(new), records(new)
    if own is None or count is None:
        sys.exit(f"{new} cannot be read, so it is no back-up")
    new.rename(free_name(folder, f"mahasiswa-{own}-", ".dump"))
    found = own_backups(find_backups(folder, "mahasiswa-", ".dump"), own, list_id)
    note(beside_dumps(folder, own), count, found)
    for dump in expired(found, records):
        dump.unlink()
        sys.stdout.write(f"removed the old back-up {dump}\n")


if __name__ == "__main__":
    main()
