"""Arranges the columns of a file for its preview: the line about how they are read, and the selects."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mahasiswa import wording
from mahasiswa.record import FIELDS, Field
from mahasiswa.sheets import public as sheets

MAX_SELECTS = 400  # maximum selects of a page; the columns of further tables are only named
MAX_UNREAD_TITLES = 12  # maximum titles in the line about columns that are not read


class ColumnSelect(NamedTuple):
    """A column with its select. `role` is its field, or a blank text."""

    name: str  # of the field in the form
    letter: str
    title: str
    examples: Sequence[str]
    role: str


class ColumnsPart(NamedTuple):
    """The columns of all tables with the same titles. `read` are the labels of the fields with their columns."""

    places: Sequence[str]
    read: Sequence[tuple[str, str]]
    unread: Sequence[str]
    others: int  # columns that are not read, and not in `unread`
    choices: Sequence[ColumnSelect]


def columns_parts(file: sheets.CarriedFile) -> list[ColumnsPart]:
    """The columns of the tables of a file, in their order."""
    tables: dict[str, list[sheets.Columns]] = {}
    for columns in file.tables:
        tables.setdefault(columns.key, []).append(columns)

    parts: list[ColumnsPart] = []
    selects = 0
    for columns, *others in tables.values():
        choices = list(_choices(columns))
        selects += len(choices)
        unread = [choice.title or choice.letter for choice in choices if not choice.role]
        places = {
            file.places[table.first // sheets.SHEET_ROWS]: None for table in (columns, *others)
        }
        part = ColumnsPart(
            list(places),
            [(wording.LABELS[field], _letters(columns, field)) for field in FIELDS],
            unread[:MAX_UNREAD_TITLES],
            len(unread[MAX_UNREAD_TITLES:]),
            choices if selects <= MAX_SELECTS else [],
        )
        parts.append(part)
    return parts


def _choices(columns: sheets.Columns) -> Iterable[ColumnSelect]:
    for column, title in enumerate(columns.titles):
        examples = columns.examples[column]
        if title or examples:
            yield ColumnSelect(
                f"kolom-{columns.key}-{column}",
                wording.column_letter(column),
                title,
                examples,
                columns.roles.get(column, ""),
            )


def _letters(columns: sheets.Columns, field: Field) -> str:
    """The columns of a field: `B (NIPD)`, `D–H` or `D, H`; blank if there is none."""
    found = columns.of(field)
    spans = [
        (wording.column_letter(a), wording.column_letter(b - 1)) for a, b in sheets.ranges_of(found)
    ]
    letters = ", ".join(first if first == last else f"{first}–{last}" for first, last in spans)
    title = columns.titles[found[0]] if len(found) == 1 else ""
    is_other = title.casefold() not in ("", wording.LABELS[field].casefold())
    return f"{letters} ({title})" if is_other else letters
