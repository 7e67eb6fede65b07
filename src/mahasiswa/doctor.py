"""Checks the settings, the database and the back-ups, and names each fault with its remedy."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from mahasiswa.settings import Settings, SQLiteURL
from mahasiswa.store import examine, examine_backup
from mahasiswa.store.findings import Finding, good, wrong

BACKUP_MAX_HOURS = 26
"""Maximum age of the newest back-up: a day, and room for a back-up that takes long."""


def diagnose(settings: Settings, environ: Mapping[str, str], backups: Path | None) -> Iterator[Finding]:
    """Check everything that can be checked while the service runs. `backups` is the folder of the back-ups."""
    misspelt = Settings.misspelt(environ)
    for name, setting in misspelt:
        yield wrong(f"{name} is not a setting and is ignored. If you mean {setting}, rename it.")
    if not misspelt:
        yield good(f"The settings can be used. People open {settings.base_url}/")
    yield from examine(settings.database_url, settings.workers)
    if backups:
        yield from _newest_backup(settings, backups)
    else:
        yield good("The back-ups were not checked. To check them: mahasiswa doctor --backup FOLDER")


def _newest_backup(settings: Settings, folder: Path) -> Iterator[Finding]:
    is_sqlite = isinstance(settings.database_url, SQLiteURL)
    pattern = "*.db" if is_sqlite else "*.dump"
    try:
        newest = max((file.stat().st_mtime, file) for file in folder.iterdir() if file.match(pattern))
    except ValueError:
        yield wrong(f"{folder} holds no back-up ({pattern}). Make one: see docs/operations.md, Back up")
        return
    except OSError as error:
        yield wrong(f"{folder} cannot be read: {error.strerror}.")
        return
    hours = (time.time() - newest[0]) / 3600
    age = f"The newest back-up, {newest[1]}, is {hours:.1f} hours old"
    if hours > BACKUP_MAX_HOURS:
        yield wrong(f"{age}. Find out why no newer one was made: systemctl status mahasiswa-backup.timer")
    else:
        yield good(f"{age}.")
    if is_sqlite:
        yield examine_backup(newest[1])
    else:
        yield good(f"Its contents were not checked. To check them: pg_restore --list {newest[1]}")
