"""The main process: makes the database ready, listens on the port, starts the workers and restarts those that end."""

import errno
import fcntl
import logging
import math
import multiprocessing
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib import metadata
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from mahasiswa.logs import configure_logging, log_thread, priority, write_error
from mahasiswa.settings import Settings, SQLiteURL
from mahasiswa.store.engines import engine_of
from mahasiswa.store.store_errors import NeedsRepair, StoreError
from mahasiswa.system.parent import end_with

# Maximum time for the workers after SIGTERM; the service promises to end within 5 seconds.
SHUTDOWN_SECONDS = 4.5
# Minimum time between two starts of a worker, so that a failing one keeps no processor busy.
RESTART_SECONDS = 0.5
# Maximum of that time after failed forks. multiprocessing leaves four files open at each failed
# fork.
RESTART_MAX_SECONDS = 30.0
CHECK_SECONDS = 1.0  # time between two checks of the workers
SILENT_SECONDS = 30.0  # a worker whose event loop does not run for so long is killed and replaced
# Time between two checks of the newest back-up, and before a failed one is tried again.
BACKUP_CHECK_SECONDS = 3600.0
BACK_UP = (sys.executable, "-m", "mahasiswa", "backup", "--due")
BACKLOG = 4096  # maximum connections that wait to be accepted

# The kernel's send buffer of each connection. Linux doubles this number. Without it, the buffer
# grows to 4 MB for a client that does not read. A list of 3 MB is sent 20% faster with this buffer,
# because the buffer stays in the processor's cache.
SEND_BUFFER_BYTES = 512 * 1024
# Maximum bytes that the kernel takes before it can send them. The limit lets a worker see how fast
# a client reads.
UNSENT_MAX_BYTES = 64 * 1024

STANDARD_OUTPUT = 1
SOCKET_MODE = 0o660  # a client of the socket can give any name, so only the proxy may open it

NOTIFY_SOCKET = "NOTIFY_SOCKET"  # systemd's variable with the socket of Type=notify

log = logging.getLogger(__name__)

forking = multiprocessing.get_context("fork")  # a forked worker need not import everything again


# Exit codes of a start. After FAILED systemd tries again, because the fault may pass. After IN_VAIN
# it does not, because no restart heals the fault.
FAILED = 1
IN_VAIN = 2


class CannotStart(Exception):
    """The service cannot listen because of `cause`. The text is one line for the operator."""

    def __init__(self, settings: Settings, cause: OSError) -> None:
        port = "" if settings.socket else f" port {settings.port}"
        super().__init__(f"cannot listen on {settings.host}{port}: {cause.strerror}")
        self.cause = cause
        self.exit_code = IN_VAIN if isinstance(cause, PermissionError) else FAILED


def serve(settings: Settings) -> None:
    """Answer requests until SIGTERM or Ctrl-C; raise CannotStart."""
    # If the starter has ignored it, the kernel would not tell that a worker or a helper has ended.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    configure_logging(settings.log_level, settings.timezone)
    listener = bind(settings)
    # Until the workers start, Ctrl-C ends both processes without a traceback.
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
        raise CannotStart(settings, error) from error
    listener.settimeout(0)
    _raise_open_files()
    with log_thread():
        _Supervisor(settings, listener).run()


