"""A worker process: opens the store and answers requests with uvicorn until SIGTERM."""

import asyncio
import ctypes
import gc
import logging
import signal
import socket
import sys
from typing import TYPE_CHECKING

import uvicorn
from starlette.concurrency import run_in_threadpool

from mahasiswa.logs import log_thread
from mahasiswa.server.http_protocol import HttpProtocol
from mahasiswa.settings import Settings
from mahasiswa.store import Store
from mahasiswa.store.engines import engine_of
from mahasiswa.store.history_items import PURGE_SECONDS
from mahasiswa.store.store_errors import StoreError
from mahasiswa.system.parent import end_with
from mahasiswa.web.app import create_app
from mahasiswa.web.helpers import Helpers
from mahasiswa.work import Busy, Limits, Threads

try:
    from uvloop import new_event_loop
except ImportError:  # it has no wheel for this machine
    from asyncio import new_event_loop  # type: ignore[assignment]

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

GRACEFUL_SHUTDOWN_SECONDS = 3  # maximum time for the requests that run when SIGTERM comes
# Connections of stalled clients count too. A request on a further connection gets 503.
MAX_CONNECTIONS = 16_384
# uvicorn calls beat() each second if the wall clock shows more than this time since the last call. A clock that is set back
# must not delay a call.
BEAT_MIN_SECONDS = -(10**9)
# Disables uvicorn's timer of idle connections, because HttpProtocol has its own deadlines.
NO_TIMEOUT_SECONDS = 10**6
# The parent of helpers imports for half a second, and the first pages must not wait for it.
HELPERS_DELAY_SECONDS = 5.0
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
# Parameters of mallopt(3).
M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3
M_ARENA_MAX = -8

log = logging.getLogger(__name__)


def run(
    settings: Settings, listener: socket.socket, parent: int, beats: "Connection[bytes, None]"
) -> None:
    """Answer requests that come in on `listener`; end when the process `parent` ends.

    Send a byte to `beats` when requests are accepted, and then each second while the event loop
    runs. The caller has blocked SIGTERM; it is unblocked just before the first byte.
    """
    end_with(parent)
    _give_memory_back()
    signal.set_wakeup_fd(-1)  # inherited from the main process
    # uvicorn raises SIGTERM again at its end. It must not end this process, because the store is closed after that.
    signal.signal(signal.SIGTERM, lambda *_: None)
    # A terminal sends SIGINT and SIGHUP to all of its processes, and then the main process sends SIGTERM to the workers. A
    # second signal would make them drop running requests.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    sys.setswitchinterval(SWITCH_SECONDS)
    with log_thread(), asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(_serve(settings, listener, beats))


async def _serve(
    settings: Settings, listener: socket.socket, beats: "Connection[bytes, None]"
) -> None:
    asyncio.get_running_loop().set_default_executor(Threads())
    limits = Limits()
    helpers = Helpers()
    store = await engine_of(settings.database_url).open_store(limits.slots)

    async def beat() -> None:
        # uvicorn handles SIGTERM before the first call, which comes when requests are accepted.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        beats.send_bytes(b".")

    config = uvicorn.Config(
        create_app(settings, store, limits, helpers),
        http=HttpProtocol,
        ws="none",
        interface="asgi3",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=MAX_CONNECTIONS + 1,  # uvicorn refuses the last one
        timeout_keep_alive=NO_TIMEOUT_SECONDS,
        timeout_graceful_shutdown=GRACEFUL_SHUTDOWN_SECONDS,
        timeout_notify=BEAT_MIN_SECONDS,
        callback_notify=beat,
    )
    # Everything allocated so far lives until exit, so exclude it from garbage collection. Starlette's threads import 20
    # modules when they are first used. Without this use the first upload would stop the event loop.
    await run_in_threadpool(gc.collect)
    gc.freeze()
    gc.set_threshold(GARBAGE_OBJECTS, GARBAGE_ROUNDS, GARBAGE_ROUNDS_OF_ALL)
    purging = asyncio.create_task(purge_history(store))
    asyncio.get_running_loop().call_later(HELPERS_DELAY_SECONDS, helpers.start)
    try:
        await uvicorn.Server(config).serve(sockets=[listener])
    finally:
        purging.cancel()
        helpers.close()
        await store.close()


def _give_memory_back() -> None:
    """Let glibc return free memory to the system: by itself it kept 480 MB after hostile imports."""
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):  # absent without glibc
        mallopt(M_ARENA_MAX, 2)
        # With the usual 128 KB for both, a long list takes longer.
        mallopt(M_MMAP_THRESHOLD, 4 << 20)
        mallopt(M_TRIM_THRESHOLD, 8 << 20)


async def purge_history(store: Store) -> None:
    """Remove expired entries even if no record is changed.

    If several workers use the database, the first worker that asks removes them.
    """
    while True:
        await asyncio.sleep(PURGE_SECONDS)
        try:
            await store.purge()
        except (StoreError, Busy) as error:
            log.warning("expired entries of the history were not removed: %s", error)
