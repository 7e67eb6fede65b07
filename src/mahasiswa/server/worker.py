"""The service as uvicorn runs it: one process, or with WORKERS above 1 several that uvicorn starts and replaces."""

import asyncio
import faulthandler
import gc
import logging
import multiprocessing
import os
import resource
import signal
import socket
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from importlib import metadata
from threading import Timer

import uvicorn
from starlette.routing import Router
from starlette.types import Receive, Scope, Send
from uvicorn.supervisors import Multiprocess

from mahasiswa.logs import configure_logging, log_thread
from mahasiswa.server.http_protocol import HttpProtocol
from mahasiswa.server.listener import IN_VAIN, CannotStart, bind, listening
from mahasiswa.settings import Settings, SQLiteURL
from mahasiswa.sheets.stage import folder_of, remove_ended
from mahasiswa.store import Store
from mahasiswa.store.engines import engine_of
from mahasiswa.store.store_errors import NeedsRepair, StoreError
from mahasiswa.system.parent import end_with
from mahasiswa.web.app import create_app
from mahasiswa.web.middleware import Middleware
from mahasiswa.work import Busy, Slots, Threads

# Maximum time for the requests that run when SIGTERM comes, and then for the store to close. The service promises to
# end within 5 seconds.
GRACEFUL_SHUTDOWN_SECONDS = 3
CLOSING_SECONDS = 1.3
SILENT_SECONDS = 30.0  # a process whose event loop does not run for so long ends itself
BACKLOG = 4096  # maximum connections that wait to be accepted
# Connections of stalled clients count too. A request on a further connection gets 503.
MAX_CONNECTIONS = 16_384
# uvicorn calls `beat` each second if the wall clock shows more than this time since the last call. A
# clock that is set back must not delay a call.
BEAT_MIN_SECONDS = -(10**9)
START_SECONDS = 15  # a process that has not begun by then is replaced; uvicorn's 5 are too few on a slow machine
# Maximum time for which a computing thread keeps the GIL. The event loop waits for the GIL at each
# read.
SWITCH_SECONDS = 0.0005
# Number of new objects before a garbage collection of new objects, and number of these collections
# before one of older objects. Lower numbers make additions slower. With 10,000 and 10, one
# collection stops the event loop for too long.
GARBAGE_OBJECTS = 2_000
GARBAGE_ROUNDS = 5
# Number of those before a collection of all objects. Requests leave no garbage, so it finds little,
# but it looks at each form that waits for its last byte, and stops the event loop meanwhile.
GARBAGE_ROUNDS_OF_ALL = 100

HOUR_SECONDS = 3600.0
BACK_UP = (sys.executable, "-P", "-m", "mahasiswa", "backup", "--due")

STANDARD_OUTPUT = 1

# Errors whose traceback tells the operator nothing.
EXPECTED = (StoreError, Busy, OSError)

log = logging.getLogger(__name__)


def serve(settings: Settings) -> None:
    """Answer requests until SIGTERM or Ctrl-C; raise CannotStart or StoreError."""
    configure_logging(settings.log_level, settings.timezone)
    with listening(settings):
        listener = bind(settings)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until requests are accepted, without a traceback
    _make_ready(settings)
    with listening(settings):  # two programs may bind a port on which none listens yet
        # Until now, connections were refused, so that no client waits for the database.
        listener.listen(BACKLOG)
    # Each connection is an open file.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if settings.workers > 1:
        Processes(settings, listener).run()
        return
    # uvicorn raises it again at its end. An exception could break into the start of the event loop.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os._exit(0))
    uvicorn.Server(_config(settings)).run([listener])


def _config(settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        partial(Application, settings),
        factory=True,
        workers=settings.workers,
        http=HttpProtocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        limit_concurrency=MAX_CONNECTIONS + 1,  # uvicorn refuses the last one
        timeout_graceful_shutdown=GRACEFUL_SHUTDOWN_SECONDS,
        timeout_worker_healthcheck=START_SECONDS,
        timeout_notify=BEAT_MIN_SECONDS,
        callback_notify=beat,
    )


async def beat() -> None:
    """Arm the watchdog of a process, each second."""
    faulthandler.dump_traceback_later(SILENT_SECONDS, exit=True, file=sys.stderr or 2)


class Processes(Multiprocess):
    """Starts and replaces the processes, and says that the service is ready when all of them accept requests."""

    def __init__(self, settings: Settings, listener: socket.socket) -> None:
        hangup = signal.getsignal(signal.SIGHUP)
        super().__init__(_config(settings), [listener])
        # uvicorn would start all processes anew when the terminal is closed.
        signal.signal(signal.SIGHUP, hangup)
        self._settings: Settings | None = settings  # None when it was said

    def keep_subprocess_alive(self) -> None:
        super().keep_subprocess_alive()
        if self._settings and all(process.is_ready() for process in self.processes):
            _say_ready(self._settings)
            self._settings = None


