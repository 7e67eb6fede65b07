"""Carries the rows of a file to the browser and back in a form field, so that a person can repair and confirm a preview.

The service keeps nothing between two requests. The field holds all cells of a small file. Of a larger file it holds only
the columns NIM, Nama and Alamat; to choose another column or sheet, a person must choose the file again.
"""

import base64
import binascii
import bz2
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import NamedTuple, cast

from mahasiswa import wording
from mahasiswa.sheets.cleaning import Answer, check, shown
from mahasiswa.sheets.columns import BadCell, Cell, Columns, SheetRow, Verbatim, is_blank
from mahasiswa.sheets.errors import SheetError
from mahasiswa.sheets.reading import UPLOAD_MAX_ROWS, Choice, Table, table_of
from mahasiswa.sheets.whole import WHOLE_MAX_CELLS, RawRow, Sheet

MAX_CONFIRMED_BYTES = 8 << 20
"""Maximum size of the form that a browser sends back, and of its cells when they are unpacked."""

OTHER_FIELDS_BYTES = 64 << 10
"""The part of MAX_CONFIRMED_BYTES that is left for the other fields of the form."""

WHOLE_MAX_PACKED_BYTES = 42 << 10
"""Maximum size of a file that is carried with all its cells. A phone at 400 kbit/s loads as much in a second."""

MAX_REPAIRED_ROWS = 100
"""Maximum rows that a page offers to repair at a time. Each has four fields, and a fifth one if it needs a tick."""

_MAX_SHEETS = 1000
_MAX_FIELDS = WHOLE_MAX_CELLS + 10 * UPLOAD_MAX_ROWS

Typed = tuple[str | None, str | None, str | None]
"""NIM, Nama and Alamat as a person typed them into a preview. None is a cell that was not changed."""


class Book(NamedTuple):
    """The cells of a file, the repairs of a person, and the changes that the preview has shown."""

    name: str  # of the file; blank for pasted cells
    sheets: list[Sheet]  # the sheet that is read comes first; if not is_whole, it has only NIM, Nama and Alamat
    others: list[str]  # the names of the sheets whose cells are not here
    columns: Columns
    is_whole: bool
    typed: Mapping[int, Typed] = {}  # by the number of the row
    accepted: frozenset[int] = frozenset()  # rows whose NIM has no digit, and is right
    new: Sequence[int] = ()  # rows that the preview has shown as new records, and as changed ones
    changed: Sequence[int] = ()
    versi: str = ""  # one digest of the records that the changed rows replace

    @property
    def sheet(self) -> str:
        """The name of the sheet that is read; blank for CSV and pasted cells."""
        return self.sheets[0].name

    def state(self) -> object:
        """Everything that a person can change in a preview."""
        return self.sheet, self.columns.places, dict(self.typed), self.accepted


class Reading(NamedTuple):
    """The rows of a book, as they are in the file, and cleaned. If there are none, `unclear` may give the reason."""

    book: Book
    rows: list[SheetRow]
    answers: list[Answer]
    unclear: str = ""


def first_reading(table: Table, name: str) -> Reading:
    """Read a whole file. Raises SheetError."""
    rows = list(table.rows)
    if table.sheets:
        here = {sheet.name for sheet in table.sheets}
        others = [other for other in table.others if other not in here]
        book = Book(name, table.sheets, others, table.columns, is_whole=True)
    else:
        selected: list[RawRow] = [(number, cells) for number, *cells in rows]
        book = Book(name, [Sheet(table.sheet, selected)], table.others, table.columns, is_whole=False)
    return Reading(book, rows, check(rows), table.unclear)


def read_again(book: Book) -> Reading:
    """Read the rows of a book as it is now. Raises SheetError."""
    unclear = ""
    rows: Iterable[SheetRow]
    if book.is_whole:
        table = table_of(book.sheets, book.others, Choice(places=book.columns.places))
        book, unclear, rows = book._replace(columns=table.columns), table.unclear, table.rows
    else:
        rows = ((number, *cells) for number, cells in book.sheets[0].rows)  # type: ignore[misc]  # three cells
    repaired = list(_with_typed(rows, book.typed))
    return Reading(book, repaired, check(repaired), unclear)


def repaired(
    reading: Reading, choice: Choice, typed: Mapping[int, tuple[str, str, str]], ticked: AbstractSet[int]
) -> Book:
    """The book with a person's choices, typed texts and ticks. A text that equals the one in the preview is no change."""
    book = reading.book
    if book.is_whole and choice.sheet is not None and choice.sheet != book.sheet:
        chosen = [sheet for sheet in book.sheets if sheet.name == choice.sheet][:1]
        if chosen:
            rest = [sheet for sheet in book.sheets if sheet is not chosen[0]]
            table = table_of([*chosen, *rest], book.others, Choice())
            return Book(book.name, [*chosen, *rest], book.others, table.columns, is_whole=True)
    if book.is_whole and choice.places is not None:
        book = book._replace(columns=book.columns._replace(places=choice.places))
    cells_of = {number: cells for number, *cells in reading.rows if number in typed}
    changes = dict(book.typed)
    for number, cells in cells_of.items():
        before = changes.get(number, (None, None, None))
        nim, nama, alamat = (
            old if text == in_input(cell) else text
            for text, cell, old in zip(typed[number], cells, before, strict=True)
        )
        if (nim, nama, alamat) != (None, None, None):
            changes[number] = nim, nama, alamat
    accepted = book.accepted | {number for number, *_ in reading.rows if number in ticked}
    return book._replace(typed=changes, accepted=accepted)


