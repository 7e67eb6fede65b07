"""Checks whether the operations on one record are linearizable: whether one order of them explains every answer.

Each operation must take effect at one moment between its request and its answer. If the answer does not tell whether
the operation was done, it takes effect at any moment after its request, or never.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

Stored = str | None
"""The text of the record, or None if there is no record."""

Configuration = tuple[Stored, frozenset[int]]
"""A text that may be stored now, and the operations without an answer until now that have taken effect."""


class Operation(NamedTuple):
    """An operation on the record, with the moments of its request and of its answer.

    `text` is the text that it writes, or the text that a read returned. An addition is refused if there is a record. An
    operation whose answer says that nothing was done is not part of a history.
    """

    kind: Literal["add", "refused add", "edit", "delete", "read"]
    text: Stored
    began: float
    ended: float = math.inf

    @property
    def is_certain(self) -> bool:
        """Whether the answer says that the operation was done."""
        return self.ended < math.inf


def first_violation(history: Sequence[Operation]) -> Operation | None:
    """Return the first operation whose answer no order explains, or None if the history is linearizable.

    The record does not exist at the beginning. The time is exponential in the number of operations that overlap. An
    uncertain operation overlaps all that come later.
    """
    history = _without_unobserved(history)
    events = [(operation.began, 0, number) for number, operation in enumerate(history)]
    events += [(operation.ended, 1, number) for number, operation in enumerate(history) if operation.is_certain]
    pending: set[int] = set()
    configurations: set[Configuration] = {(None, frozenset())}
    for _, is_answer, number in sorted(events):
        if not is_answer:
            pending.add(number)
            continue
        reached = _reachable(configurations, pending, history)
        configurations = {(stored, done - {number}) for stored, done in reached if number in done}
        if not configurations:
            return history[number]
        configurations = _without_dominated(configurations, history)
        pending.remove(number)
    return None


def after(stored: Stored, operation: Operation) -> list[Stored]:
    """Return the text that is stored after the operation, or nothing if its answer would be wrong now."""
    match operation.kind:
        case "add":
            return [operation.text] if stored is None else []
        case "refused add":
            return [stored] if stored is not None else []
        case "edit":  # of a record that does not exist: nothing is done, and the answer is the same
            return [operation.text if stored is not None else None]
        case "delete":
            return [None]
        case "read":
            return [stored] if stored == operation.text else []


def _without_unobserved(history: Sequence[Operation]) -> list[Operation]:
    """Leave out uncertain reads, and uncertain edits to a text that no read returned: no answer can depend on them."""
    seen = {operation.text for operation in history if operation.kind == "read"}
    return [
        operation
        for operation in history
        if operation.is_certain or (operation.kind != "read" and (operation.kind != "edit" or operation.text in seen))
    ]


def _reachable(
    configurations: Iterable[Configuration], pending: Iterable[int], history: Sequence[Operation]
) -> set[Configuration]:
    """Return the configurations after any of the pending operations took effect, in any order.

    A read or a refused addition changes nothing, so it takes effect as soon as its answer is right. Only the order of
    writes is tried.
    """
    passive = [number for number in pending if history[number].kind in ("read", "refused add")]
    writes = [number for number in pending if number not in passive]
    reached: set[Configuration] = set()
    unexplored = list(configurations)
    while unexplored:
        stored, done = unexplored.pop()
        done |= {number for number in passive if after(stored, history[number])}
        if (stored, done) in reached:
            continue
        reached.add((stored, done))
        for number in writes:
            if number not in done:
                unexplored += [(text, done | {number}) for text in after(stored, history[number])]
    return reached


def _without_dominated(configurations: set[Configuration], history: Sequence[Operation]) -> set[Configuration]:
    """Leave out a configuration if the same text was reached with fewer uncertain operations.

    Uncertain operations need not take effect, so nothing is possible later that the other one does not allow. Without
    this, each uncertain operation would double the number of configurations until the end.
    """
    kept: set[Configuration] = set()
    for stored, done in sorted(configurations, key=lambda configuration: len(configuration[1])):
        if not any(
            stored == other and fewer <= done and not any(history[number].is_certain for number in done - fewer)
            for other, fewer in kept
        ):
            kept.add((stored, done))
    return kept
