#!/usr/bin/python3 -I
"""Removes the service from this computer, and keeps its back-ups.

mahasiswa-uninstall [BACKUP]

It stops the service first. It removes records only if a back-up outside the removed folders can be
read and holds the same list and history at that moment: a new one, one that exists, or BACKUP. If
there is none, or a database cannot be read, nothing is removed, and the service runs again. If a
step fails, run it again.
"""

import fcntl
import hashlib
import os
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote

ROOT = Path(os.environ.get("DESTDIR", "/"))
RECORDS = ROOT / "var/lib/mahasiswa"
BACKUPS = ROOT / "var/lib/mahasiswa-backup"
SETTINGS = ROOT / "etc/mahasiswa.env"
UNITS = ROOT / "etc/systemd/system"
COMMANDS = ROOT / "usr/local/bin"
NGINX = ("etc/nginx/conf.d/mahasiswa.conf", "etc/nginx/mahasiswa.htpasswd")
REMOVED = (
    "srv/mahasiswa",
    "var/lib/mahasiswa",
    "etc/mahasiswa*",
    "etc/systemd/system/mahasiswa*",
    # Of `systemctl set-property`.
    "etc/systemd/system.control/mahasiswa*",
    "usr/local/share/man/man1/mahasiswa.1",
    "usr/local/share/bash-completion/completions/mahasiswa-run",
    "var/lib/systemd/timers/*mahasiswa*",
    *NGINX,
)
# Folders whose files go to root, because a later user may get the number of the removed one.
KEPT = (ROOT / "backup", ROOT / "tmp", BACKUPS)
SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
HEADER = b"SQLite format 3\0"
# Of a database, of a file that a restore has left, as mahasiswa.db.before-20261120T101700Z, and of their logs.
LEFTOVER = r"\.(before|damaged|newer)-\d{8}T\d{6}Z"
NAME_OF_LIST = re.compile(rf"\.(db|sqlite3?)({LEFTOVER}(-\d+)?)?$|-wal$")
TABLES = ("mahasiswa ORDER BY nim", "mahasiswa_history ORDER BY id")


class Failure(Exception):
    """A step that failed. The text is one line for the operator."""


def say(text: str) -> None:
    sys.stderr.write(f"mahasiswa-uninstall: {text}\n")


def fail(text: str) -> NoReturn:
    say(text)
    sys.exit(1)


def interrupt(*_: object) -> NoReturn:
    raise Failure("interrupted")


def finished(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - every word is ours
        words,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="surrogateescape",
        check=False,
    )


def run(*words: str | Path) -> None:
    done = finished(*words)
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
        raise Failure(f"{' '.join(map(str, words))} ended with {done.returncode}")


def units() -> Sequence[str]:
    """Return the units that can be stopped: all but the templates."""
    found = [*UNITS.glob("mahasiswa*.timer"), *UNITS.glob("mahasiswa*.service")]
    return [unit.name for unit in found if "@" not in unit.name]


