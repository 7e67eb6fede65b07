"""The clock of the tests: it runs inside each worker, and measures how long the worker could answer nobody.

Everything is measured in processor time, without the time in which a thread waited for a processor, so a busy machine fails no
test. The clock reports two things:

- `loop`: the event loop's thread computed for long in one callback. A timer of 5 ms, the steps of each connection (STEPS)
  and those of each task tell where a callback begins or ends. One turn of the loop may serve a thousand connections.
- `lock`: a thread that wakes every 5 ms was late, because another thread computed and kept the interpreter's lock.
"""

import asyncio
import gc
import json
import math
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from functools import wraps
from types import FrameType
from typing import Any

SAMPLE_SECONDS = 0.005
REPORTED_SECONDS = 0.01
HOLDER_SHARE = 0.7  # of the processor time of all threads that the one with the lock took
START_SECONDS = 0.05  # time between two looks whether the worker serves
STACK_FRAMES = 12
COUNTS_MAX_BYTES = 100  # of the three numbers in schedstat

REPORT = "MAHASISWA_CLOCK"  # the environment variable with the file that gets a line of JSON for each report

# Methods of HttpProtocol that asyncio or uvicorn calls, so they keep their names.
STEPS = (
    "connection_made",
    "data_received",
    "eof_received",
    "pause_writing",
    "resume_writing",
    "on_response_complete",
    "connection_lost",
)

is_watching = threading.Event()


def watch_workers() -> None:
    """Start a clock in each process that this one forks. It measures only those that serve requests."""
    if REPORT in os.environ:
        os.register_at_fork(after_in_child=_start)


