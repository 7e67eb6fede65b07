"""The main process: listens on the port, makes the database ready, starts the workers and restarts those that end."""

import logging
import multiprocessing
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkContext, SpawnContext
from multiprocessing.process import BaseProcess

from mahasiswa.parent import end_with
from mahasiswa.settings import Settings
from mahasiswa.store import migrate
from mahasiswa.store.errors import Unusable

SHUTDOWN_SECONDS = 4.5
"""Maximum time for the workers after SIGTERM. The service promises to end within 5 seconds."""

RESTART_SECONDS = 0.5
"""Minimum time between two starts of a worker, so that a failing worker does not keep a processor busy."""

BACKLOG = 4096
"""Maximum connections that wait to be accepted."""

SEND_BUFFER_BYTES = 512 * 1024
"""The kernel's buffer of each connection, which Linux doubles. By itself it grows to 4 MB for a client that does not read.
A list of 3 MB is sent 20% faster with this buffer, because it stays in the processor's cache."""

log = logging.getLogger(__name__)


class CannotStart(Exception):
    """The service cannot start. The text is one line for the operator."""


def serve(settings: Settings) -> None:
    """Answer requests until SIGTERM or Ctrl-C; raise CannotStart."""
    listener = _listen(settings.host, settings.port)
    # A forked worker need not import everything again. Only on Linux is a fork safe.
    context: ForkContext | SpawnContext
    context = multiprocessing.get_context("fork") if sys.platform == "linux" else multiprocessing.get_context("spawn")
    _migrate_in_child(context, settings)
    _raise_open_files()
    from mahasiswa import worker  # noqa: PLC0415 - slow to import, and of no use if the service cannot start

    worker.configure_logging(settings.log_level)

    def start() -> BaseProcess:
        process = context.Process(target=worker.run, args=(settings, listener, os.getpid()))
        process.start()
        return process

    signalled = _wakened_by_signals()
    workers = [start() for _ in range(settings.workers)]
    print(f"mahasiswa {metadata.version('mahasiswa')}: {settings.base_url}/  (Ctrl-C stops it)", flush=True)  # noqa: T201
    _restart_until(signalled, workers, start)
    listener.close()
    _end(workers)


def _wakened_by_signals() -> socket.socket:
    """Return a socket that becomes readable after SIGTERM, after Ctrl-C, or when the terminal is closed."""
    signalled, wake = socket.socketpair()
    wake.settimeout(0)
    signal.set_wakeup_fd(wake.detach())
    for number in (signal.SIGTERM, signal.SIGINT, *([] if sys.platform == "win32" else [signal.SIGHUP])):
        signal.signal(number, lambda *_: None)  # the wake-up is enough
    return signalled


def _restart_until(signalled: socket.socket, workers: list[BaseProcess], start: Callable[[], BaseProcess]) -> None:
    while signalled not in wait([signalled, *(worker.sentinel for worker in workers)]):
        for index, worker in enumerate(workers):
            if worker.exitcode is not None:
                log.error("a worker ended with exit code %s; another one is started", worker.exitcode)
                wait([signalled], RESTART_SECONDS)
                workers[index] = start()


def _end(workers: Sequence[BaseProcess]) -> None:
    deadline = time.monotonic() + SHUTDOWN_SECONDS
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.join(max(0.0, deadline - time.monotonic()))
        worker.kill()
        worker.join()


def _listen(host: str, port: int) -> socket.socket:
    """Bind without SO_REUSEPORT, so that a port that is taken is noticed; raise CannotStart."""
    try:
        listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        if sys.platform != "win32":  # on Windows, SO_REUSEADDR would share the port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if host == "::":
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        listener.bind((host, port))
        listener.listen(BACKLOG)
        listener.settimeout(0)
    except OSError as error:
        raise CannotStart(f"cannot listen on {host} port {port}: {error.strerror}") from error
    return listener


def _raise_open_files() -> None:
    """Raise the limit of open files to the system's maximum, because each connection is an open file."""
    if sys.platform != "win32":
        import resource  # noqa: PLC0415 - Windows has no such module

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except ValueError:  # macOS refuses an unlimited number
            log.debug("the limit of open files stays at %d", soft)


def _migrate_in_child(context: ForkContext | SpawnContext, settings: Settings) -> None:
    """Make the database ready in a process of its own: no handle of SQLite may be open when the workers are forked."""
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_report_migrate, args=(settings, sender, os.getpid()))
    child.start()
    sender.close()
    try:
        failure: str | None = receiver.recv()
    except EOFError:
        failure = "the database could not be made ready"
    child.join()
    if failure:
        raise CannotStart(failure)


def _report_migrate(settings: Settings, report: "Connection[str | None, None]", parent: int) -> None:
    end_with(parent)
    try:
        if warning := migrate(settings.database_url, settings.history_days):
            log.warning(warning)
    except Unusable as error:
        report.send(str(error))
    else:
        report.send(None)
