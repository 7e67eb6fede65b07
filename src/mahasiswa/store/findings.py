"""The type of what `mahasiswa doctor` finds."""

from typing import NamedTuple


class Finding(NamedTuple):
    """One sentence about the installation. If something is wrong, another one says what to do."""

    text: str
    is_good: bool


def good(text: str) -> Finding:
    return Finding(text, is_good=True)


def wrong(text: str) -> Finding:
    return Finding(text, is_good=False)
