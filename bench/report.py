"""Holds the figures and their goals, and formats them as text, Markdown and JSON."""

import dataclasses
import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.servers import COLUMNS, OURS

NOISY = 1.25
"""A figure is marked if its rounds differ by more than this factor."""
SATURATED = 0.95
"""A processor that is busy for more than this share of the time counts as full."""
DISTURBED = 0.1
"""A figure is marked if other programs used more than this share of a processor."""


_NAMES = {column.key: column.name for column in COLUMNS}


@dataclass(frozen=True)
class Goal:
    """A goal for our figure: an upper limit, or a multiple of a peer's figure.

    With `peer` we must be at least `limit` times as good; with `at_most` our figure may be at most `limit` times the
    peer's. Without `limit` the ratio is shown and is no goal.
    """

    limit: float | None
    peer: str | None = None
    at_most: bool = False
    ours: str = OURS.key


@dataclass
class Cell:
    """One peer's figure: the value of each round, and details such as the use of the processors."""

    values: list[float] = field(default_factory=list)
    seen: list[dict[str, Any]] = field(default_factory=list)
    failure: str = ""

    @property
    def median(self) -> float:
        """The median of the rounds."""
        return statistics.median(self.values)

    @property
    def measured(self) -> bool:
        """Whether there is a figure to show."""
        return bool(self.values) and not self.failure

    @property
    def noisy(self) -> bool:
        """Whether the rounds differ so much that the figure is unreliable."""
        return max(self.values) > NOISY * min(self.values)

    @property
    def disturbed(self) -> bool:
        """Whether other programs used the processors in at least half of the rounds."""
        shares = [seen.get("others_busy", 0) for seen in self.seen]
        return bool(shares) and statistics.median(shares) > DISTURBED

    @property
    def held_by_load(self) -> bool:
        """Whether the load generator's processor was full and the server's was not, so the server could do more."""
        return bool(self.seen) and all(
            seen.get("load_busy", 0) + seen.get("database_busy", 0) > SATURATED > seen.get("server_busy", 0)
            for seen in self.seen
        )


@dataclass
class Work:
    """One row of the table."""

    key: str
    section: str
    title: str
    unit: str
    goals: Sequence[Goal] = ()
    less_is_better: bool = False
    cells: dict[str, Cell] = field(default_factory=dict)

    def add(self, peer: str, value: float, **seen: object) -> None:
        """Note the value of one round."""
        cell = self.cells.setdefault(peer, Cell())
        cell.values.append(value)
        if seen:
            cell.seen.append(seen)

    def fail(self, peer: str, why: str) -> None:
        """Note that a peer failed."""
        self.cells.setdefault(peer, Cell()).failure = why

    def failed(self, peer: str) -> bool:
        """Return whether a peer failed."""
        return peer in self.cells and bool(self.cells[peer].failure)

    def verdicts(self) -> list[tuple[str, bool | None]]:
        """Return each goal as text with the result, and whether it is met (None if there is no figure)."""
        return [self._verdict(goal) for goal in self.goals]

    def _verdict(self, goal: Goal) -> tuple[str, bool | None]:
        ours = self.cells.get(goal.ours)
        who = "" if all(goal.ours == other.ours for other in self.goals) else f"{_NAMES[goal.ours]}: "
        if goal.peer is None:
            assert goal.limit is not None
            wanted = f"< {goal.limit:g} {self.unit}"
            if not ours or not ours.measured:
                return f"{who}{wanted}: not measured", None
            met = ours.median < goal.limit
            return f"{who}{figure(ours.median)} (goal {wanted}): {_word(met=met)}", met
        theirs, name = self.cells.get(goal.peer), _NAMES[goal.peer]
        if not ours or not ours.measured or not theirs or not theirs.measured:
            return f"{who}x {name}: not measured", None
        inverse = self.less_is_better and not goal.at_most
        ratio = theirs.median / ours.median if inverse else ours.median / theirs.median
        if goal.limit is None:
            return f"{who}{ratio:.2f} x {name}", None
        wanted = f"{'<=' if goal.at_most else '>='} {goal.limit:g}"
        met = ratio <= goal.limit if goal.at_most else ratio >= goal.limit
        return f"{who}{ratio:.2f} x {name} (goal {wanted}): {_word(met=met)}", met


