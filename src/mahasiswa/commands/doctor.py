"""Checks the settings, the service, the database and its back-ups, and names each fault with its remedy."""

import http.client
import socket
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlsplit

from mahasiswa.settings import Settings
from mahasiswa.store.backup_folder import age_seconds, find_backups
from mahasiswa.store.engines import engine_of
from mahasiswa.store.results import Finding, good, wrong
from mahasiswa.system.administrator import typed
from mahasiswa.web.routes import HEALTH_PATH

ANSWER_SECONDS = 10.0  # maximum time for an answer of the service
# Maximum time for a back-up, in hours, after the newest one has the age of BACKUP_HOURS.
BACKUP_DELAY_HOURS = 2


def diagnose(settings: Settings) -> Iterator[Finding]:
    """Check everything that can be checked while the service runs."""
    yield _settings(settings)
    yield _service(settings)
    database, list_id = engine_of(settings.database_url).examine()
    yield database
    if list_id:
        yield _backups(settings, list_id)


def _settings(settings: Settings) -> Finding:
    if settings.takes_foreign_forms:
        fault = "Other sites can send forms through a visitor's browser"
        return wrong(f"{fault}. Set SAME_ORIGIN_ONLY=1, and BASE_URL to the address of the list.")
    return good(f"The settings can be used. People open {settings.base_url}/")


def _service(settings: Settings) -> Finding:
    place = settings.socket or f"port {settings.port}"
    host = {"Host": urlsplit(settings.base_url).netloc}
    connection = http.client.HTTPConnection(settings.host, settings.port, timeout=ANSWER_SECONDS)
    try:
        with closing(connection):
            if settings.socket:
                connection.sock = socket.socket(socket.AF_UNIX)
                connection.sock.settimeout(ANSWER_SECONDS)
                connection.sock.connect(settings.socket)
            connection.request("GET", settings.prefix + HEALTH_PATH, headers=host)
            answer: object = connection.getresponse().status
    except (FileNotFoundError, ConnectionRefusedError):
        return good(f"The service does not run. Nothing listens on {place}.")
    except (OSError, http.client.HTTPException) as error:
        answer = error
    if answer != 200:
        remedy = "Read the log of the service, and restart it: systemctl restart mahasiswa"
        fault = f"The service, or another program, answers wrongly on {place}: {answer}"
        return wrong(f"{fault}. {remedy}, or change HOST or PORT.")
    return good(f"The service answers on {place}.")


def _backups(settings: Settings, list_id: str) -> Finding:
    folder = settings.backup_dir
    if not folder:
        return wrong("No back-ups are made. Set BACKUP_DIR to a folder.")
    again = f"Make one now: {typed('backup')}"
    backups = find_backups(folder, list_id)
    if not backups:
        return wrong(f"{folder} holds no back-up. {again}")
    hours = age_seconds(backups[0]) / 3600
    text = f"The newest back-up, {backups[0]}, is {hours:.1f} hours old."
    if hours > settings.backup_hours + BACKUP_DELAY_HOURS:
        return wrong(f"{text} {again}")
    return good(text)