def in_input(cell: Cell) -> str:
    """A cell as the text of an input. Line breaks and NUL become spaces, because a browser would alter them."""
    return re.sub(r"[\r\n\0]+", " ", shown(cell))


def _with_typed(rows: Iterable[SheetRow], typed: Mapping[int, Typed]) -> Iterator[SheetRow]:
    """The rows with the cells that a person has typed. A row whose cells were all cleared is left out."""
    for row in rows:
        if row[0] not in typed:
            yield row
            continue
        number, *cells = row
        nim, nama, alamat = (cell if text is None else text for text, cell in zip(typed[number], cells, strict=True))
        if not is_blank((nim, nama, alamat)):
            yield number, nim, nama, alamat


# ---- the form field


def dump(reading: Reading) -> tuple[Book, str]:
    """Return the part of the book that fits into the form field, and the field: URL-safe base64, which no browser alters.

    Raises SheetError if it would be too large to be sent back.
    """
    book = reading.book
    if book.is_whole:
        only_this = book._replace(sheets=book.sheets[:1], others=[*book.others, *(s.name for s in book.sheets[1:])])
        for smaller in (book, only_this):
            packed = _packed(smaller)
            if len(packed) <= WHOLE_MAX_PACKED_BYTES:
                return smaller, _field(packed)
        if reading.unclear:
            raise SheetError(reading.unclear)
        rows: list[RawRow] = [(number, cells) for number, *cells in reading.rows]
        # The typed texts are in these cells already.
        book = only_this._replace(sheets=[Sheet(book.sheet, rows)], is_whole=False, typed={})
    field = _field(_packed(book))
    if len(field) + OTHER_FIELDS_BYTES > MAX_CONFIRMED_BYTES:
        raise _too_large()
    return book, field


def load(field: str) -> Book:
    """The book of a form field. Raises SheetError for anything that `dump` never makes.

    The field may be malicious, so its size is bounded before and after it is unpacked, and so are its parts.
    """
    try:
        packed = base64.b64decode(field.encode("ascii"), altchars=b"-_", validate=True)
        unpacker = bz2.BZ2Decompressor()
        text = unpacker.decompress(packed, MAX_CONFIRMED_BYTES + 1)
        if len(text) > MAX_CONFIRMED_BYTES:
            raise _too_large()
        if not unpacker.eof or unpacker.unused_data:
            raise _damaged()
        return _read_book(_Fields(text.decode()))
    except (UnicodeError, binascii.Error, OSError, ValueError, EOFError) as error:
        raise error if isinstance(error, SheetError) else _damaged() from error


def _packed(book: Book) -> bytes:
    data = "\0".join(_fields(book)).encode()
    if len(data) > MAX_CONFIRMED_BYTES:
        raise _too_large()
    # 3,000 names and addresses take 25 KB, and 41 KB with deflate. Row by row they would take 27 and 45 KB.
    return bz2.compress(data)


def _field(packed: bytes) -> str:
    return base64.urlsafe_b64encode(packed).decode()


def _fields(book: Book) -> Iterator[str]:
    """The parts of a book, each a text. NUL separates them, because no encoded cell holds it."""
    yield from (_FORMAT, _plain(book.name), "whole" if book.is_whole else "", book.versi)
    yield _numbers(book.new)
    yield _numbers(book.changed)
    yield _numbers(sorted(book.accepted))
    yield ",".join("" if place is None else str(place) for place in book.columns.places)
    yield from _counted(book.columns.titles)
    yield from _counted(book.others)
    yield _numbers(sorted(book.typed))
    yield from (_encoded(text) for number in sorted(book.typed) for text in book.typed[number])
    yield str(len(book.sheets))
    for name, rows in book.sheets:
        width = max((len(cells) for _, cells in rows), default=0)
        yield from (_plain(name), str(width), _numbers(number for number, _ in rows))
        for column in range(width):
            yield from (_encoded(cells[column] if column < len(cells) else None) for _, cells in rows)


def _read_book(fields: "_Fields") -> Book:
    if fields.text() != _FORMAT:
        raise _damaged()
    name, whole, versi = fields.text(), fields.text(), fields.text()
    new, changed, accepted = fields.numbers(), fields.numbers(), frozenset(fields.numbers())
    nim, nama, alamat = (None if not place else _whole(place) for place in fields.text().split(",", 3))
    titles, others = fields.texts(), fields.texts()
    typed = {number: fields.typed() for number in fields.numbers()}
    sheets = [_read_sheet(fields, is_whole=bool(whole)) for _ in range(fields.count(_MAX_SHEETS))]
    if not sheets or not fields.is_at_end():
        raise _damaged()
    columns = Columns((nim, nama, alamat), titles)
    return Book(name, sheets, others, columns, bool(whole), typed, accepted, new, changed, versi)


