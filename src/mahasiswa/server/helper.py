"""The parent of helpers, which forks a process for each task of a worker: `python -m mahasiswa.server.helper DESCRIPTOR PID`.

The parent has imported all that a task needs, so a helper starts much sooner than a new Python
would. `web.helpers` is the worker's end of the conversations. It describes which process ends
which.
"""

import contextlib
import gc
import json
import os
import resource
import signal
import socket
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from mahasiswa.settings import Settings
from mahasiswa.system.parent import end_with
from mahasiswa.web.helper_tasks import Task, do
from mahasiswa.web.helpers import (
    END,
    KILL,
    LENGTH,
    ORDER,
    PIECE_BYTES,
    with_length,
)
from mahasiswa.web.pages import Pages
from mahasiswa.web.request import ProblemPage

# Limits of one helper. Two helpers, two exports and a worker fit into MemoryMax= of the unit.
PREVIEW_MEMORY_BYTES = 512 << 20
PREVIEW_PROCESSOR_SECONDS = 20
# The processor serves other requests first. If memory is short, the kernel ends a helper first.
NICENESS = 10
OOM_SCORE = "1000"


def main() -> None:
    """Fork a helper for each order, until the worker ends."""
    control = socket.socket(fileno=int(sys.argv[1]))
    end_with(int(sys.argv[2]))
    # A terminal sends these signals to all of its processes. The worker decides when its helpers
    # end.
    for ignored in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(ignored, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    pages = Pages(Settings.from_environment(os.environ))
    gc.collect()
    gc.freeze()

    parent = os.getpid()
    helpers: dict[int, int] = {}  # process ids by their numbers
    while True:
        order, descriptors, _, _ = socket.recv_fds(control, ORDER.size, 2)
        if not order:  # the worker has ended
            break
        kind, number = ORDER.unpack(order)
        if kind != KILL:
            try:
                helpers[number] = os.fork() or _help(descriptors, pages, control, parent)
            except OSError as error:  # too many processes, or too little memory
                control.send(bytes([error.errno or 0]))
        elif number in helpers:
            _kill(helpers.pop(number))
        for descriptor in descriptors:
            os.close(descriptor)
    for pid in helpers.values():
        _kill(pid)


def _kill(pid: int) -> None:
    """Kill a helper, which may have ended already.

    No other process can get its id before this call has waited for its end.
    """
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def _help(
    descriptors: Sequence[int], pages: Pages, control: socket.socket, parent: int
) -> NoReturn:
    """Do one task in the new process, then end the process. It also ends when `parent` ends."""
    try:
        end_with(parent)
        control.close()
        _limit()
        gc.disable()  # the process ends soon
        _converse(WorkerConnection(descriptors[0]), pages)
    finally:
        os._exit(0)


def _limit() -> None:
    limits = {
        resource.RLIMIT_AS: PREVIEW_MEMORY_BYTES,
        resource.RLIMIT_CPU: PREVIEW_PROCESSOR_SECONDS,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
    }
    for limited, limit in limits.items():
        with contextlib.suppress(OSError, ValueError):  # macOS refuses some of them
            resource.setrlimit(limited, (limit, limit))
    os.nice(NICENESS)
    with contextlib.suppress(OSError):  # only Linux has it
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE, "ascii")


class WorkerConnection:
    """The worker, as a helper talks with it."""

    def __init__(self, descriptor: int) -> None:
        self._stream = socket.socket(fileno=descriptor).makefile("rwb")

    def messages(self) -> Iterator[bytes]:
        """The messages until the end of an input or of an answer."""
        while message := self._stream.read(*LENGTH.unpack(self._stream.read(LENGTH.size))):
            yield message

    def ask(self, *question: object) -> Iterator[Any]:
        """The items of all messages of the answer."""
        self.send(json.dumps(question, ensure_ascii=False).encode())
        for message in self.messages():
            yield from json.loads(message)

    def send(self, message: bytes) -> None:
        self._stream.write(with_length(message))
        self._stream.flush()


def _converse(worker: WorkerConnection, pages: Pages) -> None:
    first, *given = worker.messages()
    head = json.loads(first)
    outcome: Mapping[str, object]
    parts: Iterable[bytes] = ()
    try:
        outcome, parts = do(Task(head, given, worker.ask, pages))
    except ProblemPage as problem:
        outcome = vars(problem)
    except MemoryError:
        return
    except OSError as error:
        outcome = {"errno": error.errno}
    except Exception:  # noqa: BLE001 - the worker logs it
        outcome = {"error": traceback.format_exc()[-PIECE_BYTES // 8 :]}
    worker.send(json.dumps(outcome).encode())
    for part in parts:
        worker.send(part)
    worker.send(END)


if __name__ == "__main__":
    main()
