"""Handles Ctrl-C in a command: sets a flag, which long work checks between two steps and never within one."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_pressed = threading.Event()


class Interrupted(Exception):
    """Ctrl-C was pressed, and nothing was written."""


def listen() -> None:
    """Set the flag at the first Ctrl-C. The second one ends the process."""

    def note(*_: object) -> None:
        _pressed.set()
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    # A shell lets its background jobs ignore Ctrl-C.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, note)


@contextmanager
def at_once() -> Iterator[None]:
    """Let Ctrl-C end the command in this block, in which it waits for an answer."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)


def check() -> bool:
    """Raise Interrupted if Ctrl-C was pressed. Otherwise return False, so that SQLite goes on."""
    if _pressed.is_set():
        raise Interrupted
    return False
