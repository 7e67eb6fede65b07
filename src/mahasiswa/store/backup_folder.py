"""The back-ups in a folder: their names, the age of the newest, and how long each is kept."""

import os
import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

ALL_KEPT_SECONDS = 2 * 24 * 3600  # maximum age up to which every back-up is kept
DAILY_KEPT_SECONDS = 60 * 24 * 3600  # maximum age up to which the last back-up of each day is kept

CLOCK_TOLERANCE_SECONDS = 360
"""Maximum time by which a back-up may be newer than now. A later one was made with a wrong clock, and does not count."""


def free_name(folder: Path, prefix: str, suffix: str = "") -> Path:
    """A name that no file has, with the time now in UTC, and a counter if two come within a second."""
    for number in count(1):
        name = f"{prefix}{datetime.now(UTC):%Y%m%dT%H%M%SZ}{f'-{number}' if number > 1 else ''}{suffix}"
        if not os.path.lexists(folder / name):
            break
    return folder / name


def find_backups(folder: Path, stem: str, suffix: str) -> Sequence[Path]:
    """The back-ups with such names as `mahasiswa-20261120T101700Z.db`, newest first; raise OSError.

    The database itself never has such a name.
    """
    pattern = re.compile(rf"{re.escape(stem)}-\d{{8}}T\d{{6}}Z(-\d+)?{re.escape(suffix)}")
    latest = time.time() + CLOCK_TOLERANCE_SECONDS
    times = {file: file.stat().st_mtime for file in folder.iterdir() if pattern.fullmatch(file.name)}
    return sorted((file for file in times if times[file] <= latest), key=times.__getitem__, reverse=True)


def age_seconds(file: Path) -> float:
    """The time since a back-up was made, or since a later back-up found it unchanged."""
    return max(0.0, time.time() - file.stat().st_mtime)


def expire(newest_first: Sequence[Path]) -> None:
    """Remove old back-ups: all are kept for two days, the last one of each day for 60 days, and the newest for ever."""
    days: set[float] = set()
    for file in newest_first[1:]:
        age, day = age_seconds(file), file.stat().st_mtime // (24 * 3600)
        if age > DAILY_KEPT_SECONDS or (age > ALL_KEPT_SECONDS and day in days):
            file.unlink()
        elif age > ALL_KEPT_SECONDS:
            days.add(day)
