"""Reads the file of `mahasiswa --settings FILE`: lines NAME=value, as EnvironmentFile= of systemd has them."""

import os
import re
import shlex
from pathlib import Path

from mahasiswa.settings import DEFAULT_DATABASE_URL, SQLITE, SettingError, Settings
from mahasiswa.system.administrator import COMMAND_VARIABLE, process_user

# A comment, or a name with its value, in quotes or not.
LINE = re.compile(
    r"""[ \t]*(?:[#;].*|([A-Za-z_]\w*)[ \t]*=[ \t]*(['"]?)([^'"\0]*?)\2[ \t]*)?""", re.ASCII
)


def use_settings(file: Path) -> None:
    """Put the settings of a file into the environment; raise SettingError.

    A variable that the environment has already wins. A path that is relative in the file begins at
    the folder of the file, so that each command opens the same list.
    """
    file = file.resolve()
    given = _read(file)
    url = given.get("DATABASE_URL") or DEFAULT_DATABASE_URL
    if url.startswith(SQLITE):
        given["DATABASE_URL"] = f"{SQLITE}{file.parent / url.removeprefix(SQLITE)}"
    if backups := given.get("BACKUP_DIR"):
        given["BACKUP_DIR"] = str(file.parent / backups)
    command = f"mahasiswa --settings {shlex.quote(str(file))}"
    if file.stat().st_uid != os.geteuid():
        # The user of the service reads /etc/mahasiswa.env, which belongs to root.
        command = f"sudo -u {process_user()} {command}"
    given[COMMAND_VARIABLE] = command
    for name, value in given.items():
        os.environ.setdefault(name, value)


def _read(file: Path) -> dict[str, str]:
    text = file.read_text("utf-8-sig", "surrogateescape")
    # tempfile reads TMPDIR, and libpq reads PGPASSFILE and others.
    names = {"TMPDIR"} | {variable for variable, _ in Settings.declared()}
    given = {}
    for number, line in enumerate(text.split("\n"), 1):
        found = LINE.fullmatch(line)
        if not found:
            raise SettingError(f"{file}, line {number} must be NAME=value")
        name, _, value = found.groups()
        if name and name not in names and not name.startswith("PG"):
            raise SettingError(f"{file}, line {number}: {name} is no setting")
        if name:
            given[name] = value
    return given
