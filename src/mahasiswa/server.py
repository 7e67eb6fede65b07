"""The main process: makes the database ready, listens on the port, starts the workers and restarts those that end."""

import logging
import math
import multiprocessing
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import metadata
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import Any, cast

from mahasiswa.logs import configure_logging, priority
from mahasiswa.parent import end_with
from mahasiswa.settings import Settings, SQLiteURL
from mahasiswa.store.engines import engine_of
from mahasiswa.store.store_errors import NeedsRepair, StoreError

# Maximum time for the workers after SIGTERM; the service promises to end within 5 seconds.
SHUTDOWN_SECONDS = 4.5
# Minimum time between two starts of a worker, so that a failing one keeps no processor busy.
RESTART_SECONDS = 0.5
CHECK_SECONDS = 1.0  # time between two checks of the workers
SILENT_SECONDS = 30.0  # a worker whose event loop does not run for so long is killed and replaced
# Time between two checks of the newest back-up, and before a failed one is tried again.
BACKUP_CHECK_SECONDS = 3600.0
BACKLOG = 4096  # maximum connections that wait to be accepted

# The kernel's buffer of each connection, which Linux doubles. By itself it grows to 4 MB for a client that does not read.
# A list of 3 MB is sent 20% faster with this buffer, because it stays in the processor's cache.
SEND_BUFFER_BYTES = 512 * 1024
# That the kernel takes before it can send them, so a worker sees how fast a client reads.
UNSENT_MAX_BYTES = 64 * 1024

NOTIFY_SOCKET = "NOTIFY_SOCKET"  # systemd's variable with the socket of Type=notify

log = logging.getLogger(__name__)

forking = multiprocessing.get_context("fork")  # a forked worker need not import everything again


FAILED, IN_VAIN = 1, 2
"""Exit codes of a start: for a fault that may pass, so systemd tries again, and for one that no restart heals."""


class CannotStart(Exception):
    """The service cannot listen on its port because of `cause`. The text is one line for the operator."""

    def __init__(self, host: str, port: int, cause: OSError) -> None:
        super().__init__(f"cannot listen on {host} port {port}: {cause.strerror}")
        self.cause = cause
        self.exit_code = IN_VAIN if isinstance(cause, PermissionError) else FAILED


def serve(settings: Settings) -> None:
    """Answer requests until SIGTERM or Ctrl-C; raise CannotStart."""
    configure_logging(settings.log_level, settings.timezone)
    for notice in Settings.misspelt(os.environ):
        log.warning("%s", notice)
    listener = bind(settings.host, settings.port)
    # Until the workers start, it ends both processes without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    making_ready = forking.Process(target=_make_ready, args=(settings, os.getpid()))
    making_ready.start()
    making_ready.join()
    if making_ready.exitcode:  # the process has printed the reason, unless a signal has ended it
        sys.exit(max(FAILED, making_ready.exitcode))
    try:
        # Until now, connections were refused, so that no client waits for the database.
        listener.listen(BACKLOG)
    except OSError as error:  # two programs may bind a port on which none listens yet
        raise CannotStart(settings.host, settings.port, error) from error
    listener.settimeout(0)
    _raise_open_files()
    signalled = _wakened_by_signals()
    workers = [_Worker(settings, listener) for _ in range(settings.workers)]
    backups = _Backups(settings)
    for index in _replaceable(signalled, workers, settings, backups):
        workers[index] = _Worker(settings, listener)
    listener.close()
    _end([*(worker.process for worker in workers), *backups.running])


class _Worker:
    """A worker process, and the time of its last sign of life."""

    def __init__(self, settings: Settings, listener: socket.socket) -> None:
        from mahasiswa import worker  # noqa: PLC0415 - slow to import, and not needed if the service cannot start

        self.beats, sender = forking.Pipe(duplex=False)
        self.process = forking.Process(
            target=worker.run, args=(settings, listener, os.getpid(), sender)
        )
        _start(self.process)
        sender.close()
        self.accepts = False
        self.beat_at = time.monotonic()


class _Backups:
    """Starts a process that makes a back-up if the newest one is old enough: at the start, and then every hour."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._check_at = (
            0.0
            if settings.backup_dir and isinstance(settings.database_url, SQLiteURL)
            else math.inf
        )
        self.running: list[BaseProcess] = []

    def check(self) -> None:
        """Start the process if it is time, and if the last one has ended."""
        if time.monotonic() > self._check_at and not any(
            process.is_alive() for process in self.running
        ):
            self._check_at = time.monotonic() + BACKUP_CHECK_SECONDS
            self.running = [forking.Process(target=_back_up, args=(self._settings, os.getpid()))]
            _start(self.running[0])


def _start(process: BaseProcess) -> None:
    """Start a process that unblocks SIGTERM when it can handle it, so no signal is lost."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    process.start()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def _back_up(settings: Settings, parent: int) -> None:
    end_with(parent)
    signal.set_wakeup_fd(-1)  # inherited from the main process, as its handlers are
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # removes the unfinished file
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    from mahasiswa.store.sqlite.keeping import keep_backups  # noqa: PLC0415 - PostgreSQL does not need it

    used = cast("Any", settings)  # with an SQLite file and a folder, see _Backups
    max_age = settings.backup_hours * 3600 - BACKUP_CHECK_SECONDS / 2
    try:
        keep_backups(used.database_url.address, used.backup_dir, max_age)
    except OSError as error:
        log.error("the outcome of the back-up could not be noted: %s", error.strerror)  # noqa: TRY400 - a traceback tells the operator nothing


