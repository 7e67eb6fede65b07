"""Reads the tables of a sheet: which column is which field, by the titles or else by the cells, and the cells of each row.

A table is sure if its titles say their fields and nothing else. Any other table has a `problem`, which a person answers.
"""

import dataclasses
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice, zip_longest
from operator import itemgetter
from typing import NamedTuple

from mahasiswa import wording
from mahasiswa.record import FIELDS, Field
from mahasiswa.sheets.cell_rules import is_like_a_nim, is_name, stands_for_nothing
from mahasiswa.sheets.cells import (
    SHEET_ROWS,
    BadCell,
    Cell,
    Cells,
    SheetRow,
    SheetRows,
    cell_text,
    has_digit,
    has_digits,
    is_blank,
)
from mahasiswa.sheets.limits import KEY_CHARACTERS, MAX_TABLES, MAX_TITLES, Choice, Roles
from mahasiswa.sheets.questions import Question
from mahasiswa.sheets.sheet_errors import SheetError, TooBig
from mahasiswa.sheets.titles import (
    HEADER_WITHIN_ROWS,
    Heading,
    find_titles,
    headings,
    is_labelled,
    is_total,
    names_nim_and_nama,
    sure_fields,
)

TITLE_MAX_CHARACTERS = 60  # of a title in the choice of columns
MAX_SENTENCES = 5  # about the columns of several tables
EXAMPLES, EXAMPLE_MAX_CHARACTERS = 3, 30  # texts of a column beside its choice
SAMPLE_MAX_CHARACTERS = 60  # of a cell by which a column is recognised

_row_number = re.compile(r"([0-9]{1,3})[.)]?").fullmatch
Titled = Sequence[Cells]
"""The titles of a table, and below them its first rows."""

Texts = Sequence[Sequence[str]]
"""The texts of each column in the first rows of a table."""


class Columns(NamedTuple):
    """The columns of a table: their titles, some of their texts, and the fields that are read.

    `first` is the number of the first row. All tables with the same titles have the same `key`. A
    table with a `problem` may be read wrongly. A table that is not readable gives no rows.
    """

    first: int
    key: str
    titles: Sequence[str]
    examples: Texts
    roles: Roles
    problem: str = ""
    is_readable: bool = True

    def of(self, field: Field) -> list[int]:
        """The columns of a field, in the order of the file."""
        return sorted(column for column, role in self.roles.items() if role == field)


class _Found(NamedTuple):
    """The fields that were found for the columns of a table, and the reason why a person must look at them."""

    roles: Roles
    problem: str = ""


@dataclasses.dataclass
class TableReader:
    """Reads the tables of sheets, one after another. A strict one raises SheetError for a table with a problem."""

    choice: Choice
    is_strict: bool
    tables: list[Columns] = dataclasses.field(default_factory=list)
    places: list[str] = dataclasses.field(default_factory=list)

    def rows(self, sheet: str, rows: SheetRows) -> Iterator[SheetRow]:
        """The NIM, Nama and Alamat of each row of a sheet that is not blank, table by table. Raises SheetError."""
        filled: Iterator[SheetRow] = (row for row in rows if not is_blank(row[1]))
        top = list(islice(filled, HEADER_WITHIN_ROWS))
        _, header = find_titles(list(map(itemgetter(1), top)), nim_only=self.choice.nim_only)
        starts = _starts_of_tables(_titles_of(header))
        filled = chain(top, filled)
        if len(starts) == 1:
            yield from self._tables(sheet, filled)
            return

        whole = list(filled)
        for start, end in zip_longest(starts, starts[1:]):
            letter = wording.column_letter(start)
            name = wording.PART_OF_SHEET.format(sheet=sheet, column=letter).strip()
            before = [None] * start
            part = [(number, [*before, *cells[start:end]]) for number, cells in whole]
            yield from self._tables(name, (row for row in part if not is_blank(row[1])))

    def _tables(self, place: str, filled: Iterator[SheetRow]) -> Iterator[SheetRow]:
        """The NIM, Nama and Alamat of each row of the tables one below another in a sheet, or in a part of one."""
        offset = len(self.places) * SHEET_ROWS
        self.places.append(place)
        nim_only = self.choice.nim_only
        top = list(islice(filled, HEADER_WITHIN_ROWS))
        if nim_only and len(top) == 1:
            top = _nims_below_another(top[0])

        while top:
            below, header = find_titles(list(map(itemgetter(1), top)), nim_only=nim_only)
            filled = chain(top[below:], filled)
            following: list[SheetRow] = []
            own = _until_titles(filled, header, following)
            own_top = list(islice(own, HEADER_WITHIN_ROWS))
            table = [header, *map(itemgetter(1), own_top)]
            columns = self._add(table, offset + top[0][0], place)
            yield from _selected(chain(own_top, own), columns, table, offset)
            # The titles of the next table take at most its first two rows.
            top = following + list(islice(filled, len(following)))

    def _add(self, table: Titled, first: int, sheet: str) -> Columns:
        """Find the columns of a table by its titles, which stand first, or else by its first rows."""
        header, *body = table
        if len(self.tables) == MAX_TABLES:
            raise TooBig(wording.TOO_HEAVY)
        titles = _titles_of(header)
        texts = _texts_of(body, len(titles))
        titles += [""] * (len(texts) - len(titles))
        named = repr(titles if any(titles) else sheet)
        key = hashlib.sha256(named.encode()).hexdigest()[:KEY_CHARACTERS]

        found = self._found(header, texts, key)
        if self.is_strict and found.problem:
            raise SheetError(found.problem)
        roles = found.roles
        fields = list(roles.values())
        is_enough = self.choice.nim_only or {*fields} > {"nim"}
        is_readable = fields.count("nim") == 1 and is_enough
        examples = [
            [text[:EXAMPLE_MAX_CHARACTERS] for text in column[:EXAMPLES]] for column in texts
        ]
        columns = Columns(first, key, titles, examples, roles, found.problem, is_readable)
        self.tables.append(columns)
        return columns

    def _found(self, header: Cells, texts: Texts, key: str) -> _Found:
        """The columns that a person has chosen, unless they are those that were found."""
        found = self._guessed(header, texts)
        columns = self.choice.columns.get(key, found.roles)
        chosen = {column: role for column, role in columns.items() if column < len(texts)}
        return found if chosen == found.roles else _chosen(chosen)

    def _guessed(self, header: Cells, texts: Texts) -> _Found:
        if named := headings(header[:MAX_TITLES]):
            roles, problem = _by_titles(named, texts)
            if "nama" not in roles.values() and any(map(names_nim_and_nama, header)):
                problem = wording.NIM_AND_NAMA
            problem = problem or _without_title(header, roles, texts) or _said_twice(roles, texts)
            return _Found(roles, problem)
        before = self.tables[-1] if self.tables else None
        if before and before.is_readable and _goes_on(before, texts):
            return _Found(before.roles)
        return _by_cells(texts, nim_only=self.choice.nim_only)


def problem_of(tables: Sequence[Columns]) -> str:
    """The reason why no table can be read, or a blank text."""
    is_readable = any(columns.is_readable for columns in tables)
    return "" if is_readable else tables[0].problem


def questions_about(tables: Sequence[Columns]) -> list[Question]:
    """The question about all columns that are not sure, if there are any."""
    problems = dict.fromkeys(columns.problem for columns in tables if columns.problem)
    sentence = " ".join(islice(problems, MAX_SENTENCES))
    return [Question("kolom", sentence)] if sentence else []


def _until_titles(
    rows: Iterator[SheetRow], header: Cells, following: list[SheetRow]
) -> Iterator[SheetRow]:
    """The rows above other titles, whose row is put into `following`."""
    own = _places(header)
    nim = next((column for column, field in sorted(own) if field == "nim"), 0)
    for row in rows:
        cells = row[1][:MAX_TITLES]
        # The title of any column has no digit.
        is_student = nim < len(cells) and has_digit(cell_text(cells[nim]))
        if not is_student and _begins_table(cells, own, nim):
            following.append(row)
            return
        yield row


def _begins_table(cells: Cells, own: set[tuple[int, Field]], nim: int) -> bool:
    """Whether a row has other sure titles than the table, or else titles of two fields in other columns."""
    found = _places(cells)
    # A second row of titles has nothing below NIM.
    is_second = is_blank(cells[nim : nim + 1])
    sure = sure_fields(cells)
    if sure > {"nim"} or (len(sure) > 1 and not is_second):
        return found != own
    fields = {field for _, field in found - own}
    return len(fields) > 1 and not is_second and not has_digits(cells)


def _places(titles: Cells) -> set[tuple[int, Field]]:
    return {(heading.column, heading.field) for heading in headings(titles)}


def _starts_of_tables(titles: Sequence[str]) -> list[int]:
    """The first columns of the tables beside one another, all of which surely name the same fields."""
    folded = [title.casefold() for title in titles]
    first = next(filter(None, folded), "")
    starts = [0]
    for at in range(1, len(folded)):
        is_start = folded[at] and (folded[at] == first or not folded[at - 1])
        own = sure_fields(folded[starts[-1] : at])
        if is_start and own > {"nim"} and own == sure_fields(folded[at:]):
            starts.append(at)
    return starts


def _nims_below_another(row: SheetRow) -> list[SheetRow]:
    """The cells of a row as rows, unless one of them is a title or a name."""
    number, cells = row
    filled: list[SheetRow] = [
        (number + at, [cell]) for at, cell in enumerate(cells) if not is_blank((cell,))
    ]
    return filled if all(has_digit(cell_text(cell)) for _, (cell,) in filled) else [row]


def _titles_of(header: Cells) -> list[str]:
    return [
        " ".join(cell_text(cell).split())[:TITLE_MAX_CHARACTERS] for cell in header[:MAX_TITLES]
    ]


def _texts_of(rows: Sequence[Cells], width: int) -> list[list[str]]:
    """The texts of at least `width` columns in the first rows, without rows of one cell, such as a letterhead."""
    texts = [
        [cell_text(cell).strip()[:SAMPLE_MAX_CHARACTERS] for cell in row[:MAX_TITLES]]
        for row in rows
    ]
    lists = [row for row in texts if len(row) - row.count("") > 1] or texts
    columns = zip_longest([""] * width, *lists, fillvalue="")
    return [list(filter(None, column)) for column in columns]


def _width(table: Titled) -> int:
    """The number of columns below the titles, which stand first; 0 without titles."""
    header, *body = table
    rows = [header]
    named = [heading.column for heading in headings(header)]
    # A second row of titles has no number of a student, but perhaps the days of a month.
    if body and not has_digits(cell for at, cell in enumerate(body[0]) if at in named):
        rows.append(body[0])
    widths = [column for row in rows for column, cell in enumerate(row, 1) if not is_blank((cell,))]
    return max(widths, default=0) if header else 0


def _chosen(roles: Roles) -> _Found:
    """The columns that a person has chosen."""
    fields = list(roles.values())
    if fields.count("nim") > 1:
        return _Found(roles, wording.COLUMN_CHOSEN_TWICE)
    return _Found(roles, "" if {*fields} > {"nim"} else wording.COLUMN_NOT_CHOSEN)


def _by_titles(named: Sequence[Heading], texts: Texts) -> _Found:
    roles: dict[int, Field] = {}
    problems = []
    for field in FIELDS:
        of_field = [heading for heading in named if heading.field == field]
        columns, problem = _of_field(field, of_field, texts)
        roles |= dict.fromkeys(columns, field)
        problems.append(problem)

    problems.insert(0, _with_nim(roles, texts))
    if {*roles.values()} == {"nim"}:
        problems.append(wording.NO_OTHER_COLUMN)
    return _Found(roles, next(filter(None, problems), ""))


def _without_title(header: Cells, roles: Roles, texts: Texts) -> str:
    """The problem of a name or address that goes on in a column without a title (merged cells)."""
    for column, field in roles.items():
        beside = column + 1
        is_inside = not is_blank(header[beside:MAX_TITLES]) and is_blank(
            header[beside : beside + 1]
        )
        if field != "nim" and is_inside and 2 * len(texts[beside]) >= len(texts[column]) > 0:
            return _unsure(field, column)
    return ""


def _said_twice(roles: Roles, texts: Texts) -> str:
    """The problem of an address that already contains the texts of one of its parts."""
    columns = [column for column, field in roles.items() if field == "alamat"]
    for column in columns[1:]:
        whole = " ".join(texts[columns[0]]).casefold()
        names = {text.casefold() for text in texts[column] if not has_digit(text)}
        if names and 2 * sum(name in whole for name in names) >= len(names):
            return _two_columns("alamat", columns[0], column)
    return ""


