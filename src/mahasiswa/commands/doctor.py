"""Checks the settings, the service, the database and its back-ups, and names each fault with its remedy."""

import http.client
import socket
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlsplit

from mahasiswa.settings import Settings
from mahasiswa.store.engines import engine_of
from mahasiswa.store.results import Finding, good, wrong
from mahasiswa.web.routes import HEALTH_PATH

ANSWER_SECONDS = 10.0  # maximum time for an answer of the service


def diagnose(settings: Settings) -> Iterator[Finding]:
    """Check everything that can be checked while the service runs."""
    yield _settings(settings)
    yield _service(settings)
    yield from engine_of(settings.database_url).examine(settings.backup_dir, settings.backup_hours)


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
