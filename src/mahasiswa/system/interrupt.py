"""Handles Ctrl-C in a command: sets a flag, which long work checks where nothing is half done."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_pressed = threading.Event()
_actions: list[Callable[[], object]] = []


class Interrupted(Exception):
    """Ctrl-C was pressed, and the step that ran was taken back or not begun."""


def listen() -> None:
    """Set the flag at the first Ctrl-C. The second one ends the process."""

    def note(*_: object) -> None:
        _pressed.set()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        for action in _actions:
            action()

    # A shell lets its background jobs ignore Ctrl-C.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, note)


def check() -> bool:
    """Raise Interrupted if Ctrl-C was pressed. Otherwise return False, so that SQLite goes on."""
    if _pressed.is_set():
        raise Interrupted
    return False


@contextmanager
def at_once(action: Callable[[], object] = check) -> Iterator[None]:
    """Let Ctrl-C also call `action` in this block, which waits. Without one, it raises Interrupted."""
    _actions.append(action)
    try:
        check()  # it may have come before
        yield
    finally:
        _actions.remove(action)
