"""Selects the NIM, Nama and Alamat of each row of a sheet: by the titles of the columns, or else by the cells."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, pairwise, zip_longest
from typing import NamedTuple

from mahasiswa import wording
from mahasiswa.digits import is_digits
from mahasiswa.record import Field
from mahasiswa.sheets import titles as of_titles
from mahasiswa.sheets.cells import (
    Cell,
    FieldColumns,
    Sheet,
    SheetRow,
    cell_text,
    has_digit,
    is_blank,
)
from mahasiswa.sheets.limits import MAX_TITLES, Choice
from mahasiswa.sheets.questions import Question
from mahasiswa.sheets.sheet_errors import ColumnsUnclear, SheetError
from mahasiswa.sheets.titles import is_total

TITLE_MAX_CHARACTERS = 30  # of a title in the choice of columns
# Of a cell that looks like a NIM, and at least half of it are digits.
NIM_MIN_DIGITS, NIM_MAX_LENGTH = 5, 30
IN_ORDER: FieldColumns = (0, 1, 2)
_NO_COLUMN = 1 << 30  # past the end of every row, so each of its cells is blank

_row_number = re.compile(r"([0-9]{1,3})[.)]?").fullmatch
_is_date = re.compile(r"[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}").fullmatch


class Columns(NamedTuple):
    """The columns of a sheet: which one holds which field, and the titles of all of them."""

    of_fields: FieldColumns
    titles: list[str]


NOT_FOUND = Columns((None, None, None), [])


class Table(NamedTuple):
    """The rows of one or several sheets, read one by one, and the columns of the first sheet.

    A row of the sheet `sheets[n]` has the number that Excel shows, plus n times SHEET_ROWS. `kept_sheets` has all cells
    of a small file; the sheets that are read come first. `other_sheets` are the names of the sheets that are neither read
    nor kept. If the columns could not be found, `columns_problem` is the reason, and there are no rows. `remarks` are
    sentences that tell a person how the columns were found, `questions` those that a person must answer.
    """

    columns: Columns
    rows: Iterator[SheetRow]
    remarks: Sequence[str] = ()
    sheets: Sequence[str] = ("",)
    other_sheets: Sequence[str] = ()
    kept_sheets: Sequence[Sheet] = ()
    columns_problem: str = ""
    questions: Sequence[Question] = ()


class _Top(NamedTuple):
    """The first rows of a sheet that are not blank, and its header, which may lack a column that is needed."""

    rows: list[Sequence[Cell]]
    below: int  # the index of the first row below the header
    header: Sequence[Cell]  # without a cell if there is none
    is_complete: bool
    titles: list[str]


def select_columns(
    rows: Iterable[SheetRow], choice: Choice, first_sheet: Columns | None = None
) -> Table:
    """The columns, and the NIM, Nama and Alamat of each row that is not blank.

    A person has chosen those of the first sheet, or the header names them, or the cells suggest them.
    With `nim_only` the header needs no other column, Alamat is left blank, and a sheet without a header
    may have one column, or one row of NIMs. If another sheet was read before, this one may be blank.
    It has the columns of the first sheet if it has the same titles or none.

    Raises SheetError if the rows are all blank or too wide, and ColumnsUnclear if a column cannot be found.
    """
    rows = iter(rows)
    numbered = list(
        islice((row for row in rows if not is_blank(row[1])), of_titles.HEADER_WITHIN_ROWS)
    )
    if not numbered and first_sheet:
        return Table(first_sheet, iter(()))
    if not numbered:
        raise SheetError(wording.EMPTY)
    top = _top_of([row for _, row in numbered], nim_only=choice.nim_only)
    if choice.nim_only and not top.is_complete and len(top.rows) == 1:
        cells = [(cell, None, None) for cell in top.rows[0] if not is_blank((cell,))]
        return Table(Columns((0, None, None), top.titles), enumerate(cells, 1))
    of_fields, remarks = _columns_found(top, choice, first_sheet)
    if choice.nim_only:
        of_fields = (*of_fields[:2], None)
    parts = _parts_of(of_fields, top.titles)
    for first, columns in parts.items():
        letters = ", ".join(map(wording.column_letter, columns))
        field = wording.HEADER[of_fields.index(first)]
        remarks.append(wording.JOINED_COLUMNS.format(field=field, columns=letters))
    below = top.below if top.is_complete or choice.columns else 0
    width = _width(top.header) if top.is_complete else 0
    if width and below < len(top.rows) and not any(map(has_digit, map(cell_text, top.rows[below]))):
        width = max(width, _width(top.rows[below]))  # probably a second row of titles
    selected = _selected(chain(numbered[below:], rows), of_fields, parts, width)
    return Table(Columns(of_fields, top.titles), selected, remarks)


def _top_of(rows: list[Sequence[Cell]], *, nim_only: bool) -> _Top:
    below, header = of_titles.find_titles(rows, nim_only=nim_only)
    texts = (
        cell[:TITLE_MAX_CHARACTERS] if isinstance(cell, str) else ""
        for cell in (header or rows[0])[:MAX_TITLES]
    )
    titles = [" ".join(text.split()) for text in texts]
    titles += [""] * (len(wording.HEADER) - len(titles))
    return _Top(rows, below, header, of_titles.is_header(header, nim_only=nim_only), titles)


def _columns_found(
    top: _Top, choice: Choice, first_sheet: Columns | None
) -> tuple[FieldColumns, list[str]]:
    """The column of each field, and remarks that tell a person how they were found. Raises ColumnsUnclear."""
    if first_sheet and not (top.is_complete and top.titles != first_sheet.titles):
        return first_sheet.of_fields, []
    if choice.columns is not None and not first_sheet:
        return _checked(choice.columns, top.titles), []
    if not top.header:
        return _columns_by_cells(_texts_of(top.rows), top.titles, nim_only=choice.nim_only)
    texts = _texts_of(top.rows[top.below :])
    if top.is_complete:
        return _columns_of(top, texts), []
    nim, nama, alamat = _first_columns(top.header)
    found = _nim_column(texts)
    suggested = found if nim is None and found not in (nama, alamat) else nim
    problem = (
        wording.NO_OTHER_COLUMN
        if of_titles.fields_in(top.header) == {"nim"}
        else wording.NO_NIM_COLUMN
    )
    raise ColumnsUnclear(problem, top.titles, (suggested, nama, alamat))


def _width(row: Sequence[Cell]) -> int:
    return max((column for column, cell in enumerate(row, 1) if not is_blank((cell,))), default=0)


def _checked(chosen: FieldColumns, titles: list[str]) -> FieldColumns:
    """The columns that a person has chosen. Raises ColumnsUnclear if they cannot be used."""
    nim, nama, alamat = chosen
    if nim is None or (nama is None and alamat is None):
        raise ColumnsUnclear(wording.COLUMN_NOT_CHOSEN, titles, chosen)
    given = [column for column in chosen if column is not None]
    if len(set(given)) < len(given):
        raise ColumnsUnclear(wording.COLUMN_CHOSEN_TWICE, titles, chosen)
    return chosen


def _columns_of(top: _Top, texts: Sequence[Sequence[str]]) -> FieldColumns:
    """The best column for each field. Raises ColumnsUnclear if two are equally good, or if the texts contradict them."""
    best: dict[Field, of_titles.Heading] = {}
    second = of_titles.second_table(top.titles)
    for heading in of_titles.headings(top.header[:second]):
        known = best.get(heading.field)
        if known and known.rank == heading.rank != of_titles.PART:
            first, other = map(wording.column_letter, (known.column, heading.column))
            problem = wording.TWO_COLUMNS.format(
                field=wording.LABELS[heading.field], first=first, second=other
            )
            raise ColumnsUnclear(problem, top.titles, _first_columns(top.header))
        if known is None or heading.rank < known.rank:
            best[heading.field] = heading
    of_fields = _in_order({field: heading.column for field, heading in best.items()})
    # The column of the NIM may have words in several rows, and that of another field the NIMs.
    nim, found = of_fields[0], _nim_column(texts)
    words = texts[nim] if nim is not None and nim < len(texts) else []
    if (
        words
        and max(map(len, texts)) > 1
        and _are_words(words)
        and found != nim
        and found in of_fields[1:]
    ):
        swapped = {nim: found, found: nim}
        nim, nama, alamat = (swapped.get(column, column) for column in of_fields)
        raise ColumnsUnclear(wording.SWAPPED, top.titles, (nim, nama, alamat))
    return of_fields


def _first_columns(header: Sequence[Cell]) -> FieldColumns:
    return _in_order(
        {heading.field: heading.column for heading in reversed(of_titles.headings(header))}
    )


def _in_order(columns: Mapping[Field, int]) -> FieldColumns:
    return columns.get("nim"), columns.get("nama"), columns.get("alamat")


def _parts_of(of_fields: FieldColumns, titles: Sequence[str]) -> dict[int, list[int]]:
    """The columns that make up a name or an address that stands in several, by the first of them."""
    parts = {
        heading.column: heading.field
        for heading in of_titles.headings(titles)
        if heading.rank == of_titles.PART
    }
    groups = {
        first: [c for c, field in parts.items() if field == parts[first]]
        for first in of_fields
        if first in parts
    }
    return {first: columns for first, columns in groups.items() if len(columns) > 1}


def _selected(
    rows: Iterable[SheetRow],
    of_fields: FieldColumns,
    parts: Mapping[int, Sequence[int]],
    width: int,
) -> Iterator[SheetRow]:
    """NIM, Nama and Alamat of each row, and a notice if it has more cells than the `width` of its titles."""
    columns = _, b, c = [_NO_COLUMN if column is None else column for column in of_fields]
    for number, row in rows:
        # A CSV file may leave out the blank cells at the end of a row.
        nim, nama, alamat = [row[column] if column < len(row) else None for column in columns]
        if parts:
            nama = _joined(row, parts[b], " ") if b in parts else nama
            alamat = _joined(row, parts[c], ", ") if c in parts else alamat
        if (
            not (nama or alamat)
            and nim is not None
            and (total := next(filter(is_total, map(cell_text, row)), ""))
        ):
            nim = total  # the word stands in another column, such as that of the row numbers
        if width and len(row) > width and not is_blank(row[width : width + 1]):
            is_last = c == width - 1
            alamat = _joined(row, range(c, len(row)), ", ") if is_last else alamat
            yield (
                number,
                (nim, nama, alamat, wording.JOINED_CELLS if is_last else wording.MORE_CELLS),
            )
        elif nim or not is_blank((nim, nama, alamat)):
            yield number, (nim, nama, alamat)


def _joined(row: Sequence[Cell], columns: Iterable[int], separator: str) -> Cell:
    """The texts of several cells of a row as one. A single cell stays as it is."""
    cells = [
        row[column] for column in columns if column < len(row) and not is_blank((row[column],))
    ]
    return (
        separator.join(cell_text(cell).strip() for cell in cells)
        if len(cells) > 1
        else next(iter(cells), None)
    )


def _texts_of(rows: Sequence[Sequence[Cell]]) -> list[list[str]]:
    """The texts of each column in the first rows of a sheet, without the rows of one cell, such as a letterhead."""
    texts = [
        [cell_text(cell).strip()[: NIM_MAX_LENGTH + 1] for cell in row[:MAX_TITLES]] for row in rows
    ]
    lists = [row for row in texts if len(row) - row.count("") > 1] or texts
    return [list(filter(None, column)) for column in zip_longest(*lists, fillvalue="")]


def _nim_column(texts: Sequence[Sequence[str]]) -> int | None:
    """The only column that looks like NIMs, if there is one."""
    found = [
        index for index, column in enumerate(texts) if _are_nims(column) and not _counts(column)
    ]
    return found[0] if len(found) == 1 else None


def _are_nims(column: Sequence[str]) -> bool:
    def is_like_a_nim(text: str) -> bool:
        digits = len(re.findall("[0-9]", text))
        return (
            digits >= NIM_MIN_DIGITS
            and len(text) <= min(NIM_MAX_LENGTH, 2 * digits)
            and not _is_date(text)
        )

    return (
        bool(column) and _differ(column) and sum(map(is_like_a_nim, column)) * 10 >= len(column) * 9
    )


def _differ(column: Sequence[str]) -> bool:
    return len(set(column)) == len(column)


def _are_words(column: Sequence[str]) -> bool:
    """Whether most cells of a column have no digit."""
    return sum(not has_digit(text) for text in column) * 2 > len(column)


def _counts(column: Sequence[str]) -> bool:
    """Whether a column numbers the rows: 1, 2, 3, from any number on."""
    matches = list(map(_row_number, column))
    numbers = [int(match[1]) for match in matches if match]
    return 0 < len(numbers) == len(matches) and all(
        second == first + 1 for first, second in pairwise(numbers)
    )


def _columns_by_cells(
    texts: Sequence[Sequence[str]], titles: list[str], *, nim_only: bool
) -> tuple[FieldColumns, list[str]]:
    """The columns of a sheet without titles, and a remark about them. A column that counts rows is never the NIM."""
    # All may stand further to the right.
    filled = [index for index, column in enumerate(texts) if column] or [0]
    first, nim, width = filled[0], _nim_column(texts), filled[-1] + 1
    is_single = nim_only and width == 1
    counts = _counts(texts[first]) and not is_single
    # Different numbers could be short NIMs. The names of classes have a letter or repeat.
    are_short_nims = _differ(texts[first]) and all(map(is_digits, texts[first]))
    if nim is not None and (nim_only or counts or (nim != first and not are_short_nims)):
        # A column before the NIM could be the names if most of its texts differ.
        others = [
            index
            for index in filled
            if index != nim and not _counts(texts[index])
            if index > nim
            or (_are_words(texts[index]) and len(set(texts[index])) * 2 > len(texts[index]))
        ]
        if len(others) < len(wording.HEADER):
            nama, alamat, *_ = (*others, None, None)
            remark = wording.NIM_AFTER_NUMBERS if counts else wording.NIM_AFTER_WORDS
            letters = {"first": wording.column_letter(first), "nim": wording.column_letter(nim)}
            return (nim, nama, alamat), [remark.format(**letters)] if nim != first else []
    if not counts and (is_single or width == len(wording.HEADER)):
        return IN_ORDER, []
    problem = wording.NO_NIM_HEADER if nim_only else wording.NO_HEADER
    if counts and not nim_only:
        problem = wording.ROW_NUMBERS.format(first=wording.column_letter(first))
    raise ColumnsUnclear(problem, titles, (nim, None, None))