def is_database(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(len(HEADER)) == HEADER


def databases(folder: Path, pattern: str) -> Sequence[Path]:
    """Return the SQLite files in a folder, newest first."""
    found = [file for file in folder.glob(pattern) if file.is_file() and is_database(file)]
    return sorted(found, key=lambda file: file.stat().st_mtime, reverse=True)


def digest(file: Path) -> str | None:
    """Return a digest of a list and its history; None if there is none; raise sqlite3.Error."""
    # Without a log no other program has the file open. A log can be read only with a file beside it.
    has_log = Path(f"{file}-wal").exists()
    name = f"file:{quote(str(file))}?mode=ro{'' if has_log else '&immutable=1'}"
    hashed = hashlib.sha256()
    is_empty = True
    with closing(sqlite3.connect(name, uri=True)) as db:
        db.text_factory = bytes
        (result,) = db.execute("PRAGMA integrity_check(1)").fetchone()
        if result != b"ok":
            raise sqlite3.DatabaseError(os.fsdecode(result))
        names = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
        for table in TABLES:
            if table.split()[0].encode() in names:
                for row in db.execute(f"SELECT * FROM {table}"):  # noqa: S608 - a constant
                    hashed.update(repr(row).encode())
                    is_empty = False
                hashed.update(b"\n")
    return None if is_empty else hashed.hexdigest()


def is_list(file: Path) -> bool:
    """Return whether a file is a database, or has the name of one, or is the log of one that cannot be read."""
    if not file.is_file() or not file.stat().st_size:
        return False
    database = Path(str(file).removesuffix("-wal"))
    if database != file and database.is_file() and is_database(database):
        return False
    return is_database(file) or bool(NAME_OF_LIST.search(file.name))


def lists() -> Iterator[tuple[Path, str]]:
    """Yield each list that would be removed, and its digest; raise Failure if one cannot be read."""
    for file in [*RECORDS.glob("**/*"), *(ROOT / "srv/mahasiswa").glob("**/*")]:
        # Of the version's own tests. In any other folder `make run` may have begun a list.
        if file.match("tests/store/version_1/mahasiswa.db") or not is_list(file):
            continue
        try:
            found = digest(file)
        except sqlite3.Error as error:
            raise Failure(f"{file} cannot be read: {error}. Move it to another folder") from error
        if found:
            yield file, found


def backup_of(wanted: str, folders: Sequence[Path]) -> Path | None:
    """Return a back-up with this digest that is in one of the folders at this moment."""
    for folder in folders:
        for file in databases(folder, "*"):
            with suppress(sqlite3.Error):
                if digest(file) == wanted:
                    return file
    return None


def is_leftover(file: Path) -> bool:
    return bool(re.search(LEFTOVER, file.name))


def folders_of_backups(files: Sequence[str]) -> Sequence[Path]:
    """Return the folders with back-ups, also those of these files; those that are removed do not count."""
    named = finished("systemctl", "show", "--property=Environment", "--value", "mahasiswa").stdout
    settings = SETTINGS.read_text("utf-8", "replace") if SETTINGS.exists() else ""
    found = []
    for line in (*shlex.split(named), *settings.splitlines()):
        name, _, value = line.partition("=")
        # If systemd reads a line in another way, only an identical back-up in the folder counts.
        if name.strip() == "BACKUP_DIR" and (folder := value.strip(" \t\"'")):
            found.append(Path(folder))
    found += [Path(file).resolve().parent for file in files]
    removed = (RECORDS.resolve(), (ROOT / "srv/mahasiswa").resolve())
    folders = dict.fromkeys(folder.resolve() for folder in [BACKUPS, *found] if folder.is_dir())
    return [folder for folder in folders if not any(map(folder.is_relative_to, removed))]


def prove(given: Sequence[str]) -> tuple[Sequence[Path], Sequence[Path]]:
    """Look for a back-up of each list, and say where it is; raise Failure.

    Return the folders of back-ups, and the files to be kept.
    """
    done = finished("mahasiswa-run", "backup")
    if "database: postgresql:" in done.stderr:
        say("the records are in PostgreSQL, and stay there.")
    # Its last line is `FILE: 28672 bytes, verified`. The folder may be known to the settings file alone.
    made = done.stdout.rstrip().rpartition("\n")[2].rpartition(": ")[0]
    folders = folders_of_backups([*given, *filter(None, [made])])
    kept = []
    for file, wanted in lists():
        if backup := backup_of(wanted, folders):
            say(f"the records of {file} are in {backup}.")
        elif is_leftover(file):
            kept.append(file)
        else:
            sys.stderr.write(done.stderr)
            raise Failure(f"no back-up outside the removed folders holds the records of {file}")
    return folders, kept


def stop(given: Sequence[str]) -> tuple[Sequence[Path], Sequence[Path]]:
    """Stop the service, and return the folders of back-ups and files to be kept; raise Failure."""
    active = [unit for unit in units() if finished("systemctl", "is-active", unit).returncode == 0]
    try:
        for unit in units():
            run("systemctl", "stop", unit)
        return prove(given)
    except (Failure, OSError) as error:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        for unit in active:
            finished("systemctl", "start", unit)
        raise Failure(f"{error}. Nothing was removed") from error


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def keep(leftover: Path) -> None:
    """Move a file that a restore has left to the back-ups, with its log first: the next run moves what stays."""
    for file in (Path(f"{leftover}-wal"), leftover):
        if file.exists():
            shutil.move(file, BACKUPS / file.name)
    say(f"{leftover} is now in {BACKUPS}.")


def uninstall(folders: Sequence[Path], kept: Sequence[Path]) -> None:
    """Remove everything but the back-ups; raise Failure and OSError. It may be repeated."""
    BACKUPS.mkdir(mode=0o700, exist_ok=True)
    for file in kept:
        keep(file)
    for unit in units():
        run("systemctl", "disable", unit)
    has_user = finished("id", "mahasiswa").returncode == 0
    for folder in dict.fromkeys([*KEPT, *folders]):
        if has_user and folder.exists():
            run("chown", "-Rh", "--from=mahasiswa", "root:", folder)
    has_site = any((ROOT / name).exists() for name in NGINX)
    for pattern in REMOVED:
        for path in ROOT.glob(pattern):
            remove(path)
    run("systemctl", "daemon-reload")
    if has_site:
        run("systemctl", "restart", "nginx")
    if has_user:
        # A group that has a member, as nginx, would stay. It is no member if there is no nginx.
        finished("deluser", "--quiet", "www-data", "mahasiswa")
        run("deluser", "--quiet", "mahasiswa")
    # This command is the last one, so that it can be run again.
    commands = COMMANDS.glob("mahasiswa-*")
    for command in sorted(commands, key=lambda path: path.name == "mahasiswa-uninstall"):
        remove(command)
    say(f"the service is removed. The back-ups in {BACKUPS} belong to root.")


def main() -> None:
    for number in SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:  # as by nohup
            signal.signal(number, interrupt)
    if not os.access(UNITS, os.W_OK):
        fail("this user may not remove units. Run it as root.")
    try:
        lock = os.open(ROOT / "srv/mahasiswa", os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        fail("mahasiswa-upgrade runs. Wait for its end.")
    except FileNotFoundError:
        pass
    try:
        uninstall(*stop(sys.argv[1:]))
    except (Failure, OSError) as error:
        fail(f"{error}. Then run mahasiswa-uninstall again.")


if __name__ == "__main__":
    main()
