"""Lists processes by `ps`, which macOS has as well, and runs programs and threads."""

import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def output_of(command: Sequence[str | Path], name: str, **options: Any) -> str:  # noqa: ANN401 - those of subprocess
    """Run a program to its end and return its output. If it fails, raise RuntimeError with the name and the output."""
    done: subprocess.CompletedProcess[str] = subprocess.run(
        command, cwd="/", capture_output=True, text=True, timeout=60, check=False, **options
    )
    if done.returncode:
        raise RuntimeError(f"{name} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


@contextmanager
def running(threads: Sequence[threading.Thread], over: threading.Event) -> Iterator[None]:
    """Run threads during the block. They must end when `over` is set."""
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


@contextmanager
def working(work: Sequence[Callable[[], object]], stop: threading.Event) -> Iterator[Callable[[], bool]]:
    """Run functions in threads during the block, until `stop` is set at its end. Raise the error of a function.

    Yield whether one of them has ended.
    """
    with ThreadPoolExecutor(len(work)) as threads:
        jobs = [threads.submit(function) for function in work]
        try:
            yield lambda: any(job.done() for job in jobs)
        finally:
            stop.set()
        for job in jobs:
            job.result(30)


def children(pid: int) -> list[int]:
    """Return the living processes whose parent is `pid`."""
    return [child for child, parent in _living() if parent == pid]


def is_running(pid: int) -> bool:
    """Return whether there is a living process with this id."""
    return any(pid == other for other, _ in _living())


def _living() -> Iterator[tuple[int, int]]:
    """Yield every living process and its parent."""
    shown = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,stat="], capture_output=True, text=True, check=True).stdout
    for pid, parent, state in map(str.split, shown.splitlines()):
        if not state.startswith("Z"):  # a zombie has ended, but its parent has not waited for it
            yield int(pid), int(parent)
