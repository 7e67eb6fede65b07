"""The checker of histories accepts exactly those that some order explains."""

import itertools
import math
import random

from hypothesis import example, given, settings
from hypothesis import strategies as st
from linearizability import Operation, Stored, after, first_violation

ADD = Operation("add", "a", 1, 2)


operations = st.builds(
    lambda kind, text, began, lasts: Operation(kind, None if kind == "delete" else text, began, began + lasts),
    st.sampled_from(["add", "refused add", "edit", "delete", "read"]),
    st.sampled_from(["a", "b", None]),
    st.integers(0, 8),
    st.sampled_from([1, 2, 4, 8, math.inf]),
).filter(lambda operation: operation.kind in {"read", "delete"} or operation.text is not None)


@given(st.lists(operations, max_size=5))
@example([ADD, Operation("read", None, 3, 4)])
@example([ADD, Operation("edit", "b", 3, 10), Operation("read", "b", 4, 5), Operation("read", "a", 6, 7)])
@example([Operation("add", "a", 1), Operation("read", None, 2, 3), Operation("read", "a", 4, 5)])
@example(
    [
        Operation("delete", None, 0),
        ADD,
        Operation("read", None, 3, 4),
        Operation("add", "b", 5, 6),
        Operation("read", None, 7, 8),
    ]
)
@settings(max_examples=300)
def test_the_checker_agrees_with_a_trial_of_every_order(history: list[Operation]) -> None:
    """For short histories, a trial of all orders of all choices of uncertain operations finds the same."""
    certain = [operation for operation in history if operation.is_certain]
    uncertain = [operation for operation in history if not operation.is_certain]
    violation = first_violation(history)
    assert violation is None or violation in history
    assert (violation is None) == (first_violation(history[::-1]) is None)
    assert (violation is None) == any(
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
