"""Arranges the preview of an import for its page: parts with the changed records, and groups of rows with the same message."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, islice, takewhile
from typing import Generic, Literal, NamedTuple, TypeVar

from markupsafe import escape

from mahasiswa import wording
from mahasiswa.record import Mahasiswa
from mahasiswa.sheets import public as sheets

Row = TypeVar("Row", sheets.PlannedRow, sheets.RejectedRow)

Alert = Literal["", "changed", "repaired", "chosen"]
"""The reason to show a preview again: records have changed since, or a repair or a choice was not previewed yet."""

FIRST_ROWS = 10  # of a table, which are visible at first; the others are folded
FOLDED_MAX_ROWS = 500  # that are in the page although they are folded; more rows come when a person asks for them
MAX_GROUPS = 100  # messages in one part of the page
EXAMPLES = 10  # rows that a group of notices shows
MAX_REPAIRED_ROWS = 100  # with inputs, each up to six, and rows of a group with a tick
MAX_SPANS = 20  # numbers and ranges of rows before a message, which says how many other rows have it
REPAIRED_MAX_BYTES = 20_000  # of texts to repair; as a form they are at most three times as long

PREVIEW_MAX_BYTES, PREVIEW_MAX_RATIO = 64 << 10, 8
"""Maximum size of the page: PREVIEW_MAX_BYTES, and in addition PREVIEW_MAX_RATIO times the size of its form field. Without
this bound, a field of 132 bytes, which unpacks to many equal texts, could demand a page of 118 MB."""

FIXED_BYTES = 24 << 10  # the part of PREVIEW_MAX_BYTES for everything that does not depend on the file

# Maximum bytes of markup in the templates. A row to repair is named before its inputs and in the label of each.
COLUMN_MARKUP, SHEET_MARKUP, GROUP_MARKUP, EXAMPLE_MARKUP, NEAR_MARKUP = 150, 110, 60, 90, 200
ROW_MARKUP, CHANGED_ROW_MARKUP, REPAIR_MARKUP, REPAIR_NAMES = 60, 170, 700, 4


class Group(NamedTuple, Generic[Row]):
    """Rows with the same message. Only the first `rows` are shown; `others` is the number of the rest."""

    numbers: str  # `Baris 4, 9, 12–30`, or `Kelas A, baris 4; Kelas B, baris 9`
    message: str
    rows: Sequence[Row]
    others: int


class Part(NamedTuple):
    """The planned rows of one part: visible ones, folded ones, and those from `next` on, which come by a button."""

    name: str
    total: int
    visible: Sequence[sheets.PlannedRow]
    folded: Sequence[sheets.PlannedRow]
    next: int


@dataclass
class PreviewView:
    """The page of a preview. `opened` names the part that is shown with its rows from `start` on.

    `absent` is the number of stored records that the file lacks, and `absentees` has the first of them if they are
    shown. All parts share the bytes that are left in the page, so each part is made once, the most important one first.
    """

    cleaned: sheets.CleanedFile
    plan: sheets.ImportPlan
    data: str
    absent: int
    absentees: Sequence[Mahasiswa]
    opened: str
    start: int
    alert: Alert

    def __post_init__(self) -> None:
        plan, self.file = self.plan, self.cleaned.file
        self.columns = list(zip(wording.HEADER, self.file.columns.of_fields, strict=True))
        self._left = PREVIEW_MAX_BYTES + (PREVIEW_MAX_RATIO - 1) * len(self.data) - FIXED_BYTES
        titles = self.file.columns.titles
        self._fits(COLUMN_MARKUP * len(titles))
        self.titles = [title if self._fits(0, title, title, title) else "" for title in titles]
        self.read_sheets = self._names(self.file.read_sheets)
        self.kept_sheets = self._names(sheet.name for sheet in self.file.sheets)
        self.other_sheets = self._names(self.file.other_sheets)
        rows = sorted(chain(plan.new, plan.changed, plan.same), key=lambda planned: planned.number)
        self.noticed = self._groups(((notice, row) for row in rows for notice in row.notices), self._fits_notice)
        self.repairs = self._repairs()
        self.skipped = self._groups(
            ((row.problem, row) for row in plan.skipped),
            lambda row, shown: shown < EXAMPLES and self._fits(EXAMPLE_MARKUP, *row.cells),
        )
        # The part that a person has opened takes all that the others leave.
        by_name = {name: self._part(name) for name in sorted(wording.PARTS, key=lambda name: name == self.opened)}
        self.parts = [by_name[name] for name in wording.PARTS]
        self.absentees = [record for record in self.absentees if self._fits(ROW_MARKUP, *record)]

    @property
    def problem(self) -> str:
        """The reason why no row can be saved. It is empty if the list already has all records of the file."""
        file, plan = self.file, self.plan
        if not self.cleaned.results:
            is_template = (file.read_sheets, file.columns.titles) == ([wording.TEMPLATE_SHEET], list(sheets.TITLES))
            return wording.TEMPLATE_EMPTY if is_template else wording.NO_ROWS
        has_row = plan.new or plan.changed or plan.same or plan.doubted
        return self.missing_column or ("" if has_row else wording.NO_ROW_TO_SAVE)

    @property
    def missing_column(self) -> str:
        """The message about a column without which no new record can be made, or a blank text."""
        return next((row.problem for row in self.plan.wrong if row.problem in wording.MISSING_COLUMNS), "")

    @property
    def has_choice(self) -> bool:
        """Whether another column or another sheet could be chosen."""
        file = self.file
        return len(file.columns.titles) > len(wording.HEADER) or bool(file.other_sheets) or file.has_all_cells

    @property
    def checked_rows(self) -> int:
        """The number of rows with a notice."""
        return sum(bool(row.notices) for row in chain(self.plan.new, self.plan.changed, self.plan.same))

    @property
    def unshown_repairs(self) -> int:
        """The number of rows that have no inputs in this page, although a person can repair them."""
        rows = len(self.plan.wrong) + len(self.plan.doubted) - sum(len(group.rows) for group in self.repairs)
        return rows - sum(row.problem in wording.MISSING_COLUMNS for row in self.plan.wrong)

    def row(self, number: int) -> str:
        """The name of a row in a table."""
        names = self.file.read_sheets
        return sheets.row_name(number, names) if len(names) > 1 else str(number)

    def _fits(self, markup: int, *texts: str) -> bool:
        """Take the bytes of these texts and of their markup from those that are left, if they are."""
        size = markup + sum(len(escape(text).encode()) for text in texts)
        is_fitting = size <= self._left
        self._left -= size if is_fitting else 0
        return is_fitting

    def _names(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if self._fits(SHEET_MARKUP, name, name)]

    def _fits_notice(self, planned: sheets.PlannedRow, shown: int) -> bool:
        if near := planned.near:
            return shown < MAX_REPAIRED_ROWS and self._fits(NEAR_MARKUP, *planned.after, near.nim, near.nama)
        return shown < EXAMPLES and self._fits(EXAMPLE_MARKUP, *planned.after)

    def _repairs(self) -> list[Group[sheets.RejectedRow]]:
        """The rows to repair, with the texts for their inputs. Only the first ones have inputs, if no column is missing."""
        left, size = MAX_REPAIRED_ROWS, 0

        def fits(repair: sheets.RejectedRow, _shown: int) -> bool:
            nonlocal left, size
            if repair.problem in wording.MISSING_COLUMNS:
                return False
            left -= 1
            size += sum(len(text.encode()) for text in repair.cells)
            texts = [*repair.cells, *[self.row(repair.number)] * REPAIR_NAMES]
            return left >= 0 and size <= REPAIRED_MAX_BYTES and self._fits(REPAIR_MARKUP, *texts)

        cells_of = dict(self.cleaned.rows)
        problems = [(row.number, row.problem) for row in self.plan.wrong]
        problems += [(planned.number, wording.NO_DIGIT) for planned in self.plan.doubted]
        rows: list[tuple[str, sheets.RejectedRow]] = []
        for number, problem in sorted(problems):
            nim, nama, alamat = map(sheets.in_input, cells_of[number])
            rows.append((problem, sheets.RejectedRow(number, problem, (nim, nama, alamat))))
        return self._groups(rows, fits)

    def _groups(self, messages: Iterable[tuple[str, Row]], fits: Callable[[Row, int], bool]) -> list[Group[Row]]:
        """The rows of each message, in the order of the first row of each, as far as they fit.

        `fits` gets a row and the number of those of its group that are shown already.
        """
        groups: dict[str, list[Row]] = {}
        for message, row in messages:
            groups.setdefault(message, []).append(row)
        fitting: list[Group[Row]] = []
        for message, rows in islice(groups.items(), MAX_GROUPS):
            spans = self._rows_named(row.number for row in rows)
            if self._fits(GROUP_MARKUP, spans, message):
                shown = [row for _, row in takewhile(lambda item: fits(item[1], item[0]), enumerate(rows))]
                fitting.append(Group(spans, message, shown, len(rows) - len(shown)))
        return fitting

    def _rows_named(self, numbers: Iterable[int]) -> str:
        """Ascending numbers of rows, as a person would write them. Only MAX_SPANS of them stand in it."""
        spans: list[list[int]] = []
        for number in numbers:
            if spans and number == spans[-1][1] + 1:
                spans[-1][1] = number
            else:
                spans.append([number, number])
        names = self.file.read_sheets
        parts = []
        for sheet, of_sheet in groupby(spans[:MAX_SPANS], lambda span: span[0] // sheets.SHEET_ROWS):
            rows = [(first % sheets.SHEET_ROWS, last - first) for first, last in of_sheet]
            texts = ", ".join(f"{first}–{first + more}" if more else str(first) for first, more in rows)
            parts.append(f"{names[sheet]}, baris {texts}" if len(names) > 1 else f"Baris {texts}")
        others = sum(last - first + 1 for first, last in spans[MAX_SPANS:])
        return "; ".join(parts) + (f" {wording.OTHER_ROWS.format(number=wording.number(others))}" if others else "")

    def _part(self, name: str) -> Part:
        """The part `baru`, `berubah` or `sama`."""
        rows = {"baru": self.plan.new, "berubah": self.plan.changed, "sama": self.plan.same}[name]

        def fits(planned: sheets.PlannedRow) -> bool:
            before = (planned.before if name == "berubah" else None) or ()
            texts = (self.row(planned.number), *planned.after, *before)
            return self._fits(CHANGED_ROW_MARKUP if before else ROW_MARKUP, *texts)

        visible = list(takewhile(fits, rows[: 0 if name == "sama" else FIRST_ROWS]))
        is_open = self.opened == name
        start = min(max(self.start, len(visible)), len(rows)) if is_open else len(visible)
        rest = rows[start:]
        folded = list(takewhile(fits, rest)) if is_open or len(rest) <= FOLDED_MAX_ROWS else []
        return Part(name, len(rows), visible, folded, start + len(folded))
