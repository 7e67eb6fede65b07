"""Checks the settings, the service, the database and the back-ups, and names each fault with its remedy."""

import errno
import http.client
import ipaddress
import os
import shlex
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime, tzinfo
from pathlib import Path
from urllib.parse import urlsplit

from mahasiswa.server.supervisor import CannotStart, bind
from mahasiswa.settings import Settings, SQLiteURL
from mahasiswa.store.backup_folder import read_outcome
from mahasiswa.store.engine import Engine
from mahasiswa.store.engines import engine_of
from mahasiswa.store.results import Finding, good, shrunk, wrong
from mahasiswa.store.store_errors import StoreError
from mahasiswa.system.administrator import process_user, typed
from mahasiswa.system.lookout import listed
from mahasiswa.web.routes import HEALTH_PATH

# Maximum time for a back-up after the newest one has the age of BACKUP_HOURS.
BACKUP_DELAY_HOURS = 2

ANSWER_SECONDS = 10.0  # maximum time for an answer of the service

NO_PORT = {  # for each error of the port its cause and its remedy
    errno.EADDRINUSE: ("Another program has the port", "End it, or change PORT"),
    errno.EADDRNOTAVAIL: (
        "This computer does not have the address of HOST",
        "Correct HOST, or connect the network",
    ),
    errno.EACCES: (
        "The user {user} may not use the port",
        "Set PORT to 1024 or more, behind a proxy",
    ),
}

TITLE = "Program Input Data Mahasiswa"  # the title of each page of the service (specification 1)


