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


def takes_changes(name: str, history_days: int, entries: int) -> Finding:
    """The finding about a record that was added, edited and deleted, and the entries of the history about it."""
    if history_days and entries != 3:
        return wrong("The triggers of the history are missing or disabled. Restart the service: it creates them again.")
    return good(f"{name} takes changes.")
