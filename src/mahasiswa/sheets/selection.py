"""A selection: a list of NIMs in any form, compared with the stored records, which the browser carries like an import."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, filterfalse
from typing import NamedTuple

from mahasiswa import wording
from mahasiswa.record import Mahasiswa
from mahasiswa.sheets.cell_rules import clean_nim
from mahasiswa.sheets.cells import (
    Cell,
    Sheet,
    SheetRow,
    SheetRows,
    cell_text,
    digits_in,
    has_digit,
    has_nim,
    in_input,
    is_blank,
)
from mahasiswa.sheets.lines import NIM_MAX_DIFFERENCE, is_no_nim, without_stamp
from mahasiswa.sheets.plan import Neighbours
from mahasiswa.sheets.questions import Question
from mahasiswa.sheets.row_questions import WITHOUT_HIDDEN
from mahasiswa.sheets.sheet_errors import SheetError
from mahasiswa.sheets.signed_field import pack, unpack
from mahasiswa.sheets.titles import fields_in

NAMA_MAX_CHARACTERS = 60  # of a name in a notice about another record
FORMS_MAX = 8  # parts of a line that are looked for as NIMs

# The number or the mark of a line in a list, as in `1. 2300018101` and `- 2300018101`.
_mark = re.compile(r"\A(?:[0-9]{1,3}[.)]|[-*•])\s+").sub
_fields = re.compile("[,;|]").split
_words = re.compile(r"[\s:=()\[\]]+").split
_around_word = " .-–*_•'\""
# The number before a NIM as in `1.2300018101`, and the name behind it as in `2300018101-Siti`.
_without_attached = re.compile(r"^[0-9]{1,3}\.(?=[0-9]{5})|[-–_][^\W\d].*").sub
_is_number = re.compile("[0-9./-]{3,}").fullmatch
_sexes = ("l", "p")  # laki-laki, perempuan


class NimRow(NamedTuple):
    """The NIM in a row of a list of NIMs. If a spreadsheet has damaged it, `problem` says so in Indonesian."""

    number: int  # as Excel shows it
    nim: str  # the text of the cell if no record has it
    problem: str = ""
    nama: str = ""  # blank if the file has no names
    uncleaned: str = ""  # the text of the cell, if characters were removed
    is_hidden: bool = False  # whether Excel does not show the row

    def parts(self) -> Iterator[tuple[str, str]]:
        """The parts of a line that may be the NIM, such as the number in `1. 2300018101 Siti`.

        Each part comes as it is written, and without the texts that are attached to it.
        """
        words = list(chain.from_iterable(self._words()))[:FORMS_MAX]
        for at, word in enumerate(words):
            others = words[:at] + words[at + 1 :]
            if has_digit(word) and not any(_may_be_second_nim(other, word) for other in others):
                yield word, _without_attached("", word)

    def with_part(self, nim: str) -> "NimRow":
        """The row with this part as its NIM, and with the name in the line: the first words that are no titles."""
        names = (" ".join(filter(_is_of_name, words)) for words in self._words())
        first_name = next(filter(None, names), "")
        return self._replace(nim=nim, nama=self.nama or first_name)

    def forms(self) -> Iterator[str]:
        """Each text that may be the NIM."""
        yield self.nim
        if self.uncleaned:
            yield self.uncleaned
        yield from chain.from_iterable(self.parts())

    def _words(self) -> Iterator[list[str]]:
        """The words of each field of the line."""
        line = _mark("", without_stamp(self.nim))
        for field in _fields(line):
            words = (word.strip(_around_word) for word in _words(field))
            yield list(filter(None, words))


def _may_be_second_nim(other: str, nim: str) -> bool:
    if not _is_number(other) or (is_no_nim(other) and not is_no_nim(nim)):
        return False
    return abs(digits_in(other) - digits_in(nim)) <= NIM_MAX_DIFFERENCE


def _is_of_name(word: str) -> bool:
    is_title = word.casefold() in _sexes or fields_in([word])
    return not (is_title or has_digit(word))


class Selection(NamedTuple):
    """The rows of a list of NIMs that were found among the stored records, and the others with the likely reason."""

    # If the name in a row differs from that of its record, the row has its beginning, otherwise
    # none.
    found: list[tuple[NimRow, Mahasiswa]]
    missing: list[tuple[NimRow, str]]
    unread_sheets: Sequence[str] = ()  # their names


def questions_of(found: Iterable[NimRow]) -> list[Question]:
    """The questions that forbid a deletion: Excel hides rows, or names in the file are not those of the list."""
    rows = list(found)
    hidden = [row.number for row in rows if row.is_hidden]
    renamed = [row.number for row in rows if row.nama]
    repair = wording.WITHOUT_HIDDEN_SELECTED
    questions = (
        Question(WITHOUT_HIDDEN, wording.HIDDEN_ROWS_SELECTED, hidden, repair),
        Question("nama", wording.OTHER_NAMES_SELECTED, renamed),
    )
    return [question for question in questions if question.rows]


def nims_of(nims: Iterable[str]) -> list[NimRow]:
    """The rows of a list of stored NIMs. The NIMs are taken as they are."""
    return [NimRow(number, nim) for number, nim in enumerate(nims, 1)]


def clean_nims(rows: SheetRows) -> list[NimRow]:
    """Each NIM of a file once, at its first visible row. A row without a NIM is left out. Raises SheetError if that leaves none."""
    filled = (row for row in rows if not is_blank(row[1][:1]))
    return _each_once(
        _nim_row(number, cell, cell_text(nama), is_hidden=wording.HIDDEN_ROWS in notes)
        for number, (cell, nama, _, *notes) in filled
    )


def lines_of(sheets: Iterable[Sheet]) -> list[NimRow]:
    """The rows of a file without a column of NIMs, each as one line. Raises SheetError as `clean_nims` does."""
    return clean_nims(chain.from_iterable(map(_lines_in, sheets)))


def _lines_in(sheet: Sheet) -> Iterator[SheetRow]:
    hidden = {*sheet.hidden_rows}
    for number, cells in sheet.rows:
        notes = [wording.HIDDEN_ROWS] if number in hidden else []
        yield number, (" ".join(map(cell_text, cells)), None, None, *notes)


def nims_in(rows: Iterable[NimRow]) -> list[str]:
    """Each text of these rows that may be a stored NIM."""
    return list(
        dict.fromkeys(
            nim for row in rows if row.uncleaned or not row.problem for nim in row.forms()
        )
    )


def select(
    rows: Iterable[NimRow], existing: Mapping[str, Mahasiswa], near: Collection[Mahasiswa]
) -> Selection:
    """Sort the rows into those whose NIM is stored and the others. `near` may have nearly equal NIMs.

    A line has the NIM that is the only stored one among its parts, unless another part may be a NIM.
    """
    neighbours = Neighbours(near)
    selection = Selection([], [])
    selected: set[str] = set()
    for row in rows:
        named = _with_stored_nim(row, existing)
        record = existing.get(named.nim)
        if named.nim in selected:
            continue
        selected.add(named.nim)
        if record and not named.problem:
            selection.found.append((_with_other_name(named, record), record))
        else:
            selection.missing.append((named, named.problem or _reason(named, neighbours)))
    return selection


def dump_selection(selection: Selection, key: bytes) -> str:
    """The field of a preview, with the NIMs that it shows. Raises SheetError if it is too large."""
    found = [row for row, _ in selection.found]
    missing = [row for row, _ in selection.missing]
    return pack([found, missing, selection.unread_sheets], "selection 4", key)


def load_selection(field: str, key: bytes) -> tuple[list[NimRow], list[NimRow], list[str]]:
    """The rows that a preview has shown as found, the others, and the names of the unread sheets.

    Raises SheetError as `load` does.
    """
    found, missing, unread_sheets = unpack(field, "selection 4", key)
    return [NimRow(*row) for row in found], [NimRow(*row) for row in missing], unread_sheets


def repaired_nims(
    rows: Iterable[NimRow], typed: Mapping[int, str], skipped: Collection[int]
) -> list[NimRow]:
    """The rows with the NIMs that a person has typed, by the number of the row, without those skipped or cleared."""
    repaired = []
    for row in rows:
        nim = typed.get(row.number)
        if row.number in skipped:
            continue
        if nim is None or nim == in_input(row.nim):  # a stored NIM may be blank
            repaired.append(row)
        elif nim.strip():
            repaired.append(_nim_row(row.number, nim, row.nama, is_hidden=row.is_hidden))
    return _each_once(repaired)


def _nim_row(number: int, cell: Cell, nama: str, *, is_hidden: bool) -> NimRow:
    nim, problem, removed = clean_nim(cell)
    text = cell_text(cell)
    shown, uncleaned = text if problem else nim, text if removed else ""
    return NimRow(number, shown, problem, nama, uncleaned, is_hidden)


def _each_once(rows: Iterable[NimRow]) -> list[NimRow]:
    first: dict[str, NimRow] = {}
    for row in rows:
        nim = row.uncleaned or row.nim
        # A visible row stays in the selection if a hidden row with the same NIM is taken out.
        if nim in first and first[nim].is_hidden and not row.is_hidden:
            del first[nim]
        first.setdefault(nim, row)
    if not first:
        raise SheetError(wording.NO_NIMS_READ)
    return list(first.values())


def _with_stored_nim(row: NimRow, existing: Collection[str]) -> NimRow:
    """The row with its only part that is stored, or else with its only part that looks like a NIM."""
    if row.uncleaned and row.uncleaned in existing:
        return row._replace(nim=row.uncleaned, problem="")
    if row.problem or row.nim in existing:
        return row
    stored = {nim for nim in row.forms() if nim in existing}
    likely = [nim for _, nim in row.parts() if has_nim(nim)]
    # A NIM such as 23.11.5432 looks like a date.
    meant = stored or list(filterfalse(is_no_nim, likely)) or likely
    return row.with_part(*meant) if len(meant) == 1 else row


def _with_other_name(row: NimRow, record: Mahasiswa) -> NimRow:
    """The row with its name. The name is blank if it is that of the record, or a part of it."""
    words, stored = (
        {*filter(None, map(_letters, name.split()))} for name in (row.nama, record.nama)
    )
    is_same = words <= stored or _letters(row.nama) == _letters(record.nama)
    return row._replace(nama="" if is_same else row.nama[:NAMA_MAX_CHARACTERS])


def _reason(row: NimRow, neighbours: Neighbours) -> str:
    """The likely reason why no record has the NIM of a row, or a blank text."""
    message, meant = neighbours.look(row.number, row.nim)
    if meant:
        nama = meant.nama[:NAMA_MAX_CHARACTERS]
        return wording.NEAR_RECORD.format(nim=meant.nim, nama=nama)
    numbers = list(filter(has_digit, row.nim.split()))
    is_several = len(numbers) > 1
    return message or (wording.SEVERAL_NIMS if is_several else "")


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))
