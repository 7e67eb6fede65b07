"""Arranges a stage for the page of its preview or selection, which is bounded by its lines, its columns and its texts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from mahasiswa.sheets import columns, rules
from mahasiswa.sheets.columns import Table
from mahasiswa.sheets.stage import Line, Stage
from mahasiswa.wording import LABELS, PARTS

FIRST_LINES = 10  # of each group
PAGE_LINES = 200  # of the group that a person has opened
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
    def repair(self) -> str:
        """The text of the button that repairs all lines, or a blank text."""
        return _formatted(rules.REPAIRS.get(self.name, ""), self.lines[0], count=str(self.total))


def shown_stage(stage: Stage, opened: str, start: int) -> Mapping[str, object]:
    """The values of the page of a stage. `opened` is the group that is shown with up to PAGE_LINES lines, from `start` on."""

    def groups(statement: str, totals: Iterable[tuple[str, int]]) -> Sequence[Group]:
        found = []
        for name, total in totals:
            limit = PAGE_LINES if name == opened else FIRST_LINES
            first = start if name == opened and start < total else 0
            found.append(Group(name, total, stage.lines(statement, name, limit, first), first))
        return found

    counts = stage.counts()
    sheets = stage.sheets()
    return {
        "identifier": stage.path.name,
        "facts": stage.facts(),
        "sheets": sheets,
        "choosable": list(_choosable(sheets)),
        "counts": counts,
        "parts": groups("of_state", [(name, counts[name]) for name in PARTS if counts[name]]),
        "problems": groups("of_problem", stage.ask("problems")),
        "skipped": groups("of_reason", stage.ask("reasons")),
        "opened": opened,
        "start": start,
        "page_lines": PAGE_LINES,
    }


def _choosable(sheets: Sequence[Table]) -> Iterator[Table]:
    """The sheets whose columns the page shows: first those that need a choice."""
    room = COLUMNS_MAX
    for sheet in sorted(sheets, key=lambda sheet: not (sheet.is_read and sheet.doubt)):
        room -= sheet.width
        if room >= 0:
            yield sheet


def said(line: Line) -> str:
    """The problem of a line."""
    return _formatted(rules.PROBLEMS[line.problem], line)


def _formatted(text: str, line: Line, **values: str) -> str:
    short = {name: str(value)[:TEXT_MAX_CHARACTERS] for name, value in line._asdict().items()}
    return text.format_map({**short, "bare": rules.bare_nim(line.nim), **values})