class _Supervisor:
    """Replaces workers that end, and starts back-ups, until a signal comes.

    It serves as soon as all workers accept requests. A print, a fork or a notification that fails
    neither ends nor blocks it.
    """

    def __init__(self, settings: Settings, listener: socket.socket) -> None:
        self._settings = settings
        self._listener = listener
        self._signalled = _wakened_by_signals()
        self._workers = [_Worker(settings, listener) for _ in range(settings.workers)]
        self._backups = _Backups(settings)
        self._is_serving = False
        self._checked_at = time.monotonic()

    def run(self) -> None:
        try:
            self._check_workers()
            while self._signalled not in wait(self._events(), CHECK_SECONDS):
                self._check_workers()
                if self._is_serving:
                    self._backups.check()
        except BaseException:
            log.exception("the main process has failed, so the service ends")
            raise
        finally:
            self._listener.close()
            self._backups.end()
            _end(worker.process for worker in self._workers)

    def _events(self) -> list[Any]:
        """The sources that become readable: after a signal, when a worker ends, or when its event loop runs."""
        sources: list[Any] = [self._signalled]
        for worker in self._workers:
            if worker.process:
                sources += worker.process.sentinel, worker.beats
        return sources

    def _check_workers(self) -> None:
        now = time.monotonic()
        # If this process itself was stopped, the workers probably were stopped too, so that time does not count.
        elapsed = min(now - self._checked_at, 2 * CHECK_SECONDS)
        self._checked_at = now
        for worker in self._workers:
            worker.check(now, elapsed)
        if not self._is_serving and all(worker.accepts for worker in self._workers):
            self._is_serving = True
            _notify_systemd()
            _say_where(self._settings)


class _Worker:
    """A worker process. It is absent until `start_at`, then it starts, and it accepts requests after its first beat."""

    def __init__(self, settings: Settings, listener: socket.socket) -> None:
        self._arguments = settings, listener, os.getpid()
        self.process: BaseProcess | None = None
        self.accepts = False
        self._start_at = self._silent_seconds = 0.0
        self._pause = RESTART_SECONDS  # minimum time from the next start to the one after it

    def check(self, now: float, elapsed: float) -> None:
        """Start the process if it is absent, and kill it if its event loop has not run for long.

        `elapsed` is the time since the last check, in seconds.
        """
        self._silent_seconds += elapsed
        if self.process is None:
            if now >= self._start_at:
                self._start(now)
        elif self.process.exitcode is not None:
            code = self.process.exitcode
            log.error("a worker ended with exit code %s; another one is started", code)
            self.process = None
            self.accepts = False
        elif self.beats.poll():
            with suppress(EOFError):  # if the worker has just ended
                self.beats.recv_bytes()
                self.accepts = True
            self._silent_seconds = 0.0
        elif self._silent_seconds > SILENT_SECONDS:
            log.error("a worker did not answer for %d seconds and is killed", SILENT_SECONDS)
            self.process.kill()
            self._silent_seconds = 0.0

    def _start(self, now: float) -> None:
        from mahasiswa.server import worker  # noqa: PLC0415 - slow to import, and not needed if the service cannot start

        self._start_at = now + self._pause
        self._silent_seconds = 0.0
        try:
            self.beats, sender = forking.Pipe(duplex=False)
            with sender:
                self.process = _started(worker.run, *self._arguments, sender)
            self._pause = RESTART_SECONDS
        except OSError as error:
            self._pause = min(2 * self._pause, RESTART_MAX_SECONDS)
            log.error("a worker could not be started: %s", error.strerror)  # noqa: TRY400 - it is tried again


class _Backups:
    """Starts `mahasiswa backup --due` at the start, and then each hour."""

    def __init__(self, settings: Settings) -> None:
        is_wanted = isinstance(settings.database_url, SQLiteURL) and settings.backup_dir
        self._start_at = 0.0 if is_wanted else math.inf
        self.process: subprocess.Popen[str] | None = None

    def check(self) -> None:
        """Start the command if it is time, and log what an ended one has said."""
        if self.process and self.process.poll() is not None:
            _log_backup(self.process)
            self.process = None
        now = time.monotonic()
        if now >= self._start_at and not self.process:
            self._start_at = now + BACKUP_CHECK_SECONDS
            try:
                self.process = subprocess.Popen(  # noqa: S603 - all of it is ours
                    BACK_UP,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    encoding="utf-8",
                    errors="backslashreplace",
                    process_group=0,  # Ctrl-C is for the service
                )
            except OSError as error:
                log.error("a back-up could not be started: %s", error.strerror)  # noqa: TRY400 - it is tried again

    def end(self) -> None:
        """Kill the command. The next back-up replaces its unfinished file."""
        if self.process:  # its folder may hang, so do not wait for its end
            self.process.kill()


