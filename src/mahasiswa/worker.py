"""A worker process: opens the store and answers requests with uvicorn until SIGTERM."""

import asyncio
import gc
import logging
import logging.config
import signal
import socket
import sys
import time
from collections.abc import Callable

import uvicorn

from mahasiswa.http_protocol import HttpProtocol
from mahasiswa.parent import end_with
from mahasiswa.settings import Settings
from mahasiswa.store import Store, open_store
from mahasiswa.store.errors import StoreError
from mahasiswa.store.history import PURGE_SECONDS
from mahasiswa.web.app import create_app
from mahasiswa.work import Busy, Limits

GRACEFUL_SHUTDOWN_SECONDS = 3
"""Maximum time for the requests that run when SIGTERM comes."""

MAX_CONNECTIONS = 16_384
"""Maximum connections at a time, those of stalled clients included. Requests on further ones are answered 503."""

NO_TIMEOUT_SECONDS = 10**6
"""Value that disables uvicorn's timer of idle connections, because HttpProtocol has its own deadlines."""

log = logging.getLogger(__name__)


def run(settings: Settings, listener: socket.socket, parent: int) -> None:
    """Answer requests that come in on `listener`; end when the process `parent` ends."""
    end_with(parent)
    signal.set_wakeup_fd(-1)  # inherited from the main process
    # uvicorn raises SIGTERM again at its end. It must not end this process, because the store is closed after that.
    signal.signal(signal.SIGTERM, lambda *_: None)
    if sys.platform != "win32":
        # A terminal sends SIGINT and SIGHUP to all of its processes, and then the main process sends SIGTERM to the
        # workers. A second signal would make them drop running requests.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    configure_logging(settings.log_level)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(settings, listener))


async def _serve(settings: Settings, listener: socket.socket) -> None:
    limits = Limits()
    store = await open_store(settings.database_url, limits.slots)
    config = uvicorn.Config(
        create_app(settings, store, limits),
        http=HttpProtocol,
        ws="none",
        interface="asgi3",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=NO_TIMEOUT_SECONDS,
        timeout_graceful_shutdown=GRACEFUL_SHUTDOWN_SECONDS,
    )
    # Everything allocated so far lives until exit, so exclude it from garbage collection.
    gc.collect()
    gc.freeze()
    purging = asyncio.create_task(_purge_history(store))
    try:
        await uvicorn.Server(config).serve(sockets=[listener])
    finally:
        purging.cancel()
        await store.close()


async def _purge_history(store: Store) -> None:
    """Remove expired entries also if nothing is changed. Of all workers on one database the first one purges."""
    while True:
        await asyncio.sleep(PURGE_SECONDS)
        try:
            await store.purge()
        except (StoreError, Busy) as error:
            log.warning("expired entries of the history were not removed: %s", error)


class LineFormatter(logging.Formatter):
    """`2026-11-20 17:21:46,742+0700 INFO message`. The time is formatted once a second."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")
        self._second, self._text, self._offset = 0, "", ""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: ARG002, N802 - logging's
        second = int(record.created)
        if second != self._second:
            local = time.localtime(second)
            self._second, self._text = second, time.strftime("%Y-%m-%d %H:%M:%S", local)
            self._offset = time.strftime("%z", local)
        return f"{self._text},{int(record.msecs):03d}{self._offset}"


def configure_logging(level: str) -> None:
    """Log to standard error. `level` is one of LOG_LEVEL's values."""
    handler = {"class": "logging.StreamHandler", "formatter": "line", "stream": "ext://sys.stderr"}
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False  # no line shows them
    logging.config.dictConfig({
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": LineFormatter}},
        "handlers": {"stderr": handler},
        "root": {"handlers": ["stderr"], "level": "WARNING"},
        "loggers": {
            "mahasiswa": {"level": level.upper()},
            # uvicorn reports a request that was cut off at shutdown as an error. The middleware logs all other errors.
            "uvicorn.error": {"level": "CRITICAL"},
            # It warns of every malformed body. The request log has a line for the refusal already.
            "python_multipart": {"level": "ERROR"},
        },
    })  # fmt: skip


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    if sys.platform == "win32":  # psycopg cannot use the default loop of Windows
        return asyncio.SelectorEventLoop
    try:
        import uvloop  # noqa: PLC0415 - not available for every Python
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop
