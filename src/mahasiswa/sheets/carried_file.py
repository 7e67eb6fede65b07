"""The file of a preview, which the browser carries in a signed field, so that a person can repair and confirm it.

The service keeps nothing between two requests. The browser carries all cells of a small file. Of a larger file it
carries only NIM, Nama and Alamat; to choose another column or sheet, a person must choose the file again.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, groupby, starmap
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from mahasiswa.record import Field
from mahasiswa.sheets.cells import Sheet, from_json
from mahasiswa.sheets.columns import Columns
from mahasiswa.sheets.limits import Roles
from mahasiswa.sheets.questions import Question
from mahasiswa.sheets.signed_field import pack, unpack

T = TypeVar("T")

# NIM, Nama and Alamat as a person typed them; None for a cell without a change.
Typed = Sequence[str | None]
LEFT_OUT: Typed = ("", "", "")  # a row that a person skips


class CarriedFile(NamedTuple):
    """The cells of a file, the repairs of a person, and the changes that the preview has shown."""

    name: str  # of the file; blank for pasted cells
    read_sheets: Sequence[str]  # the names of the sheets that are read; one blank name for CSV
    # The sheets that are read come first. If not all cells are carried, there is one sheet with the
    # NIM, name and address of each row.
    sheets: Sequence[Sheet] = ()
    other_sheets: Sequence[str] = ()  # the names of the sheets whose cells are not here
    tables: Sequence[Columns] = ()  # those that are read
    # The names of the sheets, or parts of sheets, in which the rows stand.
    places: Sequence[str] = ()
    has_all_cells: bool = False
    typed: Mapping[int, Typed] = {}  # by the number of the row
    accepted: frozenset[int] = frozenset()  # rows whose doubtful NIM is right
    new: Sequence[int] = ()  # rows that the preview has shown as new records, and as changed ones
    changed: Sequence[int] = ()
    fills_alamat: bool = False  # new records get "-", because the file has no such column
    chosen_columns: Mapping[str, Roles] = {}  # by the keys of the tables
    # A digest of all additions that the preview has shown or counted, and a digest of all updates.
    shown_digests: Sequence[str] = ()
    repairs: Sequence[str] = ()  # the names of the questions whose repair was pressed, ascending
    asked: Sequence[Question] = ()  # questions of the reader, which has seen the whole file
    # Whether the preview had questions. Without any, a confirmation of the same rows looks for
    # none.
    has_questions: bool = True

    @property
    def unread_sheets(self) -> list[str]:
        """The names of the sheets that are not read."""
        carried = self.sheets[len(self.read_sheets) :]
        return [*(sheet.name for sheet in carried), *self.other_sheets]

    def has_column(self, field: Field, number: int) -> bool:
        """Whether the table of a row has a column of this field."""
        at = bisect_right(self.tables, number, key=attrgetter("first"))
        return field in self.tables[max(at - 1, 0)].roles.values()


def dump(file: CarriedFile, key: bytes) -> str:
    """The form field of a file. Raises SheetError if it is too large."""
    sheets = [
        (name, ranges_of(number for number, _ in rows), [cells for _, cells in rows], *others)
        for name, rows, *others in file.sheets
    ]
    numbers = {
        "accepted": ranges_of(sorted(file.accepted)),
        "new": ranges_of(file.new),
        "changed": ranges_of(file.changed),
    }
    return pack({**file._asdict(), **numbers, "sheets": sheets}, "import 9", key)


def load(field: str, key: bytes) -> CarriedFile:
    """The file of a form field. Raises SheetError for a field that `dump` has not made."""
    named = unpack(field, "import 9", key)
    file = CarriedFile(**named)
    return file._replace(
        sheets=[_sheet(*sheet) for sheet in named["sheets"]],
        tables=list(starmap(_columns, named["tables"])),
        typed={number: tuple(texts) for number, texts in _by_number(file.typed).items()},
        accepted=frozenset(_numbers(file.accepted)),
        new=list(_numbers(file.new)),
        changed=list(_numbers(file.changed)),
        chosen_columns={key: _by_number(roles) for key, roles in file.chosen_columns.items()},
        repairs=tuple(file.repairs),
        asked=tuple(starmap(Question, file.asked)),
    )


def _sheet(
    name: str,
    numbers: Iterable[Any],
    rows: Iterable[Iterable[Any]],
    questions: Iterable[Iterable[Any]],
    *hidden: Sequence[int],
) -> Sheet:
    numbered = list(zip(_numbers(numbers), map(from_json, rows), strict=True))
    return Sheet(name, numbered, tuple(starmap(Question, questions)), *map(tuple, hidden))


def _columns(*stored: Any) -> Columns:  # noqa: ANN401 - JSON
    columns = Columns(*stored)
    return columns._replace(roles=_by_number(columns.roles))


def _by_number(values: Mapping[Any, T]) -> dict[int, T]:
    """The same values. JSON has made texts of their numbers."""
    return {int(number): value for number, value in values.items()}


def ranges_of(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Ascending numbers as ranges. bz2 packs them in half the time of single numbers."""
    runs = (list(run) for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]))
    return [(run[0][1], run[-1][1] + 1) for run in runs]


def _numbers(ranges: Iterable[Any]) -> Iterable[int]:
    return chain.from_iterable(starmap(range, ranges))