def _with_nim(roles: dict[int, Field], texts: Texts) -> str:
    """Put the column of the NIM right if the texts contradict the titles, and return the problem."""
    nims = [column for column, of_column in enumerate(texts) if _fit("nim", of_column)]
    nim = next((column for column, role in roles.items() if role == "nim"), None)
    if nim is None:
        free = [column for column in nims if column not in roles]
        roles |= dict.fromkeys(free[:1], "nim")
        return _unsure("nim", free[0]) if free else wording.NO_NIM_COLUMN
    if len(nims) != 1 or roles.get(nims[0], "nim") == "nim":
        return ""
    if _counts(texts[nim]):
        del roles[nim]
        roles[nims[0]] = "nim"
        counting, right = map(wording.column_letter, (nim, nims[0]))
        return wording.ROW_NUMBERS.format(counting=counting, nim=right)
    if _fit("nama", texts[nim]):
        roles[nim], roles[nims[0]] = roles[nims[0]], "nim"
        return wording.SWAPPED
    return ""


def _of_field(field: Field, named: Sequence[Heading], texts: Texts) -> tuple[list[int], str]:
    """The columns of a field by its titles, and the problem if they are not sure."""
    # A column without texts comes last.
    ranked = sorted(named, key=lambda heading: (not texts[heading.column], heading.rank))
    whole = [heading.column for heading in ranked if heading.kind == "sure"]
    parts = [heading.column for heading in named if heading.kind == "part"]
    if not whole and not parts:
        return _by_words(field, named, texts)

    # The parts of an address, or of a name, stand to the right. A whole name needs no parts.
    begin = [*whole, *parts][0]
    columns = [begin]
    if field == "alamat" or not whole:
        columns += [column for column in parts if column > begin]
    left_out = [column for column in (*whole, *parts) if column not in columns]
    if left_out:
        return columns, _two_columns(field, begin, left_out[0])
    are_together = columns == [*range(begin, begin + len(columns))]
    is_sure = are_together and (whole or _is_whole_name(named))
    return columns, "" if is_sure else _unsure(field, begin)


def _is_whole_name(named: Sequence[Heading]) -> bool:
    """Whether headings name the parts of a name, from the first name to the last one."""
    ranks = [heading.rank for heading in named if heading.field == "nama"]
    return len(ranks) > 1 and ranks == sorted(ranks)


def _two_columns(field: Field, *columns: int) -> str:
    label = wording.LABELS[field]
    first, second = map(wording.column_letter, sorted(columns))
    return wording.TWO_COLUMNS.format(field=label, first=first, second=second)


def _by_words(field: Field, named: Sequence[Heading], texts: Texts) -> tuple[list[int], str]:
    """The first column whose title has a word of the field, and whose texts fit it."""
    fitting = [heading.column for heading in named if _fit(field, texts[heading.column])]
    problem = _unsure(field, fitting[0]) if fitting else ""
    return fitting[:1], problem


def _unsure(field: Field, column: int) -> str:
    label, letter = wording.LABELS[field], wording.column_letter(column)
    return wording.COLUMN_UNSURE.format(field=label, column=letter)


def _by_cells(texts: Texts, *, nim_only: bool) -> _Found:
    """The columns of a table without titles. A column that counts rows is never the NIM."""
    filled = [column for column, of_column in enumerate(texts) if of_column]
    if nim_only and len(filled) == 1:
        return _Found({filled[0]: "nim"})
    others = [column for column in filled if not _counts(texts[column])]
    roles: dict[int, Field] = {}
    for field in FIELDS:
        free = [column for column in others if column not in roles]
        fitting = [column for column in free if _fit(field, texts[column])]
        if field == "nim" and not fitting:
            fitting = [column for column in free if _are_numbered(texts[column])]
        roles |= dict.fromkeys(fitting[:1], field)
    if nim_only:
        return _Found(roles, "" if "nim" in roles.values() else wording.NO_NIM_HEADER)
    return _Found(roles, wording.NO_HEADER)


def _goes_on(before: Columns, texts: Texts) -> bool:
    """Whether the texts of a table without titles are like those of the table before it, and none is in a new column."""
    known = zip_longest(before.titles, before.examples, texts, fillvalue="")
    has_new_column = any(of and not title and not examples for title, examples, of in known)
    return not has_new_column and all(
        column < len(texts) and _fit(field, texts[column]) for column, field in before.roles.items()
    )


def _fit(field: Field, texts: Sequence[str]) -> bool:
    """Whether nine of ten texts look like those of a field. All NIMs differ, and so do most names and addresses."""
    alike = list(filter(_is_like[field], texts))
    different = len({*texts})
    if field == "nim":
        vary = different == len(texts) and not _counts(texts)
    else:
        vary = different * 2 > len(texts)
    return vary and len(alike) * 10 >= len(texts) * 9 > 0


