"""Shows a progress bar for long work, and ends the work after Ctrl-C."""

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

import click

from mahasiswa.system import interrupt

T = TypeVar("T")

STEPS = 1000  # items between two changes of the bar


def progress(items: Iterable[T], label: str, length: int | None = None) -> Iterator[T]:
    """The items, until Ctrl-C raises Interrupted. If standard error is a terminal, it shows a bar."""
    shown = click.progressbar(
        items,
        length,
        label,
        hidden=not sys.stderr.isatty(),
        show_pos=True,
        update_min_steps=STEPS,
        file=sys.stderr,
    )
    with shown as bar:
        for item in bar:
            interrupt.check()
            yield item
