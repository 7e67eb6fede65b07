"""The back-ups in a folder: their names and ages, which of them can be removed, and how the service's last one ended."""

import json
import os
import re
import shutil
import time
from calendar import timegm
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import count
from math import ceil
from pathlib import Path
from typing import NamedTuple

from mahasiswa.system.lookout import listed

ALL_KEPT_DAYS = 2  # newest days that have a back-up and keep all of theirs
DAILY_KEPT_DAYS = 60  # newest days that have a back-up and keep their last one
RECENT_SECONDS = 30 * 24 * 3600  # a list is compared with its back-ups of this time
KEPT_MONTHS = 12  # newest months that have a back-up and keep their last one
# Newest back-ups that are kept because they hold more than twice as many records as the newest one.
LARGER_KEPT = 3
MISSING_MIN = 20  # minimum number of missing records that is an alarm
# A back-up whose name lies further in the future was made with a wrong clock, so it does not count.
CLOCK_TOLERANCE_SECONDS = 360
# Minimum free space for a back-up, a restore or an upgrade, as a multiple of the database.
FREE_SPACE_FACTOR = 3

MOMENT = "%Y%m%dT%H%M%SZ"  # in UTC, in the name of a back-up; these texts sort as their moments do

# The id of the list, the moment, and the counter of `free_name`. Names of an older version have no
# id.
ID_AND_MOMENT = r"(?:([0-9a-f]{8})-)?(\d{8}T\d{6}Z)(?:-(\d+))?"

OUTCOME_BYTES = 4096
PROBLEM_MAX_CHARACTERS = 300  # JSON needs at most six bytes for each


class Backup(NamedTuple):
    """A back-up, by its name. `number` tells two of one second apart; `list_id` is None in a name of an older version."""

    moment: str
    number: int
    file: Path
    list_id: str | None

    def found_at(self) -> float:
        """The time at which it was made, or at which a later back-up found it unchanged and touched it; raise OSError."""
        touched = self.file.stat().st_mtime
        if touched > time.time():  # by a wrong clock
            return timegm(time.strptime(self.moment, MOMENT))
        return touched


Backups = Sequence[Backup]
"""The back-ups of a folder, newest first."""

Count = Callable[[Path], int | None]
"""Counts the records of a file. It returns None if it cannot read the file."""


class Outcome(NamedTuple):
    """How the service's last attempts to make a back-up and to restore one ended. Times are in seconds since the epoch.

    `moment` and `problem` are those of the last attempt; `problem` is empty if it succeeded.
    `succeeded` is the time of the last successful attempt, or 0. `failures` counts the failed
    attempts since the first start. `newest` is the time at which the newest back-up was made or
    found unchanged. `tested` and `test_problem` are those of the last restore into a temporary
    file. `missing` is the number of records that the list lacks. At the time `accepted` an
    administrator has accepted that the list holds only `accepted_records` records.
    """

    moment: float = 0.0
    problem: str = ""
    succeeded: float = 0.0
    failures: int = 0
    newest: float = 0.0
    tested: float = 0.0
    test_problem: str = ""
    missing: int = 0
    accepted: float = 0.0
    accepted_records: int = 0


def id_of_list(signing_key: str) -> str:
    """Return the id in the names of a list's back-ups: 8 hex digits of the SHA-256 of its key."""
    return sha256(signing_key.encode()).hexdigest()[:8]


def free_name(folder: Path, prefix: str, suffix: str = "") -> Path:
    """A name that no file has, with the time now in UTC, and a counter if two come within a second."""
    for number in count(1):
        counter = f"-{number}" if number > 1 else ""
        name = f"{prefix}{moment_of(time.time())}{counter}{suffix}"
        if not os.path.lexists(folder / name):
            break
    return folder / name


def moment_of(seconds: float) -> str:
    """Return the moment so many seconds after the epoch, as a name has it."""
    return time.strftime(MOMENT, time.gmtime(seconds))


def find_backups(
    folder: Path, prefix: str, suffix: str = "", *, from_future: bool = False
) -> Backups:
    """The back-ups with such names as `mahasiswa-1f0e9a7b-20261120T101700Z.db`, newest first; raise OSError.

    The database itself never has such a name. With `from_future` only back-ups with a time in the
    future are returned. Otherwise they are left out.
    """
    pattern = re.compile(re.escape(prefix) + ID_AND_MOMENT + re.escape(suffix))
    latest = moment_of(time.time() + CLOCK_TOLERANCE_SECONDS)
    named = [(pattern.fullmatch(file.name), file) for file in listed(folder)]
    found = [Backup(m[2], int(m[3] or 1), file, m[1]) for m, file in named if m]
    chosen = [one for one in found if (one.moment > latest) == from_future]
    return sorted(chosen, reverse=True)


