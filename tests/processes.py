"""Runs programs and threads, and waits for conditions."""

import os
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Any, NoReturn, Self, TypeVar

import pytest

T = TypeVar("T")

RUN_SECONDS = 400.0
"""Less than faulthandler_timeout in pyproject.toml, so a program that hangs fails one test only."""

COMMAND = (sys.executable, "-m", "mahasiswa")


class Closing(ABC):
    """Closes itself at the end of its block."""

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def cannot(what: str, error: object = "only root may") -> NoReturn:
    """Skip a test that needs a feature or a right that the kernel or the container does not give.

    No Debian package would mend it, so .ci/run accepts a reason with these first words, and no other one.
    """
    pytest.skip(f"this machine cannot {what}: {' '.join(str(error).split())}")


def finished(
    *command: str | Path,
    timeout: float = RUN_SECONDS,
    **options: Any,  # noqa: ANN401 - of subprocess
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, whatever its exit code is. It reads nothing, and no stream is a terminal."""
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=timeout,
        **options,
    )


def run(*command: str | Path, **options: Any) -> str:  # noqa: ANN401 - those of subprocess
    done = finished(*command, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


@contextmanager
def started(*command: str | Path, **options: Any) -> Iterator[subprocess.Popen[Any]]:  # noqa: ANN401 - of subprocess
    """Start a program in a process group, which is killed at the end of the block."""
    pipe = subprocess.PIPE
    options = {"stdin": subprocess.DEVNULL, "stdout": pipe, "stderr": pipe, **options}
    with subprocess.Popen(command, start_new_session=True, **options) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@contextmanager
def repeating(*functions: Callable[[], object]) -> Iterator[None]:
    """Call each function again and again, in a thread of its own, until the end of the block. Fail if one of them does."""
    over = Event()

    def repeat(function: Callable[[], object]) -> None:
        while not over.is_set():
            function()

    with ThreadPoolExecutor(len(functions)) as threads:
        results = threads.map(repeat, functions)
        try:
            yield
        finally:
            over.set()
            list(results)


def until(condition: Callable[[], T | None], seconds: float = 30.0) -> T:
    """Wait until the condition returns something true, and return it. Fail if it does not within `seconds`."""
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < deadline, f"the condition did not hold within {seconds:g} seconds"
        time.sleep(0.01)
    return result
