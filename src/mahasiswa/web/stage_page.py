"""Arranges a stage for the page of its preview or selection, which is bounded by its lines, its columns and its texts."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from mahasiswa.sheets import columns, rules
from mahasiswa.sheets.columns import Table
from mahasiswa.sheets.stage import Facts, Line, Stage
from mahasiswa.wording import LABELS, PARTS

FIRST_LINES = 10  # of each group
PAGE_LINES = 500  # of the group that a person has opened
COLUMNS_MAX = 300  # that a person can choose; those of further sheets are not shown
TEXT_MAX_CHARACTERS = 200  # of a text that the page only shows

CHOICES = {LABELS.get(part, part): part for part in columns.FIELD_OF}
"""The parts that a column can have, by their names. Of parts with the same name, the first one."""


class Group(NamedTuple):
    """Lines of one state, with one problem, or skipped for one reason: those from `start` on, of `total`."""

    name: str
    total: int
    lines: Sequence[Line]
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.lines)

    @property
    def is_doubt(self) -> bool:
        return not rules.is_fault(self.name)

    @property
    def repair(self) -> str:
        """The text of the button that repairs all lines, or a blank text."""
        return _formatted(rules.REPAIRS.get(self.name, ""), self.lines[0], count=str(self.total))


class StagePage(NamedTuple):
    """The page of a stage. `opened` is the group that is shown with up to PAGE_LINES lines."""

    identifier: str
    facts: Facts
    sheets: Sequence[Table]
    counts: Mapping[str, int]
    parts: Sequence[Group]
    problems: Sequence[Group]
    skipped: Sequence[Group]
    opened: str
    start: int

    @classmethod
    def of(cls, stage: Stage, opened: str, start: int) -> "StagePage":
        """Read the page of a stage."""
        counts = stage.counts()
        problems = stage.ask("problems")

        def group(statement: str, name: str, total: int, few: int) -> Group:
            first = min(start, total) if name == opened else 0
            limit = PAGE_LINES if name == opened else few
            return Group(name, total, stage.lines(statement, name, limit, first), first)

        # With all lines of one problem, those of others would be too many fields.
        few = 1 if opened in dict(problems) else FIRST_LINES
        return cls(
            stage.path.name,
            stage.facts(),
            stage.sheets(),
            counts,
            [group("of_state", name, counts[name], FIRST_LINES) for name in PARTS if counts[name]],
            [group("of_problem", code, total, few) for code, total in problems],
            [
                group("of_reason", reason, total, FIRST_LINES)
                for reason, total in stage.ask("reasons")
            ],
            opened,
            start,
        )

    @property
    def choosable(self) -> Iterator[Table]:
        """The sheets whose columns the page shows: first those that need a choice."""
        room = COLUMNS_MAX
        for sheet in sorted(self.sheets, key=lambda sheet: not (sheet.is_read and sheet.doubt)):
            room -= sheet.width
            if room >= 0:
                yield sheet


def said(line: Line) -> str:
    """The problem of a line."""
    return _formatted(rules.PROBLEMS[line.problem], line)


def _formatted(text: str, line: Line, **values: str) -> str:
    short = {name: str(value)[:TEXT_MAX_CHARACTERS] for name, value in line._asdict().items()}
    return text.format_map({**short, "bare": rules.bare_nim(line.nim), **values})
