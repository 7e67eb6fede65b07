"""The back-ups in a folder: their names, the newest one, and those that may be removed."""

import re
import shutil
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from math import ceil
from pathlib import Path
from typing import NamedTuple

ALL_KEPT_DAYS = 2  # newest days with back-ups that keep all of theirs
DAILY_KEPT_DAYS = 30  # newest days with back-ups that keep their newest one
KEPT_MONTHS = 12  # newest months with back-ups that keep their newest one
# Minimum free space for a back-up or a restore, as a multiple of the database.
FREE_SPACE_FACTOR = 3

MOMENT = "%Y%m%dT%H%M%SZ"  # in UTC; these texts sort as their moments do
NAME = re.compile(r"(.+)-([0-9a-f]{8})-(\d{8}T\d{6}Z)\.db")


class Backup(NamedTuple):
    """A back-up, by its name, such as `mahasiswa-1f0e9a7b-20261120T101700Z.db`.

    `database` is the name of the database without its suffix, and `list_id` tells its list.
    """

    moment: str
    file: Path
    database: str
    list_id: str

    @property
    def made(self) -> datetime:
        return datetime.strptime(self.moment, MOMENT).replace(tzinfo=UTC)

    @property
    def last_month(self) -> str:
        """The month in which it is removed at the latest, such as "2027-11". Most are removed after some days."""
        return f"{self.made.year + KEPT_MONTHS // 12}-{self.made:%m}"


Backups = Sequence[Backup]
"""Back-ups, newest first."""


def id_of_list(signing_key: str) -> str:
    """Return the id in the names of a list's back-ups: 8 hex digits of the SHA-256 of its key."""
    return sha256(signing_key.encode()).hexdigest()[:8]


def moment_now() -> str:
    return datetime.now(UTC).strftime(MOMENT)


def find_backups(folder: Path) -> Backups:
    """The back-ups of all lists in a folder, which need not exist; raise OSError."""
    try:
        named = [(NAME.fullmatch(file.name), file) for file in folder.iterdir()]
    except FileNotFoundError:
        return []
    return sorted((Backup(m[3], file, m[1], m[2]) for m, file in named if m), reverse=True)


def backups_of(folder: Path, list_id: str) -> Backups:
    """The back-ups of one list; raise OSError. Those from the future, by a wrong clock, do not count."""
    now = moment_now()
    return [one for one in find_backups(folder) if one.list_id == list_id and one.moment <= now]


def newest_backup(folder: Path, list_id: str) -> datetime | None:
    """The moment of the newest back-up of a list, None if there is none; raise OSError."""
    newest = next(iter(backups_of(folder, list_id)), None)
    return newest.made if newest else None


def expired(newest_first: Backups, records: Callable[[Path], int | None]) -> Backups:
    """The back-ups that may be removed. Days and months without a back-up do not count.

    If the newest one holds less than half of the records of the one before it, records may be lost,
    so none may be removed. `records` counts those of a file, and returns None if it cannot read it.
    """
    oldest_first = newest_first[::-1]
    days = {one.moment[:8]: one for one in oldest_first}
    months = {one.moment[:6]: one for one in oldest_first}
    newest_days = [*days][-ALL_KEPT_DAYS:]
    kept = {*[*days.values()][-DAILY_KEPT_DAYS:], *[*months.values()][-KEPT_MONTHS:]}
    found = [one for one in newest_first if one not in kept and one.moment[:8] not in newest_days]
    if not found:
        return []
    newest, before = (records(one.file) for one in newest_first[:2])
    is_sound = newest is not None and before is not None and 2 * newest >= before
    return found if is_sound else []


def lack_of_room(folder: Path, database_bytes: int) -> str:
    """A sentence about a disk that is too full for a back-up, or nothing; raise OSError."""
    needed = FREE_SPACE_FACTOR * database_bytes
    free = shutil.disk_usage(folder).free
    if free >= needed:
        return ""
    return f"only {free >> 20} MB are free for {folder}, not {ceil(needed / 2**20)} MB"
