"""Finds the columns of a sheet by their titles, and joins the cells of a row to NIM, Nama and Alamat."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import NamedTuple

from mahasiswa import wording
from mahasiswa.record import FIELDS
from mahasiswa.sheets.cells import MARKS, Cell, Cells, Row, Sheet, is_blank, text_of
from mahasiswa.wording import LABELS

TITLES_WITHIN_ROWS = 25
ROW_NUMBER_MAX_DIGITS = 3
TITLES_MAX = 256  # columns in which a title is looked for
TITLE_MAX_CHARACTERS = 100
EXAMPLES = 3  # of a column
TOWNS_MIN_NAMES = 4  # minimum names under Alamat, beside at most half as many towns

_PERSON = (
    "(?:mahasiswai?|mhs|siswai?|siswi|murid|santri|santriwati|pesertadidik|peserta|taruna|anak)"
)
_NUMBER = "(?:no|nomor|nomer)"
# Words in a title that do not name a field.
_FILLER = (
    f"(?:{_PERSON}|{_NUMBER}|tuliskan|tulis|isikan|isi|masukkan|ketik|anda|kamu|saudara|lengkap|resmi|asli|aktif|baru|sesuai"
    "|pada|di|ktp|kk|kartukeluarga|ijazah|akta|kelahiran|wajib|diisi|huruf|kapital|besar|sekarang|saat|ini|yang|jelas|data)"
)

TITLES = {
    "nim": {
        "nim": f"nim|npm|nrp|nipd|nis|stambuk|nobp|nislokal|{_NUMBER}?(?:induk|pokok)(?:madrasah|{_PERSON})?|{_NUMBER}"
        rf"(?!peserta\b|anak){_PERSON}|student(?:id|number)|id(?:number|{_PERSON})",
        "NISN": f"nisn|{_NUMBER}?induksiswanasional",
    },
    "nama": {
        "nama": "nama(?:lengkap|peserta)?|(?:full|student)?name",
        "Mahasiswa": _PERSON,
        "Nama Depan": "nama(?:depan|awal)|(?:first|given)name",
        "Nama Belakang": "nama(?:belakang|akhir|keluarga)|(?:last|family)name|surname",
    },
    "alamat": {
        "alamat": "alamat(?:tempattinggal|tinggal|rumah|asal|domisili)?|domisili|tempattinggal|(?:home)?address",
        "Jalan": "(?:nama)?jalan|jl|street",
        "Gg.": "gang|gg",
        "No.": f"{_NUMBER}rumah",
        "Blok": "blok",
        "RT/RW": "rtrw",
        "RT": "rt",
        "RW": "rw",
        "Dusun": "(?:nama)?(?:dusun|dukuh|padukuhan|pedukuhan|lingkungan|kampung)",
        "Desa": "(?:nama)?desa",
        "Kel.": "(?:kelurahan|kel)(?:desa)?|desakel(?:urahan)?",
        "Kec.": "kecamatan|kec",
        "Kota": "(?:kota|kabupaten|kab)(?:kota|kabupaten|kab)?|city",
        "Provinsi": "provinsi|propinsi|prov|province",
        "Kode Pos": "kodepos|zip(?:code)?|postalcode",
    },
}
"""The parts of each field that a column may have, and patterns for the letters of their titles.

