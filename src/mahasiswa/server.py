"""Running the application: Granian's main process, and what each of its workers does before it answers."""

import ctypes
import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any

from granian._granian import SocketHolder
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server.mp import MPServer
from starlette.types import ASGIApp

from mahasiswa.settings import DatabaseURL, Settings
from mahasiswa.store import migrate
from mahasiswa.store.errors import Unusable
from mahasiswa.web.app import create_app

SHUTDOWN_SECONDS = 4
"""How long workers may finish what is in flight; the service promises to end within 5 seconds."""

HEADER_SECONDS = 10
"""How long a client may take to send the head of a request, the first or the next."""

UNREAD_SECONDS = 30
"""How long a client may leave an answer unread."""

MAX_HEADERS = 64 * 1024
"""Bytes of a request's head."""

CONNECTIONS = 16_384
"""Connections of one worker at a time, those of stalled clients included."""

BACKLOG = 4096
"""Connections that wait to be accepted."""


class CannotStart(Exception):
    """The service cannot start here and now. The text is one line for the operator."""


def serve(settings: Settings) -> None:
    """Answer requests until SIGTERM or Ctrl-C; raise CannotStart."""
    listener = _listen(settings.host, settings.port)
    _migrate_in_child(settings.database_url)
    _raise_open_files()
    server = _Server(
        "mahasiswa",
        address=settings.host,
        port=settings.port,
        interface=Interfaces.ASGI,
        workers=settings.workers,
        http=HTTPModes.http1,
        websockets=False,
        backlog=BACKLOG,
        backpressure=CONNECTIONS,
        http1_settings=HTTP1Settings(header_read_timeout=HEADER_SECONDS * 1000, max_buffer_size=MAX_HEADERS),
        respawn_failed_workers=True,
        workers_kill_timeout=SHUTDOWN_SECONDS,
        log_level=LogLevels.warning,
        log_dictconfig=_logging(settings.log_level),
    )
    server.listener = listener
    server.on_startup(lambda: print(f"mahasiswa: {settings.base_url}/  (Ctrl-C stops it)", flush=True))  # noqa: T201
    server.serve(target_loader=partial(_load, settings, os.getpid()), wrap_loader=False)


class _Server(MPServer):
    """Granian on a socket of ours where the platform lets its workers inherit one."""

    listener: socket.socket

    def _init_shared_socket(self) -> None:
        if sys.platform == "linux":
            self._sso = self.listener
            holder = SocketHolder(self.listener.fileno(), False, BACKLOG)  # type: ignore[call-arg]  # noqa: FBT003
            self._shd = holder  # type: ignore[assignment]
        else:
            self.listener.close()
            super()._init_shared_socket()


def _listen(host: str, port: int) -> socket.socket:
    """Bind without SO_REUSEPORT, with which Granian would share a taken port silently; raise CannotStart."""
    try:
        listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        if sys.platform != "win32":  # there it would mean sharing the port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if sys.platform == "linux":
            # Accepted connections inherit it: one whose client stops reading is closed, not held forever.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNREAD_SECONDS * 1000)
        if host == "::":
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind((host, port))
        listener.listen(BACKLOG)
        listener.settimeout(0)
    except OSError as error:
        raise CannotStart(f"cannot listen on {host} port {port}: {error.strerror}") from error
    return listener


def _raise_open_files() -> None:
    """Allow as many open files as the system does: each connection is one."""
    if sys.platform != "win32":
        import resource  # noqa: PLC0415 - Windows has none

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _logging(level: str) -> dict[str, Any]:
    # Of what a line does not show, nothing need be found out: that takes half the time of a line.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None  # noqa: SLF001 - as the documentation of logging advises
    return {
        "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(message)s"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "stream": "ext://sys.stderr"}},
        "loggers": {
            "_granian": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
            # It warns of every body that a client has broken; the refusal has its own line.
            "python_multipart": {"handlers": ["stderr"], "level": "ERROR", "propagate": False},
            "mahasiswa": {"handlers": ["stderr"], "level": level.upper(), "propagate": False},
        },
    }


def _migrate_in_child(url: DatabaseURL) -> None:
    """Make the database ready in a process of its own: no handle of it may be open when the workers fork."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.Process(target=_report_migrate, args=(url, theirs))
    child.start()
    theirs.close()
    try:
        failure: str | None = ours.recv()
    except EOFError:
        failure = "the database could not be prepared"
    child.join()
    if failure:
        raise CannotStart(failure)


def _report_migrate(url: DatabaseURL, report: Connection) -> None:
    try:
        migrate(url)
    except Unusable as error:
        report.send(str(error))
    else:
        report.send(None)


def _load(settings: Settings, parent: int) -> ASGIApp:
    """Make the application, in a worker that ends with its parent."""
    _end_with(parent)
    if sys.platform != "win32":
        # Ctrl-C goes to every process of the terminal. The main one answers it by SIGTERM, so that what is in flight
        # is finished; a worker that is woken twice would be stuck.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
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
