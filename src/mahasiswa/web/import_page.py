"""Arranges an upload for the page of its preview, which is bounded by its lines, its columns and its texts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from mahasiswa.sheets import columns, rules
from mahasiswa.sheets.stage import Facts, Line, Stage, StagedSheet
from mahasiswa.wording import LABELS, PARTS, column_letter

FIRST_LINES = 10  # of each part
PAGE_LINES = 500  # of the part that a person has opened
SKIPPED_LINES = 3  # examples of each reason to skip lines
COLUMNS_MAX = 300  # that a person can choose; those of further sheets are not shown
UNREAD_TITLES_MAX = 10  # that the page names
# Maximum length of texts to repair. As a form they are at most nine times as long, and fit into PREVIEW_FORM_MAX_BYTES.
INPUTS_MAX_CHARACTERS = 100_000
TEXT_MAX_CHARACTERS = 200  # of a text that the page only shows

CHOICES = {
    label: part for part, label in reversed([(part, columns.label(part)) for part in columns.PARTS])
}
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
    def sentence(self) -> str:
        """The problem of these lines, as it is for the first of them."""
        return said(self.lines[0])

    @property
    def is_doubt(self) -> bool:
        return not rules.is_fault(self.name)

    @property
    def repair(self) -> str:
        """The text of the button that repairs all lines, or a blank text."""
        return _formatted(rules.PROBLEMS[self.name].repair, self.lines[0], count=str(self.total))


class Read(NamedTuple):
    """Sheets that are read alike: for each field its columns, and the titles of those that are not read."""

    names: Sequence[str]
    fields: Sequence[
        tuple[str, str]
    ]  # the name of the field, and `B (NIPD)`, `D–H` or a blank text
    unread: Sequence[str]
    others: int  # further ones


class ImportPage(NamedTuple):
    """The page of a preview. `opened` is the group that is shown with up to PAGE_LINES lines."""

    identifier: str
    facts: Facts
    sheets: Sequence[StagedSheet]
    counts: Mapping[str, int]
    parts: Sequence[Group]
    problems: Sequence[Group]
    skipped: Sequence[Group]
    opened: str
    start: int
    alert: str | None

    @classmethod
    def of(cls, stage: Stage, opened: str, start: int, alert: str | None) -> "ImportPage":
        """Read the page of an upload."""
        counts = stage.counts()
        problems = stage.ask("problems")
        is_one_problem = any(opened == code for code, _ in problems)

        def group(statement: str, name: str, total: int, few: int) -> Group:
            first = min(start, total) if name == opened else 0
            limit = PAGE_LINES if name == opened else few
            return Group(name, total, stage.lines(statement, name, limit, first), first)

        # With all lines of one problem, those of others would be too many fields.
        few = 1 if is_one_problem else FIRST_LINES
        return cls(
            stage.path.name,
            stage.facts(),
            stage.sheets(),
            counts,
            [group("of_state", name, counts[name], FIRST_LINES) for name in PARTS if counts[name]],
            list(_fitting(group("of_problem", code, total, few) for code, total in problems)),
            [
                group("of_reason", reason, total, SKIPPED_LINES)
                for reason, total in stage.ask("reasons")
            ],
            opened,
            start,
            alert,
        )

    @property
    def opens_problem(self) -> bool:
        """Whether the page shows many lines with one problem. Then a choice of columns would be too many fields."""
        return any(group.name == self.opened for group in self.problems)

    @property
    def must_choose(self) -> bool:
        """Whether a person must choose the columns first."""
        return any(sheet.is_read and sheet.doubt for sheet in self.sheets)

    @property
    def left(self) -> int:
        """The number of lines that are not saved, although they may be of students."""
        by_person = (group.total for group in self.skipped if group.name == "person")
        return self.counts["salah"] + sum(by_person)

    @property
    def read(self) -> list[Read]:
        """The sheets that are read, by their columns."""
        read = [sheet for sheet in self.sheets if sheet.is_read]
        groups = groupby(read, key=lambda sheet: (sheet.titles, sheet.columns))
        return [_read([sheet.name for sheet in alike], *key) for key, alike in groups]

    @property
    def choosable(self) -> Iterator[StagedSheet]:
        """The sheets whose columns the page shows: first those that need a choice."""
        room = COLUMNS_MAX
        for sheet in sorted(self.sheets, key=lambda sheet: not (sheet.is_read and sheet.doubt)):
            room -= len(sheet.titles)
            if room >= 0:
                yield sheet

    def place(self, line: Line) -> str:
        """The number of a line, with the name of its sheet if several are read."""
        names = {sheet.id: sheet.name for sheet in self.sheets if sheet.is_read}
        return f"{names[line.sheet]}, {line.number}" if len(names) > 1 else str(line.number)


def part_label(part: str) -> str:
    """The name of a part of a record, or a blank text."""
    return columns.label(part) if part else ""


def said(line: Line) -> str:
    """The problem of a line."""
    return _formatted(rules.PROBLEMS[line.problem].sentence, line)


def _formatted(text: str, line: Line, **values: str) -> str:
    short = {name: str(value)[:TEXT_MAX_CHARACTERS] for name, value in line._asdict().items()}
    return text.format_map({**short, "bare": rules.bare_nim(line.nim), **values})


def _fitting(groups: Iterable[Group]) -> Iterator[Group]:
    """The groups with as many lines as fit into a form. The first line of a group is always shown."""
    room = INPUTS_MAX_CHARACTERS
    for group in groups:
        lines: list[Line] = []
        for line in group.lines:
            room -= sum(map(len, line[2:5]))
            if room < 0 and lines:
                break
            lines.append(line)
        yield group._replace(lines=lines)


def _read(names: Sequence[str], titles: Sequence[str], parts: Mapping[int, str]) -> Read:
    fields = []
    for field, name in LABELS.items():
        found = sorted(index for index, part in parts.items() if columns.PARTS[part].field == field)
        letters = "–".join(column_letter(index) for index in (*found[:1], *found[1:][-1:]))
        title = titles[found[0]] if len(found) == 1 and found[0] < len(titles) else ""
        is_telling = title and title.casefold() != name.casefold()
        fields.append((name, f"{letters} ({title})" if is_telling else letters))
    unread = [title for index, title in enumerate(titles) if title and index not in parts]
    others = max(0, len(unread) - UNREAD_TITLES_MAX)
    return Read(names, fields, unread[:UNREAD_TITLES_MAX], others)
