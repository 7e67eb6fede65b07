"""Bounds the inputs of a selection by their number and by the length of their texts."""

from collections.abc import Iterable
from itertools import accumulate, islice
from typing import Literal

from mahasiswa.sheets import public as sheets
from mahasiswa.sheets.selection import Selection

Alert = Literal["", "asked", "repaired"]
"""The reason to show a selection again: a question is open, or a repair is new."""

MAX_REPAIRED_ROWS = 100  # with inputs
REPAIRED_MAX_BYTES = 20_000  # of texts to repair; as a form they are at most three times as long


def shown_missing(selection: Selection) -> list[tuple[int, str, str]]:
    """The number, the text and the reason of each row that was not found, as far as they have inputs."""
    rows = [(row.number, sheets.in_input(row.nim), reason) for row, reason in selection.missing]
    return rows[: fitting(text for _, text, _ in rows)]


def fitting(texts: Iterable[str]) -> int:
    """The number of rows with these texts that get inputs."""
    sizes = accumulate(len(text.encode()) for text in islice(texts, MAX_REPAIRED_ROWS))
    return sum(size <= REPAIRED_MAX_BYTES for size in sizes)
