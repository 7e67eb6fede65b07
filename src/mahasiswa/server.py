"""Running the application: Granian's main process, and what each of its workers does before it answers."""

import ctypes
import ctypes.util
import multiprocessing
import os
import signal
import socket
import sys
import threading
from functools import partial
from multiprocessing.connection import Connection, wait

from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server import Server
from starlette.types import ASGIApp

from mahasiswa.settings import DatabaseURL, Settings
from mahasiswa.store import Unusable, prepare
from mahasiswa.web.app import create_app

SHUTDOWN_SECONDS = 4
"""How long workers may finish what is in flight; the service promises to end within 5 seconds."""


class CannotStart(Exception):
    """The service cannot start here and now. The text is one line for the operator."""


def serve(settings: Settings) -> None:
    """Answer requests until SIGTERM or Ctrl-C; raise CannotStart."""
    _claim(settings.host, settings.port)
    _prepare_apart(settings.database_url)
    server = Server(
        "mahasiswa",
        address=settings.host,
        port=settings.port,
        interface=Interfaces.ASGI,
        workers=settings.workers,
        http=HTTPModes.http1,
        websockets=False,
        http1_settings=HTTP1Settings(header_read_timeout=10_000),
        respawn_failed_workers=True,
        workers_kill_timeout=SHUTDOWN_SECONDS,
        log_level=LogLevels.warning,
        log_dictconfig={"handlers": LOG_HANDLERS, "loggers": LOGGERS},
    )
    server.on_startup(lambda: print(f"mahasiswa: {settings.base_url}/  (Ctrl-C stops it)", flush=True))  # noqa: T201
    server.serve(target_loader=partial(_load, settings, os.getpid()), wrap_loader=False)


LOG_HANDLERS = {"console": {"class": "logging.StreamHandler", "formatter": "generic", "stream": "ext://sys.stderr"}}
LOGGERS = {
    "_granian": {"handlers": ["console"], "level": "WARNING", "propagate": False},
    "mahasiswa": {"handlers": ["console"], "level": "INFO", "propagate": False},
}


def _claim(host: str, port: int) -> None:
    """Raise CannotStart where the port is taken: Granian binds with SO_REUSEPORT and would share it silently."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family) as probe:
            if sys.platform != "win32":  # there it would mean sharing the port
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
            probe.listen()
    except OSError as error:
        raise CannotStart(f"cannot listen on {host} port {port}: {os.strerror(error.errno or 0)}") from error


def _prepare_apart(url: DatabaseURL) -> None:
    """Make the database ready in a process of its own: no handle of it may be open when the workers fork."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.Process(target=_report_prepare, args=(url, theirs))
    child.start()
    theirs.close()
    try:
        failure: str | None = ours.recv()
    except EOFError:
        failure = "the database could not be prepared"
    child.join()
    if failure:
        raise CannotStart(failure)


def _report_prepare(url: DatabaseURL, report: Connection) -> None:
    try:
        prepare(url)
    except Unusable as error:
        report.send(str(error))
    else:
        report.send(None)


def _load(settings: Settings, parent: int) -> ASGIApp:
    """Make the application, in a worker that ends with its parent."""
    _end_with(parent)
    return create_app(settings)


def _end_with(parent: int) -> None:
    """End this process at once when its parent is killed: left alone it would hold the port and answer from it."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
    elif process := multiprocessing.parent_process():

        def watch() -> None:
            wait([process.sentinel])
            os._exit(1)

        threading.Thread(target=watch, daemon=True).start()