class Application:
    """The ASGI application of one process: opens the store at its start, and closes it at its end.

    HttpProtocol gives each request to the middleware.
    """

    middleware: Middleware

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        router = Router(lifespan=lambda _: self._open())
        try:
            await router.lifespan(scope, receive, send)
        except Exception as error:
            bug = None if isinstance(error, EXPECTED) else error
            log.error("cannot start or end: %s", error, exc_info=bug)  # noqa: TRY400 - see EXPECTED

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[None]:
        if parent := multiprocessing.parent_process():
            end_with(parent.pid or 0)
            configure_logging(self._settings.log_level, self._settings.timezone)
        asyncio.get_running_loop().set_default_executor(Threads())
        with log_thread():
            slots = Slots()
            store = await engine_of(self._settings.database_url).open_store(slots)
            self.middleware = create_app(self._settings, store, slots)
            _tune()
            works: list[Callable[[], Awaitable[object]]] = [
                partial(_remove_ended, self._settings, store)
            ]
            if isinstance(self._settings.database_url, SQLiteURL) and self._settings.backup_dir:
                works.append(_back_up)
            tasks = [asyncio.create_task(repeat(work, HOUR_SECONDS)) for work in works]
            if not parent:
                _say_ready(self._settings)
            try:
                yield
            finally:
                # End the process if the store does not close in time, for example because a server
                # does not answer.
                timer = Timer(CLOSING_SECONDS, os._exit, [0])
                timer.daemon = True
                timer.start()
                for task in tasks:
                    task.cancel()
                await store.close()


def _tune() -> None:
    """Set up the interpreter for a process that lives long."""
    sys.setswitchinterval(SWITCH_SECONDS)
    # Exclude from garbage collection everything that lives until exit.
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_OBJECTS, GARBAGE_ROUNDS, GARBAGE_ROUNDS_OF_ALL)


async def repeat(work: Callable[[], Awaitable[object]], seconds: float) -> None:
    """Do work at once, and again in intervals. If it fails, log why."""
    while True:
        try:
            await work()
        except EXPECTED as error:
            log.warning("hourly work failed: %s", error)
        await asyncio.sleep(seconds)


async def _remove_ended(settings: Settings, store: Store) -> None:
    """Remove the uploads that have ended and the expired entries of the history, also if no record is changed."""
    await store.purge()
    await asyncio.to_thread(remove_ended, folder_of(settings.database_url))


async def _back_up() -> None:
    """Make a back-up if it is due, and log the output of the command. A lock in the folder lets only one process make it."""
    process = await asyncio.create_subprocess_exec(
        *BACK_UP, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, start_new_session=True
    )
    try:
        said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    lines = said.decode(errors="backslashreplace").splitlines()
    if process.returncode:
        log.error("the back-up failed (%d): %s", process.returncode, "".join(lines[-1:]))
        return
    for line in lines:
        log.info("%s", line)


def _make_ready(settings: Settings) -> None:
    """Make the database ready; raise StoreError, or CannotStart if a restart is in vain."""
    engine = engine_of(settings.database_url)
    try:
        engine.migrate(settings.history_days, backups=settings.backup_dir)
        engine.count()  # fails if the list is damaged
    except NeedsRepair as error:
        raise CannotStart(str(error), IN_VAIN) from error
    # A terminal shows only the lines of _say_ready.
    if settings.takes_foreign_forms and not os.isatty(STANDARD_OUTPUT):
        log.warning(
            "Forms of other sites are accepted. To refuse them, set SAME_ORIGIN_ONLY=1 and BASE_URL."
        )


def _say_ready(settings: Settings) -> None:
    """Tell systemd (Type=notify), and the operator in at most four lines. An output that is closed or full stops nothing."""
    if address := os.environ.get("NOTIFY_SOCKET"):
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notifier:
            notifier.settimeout(0)
            notifier.sendto(b"READY=1", address)
    notices = (
        f"mahasiswa {metadata.version('mahasiswa')}: {settings.base_url}/\n"
        f"The records are in {settings.database_url}\n"
    )
    if settings.backup_dir is None:
        notices += "No back-ups are made. To have them, set BACKUP_DIR to a folder.\n"
    if os.isatty(STANDARD_OUTPUT):
        notices += "Ctrl-C stops the service.\n"
    if sys.stdout:
        with suppress(OSError):
            os.write(STANDARD_OUTPUT, notices.encode(errors="backslashreplace"))
