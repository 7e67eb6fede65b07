"""Looks at a folder in a daemon thread, because a folder on a network may hang and must stop no one else."""

import errno
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Generic, TypeVar

LOOK_SECONDS = 5.0  # maximum wait for the list of a folder

T = TypeVar("T")


class Lookout(Generic[T]):
    """Calls `look` in a daemon thread, never in two at once: while one hangs, all callers get its future."""

    def __init__(self, look: Callable[[], T]) -> None:
        self._look = look
        self._running: Future[T] | None = None

    def ask(self) -> Future[T]:
        """Return a future with the result of `look`, or with what it raises."""
        if self._running is None or self._running.done():
            self._running = Future()
            Thread(target=self._answer, args=(self._running,), daemon=True).start()
        return self._running

    def _answer(self, asked: Future[T]) -> None:
        try:
            asked.set_result(self._look())
        except Exception as error:  # noqa: BLE001 - the caller gets it
            asked.set_exception(error)


def listed(folder: Path) -> Sequence[Path]:
    """Return the files of a folder; raise OSError, also if it does not answer in time."""
    try:
        return _lookout(folder).ask().result(LOOK_SECONDS)
    except TimeoutError:
        silence = f"it has not answered for {LOOK_SECONDS:g} s"
        raise OSError(errno.ETIMEDOUT, silence, str(folder)) from None


@cache
def _lookout(folder: Path) -> Lookout[list[Path]]:
    return Lookout(lambda: list(folder.iterdir()))