def _log_backup(process: "subprocess.Popen[str]") -> None:
    said, errors = process.communicate()
    for line in said.splitlines():
        log.info("%s", line)
    if process.returncode:
        reason = errors.rstrip().rpartition("\n")[2].rpartition("mahasiswa: ")[2]
        log.error("the back-up failed: %s", reason or f"exit code {process.returncode}")


def _started(target: Callable[..., None], *arguments: object) -> BaseProcess:
    """Start a process that unblocks SIGTERM when it can handle it, so no signal is lost; raise OSError."""
    process = forking.Process(target=target, args=arguments)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    return process


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
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notifier:
            notifier.settimeout(0)
            # A name that begins with @ is in Linux's abstract namespace.
            is_abstract = address.startswith("@")
            name = f"\0{address[1:]}" if is_abstract else address
            notifier.sendto(b"READY=1", name)


def _say_where(settings: Settings) -> None:
    """Print at most four lines for the operator. A standard output that is closed or full stops nothing."""
    notices = f"mahasiswa {metadata.version('mahasiswa')}: {settings.base_url}/\n"
    notices += f"The records are in {settings.database_url}\n"
    if settings.backup_dir is None:
        notices += "No back-ups are made. To have them, set BACKUP_DIR to a folder.\n"
    if os.isatty(STANDARD_OUTPUT):
        notices += "Ctrl-C stops the service.\n"
    if sys.stdout:
        with suppress(OSError):
            os.write(STANDARD_OUTPUT, notices.encode(errors="backslashreplace"))


def _end(processes: Iterable[BaseProcess | None]) -> None:
    deadline = time.monotonic() + SHUTDOWN_SECONDS
    running = [process for process in processes if process]
    for process in running:
        process.terminate()
    for process in running:
        process.join(max(0.0, deadline - time.monotonic()))
        process.kill()
        process.join()


def bind(settings: Settings) -> socket.socket:
    """Bind without SO_REUSEPORT, so that a port that is taken is noticed before anything else; raise CannotStart."""
    host = settings.host
    try:
        if settings.socket:
            return _bind_file(Path(settings.socket))
        listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if host == "::":
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        if hasattr(socket, "TCP_NOTSENT_LOWAT"):
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_MAX_BYTES)
        listener.bind((host, settings.port))
    except OSError as error:
        raise CannotStart(settings, error) from error
    return listener


def _bind_file(path: Path) -> socket.socket:
    """Make a Unix socket, and remove the socket that a killed service has left; raise OSError."""
    # Another instance may have made its socket without listening yet, so a lock is needed. The lock
    # ends with this process.
    lock = os.open(f"{path}.lock", os.O_WRONLY | os.O_CREAT, 0o600)
    taken = OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise taken from None
    with (
        suppress(FileNotFoundError, ConnectionRefusedError),
        socket.socket(socket.AF_UNIX) as other,
    ):
        other.connect(str(path))
        raise taken
    if path.is_socket():
        path.unlink()
    listener = socket.socket(socket.AF_UNIX)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    listener.bind(str(path))
    path.chmod(SOCKET_MODE)
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
        engine = engine_of(settings.database_url)
        engine.migrate(settings.history_days, backups=settings.backup_dir)
        engine.count()  # fails if the list is damaged
        if settings.takes_foreign_forms and not os.isatty(
            STANDARD_OUTPUT
        ):  # a terminal shows four lines
            log.warning(
                "Forms of other sites are accepted. To refuse them, set SAME_ORIGIN_ONLY=1 and BASE_URL."
            )
    except StoreError as error:
        prefix = priority(logging.ERROR)
        write_error(prefix + f"mahasiswa: {error}".replace("\n", f"\n{prefix}"))
        sys.exit(IN_VAIN if isinstance(error, NeedsRepair) else FAILED)