def _wakened_by_signals() -> socket.socket:
    """A socket that becomes readable after SIGTERM, Ctrl-C, or SIGHUP, which systemd sends when it rotates logs."""
    signalled, wake = socket.socketpair()
    wake.settimeout(0)
    signal.set_wakeup_fd(wake.detach())
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)  # the wake-up is enough
    if os.environ.get(NOTIFY_SOCKET):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    elif signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # as by nohup
        signal.signal(signal.SIGHUP, lambda *_: None)
    return signalled


def _notify_systemd() -> None:
    """Tell systemd that the service is ready (Type=notify)."""
    if address := os.environ.get(NOTIFY_SOCKET):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notifier:
            # A name that begins with @ is in Linux's abstract namespace.
            notifier.sendto(b"READY=1", f"\0{address[1:]}" if address.startswith("@") else address)


def _replaceable(
    signalled: socket.socket, workers: Sequence[_Worker], settings: Settings, backups: _Backups
) -> Iterator[int]:
    """Yield the index of each worker that ended, until a signal comes. Print the address when all workers accept."""
    is_announced = False
    now = time.monotonic()
    # They become readable when a worker ends, or when its event loop runs.
    while signalled not in (
        ready := wait(
            [signalled, *(w.process.sentinel for w in workers), *(w.beats for w in workers)],
            CHECK_SECONDS,
        )
    ):
        before, now = now, time.monotonic()
        for index, worker in enumerate(workers):
            if worker.beats in ready:
                with suppress(EOFError):  # if the worker has just ended
                    worker.beats.recv_bytes()
                    worker.accepts = True
                worker.beat_at = now
            elif now - before > SILENT_SECONDS / 2:  # this process itself was stopped
                worker.beat_at = now
            elif now - worker.beat_at > SILENT_SECONDS:
                log.error("a worker did not answer for %d seconds and is killed", SILENT_SECONDS)
                worker.process.kill()
                worker.beat_at = now
            if worker.process.exitcode is not None:
                log.error(
                    "a worker ended with exit code %s; another one is started",
                    worker.process.exitcode,
                )
                wait([signalled], RESTART_SECONDS)
                yield index
        if not is_announced and all(worker.accepts for worker in workers):
            is_announced = True
            _notify_systemd()
            for notice in _notices(settings, in_terminal=sys.stdout.isatty()):
                print(notice, flush=True)  # noqa: T201
        if is_announced:
            backups.check()


def _notices(settings: Settings, *, in_terminal: bool) -> Iterator[str]:
    """The lines for the operator at the start; a terminal gets at most four."""
    yield f"mahasiswa {metadata.version('mahasiswa')}: {settings.base_url}/"
    yield f"The records are in {settings.database_url}"
    if settings.backup_dir is None:
        yield "No back-ups are made. To have them, set BACKUP_DIR to a folder."
    if in_terminal:
        yield "Ctrl-C stops the service."


def _end(workers: Sequence[BaseProcess]) -> None:
    deadline = time.monotonic() + SHUTDOWN_SECONDS
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.join(max(0.0, deadline - time.monotonic()))
        worker.kill()
        worker.join()


def bind(host: str, port: int) -> socket.socket:
    """Bind without SO_REUSEPORT, so that a port that is taken is noticed before anything else; raise CannotStart."""
    try:
        listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if host == "::":
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        if hasattr(socket, "TCP_NOTSENT_LOWAT"):
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_MAX_BYTES)
        listener.bind((host, port))
    except OSError as error:
        raise CannotStart(host, port, error) from error
    return listener


def _raise_open_files() -> None:
    """Raise the limit of open files to the system's maximum, because each connection is an open file."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError):  # macOS refuses an unlimited number
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _make_ready(settings: Settings, parent: int) -> None:
    """Run in a process of its own, because no handle of SQLite may be open when the workers are forked."""
    end_with(parent)
    try:
        engine_of(settings.database_url).migrate(settings.history_days, backups=settings.backup_dir)
        # Without the folder of the back-ups: the start does not wait for it, and the first back-up reports it.
        for finding in engine_of(settings.database_url).examine(None, quick=True):
            if not finding.is_good:
                log.error("%s", finding.text)
        if settings.takes_foreign_forms and not sys.stdout.isatty():  # a terminal shows four lines
            log.warning(
                "Forms of other sites are accepted. To refuse them, set SAME_ORIGIN_ONLY=1 and BASE_URL."
            )
    except StoreError as error:
        print(f"{priority(logging.ERROR)}mahasiswa: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(IN_VAIN if isinstance(error, NeedsRepair) else FAILED)
