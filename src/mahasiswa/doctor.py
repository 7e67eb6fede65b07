"""Checks the settings, the database and the back-ups, and names each fault with its remedy."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from mahasiswa import interrupt
from mahasiswa.settings import DatabaseURL, Settings
from mahasiswa.store.engines import backup_files, examine, examine_backup
from mahasiswa.store.findings import Finding, good, wrong

BACKUP_MAX_HOURS = 26
"""Maximum age of the newest back-up: a day, and room for a back-up that takes long."""

CLOCK_TOLERANCE_HOURS = 0.1
"""A back-up on another machine's disk has the time of that machine."""


def diagnose(settings: Settings, environ: Mapping[str, str], backups: Path | None) -> Iterator[Finding]:
    """Check everything that can be checked while the service runs. `backups` is the folder of the back-ups."""
    misspelt = Settings.misspelt(environ)
    for name, setting in misspelt:
        yield wrong(f"{name} is not a setting and is ignored. If you mean {setting}, rename it.")
    if not misspelt:
        yield good(f"The settings can be used. People open {settings.base_url}/")
    yield from examine(settings.database_url, interrupt.check)
    if backups:
        yield from _newest_backup(settings.database_url, backups)
    else:
        yield good("The back-ups were not checked. To check them: mahasiswa doctor --backup FOLDER")


def _newest_backup(url: DatabaseURL, folder: Path) -> Iterator[Finding]:
    try:
        made = {file: file.stat().st_mtime for file in backup_files(url, folder)}
    except OSError as error:
        yield wrong(f"{folder} cannot be read: {error.strerror}.")
        return
    if not made:
        yield wrong(f"{folder} holds no back-up. Make one: see docs/operations.md, Back up")
        return
    newest = max(made, key=made.__getitem__)
    hours = (time.time() - made[newest]) / 3600
    age = f"The newest back-up, {newest}, is {hours:.1f} hours old"
    if hours < -CLOCK_TOLERANCE_HOURS:
        yield wrong(f"{newest} was made later than now. Set the clock: timedatectl set-ntp true")
    elif hours > BACKUP_MAX_HOURS:
        yield wrong(f"{age}. Find out why no newer one was made: systemctl status mahasiswa-backup.timer")
    else:
        yield good(f"{age}.")
    yield examine_backup(url, newest, interrupt.check)
