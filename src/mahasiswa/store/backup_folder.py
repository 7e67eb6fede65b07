"""The back-ups in a folder: their names, the newest one, and those that may be removed.

A back-up has the name of its database, the id of its list, and the moment in UTC, such as
`mahasiswa-1f0e9a7b-20261120T101700Z.db`. So lists can share a folder.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

ALL_KEPT_DAYS = 2  # newest days with back-ups that keep all of theirs
DAILY_KEPT_DAYS = 30  # newest days with back-ups that keep their newest one
KEPT_MONTHS = 12  # newest months with back-ups that keep their newest one

MOMENT = "%Y%m%dT%H%M%SZ"  # these texts sort as their moments do
ANY_LIST = "[0-9a-f]" * 8
ANY_MOMENT = f"{'[0-9]' * 8}T{'[0-9]' * 6}Z"


def id_of_list(signing_key: str) -> str:
    """Return the id in the names of a list's back-ups: 8 hex digits of the SHA-256 of its key."""
    return sha256(signing_key.encode()).hexdigest()[:8]


def moment_now() -> str:
    return datetime.now(UTC).strftime(MOMENT)


def moment_of(backup: Path) -> str:
    return backup.stem.rpartition("-")[2]


def age_seconds(backup: Path) -> float:
    made = datetime.strptime(moment_of(backup), MOMENT).replace(tzinfo=UTC)
    return (datetime.now(UTC) - made).total_seconds()


def find_backups(folder: Path, list_id: str, database: str = "*") -> Sequence[Path]:
    """The back-ups of a list, newest first; raise OSError. The folder need not exist.

    `database` is the name of its file without the suffix. It and the id may be patterns. Those from the future, by a
    wrong clock, do not count.
    """
    found = folder.glob(f"{database}-{list_id}-{ANY_MOMENT}.db")
    now = moment_now()
    return sorted((file for file in found if moment_of(file) <= now), key=moment_of, reverse=True)


def expired(newest_first: Sequence[Path]) -> Sequence[Path]:
    """The back-ups that may be removed. Days and months without a back-up do not count."""
    oldest_first = newest_first[::-1]
    days = {moment_of(file)[:8]: file for file in oldest_first}
    months = {moment_of(file)[:6]: file for file in oldest_first}
    kept = {*[*days.values()][-DAILY_KEPT_DAYS:], *[*months.values()][-KEPT_MONTHS:]}
    whole_days = [*days][-ALL_KEPT_DAYS:]
    others = [file for file in newest_first if file not in kept]
    return [file for file in others if moment_of(file)[:8] not in whole_days]
