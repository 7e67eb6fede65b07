"""Removes the dumps of PostgreSQL that docs/keep.md does not promise to keep, in the folder of the call."""

import subprocess
import sys
from pathlib import Path

from mahasiswa.store.backup_folder import expired, find_backups


def records(dump: Path) -> int | None:
    """Return how many records a dump holds, None if pg_restore cannot read it. It writes each record as a line."""
    count, is_record = 0, False
    command = ["pg_restore", "--data-only", "--table=mahasiswa", "--file=-", str(dump)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as restore:  # noqa: S603 - all of it is ours
        for line in restore.stdout or ():
            is_record = is_record and line != b"\\.\n"
            count += is_record
            is_record = is_record or line.startswith(b"COPY ")
    return None if restore.returncode else count


if __name__ == "__main__":
    for dump in expired(find_backups(Path.cwd(), "mahasiswa-", ".dump"), records):
        dump.unlink()
        sys.stdout.write(f"removed the old back-up {dump}\n")
