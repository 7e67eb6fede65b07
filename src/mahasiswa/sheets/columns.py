"""Finds which columns of a sheet hold the NIM, Nama and Alamat: by the titles, or else by the cells."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, pairwise, zip_longest
from typing import NamedTuple

from mahasiswa import wording
from mahasiswa.digits import is_digits
from mahasiswa.record import Field
from mahasiswa.sheets.cells import Cell, FieldColumns, SheetRow, cell_text, has_digit, is_blank
from mahasiswa.sheets.limits import MAX_TITLES, Choice
from mahasiswa.sheets.sheet_errors import ColumnsUnclear, SheetError

HEADER_WITHIN_ROWS = 25  # that are not blank: school files often begin with titles and a date
HEADER_MAX_CHARACTERS = 100  # of a cell that can be a header; looking for names in a huge cell would only cost time
TITLE_MAX_CHARACTERS = 30  # of a title in the choice of columns
NIM_MIN_DIGITS, NIM_MAX_LENGTH = 5, 30  # of a cell that looks like a NIM, and at least half of it are digits
IN_ORDER: FieldColumns = (0, 1, 2)
_NO_COLUMN = 1 << 30  # past the end of every row, so each of its cells is blank

# Only lower case letters count: `No. Mahasiswa *` is `nomahasiswa`. If a sheet has several of them, the first one wins.
_ALIASES: Mapping[Field, str] = {
    "nim": (
        "nim npm nimmahasiswa npmmahasiswa nomorindukmahasiswa nomorpokokmahasiswa noindukmahasiswa nopokokmahasiswa "
        "nomormahasiswa nomahasiswa nomormhs nomhs nrp nipd nis nomorinduksiswa noinduksiswa nomorinduk noinduk nisn"
    ),
    "nama": ("nama namalengkap namamahasiswa namalengkapmahasiswa namamhs namasiswa namalengkapsiswa namapesertadidik"),
    "alamat": (
        "alamat alamatlengkap alamatrumah alamatmahasiswa alamatmhs alamatsiswa alamattinggal alamattempattinggal "
        "alamatdomisili alamatsekarang alamatasal alamatktp"
    ),
}
_RANKS = {alias: (field, rank) for field, aliases in _ALIASES.items() for rank, alias in enumerate(aliases.split())}

# A title such as `NAMA LENGKAP MAHASISWA BARU` is known by one of these words, if no word says that it is about others.
_WORDS: Mapping[str, Field] = {
    **dict.fromkeys(("nim", "npm", "nrp", "nis", "nipd", "nisn", "stambuk", "induk"), "nim"),
    "nama": "nama",
    **dict.fromkeys(("alamat", "domisili"), "alamat"),
}
_is_of_others = re.compile(
    r"\b(?:ayah|bapak|ibu|ortu|orang|orangtua|wali|suami|istri|dosen|pembimbing|guru|kepala|pegawai|kependudukan|sekolah|smp"
    r"|smk|sma|slta|kampus|universitas|perguruan|instansi|perusahaan|kantor|email|mail|surel|web|website|panggilan|prodi"
    r"|program|studi|jurusan|fakultas|kelas|jalan|dusun|desa|kelurahan|kecamatan|kota|kabupaten|provinsi|bank)\b"
).search
is_total = re.compile(
    r"\s*(?:sub\s?-?total|total|jumlah|rata-rata|keterangan|catatan|dicetak|laki-laki|perempuan)\b", re.IGNORECASE
).match
_BY_WORDS = 100  # more than any rank of an alias

_row_number = re.compile(r"([0-9]{1,3})[.)]?").fullmatch
_is_date = re.compile(r"[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}").fullmatch


class Columns(NamedTuple):
    """The columns of a sheet: which one holds which field, and the titles of all of them."""

    of_fields: FieldColumns
    titles: list[str]


class Selection(NamedTuple):
    """The columns and the rows of a sheet. `remarks` are sentences that tell a person how they were found."""

    columns: Columns
    rows: Iterator[SheetRow]
    remarks: Sequence[str] = ()


class _Top(NamedTuple):
    """The first rows of a sheet that are not blank, and where its titles are."""

    rows: list[Sequence[Cell]]
    header: Sequence[Cell] | None  # the titles that name the columns
    clue: Sequence[Cell] | None  # the header, or else a row that is probably the titles
    first: int  # the index of the first row below the header
    titles: list[str]


def select_columns(rows: Iterable[SheetRow], choice: Choice, first_sheet: Columns | None = None) -> Selection:
    """The columns, and the NIM, Nama and Alamat of each row that is not blank.

    A person has chosen the columns, or the header names them, or the cells suggest them. With `nim_only` the header needs
    no other column, Alamat is left blank, and a sheet without a header may have one column, or one row of NIMs. If another
    sheet was read before, this one may be blank. It has the columns of the first sheet if it has the same titles or none.

    Raises SheetError if the rows are all blank or too wide, and ColumnsUnclear if a column cannot be found.
    """
    rows = iter(rows)
    numbered = list(islice((row for row in rows if not is_blank(row[1])), HEADER_WITHIN_ROWS))
    if not numbered and first_sheet:
        return Selection(first_sheet, iter(()))
    if not numbered:
        raise SheetError(wording.EMPTY)
    top = _top_of([row for _, row in numbered], choice)
    if choice.nim_only and top.header is None and len(top.rows) == 1:
        cells: list[SheetRow] = [
            (n, (cell, None, None)) for n, cell in enumerate(top.rows[0], 1) if not is_blank((cell,))
        ]
        return Selection(Columns((0, None, None), top.titles), iter(cells))
    of_fields, remarks = _columns_found(top, choice, first_sheet)
    if choice.nim_only:
        of_fields = (*of_fields[:2], None)
    parts = _parts_of(of_fields, top.titles)
    remarks = [*remarks, *(_joined_remark(of_fields.index(column), parts[column]) for column in parts)]
    width = _width(top.header) if top.header else 0
    if width and top.first < len(top.rows) and not any(map(has_digit, map(cell_text, top.rows[top.first]))):
        width = max(width, _width(top.rows[top.first]))  # probably a second row of titles
    selected = _selected(chain(numbered[top.first :], rows), of_fields, parts, width)
    return Selection(Columns(of_fields, top.titles), selected, remarks)


def _top_of(rows: list[Sequence[Cell]], choice: Choice) -> _Top:
    first, header = find_header(rows, nim_only=choice.nim_only)
    clue = header or next(filter(_is_clue, rows), None)
    if header is None and choice.columns is not None and clue:
        first = rows.index(clue) + 1
    return _Top(rows, header, clue, first, _titles(clue or rows[0]))


def _columns_found(top: _Top, choice: Choice, first_sheet: Columns | None) -> tuple[FieldColumns, Sequence[str]]:
    """The column of each field, and remarks that tell a person how they were found. Raises ColumnsUnclear."""
    if choice.columns is not None:
        return _checked(choice.columns, top.titles), ()
    if first_sheet and (top.header is None or top.titles == first_sheet.titles):
        return first_sheet.of_fields, ()
    if top.header is not None:
        return _columns_of(top.header, top.titles, top.rows[top.first :]), ()
    if top.clue is None:
        return _columns_by_cells(top.rows, top.titles, nim_only=choice.nim_only)
    problem = wording.NO_OTHER_COLUMN if _fields_in(top.clue) == {"nim"} else wording.NO_NIM_COLUMN
    nim, nama, alamat = _first_columns(top.clue)
    found = _ColumnTexts(top.rows[top.rows.index(top.clue) + 1 :]).nim
    suggested = found if nim is None and found not in (nama, alamat) else nim
    raise ColumnsUnclear(problem, top.titles, (suggested, nama, alamat))


def find_header(top: Sequence[Sequence[Cell]], *, nim_only: bool) -> tuple[int, Sequence[Cell] | None]:
    """The index of the first row below the header, and the titles, which may stand in two rows; (0, None) without one.

    `top` are the first rows of a sheet that are not blank.
    """
    pairs = [
        (index, _combined_titles(upper, lower))
        for index, (upper, lower) in enumerate(pairwise(top), 2)
        if not any(has_digit(cell_text(cell)) for cell in lower)  # a student's row has one in the NIM
    ]
    for index, row in enumerate(top, 1):
        if is_header(row, nim_only=nim_only):
            near = [pair for pair in pairs if pair[0] in (index, index + 1)]
            return max([(index, row), *near], key=lambda candidate: len(_fields_in(candidate[1])))
    return next((pair for pair in pairs if is_header(pair[1], nim_only=nim_only)), (0, None))


def _combined_titles(upper: Sequence[Cell], lower: Sequence[Cell]) -> list[Cell]:
    """The titles of two rows. A title of the upper row also belongs to the blank cells beside it, as in `Data Ayah`."""
    titles: list[Cell] = []
    group = ""
    for above, below in zip_longest(upper[:MAX_TITLES], lower[:MAX_TITLES]):
        own = "" if is_blank((above,)) else cell_text(above)[:HEADER_MAX_CHARACTERS]
        group = own or group
        titles.append(own if is_blank((below,)) else f"{group} {cell_text(below)}")
    return titles


def _is_clue(row: Sequence[Cell]) -> bool:
    """Whether a row is probably the titles, although it does not name all columns that are needed."""
    return len(_fields_in(row)) > 1 or any(rank < _BY_WORDS for _, rank, _ in _headings(row))


def is_header(row: Iterable[object], *, nim_only: bool = False) -> bool:
    """Whether a row names the column of the NIM and, unless `nim_only`, at least one other."""
    fields = _fields_in(row)
    return "nim" in fields if nim_only else fields > {"nim"}


def _fields_in(row: Iterable[object]) -> set[Field]:
    return {field for field, _, _ in _headings(row)}


def is_repeated_header(cells: Sequence[Cell]) -> bool:
    """Whether the three selected cells of a row are a header again, as in a sheet with a header on each printed page."""
    return "nim" in _fields_in(cells[:1]) and is_header(cells)


def _width(row: Sequence[Cell]) -> int:
    return max((column for column, cell in enumerate(row, 1) if not is_blank((cell,))), default=0)


_is_address_part = re.compile(
    r"(?:(?:jalan|jl|rt|rw|dusun|desa|kelurahan|kecamatan|kota|kabupaten|kab|provinsi|kode pos)\b\W*)+"
).fullmatch
_is_name_part = re.compile(r"nama (?:depan|tengah|belakang)").fullmatch


def _parts_of(of_fields: FieldColumns, titles: Sequence[str]) -> dict[int, list[int]]:
    """The columns that make up a name or an address that stands in several, by the first of them."""
    parts = {}
    for column, is_part in zip(of_fields[1:], (_is_name_part, _is_address_part), strict=True):
        if column is not None and column < len(titles) and is_part(titles[column].casefold()):
            parts[column] = [index for index, title in enumerate(titles) if is_part(title.casefold())]
    return {column: indexes for column, indexes in parts.items() if len(indexes) > 1}


def _joined_remark(field: int, columns: Sequence[int]) -> str:
    letters = ", ".join(map(wording.column_letter, columns))
    return wording.JOINED_COLUMNS.format(field=wording.HEADER[field], columns=letters)


def second_table(titles: Sequence[str]) -> int | None:
    """The first column of a second table beside the first one: NIM and Nama stand twice in the titles."""
    nims, names = (
        [c for f, rank, c in _headings(titles) if f == field and rank < _BY_WORDS] for field in ("nim", "nama")
    )
    return nims[1] if len(nims) > 1 and len(names) > 1 and nims[1] > names[0] and names[1] > nims[1] else None


def _selected(
    rows: Iterable[SheetRow], of_fields: FieldColumns, parts: Mapping[int, Sequence[int]], width: int
) -> Iterator[SheetRow]:
    """NIM, Nama and Alamat of each row, and a notice if it has more cells than the `width` of its titles."""
    columns = a, b, c = [_NO_COLUMN if column is None else column for column in of_fields]
    for number, row in rows:
        try:
            nim, nama, alamat = row[a], row[b], row[c]
        except IndexError:
            # A CSV file may leave out the blank cells at the end of a row.
            nim, nama, alamat = (row[column] if column < len(row) else None for column in columns)
        if parts:
            nama = _joined(row, parts[b], " ") if b in parts else nama
            alamat = _joined(row, parts[c], ", ") if c in parts else alamat
        if not (nama or alamat) and nim is not None and (total := next(filter(is_total, map(cell_text, row)), "")):
            nim = total  # the word stands in another column, such as that of the row numbers
        if width and len(row) > width and not is_blank(row[width : width + 1]):
            is_last = c == width - 1
            alamat = _joined(row, range(c, len(row)), ", ") if is_last else alamat
            yield number, (nim, nama, alamat, wording.JOINED_CELLS if is_last else wording.MORE_CELLS)
        elif nim or not is_blank((nim, nama, alamat)):
            yield number, (nim, nama, alamat)


def _joined(row: Sequence[Cell], columns: Iterable[int], separator: str) -> Cell:
    """The texts of several cells of a row as one. A single cell stays as it is."""
    cells = [row[column] for column in columns if column < len(row) and not is_blank((row[column],))]
    return separator.join(cell_text(cell).strip() for cell in cells) if len(cells) > 1 else next(iter(cells), None)


def _checked(chosen: FieldColumns, titles: list[str]) -> FieldColumns:
    """The columns that a person has chosen. Raises ColumnsUnclear if they cannot be used."""
    nim, nama, alamat = chosen
    if nim is None or (nama is None and alamat is None):
        raise ColumnsUnclear(wording.COLUMN_NOT_CHOSEN, titles)
    given = [column for column in chosen if column is not None]
    if len(set(given)) < len(given):
        raise ColumnsUnclear(wording.COLUMN_CHOSEN_TWICE, titles)
    return chosen


def _columns_of(header: Sequence[Cell], titles: list[str], rows: Sequence[Sequence[Cell]]) -> FieldColumns:
    """The best column for each field. Raises ColumnsUnclear if two are equally good, or if the rows contradict them."""
    best: dict[Field, tuple[int, int]] = {}
    second = second_table(titles)
    for field, rank, column in _headings(header):
        is_part = field in best and column < len(titles) and _is_name_part(titles[column].casefold())
        if is_part or (second is not None and column >= second):
            continue
        if field in best and best[field][0] == rank:
            letters = {"first": wording.column_letter(best[field][1]), "second": wording.column_letter(column)}
            problem = wording.TWO_COLUMNS.format(field=wording.LABELS[field], **letters)
            raise ColumnsUnclear(problem, titles, _first_columns(header))
        if field not in best or rank < best[field][0]:
            best[field] = (rank, column)
    nim, nama, alamat = (best[field][1] if field in best else None for field in _ALIASES)
    if nama is None:
        nama = next((c for c, title in enumerate(titles) if _is_name_part(title.casefold())), None)
    if alamat is None:
        alamat = next((c for c, title in enumerate(titles) if _is_address_part(title.casefold())), None)
    _refuse_swapped((nim, nama, alamat), rows, titles)
    return nim, nama, alamat


def _first_columns(header: Sequence[Cell]) -> FieldColumns:
    first = {field: column for field, _, column in reversed(_headings(header))}
    nim, nama, alamat = map(first.get, _ALIASES)
    return nim, nama, alamat


def _titles(row: Sequence[Cell]) -> list[str]:
    """The texts of a row by which a person recognises its columns."""
    texts = (cell[:TITLE_MAX_CHARACTERS] if isinstance(cell, str) else "" for cell in row[:MAX_TITLES])
    titles = [" ".join(text.split()) for text in texts]
    return titles + [""] * (len(wording.HEADER) - len(titles))


def _headings(row: Iterable[object]) -> list[tuple[Field, int, int]]:
    """The field, the rank of the title and the column of each cell that names a field."""
    return [
        (*heading, column)
        for column, cell in enumerate(row)
        if isinstance(cell, str) and len(cell) <= HEADER_MAX_CHARACTERS and (heading := _heading(cell))
    ]


def _heading(cell: str) -> tuple[Field, int] | None:
    """The field that a title names, and its rank: the whole title, a part of `NIM/NPM`, or one of its words."""
    folded = cell.casefold()
    # Only up to the last `)`: each `(` after it would be compared with the rest of the cell, in quadratic time.
    end = folded.rfind(")") + 1
    text = re.sub(r"\([^)]*\)", "", folded[:end]) + folded[end:]
    for part in (text, *text.split("/")):
        if heading := _RANKS.get(re.sub(r"[^a-z]+", "", part)):
            return heading
    words = re.findall("[a-z]+", text)
    fields = {_WORDS[word] for word in words if word in _WORDS}
    return (fields.pop(), _BY_WORDS + len(words)) if len(fields) == 1 and not _is_of_others(" ".join(words)) else None


class _ColumnTexts:
    """The texts of each column in the first rows of a sheet, without the rows of one cell, such as a letterhead."""

    def __init__(self, rows: Sequence[Sequence[Cell]]) -> None:
        def shown(cell: Cell) -> str:
            return "" if is_blank((cell,)) else cell_text(cell)[: NIM_MAX_LENGTH + 1].strip() or "?"

        texts = [list(map(shown, row[:MAX_TITLES])) for row in rows]
        lists = [row for row in texts if len(row) - row.count("") > 1] or texts
        self._texts = [list(filter(None, column)) for column in zip_longest(*lists, fillvalue="")]
        self.filled = [index for index, column in enumerate(self._texts) if column]
        self.counting = list(filter(self._counts, self.filled))
        like_nims = [index for index in self.filled if index not in self.counting and self._looks_like_nims(index)]
        self.nim = like_nims[0] if len(like_nims) == 1 else None  # the only column that looks like NIMs

    def is_of_ids(self, index: int) -> bool:
        """Whether a column could be short NIMs: different numbers. The names of classes have a letter or repeat."""
        column = self._texts[index]
        return len(set(column)) == len(column) and all(map(is_digits, column))

    def is_of_names(self, index: int) -> bool:
        """Whether a column could be the names: words of which most differ."""
        column = self._texts[index]
        return self.is_of_words(index) and len(set(column)) * 2 > len(column)

    def is_of_words(self, index: int) -> bool:
        """Whether most cells of a column have no digit."""
        column = self._texts[index]
        return sum(not has_digit(text) for text in column) * 2 > len(column)

    def _counts(self, index: int) -> bool:
        """Whether a column numbers the rows: 1, 2, 3, from any number on."""
        matches = list(map(_row_number, self._texts[index]))
        numbers = [int(match[1]) for match in matches if match]
        return len(numbers) == len(matches) and all(second == first + 1 for first, second in pairwise(numbers))

    def _looks_like_nims(self, index: int) -> bool:
        column = self._texts[index]
        return len(set(column)) == len(column) and sum(map(_looks_like_nim, column)) * 10 >= len(column) * 9


def _looks_like_nim(text: str) -> bool:
    digits = len(re.findall("[0-9]", text))
    return digits >= NIM_MIN_DIGITS and len(text) <= min(NIM_MAX_LENGTH, 2 * digits) and not _is_date(text)


def _columns_by_cells(
    rows: Sequence[Sequence[Cell]], titles: list[str], *, nim_only: bool
) -> tuple[FieldColumns, Sequence[str]]:
    """The columns of a sheet without titles, and a remark if they are not the first three.

    A column that counts the rows is never taken for the NIM, except as the only one. Raises ColumnsUnclear.
    """
    columns = _ColumnTexts(rows)
    filled = columns.filled or [MAX_TITLES]  # all texts may stand further to the right
    first, nim, width = filled[0], columns.nim, filled[-1] + 1
    is_single = nim_only and width == 1
    counts = first in columns.counting and not is_single
    if nim is not None and (nim_only or counts or (nim != first and not columns.is_of_ids(first))):
        others = [column for column in filled if column > nim or columns.is_of_names(column)]
        others = [column for column in others if column not in (nim, *columns.counting)]
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


def _refuse_swapped(of_fields: FieldColumns, rows: Sequence[Sequence[Cell]], titles: list[str]) -> None:
    """Raise ColumnsUnclear if the column of the NIM has words in several rows, and that of another field has the NIMs."""
    columns = _ColumnTexts(rows)
    nim, other = of_fields[0], columns.nim
    if len(rows) > 1 and nim in columns.filled and columns.is_of_words(nim) and other != nim and other in of_fields[1:]:
        swapped = {nim: other, other: nim}
        first, second, third = (swapped.get(column, column) for column in of_fields)
        raise ColumnsUnclear(wording.SWAPPED, titles, (first, second, third))