A title may also say whose it is (`Nama Siswa`), but nothing else.
"""

FIELD_OF = {part: field for field, parts in TITLES.items() for part in parts}
"""The field of each part."""

_title_of = {
    part: re.compile(f"{_FILLER}*(?:{titles})(?:{_FILLER}|{titles})*").fullmatch
    for parts in TITLES.values()
    for part, titles in parts.items()
}
# Two halves of a field are sure. `Kota` alone may be the town of birth.
_HALVES = {
    "nim": 2, "NISN": 2, "nama": 2, "Mahasiswa": 2, "Nama Depan": 1, "Nama Belakang": 1, "alamat": 2, "Jalan": 2,
}  # fmt: skip
# A part that counts only if there is none of the other part.
_WEAK = {"NISN": "nim", "Mahasiswa": "nama"}
# Texts of other parts of an address get the name of the part in front.
_BARE = {"alamat", "Jalan", "Kota", "Provinsi", *TITLES["nama"]}
_is_labelled = re.compile(
    r"(?i)(?:rt|rw|no|gg|gang|dusun|dsn|padukuhan|pedukuhan|dukuh|dk|blok|desa|ds|kelurahan|kel|kecamatan|kec|kode ?pos)\b"
).match
_is_missing = re.compile(r"(?i)\W*(?:0+|null|none|kosong|n\W?a|tidak ada)?\W*").fullmatch
# A comma has moved a part of an address into the next cell.
_is_moved = re.compile(r" \s*[^\W\d_]").match
_OF_EXPORT = dict(
    enumerate(FIELDS)
)  # the columns of our own exports, which may have a million rows


class Table(NamedTuple):
    """A sheet with its titles, and the part of a record that each column has, by its index.

    There is a title for each cell that a row may have; under a blank one it has no text.
    """

    id: int
    name: str
    header: int  # the number of the row with the titles; 0 without one
    titles: Sequence[str]
    examples: Sequence[Sequence[str]]  # of each column
    columns: Mapping[int, str]
    doubt: str  # why a person must choose the columns; blank if they are sure
    is_read: bool = True

    @property
    def width(self) -> int:
        return max(len(self.titles), len(self.examples))

    def exceeds(self, row: Cells) -> bool:
        """Whether a row has more cells than titles, a text under a blank title, or an address that a comma has cut."""
        beside = max(self.columns) + 1
        if len(row) <= beside and "" not in self.titles:
            return False
        first = min(self.columns)
        untitled = compress(row[first:], (not title for title in self.titles[first:]))
        moved = map(_is_moved, map(text_of, row[beside : beside + 1]))
        return len(row) > len(self.titles) or any(moved) or not is_blank(untitled)

    def join(self, row: Cells) -> Cells:
        """NIM, Nama and Alamat of a row. The parts of a name and of an address are joined in the order of the file."""
        if self.columns == _OF_EXPORT and len(row) == len(FIELDS):
            return row
        length = len(row)
        return [
            _joined(
                [
                    (part, row[at])
                    for at, part in self.columns.items()
                    if part in parts and at < length
                ]
            )
            for parts in TITLES.values()
        ]


def fields_of(columns: Mapping[int, str]) -> set[str]:
    """The fields of a record that the columns have."""
    return {FIELD_OF[part] for part in columns.values()}


def part_of(title: Cell) -> str:
    """The part that a title surely names, or a blank text."""
    letters = re.sub("[^a-z0-9]+", "", text_of(title)[:TITLE_MAX_CHARACTERS].casefold())
    return next((part for part, is_title in _title_of.items() if is_title(letters)), "")


def parts_of(row: Cells) -> dict[int, str]:
    """The parts that the titles in a row name, by column."""
    found = {column: part_of(cell) for column, cell in enumerate(row[:TITLES_MAX])}
    parts = {*found.values()}
    return {column: part for column, part in found.items() if part and _WEAK.get(part) not in parts}


def are_titles(row: Cells) -> bool:
    """Whether a row names the NIM and another field."""
    fields = fields_of(parts_of(row))
    return "nim" in fields and len(fields) > 1


def find(at: int, sheet: Sheet, top: Sequence[Row]) -> Table:
    """The table of a sheet, by the titles among its first rows."""
    header, head = max(top[:TITLES_WITHIN_ROWS], key=_rank)
    columns = parts_of(head)
    if not columns:
        header, head = 0, []
    body = [row for number, row in top if number > header]
    width = min(max(map(len, body), default=0), TITLES_MAX)
    examples = [texts_of(body, column)[:EXAMPLES] for column in range(width)]
    table = Table(at, sheet.name, header, [], examples, columns, sheet.doubt)

    # A second row of titles, as Dapodik has it, may reach further to the right.
    heads = [head, *(row for row in body[:1] if is_blank(table.join(row)))]
    titles = (" ".join(texts_of(heads, at)) for at in range(min(len(head), TITLES_MAX)))
    table = table._replace(titles=[title[:TITLE_MAX_CHARACTERS] for title in titles])
    return table._replace(doubt=next(_doubts(table, body), ""))


def _rank(row: Row) -> int:
    return TITLES_MAX if are_titles(row[1]) else len(parts_of(row[1]))


def texts_of(rows: Iterable[Cells], column: int) -> list[str]:
    """The texts of a column."""
    cells = (cell for row in rows for cell in row[column : column + 1])
    return list(filter(None, (text_of(cell).rstrip(MARKS).strip() for cell in cells)))


def _doubts(table: Table, body: Sequence[Cells]) -> Iterator[str]:
    """The reasons why a person must choose the columns."""
    if table.doubt:
        yield table.doubt
    fields = fields_of(table.columns)
    if "nim" not in fields:
        yield wording.NIM_NOT_TITLED
        return
    if len(fields) == 1:
        yield wording.NO_OTHER_COLUMN
    for field in sorted(fields):
        if not _is_sure({at: part for at, part in table.columns.items() if part in TITLES[field]}):
            yield wording.COLUMN_UNSURE.format(field=LABELS[field])
    if 2 * sum(map(table.exceeds, body)) > len(body):
        yield wording.CELLS_WITHOUT_TITLE

    nims, names, places = (texts_of(map(table.join, body), at) for at in range(len(FIELDS)))
    if body and 10 * sum(len(nim) <= ROW_NUMBER_MAX_DIGITS for nim in nims) >= 9 * len(nims):
        yield wording.NIM_COUNTS_ROWS
    # Towns repeat, and names have no digits.
    are_many = len({*places}) >= max(TOWNS_MIN_NAMES, 2 * len({*names}))
    if names and are_many and not re.search(r"[\d,/]", "".join(places)):
        yield wording.EXCHANGED


def _is_sure(found: Mapping[int, str]) -> bool:
    """Whether these are adjacent columns, with a whole field."""
    halves = sum(_HALVES.get(part, 0) for part in found.values())
    return halves == 2 and max(found) - min(found) < len(found)


def _joined(cells: Sequence[tuple[str, Cell]]) -> Cell:
    """One text of the cells of a field, each with its part, and their marks; or the only cell."""
    if len(cells) == 1:
        return cells[0][1]
    marks = re.sub(f"[^{MARKS}]+", "", "".join(text_of(cell) for _, cell in cells))
    whole = text_of(dict(cells).get("alamat"))
    texts = []
    for part, cell in cells:
        text = text_of(cell).rstrip(MARKS).strip()
        shown = text if part in _BARE or _is_labelled(text) else f"{part} {text}"
        said = re.escape(shown if text.isdigit() else text)
        is_said = part != "alamat" and re.search(rf"\b{said}\b", whole, re.IGNORECASE)
        # Dapodik writes 0 or `-` for a part that is missing. The address may have the part already.
        if not (is_said or _is_missing(text)):
            texts.append(shown)
    return (" " if dict(cells).keys() & TITLES["nama"] else ", ").join(texts) + marks
