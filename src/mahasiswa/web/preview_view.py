"""Arranges the preview of an import for its page: tables of changes, and groups of rows with the same message."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain, islice
from typing import Generic, Literal, NamedTuple, TypeVar

from mahasiswa import sheets, wording
from mahasiswa.record import Mahasiswa

T = TypeVar("T")

Alert = Literal["", "changed", "unseen"]
"""The reason to show a preview again: records have changed since, or a repair was not previewed yet."""

FIRST_ROWS = 10
"""Rows of a table that are visible at first. The others are folded."""

OPEN_MAX_ROWS = 500
"""Maximum rows of a table that are in the page although they are folded. More rows come when a person asks for them."""

MAX_GROUPS = 100
"""Maximum messages in one part of the page."""

EXAMPLES = 10
"""Rows that a group of notices shows."""

REPAIRED_MAX_BYTES = 20_000
"""Maximum size of the texts that a page offers to repair. As a form they are at most three times as long."""


class Group(NamedTuple, Generic[T]):
    """Rows with the same message."""

    numbers: str  # `4, 9, 12–30`
    message: str
    rows: Sequence[T]


class Repair(NamedTuple):
    """A row that a person can repair: three texts for inputs, and whether a tick is enough."""

    number: int
    cells: tuple[str, str, str]
    can_be_ticked: bool


class Table(NamedTuple):
    """The entries of one part: visible ones, folded ones, and the number of those that are not in the page."""

    name: str
    heading: str
    total: int
    visible: Sequence[sheets.Entry]
    folded: Sequence[sheets.Entry]
    is_open: bool

    @property
    def hidden(self) -> int:
        """The number of entries after the visible ones."""
        return self.total - len(self.visible)


class PreviewView:
    """The page of a preview. `opened` names the part that is shown with all its rows."""

    def __init__(self, reading: sheets.Reading, plan: sheets.Plan, data: str) -> None:
        self.reading = reading
        self.book = reading.book
        self.plan = plan
        self.data = data
        self.absent = 0
        """The number of stored records that the file lacks. `absentees` has the first of them if they are shown."""
        self.absentees = list[Mahasiswa]()
        self.opened = ""
        self.alert: Alert = ""

    @property
    def problem(self) -> str:
        """The reason why no row can be saved. It is empty if the list already has all records of the file."""
        if not self.reading.answers:
            is_template = self.book.sheet == wording.TEMPLATE_SHEET and self.book.columns.titles == list(wording.HEADER)
            return wording.TEMPLATE_EMPTY if is_template else wording.NO_ROWS
        plan = self.plan
        return "" if plan.new or plan.changed or plan.same or plan.doubted else wording.NO_ROW_TO_SAVE

    @property
    def has_choice(self) -> bool:
        """Whether another column or another sheet could be chosen."""
        return len(self.book.columns.titles) > len(wording.HEADER) or bool(self.book.others) or self.book.is_whole

    @cached_property
    def noticed(self) -> list[Group[sheets.Entry]]:
        """The notices about rows that can be saved."""
        entries = sorted(chain(self.plan.new, self.plan.changed, self.plan.same), key=_number_of_entry)
        return _grouped((notice, entry.row.number, entry) for entry in entries for notice in entry.notices)

    @cached_property
    def checked_rows(self) -> int:
        """The number of rows with a notice."""
        return sum(bool(entry.notices) for part in (self.plan.new, self.plan.changed, self.plan.same) for entry in part)

    @cached_property
    def skipped(self) -> list[Group[sheets.Skipped]]:
        """The rows that were set aside."""
        return _grouped((row.reason, row.number, row) for row in self.plan.skipped)

    @cached_property
    def repairs(self) -> list[Group[Repair]]:
        """The rows to repair. Only the first of them have inputs."""
        cells_of = {number: cells for number, *cells in self.reading.rows}
        problems = [(row.number, row.problem, False) for row in self.plan.wrong]
        problems += [(entry.row.number, wording.NO_DIGIT, True) for entry in self.plan.doubted]
        left, size = sheets.MAX_REPAIRED_ROWS, 0
        groups: dict[str, tuple[list[int], list[Repair]]] = {}
        for number, problem, can_be_ticked in sorted(problems):
            numbers, repairs = groups.setdefault(problem, ([], []))
            numbers.append(number)
            nim, nama, alamat = map(sheets.in_input, cells_of[number])
            size += len((nim + nama + alamat).encode())
            left -= 1
            if left >= 0 and size <= REPAIRED_MAX_BYTES:
                repairs.append(Repair(number, (nim, nama, alamat), can_be_ticked))
        return [Group(wording.ranges(numbers), problem, rows) for problem, (numbers, rows) in _first(groups.items())]

    @property
    def unshown_repairs(self) -> int:
        """The number of rows that have no inputs in this page."""
        return len(self.plan.wrong) + len(self.plan.doubted) - sum(len(group.rows) for group in self.repairs)

    def table(self, name: str) -> Table:
        """The part `baru`, `berubah` or `sama`."""
        heading, entries = {
            "baru": ("Baru", self.plan.new),
            "berubah": ("Berubah", self.plan.changed),
            "sama": ("Tidak berubah", self.plan.same),
        }[name]
        first = 0 if name == "sama" else FIRST_ROWS
        is_open = self.opened == name
        rest = entries[first:]
        folded = rest if is_open or len(rest) <= OPEN_MAX_ROWS else []
        return Table(name, heading, len(entries), entries[:first], folded, is_open)


def _number_of_entry(entry: sheets.Entry) -> int:
    return entry.row.number


def _grouped(messages: Iterable[tuple[str, int, T]]) -> list[Group[T]]:
    """Rows by message, in the order of the first row of each."""
    groups: dict[str, tuple[list[int], list[T]]] = {}
    for message, number, row in messages:
        numbers, rows = groups.setdefault(message, ([], []))
        numbers.append(number)
        if len(rows) < EXAMPLES:
            rows.append(row)
    return [Group(wording.ranges(numbers), message, rows) for message, (numbers, rows) in _first(groups.items())]


def _first(groups: Iterable[T]) -> list[T]:
    return list(islice(groups, MAX_GROUPS))