def own_backups(
    found: Backups, list_id: str | None, id_in: Callable[[Path], str | None]
) -> Backups:
    """The back-ups of one list, or all if its id is unknown.

    `id_in` reads the id in a file whose name has none.
    """
    if list_id is None:
        return found
    return [one for one in found if (one.list_id or id_in(one.file)) == list_id]


def expired(newest_first: Backups, records: Count) -> Sequence[Path]:
    """The back-ups that can be removed: no rule about days, months or larger lists keeps them.

    Days and months without a back-up do not count, so a list that is not used loses no back-up. If
    the newest back-up is much smaller than others, its list may have lost records, so the last
    larger back-ups stay. `records` counts the records of a file, and returns None if it cannot read
    the file. Such a file stays, and does not count as the back-up of its day or month.
    """
    if len(_kept(newest_first)) == len(newest_first):  # then no file needs to be read
        return []
    counts = {one: number for one in newest_first if (number := records(one.file)) is not None}
    newest = next(iter(counts.values()), 0)
    larger = [one for one, number in counts.items() if number > 2 * newest]
    kept = _kept(list(counts)).union(larger[:LARGER_KEPT])
    return [one.file for one in counts if one not in kept]


def _kept(newest_first: Backups) -> set[Backup]:
    oldest_first = newest_first[::-1]
    # The last back-up of each day and of each month, from the oldest to the newest.
    days = {one.moment[:8]: one for one in oldest_first}
    months = {one.moment[:6]: one for one in oldest_first}
    whole_days = [*days][-ALL_KEPT_DAYS:]
    daily = [*days.values()][-DAILY_KEPT_DAYS:]
    monthly = [*months.values()][-KEPT_MONTHS:]
    recent = [one for one in newest_first if one.moment[:8] in whole_days]
    return {*daily, *monthly, *recent}


def missing_records(now: int, own: Backups, records: Count, last: Outcome) -> int:
    """How many records a list lacks, compared with its back-ups of the last 30 days.

    The result is 0 if they are too few for an alarm. If an administrator has accepted a number of
    records, an earlier back-up counts as if it held no more than that number. An acceptance in the
    future, by a wrong clock, does not count: it would hide each loss until then.
    """
    is_accepted = last.accepted <= time.time() + CLOCK_TOLERANCE_SECONDS
    most = 0
    for one in _recent(own):
        held = records(one.file) or 0
        if is_accepted and one.moment <= moment_of(last.accepted):
            held = min(held, last.accepted_records)
        most = max(most, held)
    lost = most - now
    is_alarming = lost >= MISSING_MIN and 10 * now < 9 * most
    return lost if is_alarming else 0


def _recent(newest_first: Backups) -> Iterator[Backup]:
    """The back-ups that were made or found unchanged within the last 30 days."""
    since = moment_of(time.time() - RECENT_SECONDS)
    replaced = moment_of(time.time())
    for one in newest_first:
        with suppress(OSError):  # another program has just removed it
            # In a copy of the folder all files have new times. But after the next back-up was made,
            # this one cannot have been found unchanged.
            if min(moment_of(one.found_at()), replaced) > since:
                yield one
        replaced = one.moment


def beside_dumps(folder: Path, list_id: str) -> Path:
    """The path to give to `read_outcome` for the outcome of the dumps of a list in PostgreSQL."""
    return folder / f"mahasiswa-{list_id}"


def lack_of_room(folder: Path, database_bytes: int) -> str:
    """A sentence about a disk that is too full for a back-up, or nothing; raise OSError."""
    needed = FREE_SPACE_FACTOR * database_bytes
    free = shutil.disk_usage(folder).free
    if free >= needed:
        return ""
    return f"only {free >> 20} MB are free for {folder}, not {ceil(needed / 2**20)} MB"


def read_outcome(database: Path) -> Outcome:
    """How the last attempts of the service that uses this SQLite file ended; raise OSError.

    A file that is missing, torn or of another version counts as empty. An unknown field is ignored.
    """
    try:
        stored = json.loads(_outcome_file(database).read_bytes())
        known = {name: stored[name] for name in Outcome._fields if name in stored}
        return Outcome(**known)
    except (FileNotFoundError, ValueError, TypeError):
        return Outcome()


def write_outcome(database: Path, outcome: Outcome) -> None:
    """Note the outcome beside the database; raise OSError."""
    # A path may hold a byte that is not UTF-8, which JSON can escape.
    text = json.dumps(outcome._asdict(), ensure_ascii=False).encode("utf-8", "backslashreplace")
    # The new text has the length of the old one and is written over it. So a full disk does not
    # matter, and a reader sees the old or the new text.
    descriptor = os.open(_outcome_file(database), os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.pwrite(descriptor, text.ljust(OUTCOME_BYTES), 0)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _outcome_file(database: Path) -> Path:
    return database.with_name(f"{database.name}.last-backup.json")