def _start() -> None:
    # Later, a test may let the worker have no free file descriptor.
    report = os.open(os.environ[REPORT], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    # A signal that the worker blocks later must not reach it through this thread.
    usual = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    threading.Thread(target=_watch, args=(report,), name="clock", daemon=True).start()
    signal.pthread_sigmask(signal.SIG_SETMASK, usual)


def _watch(report: int) -> None:
    # A worker freezes its objects when it begins to serve. Its start may take long: nobody waits for it.
    while not gc.get_freeze_count():
        time.sleep(START_SECONDS)

    main = threading.main_thread().ident or 0
    ticks = _Ticks(report, _running_loop(main))
    own = threading.get_ident()
    queues = _Queues()
    queued, clocks, now = queues.seconds(), _clocks(), time.monotonic()

    while True:
        time.sleep(SAMPLE_SECONDS)
        queued, queued_before = queues.seconds(), queued
        clocks, clocks_before = _clocks(), clocks
        # This thread may wait for the lock anywhere, also after it has read a file.
        now, before = time.monotonic(), now
        late = now - before - SAMPLE_SECONDS

        delays = {
            thread: seconds - queued_before.get(thread, seconds)
            for thread, seconds in queued.items()
        }
        own_delay = delays.pop(own, 0.0)
        frames = sys._current_frames()
        ticks.look(clocks[main], frames[main], own_delay)
        computed = {
            thread: clock - clocks_before.get(thread, 0.0) for thread, clock in clocks.items()
        }
        for thread, seconds in computed.items():
            # Perhaps another thread had the lock, and no processor.
            others = max((delays[of] for of in delays if of != thread), default=0.0)
            held = min(late - own_delay - others, seconds)
            # Several threads that take the lock in turns hold it for their few milliseconds each.
            is_holder = thread != main and held > HOLDER_SHARE * sum(computed.values())
            if held > REPORTED_SECONDS and is_holder:
                _write(report, "lock", held, _stack(frames.get(thread)))
        is_watching.set()


class _Ticks:
    """Reports the processor time of the event loop's thread between two ticks."""

    def __init__(self, report: int, loop: asyncio.AbstractEventLoop) -> None:
        self._report = report
        self._loop = loop
        self._ticked = math.inf  # the clock of the event loop's thread at the last tick
        self._stack: list[str] = []
        self._unseen: list[float] = []  # seconds of late ticks before which the clock did not look
        # Outside of any callback: uvloop sends what the connections of a turn have written, without the lock.
        self._is_sending = False
        if module := sys.modules.get("mahasiswa.server.http_protocol"):
            for name in STEPS:
                self._tick_around(module.HttpProtocol, name)
        loop.set_task_factory(self._new_task)  # type: ignore[arg-type]
        loop.call_soon_threadsafe(self._tick_again)

    def look(self, clock: float, frame: FrameType, delay: float) -> None:
        """Note what the event loop does, if it has not ticked for long. The clock had no processor for `delay` seconds."""
        unseen, self._unseen = self._unseen, []
        for seconds in unseen:
            if seconds - delay > REPORTED_SECONDS:
                _write(self._report, "loop", seconds, [])
        is_late = clock - self._ticked > REPORTED_SECONDS
        if is_late and frame.f_code is asyncio.Runner.run.__code__:
            self._is_sending = True
        elif is_late and frame.f_code is not self._tick.__code__:
            self._stack = _stack(frame)

    def _tick(self) -> None:
        now = time.thread_time()
        is_late = now - self._ticked > REPORTED_SECONDS
        if is_late and self._stack:
            _write(self._report, "loop", now - self._ticked, self._stack)
        elif is_late and not self._is_sending:
            self._unseen.append(now - self._ticked)
        self._ticked = now
        self._stack = []
        self._is_sending = False

    def _tick_again(self) -> None:
        self._tick()
        self._loop.call_later(SAMPLE_SECONDS, self._tick_again)

    def _new_task(
        self,
        loop: asyncio.AbstractEventLoop,
        work: Coroutine[Any, Any, Any],
        **options: Any,  # noqa: ANN401 - those of asyncio.Task
    ) -> asyncio.Task[Any]:
        return asyncio.Task(_Steps(work, self._tick), loop=loop, **options)

    def _tick_around(self, protocol: type, name: str) -> None:
        step = getattr(protocol, name)

        @wraps(step)
        def ticking(*arguments: object) -> object:
            self._tick()
            try:
                return step(*arguments)
            finally:
                self._tick()

        setattr(protocol, name, ticking)


class _Steps(Coroutine[object, object, object]):
    """The work of a task, with a tick before and after each step of it."""

    def __init__(self, work: Coroutine[Any, Any, Any], tick: Callable[[], None]) -> None:
        self._work, self._tick = work, tick

    def send(self, value: object) -> object:
        self._tick()
        try:
            return self._work.send(value)
        finally:
            self._tick()

    def throw(self, *error: Any) -> object:  # noqa: ANN401 - those of the coroutine
        self._tick()
        try:
            return self._work.throw(*error)
        finally:
            self._tick()

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Generator[object, None, object]:
        return self._work.__await__()


def _running_loop(main: int) -> asyncio.AbstractEventLoop:
    """The event loop of the main thread, which asyncio gives only to code that runs in it."""
    while True:
        frame: FrameType | None = sys._current_frames()[main]
        while frame:
            if frame.f_code is asyncio.Runner.run.__code__:
                loop: asyncio.AbstractEventLoop = frame.f_locals["self"].get_loop()
                return loop
            frame = frame.f_back
        time.sleep(START_SECONDS)


def _clocks() -> dict[int, float]:
    """The processor time of each other thread. None of them can end while this one has the interpreter's lock."""
    own = threading.get_ident()
    return {
        thread: time.clock_gettime(time.pthread_getcpuclockid(thread))
        for thread in sys._current_frames()
        if thread != own
    }


class _Queues:
    """The time in which each thread could run, but had no processor."""

    def __init__(self) -> None:
        # They stay open, because opening them for each sample would take more time than all the rest.
        self._files: dict[int, int] = {}
        self._main = threading.main_thread().ident or 0

    def seconds(self) -> dict[int, float]:
        """The seconds by thread, without threads that end, and without any if the kernel does not count them."""
        threads = {
            thread.native_id: thread.ident
            for thread in threading.enumerate()
            if thread.native_id and thread.ident and thread is not threading.main_thread()
        }
        # After a fork, Python still has the number of the parent's thread.
        threads = {os.getpid(): self._main, **threads}
        for ended in self._files.keys() - threads.keys():
            os.close(self._files.pop(ended))

        found = {}
        for native, thread in threads.items():
            with suppress(OSError):
                if native not in self._files:
                    self._files[native] = os.open(
                        f"/proc/self/task/{native}/schedstat", os.O_RDONLY
                    )
                counts = os.pread(self._files[native], COUNTS_MAX_BYTES, 0)
                found[thread] = int(counts.split()[1]) / 1e9
        return found


def _stack(frame: FrameType | None) -> list[str]:
    places = traceback.extract_stack(frame)[-STACK_FRAMES:] if frame else []
    return [f"{place.filename}:{place.lineno} {place.name}" for place in places]


def _write(report: int, kind: str, seconds: float, stack: list[str]) -> None:
    ms = round(seconds * 1000, 1)
    values = {"kind": kind, "ms": ms, "ended": time.monotonic(), "stack": stack or ["unknown"]}
    os.write(report, json.dumps(values).encode() + b"\n")
