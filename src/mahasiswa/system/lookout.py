"""Lists a folder in a daemon thread, because a folder on a network may hang and must stop no one else."""

import errno
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from threading import Thread

LOOK_SECONDS = 5.0  # maximum wait for the list of a folder

_looks: dict[Path, Future[Sequence[Path]]] = {}


def listed(folder: Path) -> Sequence[Path]:
    """Return the files of a folder; raise OSError, also if it does not answer in time.

    While a thread hangs, there is no second one for the folder: all callers wait for the first.
    """
    look = _looks.get(folder)
    if look is None or look.done():
        look = _looks[folder] = Future()
        Thread(target=_look, args=(folder, look), daemon=True).start()
    try:
        return look.result(LOOK_SECONDS)
    except TimeoutError:
        silence = f"it has not answered for {LOOK_SECONDS:g} s"
        raise OSError(errno.ETIMEDOUT, silence, str(folder)) from None


def _look(folder: Path, look: Future[Sequence[Path]]) -> None:
    try:
        look.set_result(list(folder.iterdir()))
    except OSError as error:
        look.set_exception(error)