def diagnose(settings: Settings, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Check everything that can be checked while the service runs."""
    yield good(f"The settings can be used. People open {settings.base_url}/")
    # `mahasiswa-run` reads files that this user may not read. It passes one finding in each line.
    yield from map(wrong, environ.get("MAHASISWA_RUN_FOUND", "").splitlines())
    if settings.takes_foreign_forms:
        yield wrong(
            "Other sites can send forms through a visitor's browser. Set SAME_ORIGIN_ONLY=1."
        )
    yield from _proxies(settings)
    yield _port(settings, environ.get("MAHASISWA_RUN_STATE", ""))
    engine = engine_of(settings.database_url)
    folder = settings.backup_dir
    try:
        yield from engine.examine(folder)
        with suppress(OSError):  # of the folder, which `_backups` blames
            if folder and (doubt := engine.doubt(folder)):
                yield shrunk(doubt)
    except StoreError as error:
        yield wrong(_with_file(str(error), engine, folder))
    yield from _backups(settings, engine)


def _with_file(text: str, engine: Engine, folder: Path | None) -> str:
    """Name the newest sound back-up in a remedy, if there is one."""
    with suppress(OSError):
        for one in engine.backup_files(folder) if folder else ():
            if engine.examine_backup(one.file).is_good:
                return text.replace(" FILE", f" {shlex.quote(str(one.file))}")
    return text


def _proxies(settings: Settings) -> Iterator[Finding]:
    host = None if settings.socket else ipaddress.ip_address(settings.host)
    if host and host.is_loopback and not any(host in one for one in settings.trusted_proxies):
        fault = f"TRUSTED_PROXIES lacks {host}. With HOST={host} each proxy has that address"
        yield wrong(f"{fault}, so USER_HEADER and X-Forwarded-For are not believed. Add {host}.")
    if settings.user_header and not all(network.prefixlen for network in settings.trusted_proxies):
        yield wrong(
            "TRUSTED_PROXIES has every address, so anyone can give any name. Name the proxies alone."
        )


def _port(settings: Settings, state: str) -> Finding:
    """Find out whether the port is free, or whether the service answers on it. `state` is that of its unit."""
    if settings.socket:
        return _socket(settings, state)
    try:
        bind(settings).close()
    except CannotStart as error:
        cause, remedy = NO_PORT.get(
            error.cause.errno or 0, ("The port cannot be used", "Correct HOST and PORT")
        )
        fault = wrong(f"{cause.format(user=process_user())}: {error}. {remedy}.")
        is_here = error.cause.errno != errno.EADDRNOTAVAIL
        # An address such as `::`, which stands for all addresses, leads to this computer.
        connection = http.client.HTTPConnection(
            settings.host, settings.port, timeout=ANSWER_SECONDS
        )
        return _answer(connection, settings, state, fault) if is_here else fault
    return good(f"The service does not run. Port {settings.port} is free.")


def _socket(settings: Settings, state: str) -> Finding:
    """Find out whether the service answers on its Unix socket."""
    path = settings.socket
    connection = http.client.HTTPConnection("localhost")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.settimeout(ANSWER_SECONDS)
    try:
        connection.sock.connect(path)
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return good(f"The service does not run. Nothing listens on {path}.")
    except OSError as error:
        connection.close()
        return wrong(f"{path} cannot be opened: {error.strerror}. Correct HOST.")
    fault = wrong(f"Another program has {path}. End it, or change HOST.")
    return _answer(connection, settings, state, fault)


def _answer(
    connection: http.client.HTTPConnection, settings: Settings, state: str, fault: Finding
) -> Finding:
    """Ask the service at the port; return the fault if another program has it."""
    place = settings.socket or f"port {settings.port}"
    try:
        connection.request(
            "GET",
            settings.prefix + HEALTH_PATH,
            headers={"Host": urlsplit(settings.base_url).netloc},
        )
        answer = connection.getresponse()
        if TITLE not in answer.read().decode(errors="replace"):
            return fault
    except TimeoutError:
        silence = f"No answer on {place} within {ANSWER_SECONDS:g} s"
        return wrong(f"{silence}. If it is the service, run: systemctl restart mahasiswa")
    except (OSError, http.client.HTTPException):
        # A service that starts binds the port before it listens, and may upgrade a long list
        # in between.
        return good("The service is starting.") if state == "activating" else fault
    finally:
        connection.close()
    if answer.status != 200:
        return wrong(
            f"The service answers {answer.status} at /sehat. Read its log: journalctl -u mahasiswa"
        )
    return good(f"The service answers on {place}.")


def _backups(settings: Settings, engine: Engine) -> Iterator[Finding]:
    folder = settings.backup_dir
    if folder is None:
        yield wrong("No back-ups are made. Set BACKUP_DIR to a folder.")
        return
    if isinstance(settings.database_url, SQLiteURL):
        yield from _last_attempt(settings.database_url.address, folder, settings.timezone)
    try:
        yield from _folder(engine, folder)
        yield from _newest_backup(engine, folder, settings.backup_hours)
    except OSError as error:
        fault = f"The folder of the back-ups {folder} cannot be read: {error.strerror}"
        yield wrong(f"{fault}. {_folder_remedy(folder, str(error.strerror)) or 'Check its disk'}")


def _folder_remedy(folder: Path, problem: str) -> str:
    """What to do about an error of the folder of the back-ups, or nothing if the error does not tell it."""
    try:
        listed(folder)
    except OSError as error:
        if error.errno != errno.EACCES:
            other = "under systemd by mahasiswa-backup-folder FOLDER"
            return f"Connect its disk, or set BACKUP_DIR to another folder, {other}"
    # systemd protects a folder on another disk, for example.
    if os.strerror(errno.EROFS) in problem:
        return f"As root, run: mahasiswa-backup-folder {shlex.quote(str(folder))}"
    if os.strerror(errno.EACCES) in problem:
        return f"Give the user {process_user()} the rights on it"
    return ""


def _folder(engine: Engine, folder: Path) -> Iterator[Finding]:
    """Check the rights, the room and the clock of the folder of the back-ups; raise OSError."""
    for one in engine.backup_files(folder, from_future=True):
        fault = f"The time in the name {one.file} is in the future, so that back-up does not count"
        name = shlex.quote(str(one.file))
        yield wrong(f"{fault}. Correct the clock. If it is right, run: mv {name} {name}.kept")
    if any(one.file.stat().st_mode & 0o007 for one in engine.backup_files(folder)):
        remedy = f"Run: chmod -R o= {shlex.quote(str(folder))}"
        yield wrong(f"Every user of this computer has rights on back-ups. {remedy}")
    if lack := engine.lack_of_room(folder):
        yield wrong(f"The next back-up has no room: {lack}. Make room on that disk.")


def _newest_backup(engine: Engine, folder: Path, backup_hours: int) -> Iterator[Finding]:
    """Check the age of the newest back-up, and whether it can be restored; raise OSError."""
    newest = next(iter(engine.backup_files(folder)), None)
    if newest is None:
        if not engine.lack_of_room(folder):
            yield wrong(f"{folder} holds no back-up. Make one now: {engine.backup_command()}")
        return
    hours = (time.time() - newest.found_at()) / 3600
    age = f"The newest back-up, {newest.file}, is {hours:.1f} hours old"
    if hours > backup_hours + BACKUP_DELAY_HOURS:
        reason = "journalctl -u mahasiswa -p warning"
        yield wrong(f"{age}. Find out why no newer one was made: {reason}")
    else:
        yield good(f"{age}.")
    yield engine.examine_backup(newest.file)


def _last_attempt(database: Path, folder: Path, timezone: tzinfo) -> Iterator[Finding]:
    """Report the service's own last back-up.

    The service may be unable to write to a folder to which this command can write.
    """
    try:
        last = read_outcome(database)
    except OSError as error:
        fault = f"The outcome of the service's last back-up cannot be read: {error.strerror}"
        name = shlex.quote(str(error.filename))
        yield wrong(f"{fault}. As root, run: chown {process_user()}: {name}")
        return
    at = datetime.fromtimestamp(last.moment, timezone)
    if last.problem:
        fault = f"The service's last back-up failed at {at:%Y-%m-%d %H:%M}: {last.problem}"
        again = "The service tries again within an hour. At once: systemctl restart mahasiswa"
        yield wrong(". ".join(filter(None, (fault, again, _folder_remedy(folder, last.problem)))))
    elif last.moment:
        yield good(f"The service could write to the folder of the back-ups at {at:%Y-%m-%d %H:%M}.")
    tested = f"{datetime.fromtimestamp(last.tested, timezone):%Y-%m-%d %H:%M}"
    if last.test_problem:
        remedy = f"Make room on the disk, or make a new back-up: {typed('backup')}"
        fault = f"The test restore of {tested} failed: {last.test_problem}"
        yield wrong(f"{fault}. The service repeats it after a day. {remedy}")
    elif last.tested:
        yield good(f"The service has restored a back-up as a test at {tested}.")
