"""Holds the figures and their goals, and formats them as text and as Markdown."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.load import Load
from bench.servers import OURS

NOISY = 1.25
"""A figure is marked if its rounds differ by more than this factor."""


@dataclass(frozen=True)
class Goal:
    """A goal for our figure: an upper limit in the unit of the row, or a multiple of a peer's figure.

    With `peer` we must be at least `limit` times as good; with `is_maximum` our figure may be at most `limit` times the
    peer's. With `by_processor` the processor time per request is compared. `ours` is the column that has the goal.
    """

    limit: float
    peer: str = ""
    is_maximum: bool = False
    by_processor: bool = False
    ours: str = OURS.name


@dataclass
class Cell:
    """The figures of one peer, one for each round."""

    values: list[float] = field(default_factory=list)
    processor_us: list[float] = field(default_factory=list)
    is_held: bool = False

    def __str__(self) -> str:
        """The median with its marks, and the processor time per request."""
        marks = ("*" if self.is_held else "") + (
            "~" if max(self.values) > NOISY * min(self.values) else ""
        )
        time = f" ({figure(statistics.median(self.processor_us))} us)" if self.processor_us else ""
        return figure(statistics.median(self.values)) + time + marks


@dataclass
class Line:
    """One line of the report."""

    title: str
    unit: str
    goals: Sequence[Goal] = ()
    less_is_better: bool = True
    cells: dict[str, Cell] = field(default_factory=dict)

    def add(self, peer: str, value: float) -> None:
        """Note the figure of one round."""
        self.cells.setdefault(peer, Cell()).values.append(value)

    def add_load(self, peer: str, load: Load) -> None:
        """Note the rate of one round, and the processor time per request."""
        self.add(peer, load.rate)
        self.cells[peer].processor_us.append(load.processor_us)
        self.cells[peer].is_held |= load.is_held

    def verdicts(self) -> list[str]:
        """Return each goal with its result."""
        return [self._verdict(goal) for goal in self.goals]

    def _verdict(self, goal: Goal) -> str:
        who = "" if goal.ours == OURS.name else f"{goal.ours}: "
        ours = self._median(goal.ours, by_processor=goal.by_processor)
        if not goal.peer:
            return f"{who}goal <= {goal.limit:g} {self.unit}: {_word(is_met=ours <= goal.limit)}"
        theirs = self._median(goal.peer, by_processor=goal.by_processor)
        inverse = (self.less_is_better or goal.by_processor) and not goal.is_maximum
        ratio = theirs / ours if inverse else ours / theirs
        is_met = ratio <= goal.limit if goal.is_maximum else ratio >= goal.limit
        how = " by processor time" if goal.by_processor else ""
        sign = "<=" if goal.is_maximum else ">="
        return f"{who}{ratio:.2f} x {goal.peer}{how} (goal {sign} {goal.limit:g}): {_word(is_met=is_met)}"

    def _median(self, peer: str, *, by_processor: bool) -> float:
        cell = self.cells[peer]
        return statistics.median(cell.processor_us if by_processor else cell.values)

    def __str__(self) -> str:
        """The line for a terminal, with the figure of each peer and the goals below it."""
        figures = [f"{peer} {cell}" for peer, cell in self.cells.items()]
        return "\n    ".join([f"{self.title} [{self.unit}]", " | ".join(figures), *self.verdicts()])


def _word(*, is_met: bool) -> str:
    return "met" if is_met else "MISSED"


def figure(value: float) -> str:
    """Format a figure with three digits, or with all digits before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def as_markdown(lines: Sequence[Line]) -> str:
    """Format the lines as one table. A column is shown for each peer that has a figure."""
    peers = list(dict.fromkeys(peer for line in lines for peer in line.cells))
    table = [
        ["work", "unit", *peers, "mahasiswa against its goal"],
        ["---", "---", *["---:"] * len(peers), "---"],
    ]
    for line in lines:
        cells = [str(line.cells[peer]) if peer in line.cells else "" for peer in peers]
        cells = [cell.replace("~", "\\~").replace("*", "\\*") for cell in cells]
        table.append([line.title, line.unit, *cells, "<br>".join(line.verdicts())])
    return "".join(f"| {' | '.join(row)} |\n" for row in table)
