"""The checker of histories accepts those that some order explains, and refuses those that are known to be wrong."""

import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linearizability import Operation, Stored, after, first_violation

ADD = Operation("add", "a", 1, 2)

WRONG = {
    "an acknowledged addition is not read": [ADD, Operation("read", None, 3, 4)],
    "a text that was never sent is read": [ADD, Operation("read", "b", 3, 4)],
    "the new text is read, then the old one, while the edit is not yet answered": [
        ADD,
        Operation("edit", "b", 3, 10),
        Operation("read", "b", 4, 5),
        Operation("read", "a", 6, 7),
    ],
    "an edit is read before it was sent": [ADD, Operation("edit", "b", 5, 6), Operation("read", "b", 3, 4)],
    "two additions are acknowledged and nothing deletes the first": [ADD, Operation("add", "b", 3, 4)],
    "an addition is refused although the record was deleted": [
        ADD,
        Operation("delete", None, 3, 4),
        Operation("refused add", "b", 5, 6),
    ],
    "an uncertain deletion takes effect twice": [
        Operation("delete", None, 0),
        ADD,
        Operation("read", None, 3, 4),
        Operation("add", "b", 5, 6),
        Operation("read", None, 7, 8),
    ],
}

RIGHT = {
    "of two additions at the same time one is refused": [
        Operation("refused add", "b", 1, 3),
        Operation("add", "a", 2, 4),
    ],
    "an uncertain addition is done later": [
        Operation("add", "a", 1),
        Operation("read", None, 2, 3),
        Operation("read", "a", 4, 5),
        Operation("refused add", "b", 6, 7),
    ],
    "an uncertain deletion is done between two acknowledged additions": [
        ADD,
        Operation("delete", None, 3),
        Operation("add", "b", 4, 5),
    ],
}


@pytest.mark.parametrize("history", WRONG.values(), ids=WRONG)
def test_a_wrong_history_is_refused(history: list[Operation]) -> None:
    """The answer that no order explains is named, for any order of the recorded history."""
    assert first_violation(history) in history
    assert first_violation(history[::-1]) in history


@pytest.mark.parametrize("history", RIGHT.values(), ids=RIGHT)
def test_a_right_history_is_accepted(history: list[Operation]) -> None:
    """Some order explains every answer, for any order of the recorded history."""
    assert first_violation(history) is None
    assert first_violation(history[::-1]) is None


operations = st.builds(
    lambda kind, text, began, lasts: Operation(kind, None if kind == "delete" else text, began, began + lasts),
    st.sampled_from(["add", "refused add", "edit", "delete", "read"]),
    st.sampled_from(["a", "b", None]),
    st.integers(0, 8),
    st.sampled_from([1, 2, 4, 8, math.inf]),
).filter(lambda operation: operation.kind in {"read", "delete"} or operation.text is not None)


@given(st.lists(operations, max_size=5))
def test_the_checker_agrees_with_a_trial_of_every_order(history: list[Operation]) -> None:
    """For short histories, a trial of all orders of all choices of uncertain operations finds the same."""
    certain = [operation for operation in history if operation.is_certain]
    uncertain = [operation for operation in history if not operation.is_certain]
    assert (first_violation(history) is None) == any(
        explains(order)
        for count in range(len(uncertain) + 1)
        for chosen in itertools.combinations(uncertain, count)
        for order in itertools.permutations([*certain, *chosen])
    )


def explains(order: tuple[Operation, ...]) -> bool:
    """Return whether an order contradicts neither the moments of its operations nor their answers."""
    stored: Stored = None
    for number, operation in enumerate(order):
        if any(later.ended < operation.began for later in order[number + 1 :]):
            return False
        texts = list(after(stored, operation))
        if not texts:
            return False
        (stored,) = texts
    return True


def test_a_long_history_with_uncertain_operations_is_checked_quickly() -> None:
    """A stale read is found behind 1,000 operations, of which six overlap at a time and sixteen are uncertain."""
    dice = random.Random(1)
    stored: Stored = None
    history: list[Operation] = []
    for number in range(1000):
        writes = [Operation("add" if stored is None else "refused add", f"{number}", number)]
        writes += [Operation("edit", f"{number}", number), Operation("delete", None, number)]
        operation = dice.choice([*writes, *[Operation("read", stored, number)] * 3])
        (stored,) = after(stored, operation)
        history.append(operation._replace(began=number - 6 * dice.random(), ended=number + dice.random()))
        if number % 80 == 0:
            history.append(Operation("edit", f"never {number}", number))
        if number % 300 == 0:
            history.append(Operation("delete", None, number))
    assert first_violation(history) is None
    stale = Operation("read", "10", 2000, 2001)
    assert first_violation([*history, stale]) == stale
