"""Runs programs and threads, lists processes with their memory and files, and waits for conditions."""

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Any, NoReturn, Self, TypeVar

import psutil  # type: ignore[import-untyped]
import pytest

T = TypeVar("T")

RUN_SECONDS = 400.0
"""Less than faulthandler_timeout in pyproject.toml, so a program that hangs fails one test only."""

FORK_SECONDS = 60.0
CANNOT = "this machine cannot "
"""The start of a reason to skip a test that no Debian package mends. --nothing-skipped accepts these reasons only."""


class Closing(ABC):
    """Closes itself at the end of its block."""

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def cannot(what: str, error: object = "only root may") -> NoReturn:
    """Skip a test that needs a feature or a right that the kernel or the container does not give."""
    pytest.skip(f"{CANNOT}{what}: {' '.join(str(error).split())}")


def finished(*command: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:  # noqa: ANN401 - of subprocess
    """Run a program to its end, whatever its exit code is. It reads nothing, and no stream is a terminal."""
    options.setdefault("timeout", RUN_SECONDS)
    done: subprocess.CompletedProcess[str] = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
        **options,
    )
    return done


def run(*command: str | Path, **options: Any) -> str:  # noqa: ANN401 - those of subprocess
    inherited = {
        name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "PYTHONPATH")
    }
    done = finished(*command, **{"env": inherited, **options})
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


# Imports the program and compiles its templates once, then runs it in a fork for each line, as Python would start it: a
# start of a service takes 0.8 s less.
FORKS = """
import gc, jinja2, json, os, sys, tempfile
import mahasiswa.server.worker
import mahasiswa.store.postgres.engine, mahasiswa.store.sqlite.engine
from mahasiswa.commands.cli import main
from mahasiswa.server.worker import Settings, Slots, create_app
compiled, compile = {}, jinja2.Environment.compile
def compile_once(environment, source, *arguments):
    if source not in compiled:
        compiled[source] = compile(environment, source, *arguments)
    return compiled[source]
jinja2.Environment.compile = compile_once
create_app(Settings.from_environment({}), None, Slots())
gc.freeze()  # a collection would copy each page of the memory
for line in sys.stdin:
    *arguments, folder, environment, output, errors = json.loads(line)
    if (pid := os.fork()) == 0:
        gc.unfreeze()
        os.setsid()
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        tempfile.tempdir = None  # TMPDIR may be another one
        for number, name in enumerate((os.devnull, output, errors)):
            os.dup2(os.open(name, os.O_RDWR | os.O_APPEND), number)
        sys.stdin, sys.stdout = open(0), open(1, "w")
        sys.stderr = open(2, "w", buffering=1, errors="backslashreplace")
        sys.argv = ["mahasiswa", *arguments]
        main()
    print(pid, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""
IDLE_FORKS: list[subprocess.Popen[bytes]] = []


class Forked:
    """`mahasiswa` with these arguments as a process of its own, used like `Popen`."""

    def __init__(
        self, *arguments: str, cwd: Path, env: Mapping[str, str], output: str, errors: str
    ) -> None:
        try:
            self._forks = IDLE_FORKS.pop()
        except IndexError:  # it ends with this process, because its standard input ends
            command, pipe = [sys.executable, "-c", FORKS], subprocess.PIPE
            self._forks = subprocess.Popen(
                command, bufsize=0, stdin=pipe, stdout=pipe, start_new_session=True
            )
        assert self._forks.stdin
        assert self._forks.stdout
        order = json.dumps([*arguments, str(cwd), dict(env), output, errors])
        self._forks.stdin.write(f"{order}\n".encode())
        self._said = self._forks.stdout
        self.pid = int(self._said.readline())
        self.returncode: int | None = None

    def wait(self, seconds: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._said], [], [], seconds)[0]:
                raise subprocess.TimeoutExpired("mahasiswa", seconds or 0)
            self.returncode = int(self._said.readline())
            IDLE_FORKS.append(self._forks)
        return self.returncode

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def terminate(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGTERM)


def forked(*arguments: str, cwd: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run `mahasiswa` to its end."""
    with tempfile.NamedTemporaryFile() as output, tempfile.NamedTemporaryFile() as errors:
        process = Forked(*arguments, cwd=cwd, env=env, output=output.name, errors=errors.name)
        try:
            code = process.wait(FORK_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        return subprocess.CompletedProcess(
            arguments, code, os.fsdecode(output.read()), errors.read().decode()
        )


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
def working(work: Sequence[Callable[[], object]], stop: Event) -> Iterator[Callable[[], bool]]:
    """Run functions in threads until `stop` is set at the end of the block. Yield whether one has ended."""
    with ThreadPoolExecutor(len(work)) as threads:
        jobs = [threads.submit(function) for function in work]
        try:
            yield lambda: any(job.done() for job in jobs)
        finally:
            stop.set()
        for job in jobs:
            job.result(120)


def children(pid: int) -> list[int]:
    with suppress(psutil.NoSuchProcess):
        return [child.pid for child in psutil.Process(pid).children() if is_running(child.pid)]
    return []


def is_running(pid: int) -> bool:
    """Return whether there is a living process with this id. A zombie has ended, but its parent has not waited for it."""
    with suppress(psutil.NoSuchProcess):
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    return False


def client_files(pid: int) -> int:
    """Return the number of sockets and temporary files of a process. Files of the database do not count."""
    count = 0
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # it has just been closed
            name = str(file.readlink())
            count += name.startswith("socket:") or name.endswith(" (deleted)")
    return count


def until(condition: Callable[[], T | None], seconds: float = 30.0) -> T:
    """Wait until the condition returns something true, and return it. Fail if it does not within `seconds`."""
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < deadline, f"the condition did not hold within {seconds:g} seconds"
        time.sleep(0.01)
    return result
