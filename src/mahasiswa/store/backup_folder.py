"""The back-ups in a folder: their names and ages, which of them can be removed, and how the service's last one ended."""

import json
import os
import re
import shutil
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import chain, count, groupby, islice
from pathlib import Path
from typing import NamedTuple

from mahasiswa.lookout import listed

DAY_SECONDS = 24 * 3600
ALL_KEPT_DAYS = 2  # newest days that have a back-up and keep all of theirs
DAILY_KEPT_DAYS = 60  # newest days that have a back-up and keep their last one
# Newest back-ups that are kept because they hold more than twice as many records as the newest one.
LARGER_KEPT = 3
# A back-up that is newer than now by more was made with a wrong clock: it does not count.
CLOCK_TOLERANCE_SECONDS = 360
# Minimum free space for a back-up, a restore or an upgrade, as a multiple of the database.
FREE_SPACE_FACTOR = 3

OUTCOME_BYTES = 4096
PROBLEM_MAX_CHARACTERS = 600  # JSON needs at most six bytes for each


class Outcome(NamedTuple):
    """How the service's last attempt to make a back-up ended. Times are in seconds since the epoch.

    `problem` is empty if it succeeded. `succeeded` is the time of the last attempt that did, or 0. `failures` counts the
    others since the first start.
    """

    moment: float = 0.0
    problem: str = ""
    succeeded: float = 0.0
    failures: int = 0


def free_name(folder: Path, prefix: str, suffix: str = "") -> Path:
    """A name that no file has, with the time now in UTC, and a counter if two come within a second."""
    for number in count(1):
        name = f"{prefix}{datetime.now(UTC):%Y%m%dT%H%M%SZ}{f'-{number}' if number > 1 else ''}{suffix}"
        if not os.path.lexists(folder / name):
            break
    return folder / name


def find_backups(
    folder: Path, prefix: str, suffix: str = "", *, from_future: bool = False
) -> Sequence[Path]:
    """The files with such names as `free_name` makes, such as `mahasiswa-20261120T101700Z.db`, newest first; raise OSError.

    The database itself never has such a name. Files from the future are left out, or are the only ones.
    """
    pattern = re.compile(rf"{re.escape(prefix)}\d{{8}}T\d{{6}}Z(-\d+)?{re.escape(suffix)}")
    latest = time.time() + CLOCK_TOLERANCE_SECONDS
    times = {file: file.stat().st_mtime for file in listed(folder) if pattern.fullmatch(file.name)}
    wanted = (file for file in times if (times[file] > latest) == from_future)
    return sorted(wanted, key=times.__getitem__, reverse=True)


def age_seconds(file: Path) -> float:
    """The time since a back-up was made, or since a later back-up found it unchanged."""
    return max(0.0, time.time() - file.stat().st_mtime)


def expired(newest_first: Sequence[Path], records: Callable[[Path], int | None]) -> Sequence[Path]:
    """The back-ups that can be removed. Age alone removes none: only days that have a back-up count.

    `records` counts the records of a file, None if it cannot be read. Such a file stays, and is no reason to remove another
    file. If a list is lost or emptied, its newest back-up is small, so the last larger back-ups are kept for ever.
    """
    if not _old(newest_first):  # then no file must be read
        return []
    counts = {file: number for file in newest_first if (number := records(file)) is not None}
    newest = next(iter(counts.values()), 0)
    larger = set(
        islice((file for file, number in counts.items() if number > 2 * newest), LARGER_KEPT)
    )
    return [file for file in _old(list(counts)) if file not in larger]


def _old(newest_first: Sequence[Path]) -> Sequence[Path]:
    days = [
        list(day)
        for _, day in groupby(newest_first, lambda file: file.stat().st_mtime // DAY_SECONDS)
    ]
    extra = (file for day in days[ALL_KEPT_DAYS:DAILY_KEPT_DAYS] for file in day[1:])
    return [*extra, *chain(*days[DAILY_KEPT_DAYS:])]


def lack_of_room(folder: Path, database_bytes: int) -> str:
    """A sentence about a disk that is too full for a back-up, or nothing; raise OSError."""
    needed, free = FREE_SPACE_FACTOR * database_bytes, shutil.disk_usage(folder).free
    return (
        f"only {free >> 20} MB are free for {folder}, not {needed >> 20} MB"
        if free < needed
        else ""
    )


def read_outcome(database: Path) -> Outcome:
    """How the last attempt of the service that uses this SQLite file ended; raise OSError.

    A file that is missing, torn or of another version counts as empty. An unknown field is ignored.
    """
    try:
        stored = json.loads(_outcome_file(database).read_bytes())
        return Outcome(**{name: stored[name] for name in Outcome._fields if name in stored})
    except (FileNotFoundError, ValueError, TypeError):
        return Outcome()


def write_outcome(database: Path, problem: str) -> None:
    """Note the outcome beside the database; raise OSError."""
    last = read_outcome(database)
    now = time.time()
    succeeded = last.succeeded if problem else now
    failures = last.failures + bool(problem)
    outcome = Outcome(now, problem[:PROBLEM_MAX_CHARACTERS], succeeded, failures)
    # JSON can escape what UTF-8 lacks: a byte of a path that is no UTF-8.
    text = json.dumps(outcome._asdict(), ensure_ascii=False).encode("utf-8", "backslashreplace")
    # The same bytes are written in place, so it works on a full disk too, and a reader sees the old or the new text.
    descriptor = os.open(_outcome_file(database), os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.pwrite(descriptor, text.ljust(OUTCOME_BYTES), 0)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _outcome_file(database: Path) -> Path:
    return database.with_name(f"{database.name}.last-backup.json")
