"""The clock of the tests: it runs inside each worker, and measures how long the worker could not answer.

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
from typing import Any, NamedTuple

SAMPLE_SECONDS = 0.005
REPORTED_SECONDS = 0.01
HOLDER_SHARE = 0.7  # of the processor time of all threads that the one with the lock took
START_SECONDS = 0.05  # time between two looks whether the worker serves
STACK_FRAMES = 12
COUNTS_MAX_BYTES = 100  # of the three numbers in schedstat
# Linux numbers the clock of a thread by the thread's own number, inverted, with these bits at its end.
CLOCK_OF_A_THREAD = 6

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
    # A worker freezes its objects when it begins to serve. No client waits for its start, which may take long.
    while not gc.get_freeze_count():
        time.sleep(START_SECONDS)

    ticks = _Ticks(report, _running_loop())
    threads = _Threads()
    own, main = threading.get_native_id(), os.getpid()
    times, now = threads.times(), time.monotonic()

    while True:
        time.sleep(SAMPLE_SECONDS)
        times, times_before = threads.times(), times
        # This thread may wait for the lock anywhere, also after it has read a file.
        now, before = time.monotonic(), now
        late = now - before - SAMPLE_SECONDS

        spent = {
            thread: times[thread].since(times_before[thread])
            for thread in times.keys() & times_before.keys()
        }
        own_delay = spent.pop(own).queued
        ticks.look(times[main].computed, own_delay)
        total = sum(of_thread.computed for of_thread in spent.values())
        for thread, of_thread in spent.items():
            # Perhaps another thread had the lock, and no processor.
            others = max((spent[other].queued for other in spent if other != thread), default=0.0)
            held = min(late - own_delay - others, of_thread.computed)
            # Several threads that take the lock in turns hold it for their few milliseconds each.
            is_holder = thread != main and held > HOLDER_SHARE * total
            if held > REPORTED_SECONDS and is_holder:
                _write(report, "lock", held, _stack(_frame(threads.ident(thread))))
        is_watching.set()


class _Ticks:
    """Reports the processor time of the event loop's thread between two ticks."""

    def __init__(self, report: int, loop: asyncio.AbstractEventLoop) -> None:
        self._report = report
        self._loop = loop
        self._ticked = math.inf  # the clock of the event loop's thread at the last tick
        self._stack: list[str] = []
        self._unseen: list[float] = []  # seconds of late ticks before which the clock did not look
        # uvloop sends what the connections of a turn have written. This happens outside of any callback and without the lock.
        self._is_sending = False
        if module := sys.modules.get("mahasiswa.server.http_protocol"):
            for name in STEPS:
                self._tick_around(module.HttpProtocol, name)
        loop.set_task_factory(self._new_task)  # type: ignore[arg-type]
        loop.call_soon_threadsafe(self._tick_again)

    def look(self, clock: float, delay: float) -> None:
        """Note what the event loop does if its last tick is long ago. The clock had no processor for `delay` seconds."""
        unseen, self._unseen = self._unseen, []
        for seconds in unseen:
            if seconds - delay > REPORTED_SECONDS:
                _write(self._report, "loop", seconds, [])
        if clock - self._ticked <= REPORTED_SECONDS:
            return

        frame = _frame(threading.main_thread().ident)
        if frame and frame.f_code is asyncio.Runner.run.__code__:
            self._is_sending = True
        elif frame and frame.f_code is not self._tick.__code__:
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
            del error  # it refers to this frame, in a cycle
            self._tick()

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Generator[object, None, object]:
        return self._work.__await__()


def _running_loop() -> asyncio.AbstractEventLoop:
    """The event loop of the main thread, which asyncio gives only to code that runs in it."""
    while True:
        frame = _frame(threading.main_thread().ident)
        while frame:
            if frame.f_code is asyncio.Runner.run.__code__:
                loop: asyncio.AbstractEventLoop = frame.f_locals["self"].get_loop()
                return loop
            frame = frame.f_back
        time.sleep(START_SECONDS)


class _Times(NamedTuple):
    """The seconds in which a thread had a processor, and those in which it could run, but had none."""

    computed: float
    queued: float

    def since(self, before: "_Times") -> "_Times":
        return _Times(self.computed - before.computed, self.queued - before.queued)


class _Threads:
    """The threads of Python, by the numbers that the kernel gives them."""

    def __init__(self) -> None:
        # They stay open, because opening them for each sample would take more time than all the rest.
        self._files: dict[int, int] = {}
        self._idents: dict[int, int | None] = {}

    def ident(self, thread: int) -> int | None:
        """The number that Python gives a thread."""
        return self._idents[thread]

    def times(self) -> dict[int, _Times]:
        """The times of each thread that has not ended."""
        main = threading.main_thread()
        others = (thread for thread in threading.enumerate() if thread is not main)
        # After a fork, Python still has the kernel's number of the parent.
        self._idents = {os.getpid(): main.ident}
        self._idents |= {thread.native_id or 0: thread.ident for thread in others}
        for ended in self._files.keys() - self._idents.keys():
            os.close(self._files.pop(ended))

        times = {}
        for thread in self._idents:
            with suppress(OSError):  # it has just ended
                computed = time.clock_gettime(~thread << 3 | CLOCK_OF_A_THREAD)
                times[thread] = _Times(computed, self._queued(thread))
        return times

    def _queued(self, thread: int) -> float:
        """The second time of a thread; 0 on a kernel that does not count it, or without a free file descriptor."""
        try:
            if thread not in self._files:
                file = f"/proc/self/task/{thread}/schedstat"
                self._files[thread] = os.open(file, os.O_RDONLY)
            return int(os.pread(self._files[thread], COUNTS_MAX_BYTES, 0).split()[1]) / 1e9
        except OSError:
            return 0.0


def _frame(thread: int | None) -> FrameType | None:
    """The frame that a thread runs now.

    It is asked for only if something is late. While a thread leaves a function, Python 3.11 may give a frame that is not there
    any more, and the process ends.
    """
    return sys._current_frames().get(thread or 0)


def _stack(frame: FrameType | None) -> list[str]:
    places = traceback.extract_stack(frame)[-STACK_FRAMES:] if frame else []
    return [f"{place.filename}:{place.lineno} {place.name}" for place in places]


def _write(report: int, kind: str, seconds: float, stack: list[str]) -> None:
    ms = round(seconds * 1000, 1)
    values = {"kind": kind, "ms": ms, "ended": time.monotonic(), "stack": stack or ["unknown"]}
    os.write(report, json.dumps(values).encode() + b"\n")
