"""The findings of the checks at the start of the service and of `mahasiswa doctor`."""

from typing import NamedTuple


class Finding(NamedTuple):
    """One sentence about the installation. If something is wrong, a second sentence gives the remedy."""

    text: str
    is_good: bool


def good(text: str) -> Finding:
    return Finding(text, is_good=True)


def wrong(text: str) -> Finding:
    return Finding(text, is_good=False)