# Three letters, and no e-mail address. L/P, phone numbers and programmes of study are none either, because they repeat.
_is_place = re.compile(r"(?=.*[^\W\d_]{3})[^@]{4,}").fullmatch
_is_like: Mapping[Field, Callable[[str], object]] = {
    "nim": is_like_a_nim,
    "nama": is_name,
    "alamat": _is_place,
}


def _are_numbered(texts: Sequence[str]) -> bool:
    return len({*texts}) == len(texts) and all(map(has_digit, texts))


def _counts(texts: Sequence[str]) -> bool:
    """Whether a column numbers the rows: 1, 2, 3, from any number on."""
    numbers = [int(match[1]) for match in map(_row_number, texts) if match]
    first = next(iter(numbers), 0)
    return bool(texts) and numbers == list(range(first, first + len(texts)))


def _selected(rows: SheetRows, columns: Columns, table: Titled, offset: int) -> Iterator[SheetRow]:
    """NIM, Nama and Alamat of each row, and a notice if it has cells beyond those of its titles.

    `offset` is added to the numbers of the rows.
    """
    width = _width(table)
    nims, nama_columns, alamat_columns = map(columns.of, FIELDS)
    labels = _labels_of(columns)
    ends_with_alamat = alamat_columns[-1:] == [width - 1]
    for number, row in rows:
        if not columns.is_readable:
            continue  # The rows must be read, because another table may follow.
        notice = ""
        if len(row) > width:
            notice = _about_more_cells(row, width, len(table[0]), ends_with_alamat=ends_with_alamat)
        others = range(width, len(row)) if notice == wording.JOINED_CELLS else ()
        nim = _joined(row, nims, "", labels)
        nama = _joined(row, nama_columns, " ", labels)
        alamat = _joined(row, [*alamat_columns, *others], ", ", labels)
        if not (nama or alamat):
            nim = _from_other_column(row, nim)
        cells = (nim, nama, alamat)
        if notice or not is_blank(cells):
            yield offset + number, (*cells, notice) if notice else cells


def _labels_of(columns: Columns) -> Mapping[int, str]:
    """The labels of the parts of an address, by their columns."""
    return {found.column: found.label for found in headings(columns.titles) if found.label}


def _from_other_column(row: Cells, nim: Cell) -> Cell:
    """The word of a total, or the rest of an address, if it stands in a column that is not read. Otherwise the NIM."""
    texts = list(filter(None, map(cell_text, row)))
    totals = list(filter(is_total, texts))
    if totals and nim is not None:
        return totals[0]
    is_rest = len(texts) == 1 and is_labelled(texts[0].lstrip())
    return texts[0] if is_rest else nim


def _about_more_cells(row: Cells, width: int, length: int, *, ends_with_alamat: bool) -> str:
    """The notice about the cells of a row beyond the `width` of its titles, or a blank text.

    `length` is that of the row of titles.
    """
    beyond = row[width:] if width else ()
    if is_blank(beyond):
        is_longer = bool(beyond) and len(row) > length and not ends_with_alamat
        return wording.MORE_CELLS if is_longer else ""
    is_beside = not is_blank(beyond[:1])
    return wording.JOINED_CELLS if ends_with_alamat and is_beside else wording.MORE_CELLS


def _joined(row: Cells, columns: Sequence[int], separator: str, labels: Mapping[int, str]) -> Cell:
    """The cells of a row as one, with the labels of an address. A single cell stays as it is, as does a bad one."""
    # A CSV file may leave out the blank cells at the end of a row.
    length = len(row)
    if len(columns) == 1 and columns[0] not in labels:
        return row[columns[0]] if columns[0] < length else None
    joined = before = ""
    for column in columns:
        cell = row[column] if column < length else None
        text = cell_text(cell).strip()
        if isinstance(cell, BadCell):
            return cell
        # Dapodik writes 0 or `-` for a part that is missing.
        if not text or stands_for_nothing(cell):
            continue
        label = labels.get(column, "")
        if label and not is_labelled(text):
            text = f"{label} {text.removesuffix('.0')}"
        between = "/" if (before, label) == ("RT", "RW") else separator
        joined += between * bool(joined) + text
        before = label
    return joined or None
