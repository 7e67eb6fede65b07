"""Questions about a file: each is answered by a tick, or by a button that repairs its rows, before anything is saved."""

import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple


class Question(NamedTuple):
    """A doubt about some rows, or about the whole file if it has no rows.

    `name` is the kind of the doubt: a file has at most one question of each kind, so one press repairs all of its rows.
    """

    name: str
    sentence: str  # in Indonesian
    rows: Sequence[int] = ()  # the numbers of the rows
    repair: str = ""  # the label of the button that repairs all rows; blank without a repair

    @property
    def answer(self) -> str:
        """The value of its tick. A question with other rows or another sentence needs another tick."""
        asked = json.dumps([self.sentence, *self.rows])
        return f"{self.name}-{hashlib.sha256(asked.encode()).hexdigest()[:16]}"


def unanswered(
    questions: Iterable[Question], written: Collection[int], ticks: Collection[str]
) -> list[Question]:
    """The questions that must be answered before these rows are written.

    Each is about one of the rows, or about the whole file.
    """
    return [
        question
        for question in questions
        if question.answer not in ticks
        and (not question.rows or not set(written).isdisjoint(question.rows))
    ]
