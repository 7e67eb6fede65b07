"""Reads a file or a folder in a daemon thread, because a folder on a network may hang and must stop no one else."""

import errno
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from threading import Lock, Thread
from typing import Any, TypeVar, cast

T = TypeVar("T")

LOOK_SECONDS = 5.0  # maximum wait for the list of a folder

_looks: dict[Path, Future[Any]] = {}
_lock = Lock()


def listed(folder: Path) -> Sequence[Path]:
    """Return the files of a folder; raise OSError, also if it does not answer in time."""
    return looked(folder, lambda place: list(place.iterdir()))


def looked(place: Path, read: Callable[[Path], T]) -> T:
    """Return what `read` returns for a file or a folder; raise OSError, also if it does not answer in time.

    While a thread hangs, no second thread starts for that place. All callers wait for the first
    one.
    """
    with _lock:
        look = _looks.get(place)
        if look is None or look.done():
            look = Future()
            try:
                Thread(target=_look, args=(place, read, look), daemon=True).start()
            except RuntimeError as error:  # the system refuses a thread
                raise OSError(errno.EAGAIN, str(error), str(place)) from None
            _looks[place] = look
    try:
        return cast("T", look.result(LOOK_SECONDS))
    except TimeoutError:
        silence = f"it has not answered for {LOOK_SECONDS:g} s"
        raise OSError(errno.ETIMEDOUT, silence, str(place)) from None


def _look(place: Path, read: Callable[[Path], T], look: Future[T]) -> None:
    try:
        look.set_result(read(place))
    except Exception as error:  # noqa: BLE001 - a look without a result would hang for ever
        look.set_exception(error)