def _word(*, met: bool) -> str:
    return "met" if met else "MISSED"


def figure(value: float) -> str:
    """Format a figure with three digits, or with all digits before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _cell(work: Work, peer: str) -> str:
    cell = work.cells.get(peer)
    if cell is None:
        return "-"
    if not cell.measured:
        return "failed"
    times = [seen["processor_us"] for seen in cell.seen if "processor_us" in seen]
    return (
        figure(cell.median)
        + (f" ({figure(statistics.median(times))} us)" if times else "")
        + ("*" if cell.held_by_load else "")
        + ("~" if cell.noisy else "")
        + ("!" if cell.disturbed else "")
    )


def _sections(works: Sequence[Work]) -> dict[str, list[list[str]]]:
    """Return the rows of each section's table, starting with the header. The last column has one goal per line."""
    tables: dict[str, list[list[str]]] = {}
    for section in dict.fromkeys(work.section for work in works):
        inside = [work for work in works if work.section == section]
        shown = [column for column in COLUMNS if any(column.key in work.cells for work in inside)]
        rows = [["work", "unit", *(column.name for column in shown), "mahasiswa against its goal"]]
        for work in inside:
            goals = "\n".join(text for text, _ in work.verdicts())
            rows.append([work.title, work.unit, *(_cell(work, column.key) for column in shown), goals])
        tables[section] = rows
    return tables


def notes(works: Sequence[Work]) -> list[str]:
    """Return the explanations below the table, and a line for each failure."""
    lines = [
        "(… us) is the server's processor time per answered request, without that of the database server.",
        "Each figure is the median of its rounds. ~ means that the rounds differ by more than a quarter.",
        "! means that other programs used more than a tenth of a processor: repeat the run on an idle machine.",
        "* means that the load generator's processor was full and the server's was not: the server could do more.",
    ]
    for work in works:
        failed = [(peer, cell.failure.splitlines()[0]) for peer, cell in work.cells.items() if cell.failure]
        lines += [f"{work.title}, {peer}: {why}" for peer, why in failed]
    return lines


def as_text(works: Sequence[Work]) -> str:
    """Format the tables for a terminal."""
    lines = []
    for section, rows in _sections(works).items():
        lines += [section, "", *_aligned(rows), ""]
    return "\n".join([*lines, *notes(works)])


def _aligned(table: Sequence[Sequence[str]]) -> list[str]:
    rows = [[cell.split("\n") for cell in row] for row in table]
    widths = [max(len(line) for row in rows for line in row[column]) for column in range(len(rows[0]))]
    lines = []
    for position, row in enumerate(rows):
        for line in range(max(len(cell) for cell in row)):
            texts = [cell[line] if line < len(cell) else "" for cell in row]
            last = len(texts) - 1
            aligned = [
                text.rjust(width) if 2 <= column < last else text.ljust(width)
                for column, (text, width) in enumerate(zip(texts, widths, strict=True))
            ]
            lines.append("  ".join(aligned).rstrip())
        if position == 0:
            lines.append("  ".join("-" * width for width in widths))
    return lines


def as_markdown(works: Sequence[Work], machine: Sequence[str]) -> str:
    """Format the description of the machine and the tables as Markdown."""
    lines = [*(f"- {line}" for line in machine), ""]
    for section, (header, *rows) in _sections(works).items():
        rule = ["---", "---", *("---:" for _ in header[3:]), "---"]
        lines += [f"### {section}", "", *(f"| {' | '.join(row)} |" for row in (header, rule))]
        for row in rows:
            cells = [cell.replace("\n", "<br>").replace("~", "\\~").replace("*", "\\*") for cell in row]
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    return "\n".join([*lines, *(f"- {note}" for note in notes(works))]) + "\n"


def as_json(works: Sequence[Work], machine: Sequence[str]) -> str:
    """Format every round of every figure as JSON."""
    figures = []
    for work in works:
        verdicts = [{"goal": text, "met": met} for text, met in work.verdicts()]
        figures.append({**dataclasses.asdict(work), "goals": verdicts})
    return json.dumps({"machine": list(machine), "works": figures}, indent=1) + "\n"
