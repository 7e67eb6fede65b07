"""Finds the columns of a sheet by their titles, and joins the cells of a row to NIM, Nama and Alamat."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, takewhile, zip_longest
from typing import NamedTuple

from mahasiswa import wording
from mahasiswa.record import FIELDS, Field
from mahasiswa.sheets.cells import ROW_MAX_CELLS, Bad, Cell, Row, is_blank, text_of
from mahasiswa.wording import LABELS, column_letter

TITLES_WITHIN_ROWS = 25
TITLES_MAX = 256  # columns in which a title is looked for
TITLE_MAX_CHARACTERS = 100
TOWNS_MIN_NAMES = 4  # minimum names under Alamat, beside at most half as many towns

_PERSON = (
    "(?:mahasiswai?|mhs|siswai?|siswi|murid|santri|santriwati|pesertadidik|peserta|taruna|anak)"
)
_NUMBER = "(?:no|nomor|nomer)"
# Words that say nothing about what a column has.
_FILLER = (
    f"(?:{_PERSON}|{_NUMBER}|tuliskan|tulis|isikan|isi|masukkan|ketik|anda|kamu|saudara|lengkap|resmi|asli|aktif|baru|sesuai"
    "|pada|di|ktp|kk|kartukeluarga|ijazah|akta|kelahiran|wajib|diisi|huruf|kapital|besar|sekarang|saat|ini|yang|jelas|data)"
)


class Part(NamedTuple):
    """A part of a field that a column may have: its name for a person, a pattern for the letters of its titles, and its label.

    A title may also say whose it is (`Nama Siswa`), but nothing else. The label stands before the texts.
    """

    field: Field
    name: str
    titles: str
    label: str = ""


PARTS: Mapping[str, Part] = {
    "nim": Part(
        "nim",
        "NIM",
        f"nim|npm|nrp|nipd|nis|stambuk|nobp|nislokal|{_NUMBER}?(?:induk|pokok)(?:madrasah|{_PERSON})?|{_NUMBER}"
        rf"(?!peserta\b|anak){_PERSON}|student(?:id|number)|id(?:number|{_PERSON})",
    ),
    "nisn": Part("nim", "NISN", f"nisn|{_NUMBER}?induksiswanasional"),
    "nama": Part("nama", "Nama", "nama(?:lengkap|peserta)?|(?:full|student)?name"),
    "orang": Part("nama", "Mahasiswa", _PERSON),
    "depan": Part("nama", "Nama Depan", "nama(?:depan|awal)|(?:first|given)name"),
    "tengah": Part("nama", "Nama Tengah", "namatengah|middlename"),
    "belakang": Part("nama", "Nama Belakang", "nama(?:belakang|akhir|keluarga)|(?:last|family)name|surname"),
    "alamat": Part("alamat", "Alamat", "alamat(?:tempattinggal|tinggal|rumah|asal|domisili)?|domisili|tempattinggal|(?:home)?address"),
    "jalan": Part("alamat", "Jalan", "(?:nama)?jalan|jl|street"),
    "gang": Part("alamat", "Gang", "gang|gg", "Gg."),
    "rumah": Part("alamat", "No. Rumah", f"{_NUMBER}rumah", "No."),
    "blok": Part("alamat", "Blok", "blok", "Blok"),
    "rtrw": Part("alamat", "RT/RW", "rtrw", "RT/RW"),
    "rt": Part("alamat", "RT", "rt", "RT"),
    "rw": Part("alamat", "RW", "rw", "RW"),
    "dusun": Part("alamat", "Dusun", "(?:nama)?(?:dusun|dukuh|padukuhan|pedukuhan|lingkungan|kampung)", "Dusun"),
    "desa": Part("alamat", "Desa", "(?:nama)?desa", "Desa"),
    "kel": Part("alamat", "Kelurahan", "(?:kelurahan|kel)(?:desa)?|desakel(?:urahan)?", "Kel."),
    "kec": Part("alamat", "Kecamatan", "kecamatan|kec", "Kec."),
    "kota": Part("alamat", "Kota", "(?:kota|kabupaten|kab)(?:kota|kabupaten|kab)?|city"),
    "prov": Part("alamat", "Provinsi", "provinsi|propinsi|prov|province"),
    "pos": Part("alamat", "Kode Pos", "kodepos|zip(?:code)?|postalcode", "Kode Pos"),
}  # fmt: skip

_title_of = {
    part: re.compile(f"{_FILLER}*(?:{of.titles})(?:{_FILLER}|{of.titles})*").fullmatch
    for part, of in PARTS.items()
}
# Titles that may stand alone. `Kota` alone may be the town of birth.
_WHOLE = {"nim", "nisn", "nama", "orang", "alamat", "jalan"}
_WEAK = {
    "nisn": "nim",
    "orang": "nama",
}  # a title that counts only if there is none of the other part
_is_labelled = re.compile(
    r"(?:rt|rw|no|gg|gang|dusun|dsn|padukuhan|pedukuhan|dukuh|dk|blok|desa|ds|kelurahan|kel|kecamatan|kec|kode ?pos)\b",
    re.IGNORECASE,
).match
_is_missing = re.compile(r"\W*(?:0+|null|none|kosong|n\W?a|tidak ada)?\W*", re.IGNORECASE).fullmatch


class Columns(NamedTuple):
    """The columns of a sheet: the number of the row of titles (0 without one), the titles, and the part of each column.

    Behind `width` cells a row has no text, and it has at most `length` cells, blank ones too. `doubt` is the reason why a
    person must choose, or blank.
    """

    header: int
    titles: Sequence[str]
    of: Mapping[int, str]
    width: int = ROW_MAX_CELLS
    length: int = ROW_MAX_CELLS
    doubt: str = ""

    def exceeds(self, row: Sequence[Cell]) -> bool:
        """Whether a row has more cells than there are titles, or a comma has moved a part of its address into the next cell."""
        beside = max(self.of, default=0) + 1
        if len(row) <= beside:
            return False
        cell = row[beside]
        is_moved = isinstance(cell, str) and cell[:1] == " " and cell.strip()[:1].isalpha()
        return is_moved or len(row) > self.length or not is_blank(row[self.width :])


def fields_of(columns: Mapping[int, str]) -> set[Field]:
    """The fields of a record that the columns have."""
    return {PARTS[part].field for part in columns.values()}


def part_of(title: Cell) -> str:
    """The part that a title surely names, or a blank text."""
    if not isinstance(title, str) or len(title) > TITLE_MAX_CHARACTERS or re.search("[0-9]", title):
        return ""
    letters = re.sub("[^a-z]+", "", title.casefold())
    # `NIS/NISN` are two numbers in one cell.
    if re.search("nisn(?:nis|nim|nipd)|(?:nis|nim|nipd)nisn", letters):
        return ""
    return next((part for part, is_title in _title_of.items() if is_title(letters)), "")


def parts_of(row: Sequence[Cell]) -> dict[int, str]:
    """The parts that the titles in a row name, by column."""
    found = {column: part_of(cell) for column, cell in enumerate(row[:TITLES_MAX])}
    parts = {*found.values()}
    return {column: part for column, part in found.items() if part and _WEAK.get(part) not in parts}


def are_titles(row: Sequence[Cell], *, nim_only: bool = False) -> bool:
    """Whether a row names the NIM and, unless `nim_only`, another field."""
    fields = fields_of(parts_of(row))
    return "nim" in fields and (nim_only or len(fields) > 1)


def find(top: Sequence[Row], *, nim_only: bool = False) -> Columns:
    """The columns by the titles among the first rows of a sheet."""
    rows = [row for _, row in top[:TITLES_WITHIN_ROWS]]
    sure = [row for row in rows if are_titles(row, nim_only=nim_only)]
    likely = max(rows, key=lambda row: len(parts_of(row)), default=())
    found = sure[0] if sure else likely
    of = parts_of(found)
    if not of or (nim_only and not sure):
        width = max(map(len, rows), default=0)
        return Columns(0, [""] * min(width, TITLES_MAX), {}, doubt=wording.NO_TITLES)

    number = next(number for number, row in top if row is found)
    titles = [" ".join(text_of(cell).split())[:TITLE_MAX_CHARACTERS] for cell in found[:TITLES_MAX]]
    columns = measured(Columns(number, titles, of), top)
    body = [row for number, row in top if number > columns.header]
    return columns._replace(doubt=next(_doubts(columns, body), ""))


def measured(columns: Columns, top: Sequence[Row]) -> Columns:
    """The columns with the limits that the titles set for a row, unless most rows have more cells."""
    heads = [row for number, row in top if number == columns.header]
    body = [row for number, row in top if number > columns.header]
    # A second row of titles, as Dapodik has it, may reach further to the right.
    heads += [row for row in body[:1] if is_blank(join(row, columns.of))]
    filled = [at for head in heads for at, cell in enumerate(head, 1) if not is_blank([cell])]
    width = max([*filled, *(column + 1 for column in columns.of)], default=0)
    length = max([len(head) for head in heads], default=0)
    longer = sum(not is_blank(row[width:]) for row in body)
    if not heads or 2 * longer > len(body):
        return columns
    usual = Counter(map(len, body)).most_common(1)
    return columns._replace(width=width, length=max([length, *dict(usual)]))


def _doubts(columns: Columns, body: Sequence[Sequence[Cell]]) -> Iterator[str]:
    """The reasons why a person must choose the columns."""
    cells = zip_longest(*(row[:TITLES_MAX] for row in body))
    texts = [list(filter(None, (text_of(cell).strip() for cell in column))) for column in cells]
    texts += [[] for _ in columns.titles]  # of columns without cells
    if "nim" not in fields_of(columns.of):
        yield wording.NIM_NOT_TITLED
    elif len(fields_of(columns.of)) == 1:
        yield wording.NO_OTHER_COLUMN
    for field in FIELDS:
        found = [column for column, part in columns.of.items() if PARTS[part].field == field]
        if found:
            yield from _doubts_about(field, found, columns, texts)
    if columns.width == ROW_MAX_CELLS:
        yield wording.CELLS_WITHOUT_TITLE
    records = [join(row, columns.of) for row in body]
    names = {text_of(nama) for _, nama, _ in records}
    places = {text_of(alamat) for *_, alamat in records}
    are_many = len(places) >= max(TOWNS_MIN_NAMES, 2 * len(names))
    # Towns repeat, and names have no digits.
    if are_many and "" not in names and not re.search(r"[\d,/]", "".join(places)):
        yield wording.EXCHANGED


def _doubts_about(
    field: Field, found: Sequence[int], columns: Columns, texts: Sequence[Sequence[str]]
) -> Iterator[str]:
    parts = [columns.of[column] for column in found]
    first, last = found[0], found[-1]
    letter = column_letter(last)
    twice = [column for column in found if parts.count(columns.of[column]) > 1]
    twice = twice or (list(found) if "nama" in parts and len(parts) > 1 else [])
    if twice:
        letters = map(column_letter, twice[:2])
        yield wording.TITLED_TWICE.format(LABELS[field], *letters)
    if field == "nim" and not texts[first] and any(texts):
        yield wording.NIM_COLUMN_BLANK.format(column=letter)
    if field == "nim" and _counts(texts[first]):
        yield wording.NIM_COUNTS_ROWS.format(column=letter)
    is_whole = not _WHOLE.isdisjoint(parts) or (field == "nama" and len(parts) > 1)
    if not is_whole or last - first >= len(found):
        yield wording.TITLE_UNSURE.format(column=letter, field=LABELS[field])
    untitled = takewhile(
        lambda column: not columns.titles[column],
        range(last + 1, min(columns.width, len(columns.titles))),
    )
    for column in untitled:
        if texts[column] and field != "nim":
            yield wording.COLUMN_WITHOUT_TITLE.format(
                column=column_letter(column), field=LABELS[field]
            )


def _counts(nims: Sequence[str]) -> bool:
    """Whether a column numbers the rows: short numbers that ascend."""
    numbers = [int(nim) for nim in nims if re.fullmatch("[0-9]{1,3}", nim)]
    ascend = all(first < second for first, second in pairwise(numbers))
    return bool(numbers) and ascend and 10 * len(numbers) >= 9 * len(nims)


def join(row: Sequence[Cell], of: Mapping[int, str]) -> tuple[Cell, Cell, Cell]:
    """NIM, Nama and Alamat of a row. The parts of a name and of an address are joined in the order of the file."""
    found: dict[Field, list[tuple[str, Cell]]] = {field: [] for field in FIELDS}
    length = len(row)
    for column, part in of.items():
        if column < length:
            found[PARTS[part].field].append((part, row[column]))
    nim, nama, alamat = found.values()
    return _joined(nim, " "), _joined(nama, " "), _joined(alamat, ", ")


def _joined(cells: Sequence[tuple[str, Cell]], separator: str) -> Cell:
    bad = [cell for _, cell in cells if isinstance(cell, Bad)]
    if bad or (len(cells) == 1 and cells[0][0] in _WHOLE):
        return bad[0] if bad else cells[0][1]
    whole = text_of(dict(cells).get("alamat")).strip()
    texts = []
    for part, cell in cells:
        text = text_of(cell).strip()
        sign = PARTS[part].label
        shown = f"{sign} {text}" if sign and not _is_labelled(text) else text
        said = re.escape(shown if text.isdigit() else text)
        is_said = len(text) < len(whole) and re.search(rf"\b{said}\b", whole, re.IGNORECASE)
        # Dapodik writes 0 or `-` for a part that is missing. The address may have the part already.
        if not (is_said or _is_missing(text)):
            texts.append(shown)
    return separator.join(texts) or whole or None
