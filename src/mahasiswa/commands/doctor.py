"""Checks the settings, the service, the database and its back-ups, and names each fault with its remedy."""

import http.client
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

from mahasiswa.settings import Settings
from mahasiswa.store.engines import engine_of
from mahasiswa.store.results import Finding, good, wrong
from mahasiswa.web.routes import HEALTH_PATH

ANSWER_SECONDS = 10.0  # maximum time for an answer of the service
TITLE = "Program Input Data Mahasiswa"  # the title of each page of the service (specification 1)


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
    restart = "Read its log, and restart it: systemctl restart mahasiswa"
    connection = http.client.HTTPConnection(settings.host, settings.port, timeout=ANSWER_SECONDS)
    host = urlsplit(settings.base_url).netloc
    try:
        if settings.socket:
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.settimeout(ANSWER_SECONDS)
            connection.sock.connect(settings.socket)
        connection.request("GET", settings.prefix + HEALTH_PATH, headers={"Host": host})
        answer = connection.getresponse()
        is_ours = TITLE in answer.read().decode(errors="replace")
    except (FileNotFoundError, ConnectionRefusedError):
        return good(f"The service does not run. Nothing listens on {place}.")
    except (OSError, http.client.HTTPException) as error:
        return wrong(f"The service does not answer on {place}: {error}. {restart}")
    finally:
        connection.close()
    if not is_ours:
        return wrong(f"Another program has {place}. End it, or change HOST or PORT.")
    if answer.status != 200:
        return wrong(f"The service answers {answer.status} on {place}. {restart}")
    return good(f"The service answers on {place}.")
