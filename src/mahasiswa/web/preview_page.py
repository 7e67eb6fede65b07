"""Arranges previews for their pages, which are bounded by their rows and by the length of each text."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, groupby, islice, starmap
from operator import attrgetter
from typing import Literal, NamedTuple

from mahasiswa import wording
from mahasiswa.record import Mahasiswa
from mahasiswa.sheets import public as sheets
from mahasiswa.sheets.selection import Selection
from mahasiswa.web.columns_page import ColumnsPart, columns_parts

Row = sheets.PlannedRow | sheets.RejectedRow

Alert = Literal["", "changed", "asked", "repaired"]
"""The reason to show a preview again: records have changed since, a question is open, or a repair or a choice is new."""

FIRST_ROWS = 10  # of a table, which are visible at first; the others are folded
PAGE_ROWS = 500  # of one part, also if they are folded; more rows come when a person asks for them
MAX_GROUPS = 100  # messages in one part of the page
EXAMPLES = 10  # rows without inputs that a group shows
MAX_REPAIRED_ROWS = 100  # with inputs, each up to six
REPAIRED_MAX_BYTES = 20_000  # of texts to repair; as a form they are at most three times as long
# Maximum numbers and ranges of rows before a message. The message says how many other rows have it.
MAX_SPANS = 20


class Group(NamedTuple):
    """Rows with the same message. Only `rows` are shown; `others` is the number of the rest."""

    numbers: str  # `Baris 4, 9, 12–30`, or `Kelas A, baris 4; Kelas B, baris 9`
    message: str
    rows: Sequence[Row]
    others: int
    inputs: Collection[int] = ()  # the numbers of the rows that have inputs here


class Part(NamedTuple):
    """The planned rows of one part: visible ones, folded ones, and those from `next` on, which come by a button."""

    name: str
    total: int
    visible: Sequence[sheets.PlannedRow]
    folded: Sequence[sheets.PlannedRow]
    next: int


@dataclass(frozen=True)
class PreviewPage:
    """The page of a preview of an import. `opened` names the part that is shown with its rows from `start` on.

    `file` is the part of the cleaned file that the field `data` carries. `absent` is the number of stored records that
    the file lacks, of `total`, and `absentees` has the first of them if they are shown.
    """

    file: sheets.CarriedFile
    cleaned: sheets.CleanedFile
    plan: sheets.ImportPlan
    file_questions: Sequence[sheets.Question]  # that do not depend on the stored records
    data: str
    absent: int
    total: int
    absentees: Sequence[Mahasiswa]
    opened: str
    start: int
    alert: Alert
    ticks: Collection[str]  # the answers of the questions that are ticked

    @cached_property
    def questions(self) -> list[sheets.Question]:
        """The questions about the whole file, and then those about rows that are not stored already.

        Some rows can be saved only after a question is answered.
        """
        stored = {row.number for row in self.plan.same}
        questions = [*self.file_questions, *self.plan.questions]
        of_file = [question for question in questions if not question.rows]
        of_rows = [question for question in questions if not stored.issuperset(question.rows)]
        return of_file + of_rows

    @property
    def problem(self) -> str:
        """The reason why no row can be saved. It is empty if the list already has all records of the file."""
        if not self.cleaned.results:
            is_template = self.file.read_sheets == [wording.TEMPLATE_SHEET]
            return wording.TEMPLATE_EMPTY if is_template else wording.NO_ROWS
        has_doubt = any(row.problem in wording.DOUBTS for row in self.plan.wrong)
        has_row = self._accepted or has_doubt
        return self.missing_column or ("" if has_row else wording.NO_ROW_TO_SAVE)

    @property
    def missing_column(self) -> str:
        """The message about a column without which no new record can be made, or a blank text."""
        if self.alert == "changed":  # a record is gone, and no column would bring it back
            return ""
        return next(
            (row.problem for row in self.plan.wrong if row.problem in wording.MISSING_COLUMNS), ""
        )

    @property
    def offers_all_sheets(self) -> bool:
        """Whether the page carries a sheet that was not read, and all of them together are not too long."""
        file = self.file
        rows = [row for sheet in file.sheets for row in sheet.rows]
        is_fitting = len(rows) <= sheets.UPLOAD_MAX_ROWS
        return is_fitting and len(file.sheets) > len(file.read_sheets)

    @property
    def offers_absentees(self) -> bool:
        """Whether the file is so complete that a person may want to delete the records that it lacks."""
        has_doubt = self.plan.wrong or self.checked_rows
        is_nearly_complete = 0 < 2 * self.absent <= self.total
        has_rows = self.cleaned.results and self.cleaned.has_all_rows()
        return bool(has_rows) and not has_doubt and is_nearly_complete

    @cached_property
    def columns(self) -> list[ColumnsPart]:
        """The columns of the tables."""
        return columns_parts(self.file)

    @cached_property
    def checked_rows(self) -> list[sheets.PlannedRow]:
        """The rows with a notice."""
        return [row for row in self._accepted if row.notices]

    @property
    def unshown_repairs(self) -> int:
        """The number of rows that have no inputs in this page, although a person can repair them."""
        with_inputs = sum(len(group.inputs) for group in self.repairs)
        return len(self._repairable) - with_inputs

    @cached_property
    def noticed(self) -> list[Group]:
        """The rows to check by their notices."""
        return self._groups((notice, row) for row in self._accepted for notice in row.notices)

    @cached_property
    def skipped(self) -> list[Group]:
        """The rows that are skipped, by their reasons."""
        return self._groups((row.problem, row) for row in self.plan.skipped)

    @cached_property
    def repairs(self) -> list[Group]:
        """The rows to repair, by their problems."""
        return self._groups((row.problem, row) for row in self._left)

    @cached_property
    def inputs(self) -> Mapping[int, Sequence[str]]:
        """The NIM, Nama and Alamat of the rows that have inputs: first those to repair, then those to check."""
        numbers = [row.number for row in self._repairable]
        numbers += [row.number for row in self.checked_rows]
        cells_of = dict(self.cleaned.rows)
        texts = {
            number: [sheets.in_input(cell) for cell in cells_of[number][: len(wording.HEADER)]]
            for number in numbers[:MAX_REPAIRED_ROWS]
        }
        count = fitting(map("".join, texts.values()))
        return dict(islice(texts.items(), count))

    @cached_property
    def _repairable(self) -> list[sheets.RejectedRow]:
        """The rows that a person can repair; no text replaces a column that is missing."""
        return [row for row in self._left if row.problem not in wording.MISSING_COLUMNS]

    @cached_property
    def _left(self) -> list[sheets.RejectedRow]:
        """The rows that are not saved as they are, by their numbers."""
        rows = self.plan.wrong
        if self.alert != "changed":
            return rows
        gone = set(self.cleaned.file.changed)
        return [row._replace(problem=wording.GONE) if row.number in gone else row for row in rows]

    @cached_property
    def _accepted(self) -> list[sheets.PlannedRow]:
        """The rows that can be saved or are already in the list, by their numbers."""
        plan = self.plan
        rows = plan.new + plan.changed + plan.same
        return sorted(rows, key=attrgetter("number"))

    @cached_property
    def parts(self) -> list[Part]:
        """The parts of the changes, in the order of the page."""
        rows = {"berubah": self.plan.changed, "baru": self.plan.new, "sama": self.plan.same}
        return [self._part(name, rows[name]) for name in wording.PARTS]

    def _groups(self, messages: Iterable[tuple[str, Row]]) -> list[Group]:
        """The rows of each message, in the order of the first row of each. A row has inputs below its first message."""
        groups: dict[str, list[Row]] = {}
        for message, row in messages:
            groups.setdefault(message, []).append(row)
        found = []
        placed: set[int] = set()
        for message, rows in islice(groups.items(), MAX_GROUPS):
            numbers = [row.number for row in rows]
            inputs = self.inputs.keys() & set(numbers) - placed
            placed |= inputs
            shown = [row for at, row in enumerate(rows) if at < EXAMPLES or row.number in inputs]
            others = len(rows) - len(shown)
            named = self.rows_named(numbers)
            found.append(Group(named, message, shown, others, inputs))
        return found

    def rows_named(self, numbers: Iterable[int]) -> str:
        """Ascending numbers of rows, as a person would write them. Only MAX_SPANS of them stand in it."""
        spans = sheets.ranges_of(numbers)
        names = self.file.places
        parts = []
        for sheet, of_sheet in groupby(
            spans[:MAX_SPANS], lambda span: span[0] // sheets.SHEET_ROWS
        ):
            texts = ", ".join(starmap(_span, of_sheet))
            place = f"{names[sheet]}, baris" if len(names) > 1 else "Baris"
            parts.append(f"{place} {texts}")
        if others := sum(end - first for first, end in spans[MAX_SPANS:]):
            number = wording.number(others)
            rest = wording.OTHER_ROWS.format(number=number)
            parts[-1] += f" {rest}"
        return "; ".join(parts)

    def _part(self, name: str, rows: Sequence[sheets.PlannedRow]) -> Part:
        visible = rows[: 0 if name == "sama" else FIRST_ROWS]
        is_open = self.opened == name
        start = len(visible)
        if is_open:
            start = min(max(self.start, start), len(rows))
        is_short = len(rows) - start <= PAGE_ROWS
        end = start + PAGE_ROWS if is_open or is_short else start
        folded = rows[start:end]
        return Part(name, len(rows), visible, folded, start + len(folded))


def _span(first: int, end: int) -> str:
    """The numbers of some rows of a sheet."""
    start = first % sheets.SHEET_ROWS
    more = end - first - 1
    return f"{start}–{start + more}" if more else str(start)


def shown_missing(selection: Selection) -> list[tuple[int, str, str]]:
    """The number, the text and the reason of each row that was not found, as far as they have inputs."""
    rows = [(row.number, sheets.in_input(row.nim), reason) for row, reason in selection.missing]
    return rows[: fitting(text for _, text, _ in rows)]


def fitting(texts: Iterable[str]) -> int:
    """The number of rows with these texts that get inputs."""
    sizes = accumulate(len(text.encode()) for text in islice(texts, MAX_REPAIRED_ROWS))
    return sum(size <= REPAIRED_MAX_BYTES for size in sizes)