def _read_sheet(fields: "_Fields", *, is_whole: bool) -> Sheet:
    name, width, numbers = fields.text(), fields.count(WHOLE_MAX_CELLS), fields.numbers()
    if bool(width) != bool(numbers):
        raise _damaged()
    if numbers and not is_whole and (width != len(wording.HEADER) or len(numbers) > UPLOAD_MAX_ROWS):
        raise _damaged()
    columns = [fields.cells(len(numbers)) for _ in range(width)]
    rows: list[RawRow] = list(zip(numbers, zip(*columns, strict=True), strict=True)) if numbers else []
    return Sheet(name, rows)


_FORMAT = "1"

_TAG = "\1"
"""The first character of every cell that is not an ordinary text."""

_RANGE = re.compile(r"([1-9][0-9]{0,8})(?:-([1-9][0-9]{0,8}))?")


def _encoded(cell: Cell) -> str:
    if isinstance(cell, str):
        if "\0" in cell:  # one NUL is enough to refuse the cell again
            return f"{_TAG}n{cell}".replace("\0", "\1")
        tag = f"{_TAG}v" if isinstance(cell, Verbatim) else f"{_TAG}s" if cell[:1] == _TAG else ""
        return tag + cell
    if isinstance(cell, BadCell):
        return f"{_TAG}b{cell.kind}:{_plain(cell.text)}"
    if cell is None:
        return _TAG
    return f"{_TAG}{_KINDS[type(cell)]}{cell!r}"


def _decoded(text: str) -> Cell:
    if text[:1] != _TAG:
        return text
    kind, value = text[1:2], text[2:]
    if kind == "b":
        bad, _, shown_text = value.partition(":")
        if bad in ("date", "error", "formula", "long"):
            return BadCell(bad, shown_text)
    elif kind in _DECODERS:
        return _DECODERS[kind](value)
    elif text == _TAG:
        return None
    raise _damaged()


_KINDS = {bool: "t", int: "i", float: "f"}

_DECODERS: Mapping[str, Callable[[str], Cell]] = {
    "t": lambda value: value == "True",
    "i": int,
    "f": float,
    "v": Verbatim,
    "s": str,
    "n": lambda value: "\0" + value,
}


def _numbers(numbers: Iterable[int]) -> str:
    """Ascending numbers as `4,9,12-30`."""
    return wording.ranges(numbers).replace("–", "-").replace(" ", "")


def _counted(texts: Sequence[str]) -> Iterator[str]:
    return chain([str(len(texts))], map(_plain, texts))


def _plain(text: str) -> str:
    return text.replace("\0", "")


def _whole(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise _damaged()
    return int(text)


class _Fields:
    """The parts of a field, one after the other. Every method raises SheetError for an invalid part."""

    def __init__(self, text: str) -> None:
        self._parts = text.split("\0", _MAX_FIELDS)
        self._at = 0
        self._cells = 0

    def is_at_end(self) -> bool:
        return self._at == len(self._parts)

    def text(self) -> str:
        return self._take(1)[0]

    def count(self, limit: int) -> int:
        count = _whole(self.text())
        if count > limit:
            raise _damaged()
        return count

    def texts(self) -> list[str]:
        return self._take(self.count(_MAX_SHEETS))

    def cells(self, count: int) -> list[Cell]:
        self._count_cells(count)
        return list(map(_decoded, self._take(count)))

    def typed(self) -> Typed:
        cells = nim, nama, alamat = self.cells(3)
        if all(cell is None or isinstance(cell, str) for cell in cells):
            return cast("Typed", (nim, nama, alamat))
        raise _damaged()

    def numbers(self) -> list[int]:
        text = self.text()
        numbers: list[int] = []
        for part in text.split(",", WHOLE_MAX_CELLS) if text else ():
            match = _RANGE.fullmatch(part)
            if not match:
                raise _damaged()
            first, last = int(match[1]), int(match[2] or match[1])
            self._count_cells(last - first + 1)
            if last < first or (numbers and first <= numbers[-1]):
                raise _damaged()
            numbers.extend(range(first, last + 1))
        return numbers

    def _count_cells(self, count: int) -> None:
        self._cells += count
        if self._cells > _MAX_FIELDS:
            raise _damaged()

    def _take(self, count: int) -> list[str]:
        parts = self._parts[self._at : self._at + count]
        self._at += count
        if len(parts) < count:
            raise _damaged()
        return parts


def _damaged() -> SheetError:
    return SheetError(wording.CONFIRMATION_DAMAGED)


def _too_large() -> SheetError:
    return SheetError(wording.CONFIRMATION_TOO_LARGE.format(limit=wording.size(MAX_CONFIRMED_BYTES)))
