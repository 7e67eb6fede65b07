"""Finds the columns of a sheet by their titles, and joins the cells of a row to NIM, Nama and Alamat."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice, pairwise, zip_longest
from typing import NamedTuple

from mahasiswa import wording
from mahasiswa.intake.cells import Bad, Cell, Row, is_blank, text_of
from mahasiswa.wording import column_letter

TITLES_WITHIN_ROWS = 25
TITLES_MAX = 256  # columns in which a title is looked for
TITLE_MAX_CHARACTERS = 100
EXAMPLE_ROWS = 100  # rows below the titles that are looked at


class Part(NamedTuple):
    """A part of a record that a column has: its name in the choice of columns, and what stands before its texts.

    `titles` is a pattern for the letters of its titles. A title says the part, and perhaps whose it
    is, but nothing else.
    """

    name: str
    titles: str
    label: str = ""


_PERSON = "(?:mahasiswai?|mhs|siswai?|siswi|murid|santri|santriwati|pesertadidik|taruna|anak)"
_NUMBER = "(?:no|nomor|nomer|number)"
# Words that say nothing about what a column has.
_FILLER = (
    "(?:tuliskan|tulis|isikan|isi|masukkan|ketik|anda|kamu|saudara|lengkap|resmi|asli|aktif|baru|sesuai|pada|di|ktp|kk"
    "|kartukeluarga|ijazah|akta|kelahiran|wajib|diisi|huruf|kapital|besar|sekarang|saatini|saat|ini|yang|jelas|data|your|full)"
)

PARTS: Mapping[str, Part] = {
    "nim": Part(
        "NIM",
        f"(?:nim|npm|nrp|nipd|nis|stambuk|nobp|nislokal|{_NUMBER}?(?:induk|pokok)(?:madrasah)?{_PERSON}?|{_NUMBER}{_PERSON}"
        f"|student(?:id|number)|id(?:number|{_PERSON}))",
    ),
    "nisn": Part("NIM (NISN)", f"(?:nisn|{_NUMBER}?induksiswanasional)"),
    "nama": Part("Nama", "(?:namalengkap|nama|name|fullname|studentname|namapeserta)"),
    "orang": Part("Nama", _PERSON),
    "depan": Part("Nama Depan", "(?:nama(?:depan|awal)|(?:first|given)name)"),
    "tengah": Part("Nama Tengah", "(?:namatengah|middlename)"),
    "belakang": Part(
        "Nama Belakang", "(?:nama(?:belakang|akhir|keluarga)|(?:last|family)name|surname)"
    ),
    "alamat": Part(
        "Alamat",
        "(?:alamat|domisili|tempattinggal|alamattinggal|alamatrumah|alamatasal|(?:home)?address)",
    ),
    "jalan": Part("Jalan", "(?:namajalan|jalan|jl|street)"),
    "gang": Part("Gang", "(?:gang|gg)", "Gg."),
    "rumah": Part("No. Rumah", "(?:no|nomor)rumah", "No."),
    "blok": Part("Blok", "blok", "Blok"),
    "rtrw": Part("RT/RW", "rtrw", "RT/RW"),
    "rt": Part("RT", "rt", "RT"),
    "rw": Part("RW", "rw", "RW"),
    "dusun": Part("Dusun", "(?:dusun|dukuh|padukuhan|pedukuhan|lingkungan|kampung)", "Dusun"),
    "desa": Part("Desa", "desa", "Desa"),
    "kel": Part("Kelurahan", "(?:kelurahan|kel)(?:desa)?|desakel(?:urahan)?", "Kel."),
    "kec": Part("Kecamatan", "kecamatan|kec", "Kec."),
    "kota": Part("Kota", "(?:kota|kabupaten|kab)(?:kota|kabupaten|kab)?|city"),
    "prov": Part("Provinsi", "provinsi|propinsi|prov|province"),
    "pos": Part("Kode Pos", "kodepos|zip|zipcode|postalcode", "Kode Pos"),
}

NIM_PARTS = ("nim", "nisn")
NAMA_PARTS = ("nama", "orang", "depan", "tengah", "belakang")
ALAMAT_PARTS = tuple(PARTS)[tuple(PARTS).index("alamat") :]
# Titles that may stand alone. `Kota` alone may be where a student was born.
_WHOLE_PARTS = ("nama", "orang", "alamat", "jalan")
_MAY_HAVE_FILLERS = ("nim", "nisn", "nama", "alamat")

_title_of = {
    part: re.compile(
        f"(?:{_PERSON}|{_FILLER}|{_NUMBER})*(?:{of.titles})(?:{_PERSON}|{_FILLER}|{of.titles})*"
    ).fullmatch
    if part in _MAY_HAVE_FILLERS
    else re.compile(f"(?:nama|alamat)?(?:{of.titles})(?:tempattinggal|rumah|domisili)?").fullmatch
    for part, of in PARTS.items()
}
_is_label = re.compile(
    r"(?:rt|rw|no|gg|gang|dusun|dsn|padukuhan|pedukuhan|dukuh|dk|blok|desa|ds|kelurahan|kel|kecamatan|kec|kode ?pos)\b",
    re.IGNORECASE,
).match
_is_nothing = re.compile(
    r"\W*(?:0+|null|none|kosong|n\W?a|#n/a|tidak ada)?\W*", re.IGNORECASE
).fullmatch


class Columns(NamedTuple):
    """The columns of a sheet: the number of the row of titles (0 without one), the titles, and the part of each column.

    `width` is the number of cells that a row may have. `doubt` is the reason why a person must choose, or blank.
    """

    header: int
    titles: Sequence[str]
    of: Mapping[int, str]
    width: int
    doubt: str = ""

    def fields(self) -> set[str]:
        """The fields of a record that the columns have."""
        parts = {*self.of.values()}
        found = {"nim": NIM_PARTS, "nama": NAMA_PARTS, "alamat": ALAMAT_PARTS}
        return {field for field, of_field in found.items() if parts.intersection(of_field)}


def label(part: str) -> str:
    """The name of a part in the choice of columns."""
    return PARTS[part].name


def part_of(title: Cell) -> str:
    """The part that a title surely names, or a blank text."""
    if not isinstance(title, str) or len(title) > TITLE_MAX_CHARACTERS or re.search("[0-9]", title):
        return ""
    letters = re.sub("[^a-z]+", "", title.casefold())
    # `NIS/NISN` are two numbers in one cell.
    if "nisn" in letters and letters.replace("nisn", "").startswith(("nis", "nipd", "nim")):
        return ""
    return next((part for part, is_title in _title_of.items() if is_title(letters)), "")


def parts_of(row: Sequence[Cell]) -> dict[int, str]:
    """The parts that the titles in a row name, by column."""
    found = ((column, part_of(cell)) for column, cell in enumerate(row[:TITLES_MAX]))
    return {column: part for column, part in found if part}


def are_titles(row: Sequence[Cell], *, nim_only: bool = False) -> bool:
    """Whether a row names the NIM and, unless `nim_only`, another field."""
    parts = {*parts_of(row).values()}
    others = parts.difference(NIM_PARTS)
    return len(parts) > len(others) and (nim_only or bool(others))


def find(top: Sequence[Row], *, nim_only: bool = False) -> Columns:
    """The columns by the titles among the first rows of a sheet."""
    index = _titles_row(top, nim_only=nim_only)
    if index is None:
        width = max((len(row) for _, row in top), default=0)
        return Columns(0, [""] * width, {}, width, wording.NO_TITLES)
    number, row = top[index]
    titles = [" ".join(text_of(cell).split())[:TITLE_MAX_CHARACTERS] for cell in row]
    while titles and not titles[-1]:
        titles.pop()
    of, twice = _chosen(parts_of(row))
    columns = Columns(number, titles, of, len(titles))
    if nim_only:
        return columns._replace(
            of={column: part for column, part in of.items() if part in ("nim", "nisn", "nama")}
        )
    body = [row for _, row in islice(top, index + 1, index + 1 + EXAMPLE_ROWS)]
    return columns._replace(doubt=twice or _doubt(columns, body))


def _titles_row(top: Sequence[Row], *, nim_only: bool) -> int | None:
    """The index of the row of titles, or else of the first row that has some."""
    rows = [row for _, row in top[:TITLES_WITHIN_ROWS]]
    sure = (index for index, row in enumerate(rows) if are_titles(row, nim_only=nim_only))
    found = next(sure, None)
    if found is None and not nim_only:
        found = next((index for index, row in enumerate(rows) if len(parts_of(row)) > 1), None)
    return found


def _chosen(named: Mapping[int, str]) -> tuple[dict[int, str], str]:
    """The columns to read, and the doubt if two are titled for one part."""
    parts = Counter(named.values())
    weak = {"nisn": "nim", "orang": "nama"}
    of = {
        column: part for column, part in named.items() if not (part in weak and weak[part] in parts)
    }
    for field, part in (("NIM", "nim"), ("NIM", "nisn"), ("Nama", "nama"), ("Nama", "orang")):
        columns = [column for column, found in of.items() if found == part]
        if len(columns) > 1:
            return of, two_columns(field, columns)
    if "nama" in parts and not {"depan", "belakang"}.isdisjoint(parts):
        columns = [column for column, part in of.items() if part in NAMA_PARTS]
        return of, two_columns("Nama", columns)
    for part in ALAMAT_PARTS:
        columns = [column for column, found in of.items() if found == part]
        if len(columns) > 1:
            return of, two_columns(PARTS[part].name, columns)
    return of, ""


def two_columns(name: str, columns: Sequence[int]) -> str:
    first, second, *_ = map(column_letter, columns)
    return wording.TITLED_TWICE.format(field=name, first=first, second=second)


def _doubt(columns: Columns, body: Sequence[Sequence[Cell]]) -> str:
    """The reason why a person must choose the columns, or a blank text."""
    cells = zip_longest(*(row[:TITLES_MAX] for row in body))
    filled = [[text for text in map(str.strip, map(text_of, column)) if text] for column in cells]
    longer = sum(not is_blank(row[columns.width :]) for row in body)
    return (
        _doubt_about_nim(columns.of, filled)
        or _doubt_about_parts("Nama", columns, NAMA_PARTS, filled)
        or _doubt_about_parts("Alamat", columns, ALAMAT_PARTS, filled)
        or (2 * longer > len(body) and wording.CELLS_WITHOUT_TITLE)
        or ""
    )


def _doubt_about_nim(of: Mapping[int, str], filled: Sequence[Sequence[str]]) -> str:
    column = next((column for column, part in of.items() if part in NIM_PARTS), None)
    if column is None:
        return wording.NIM_NOT_TITLED
    nims = filled[column] if column < len(filled) else []
    letter = column_letter(column)
    if filled and not nims:
        return wording.NIM_COLUMN_BLANK.format(column=letter)
    return wording.NIM_COUNTS_ROWS.format(column=letter) if _counts(nims) else ""


def _doubt_about_parts(
    field: str, columns: Columns, parts: Sequence[str], filled: Sequence[Sequence[str]]
) -> str:
    found = sorted(column for column, part in columns.of.items() if part in parts)
    if not found:
        return ""
    first, last = found[0], found[-1]
    names = {columns.of[column] for column in found}
    is_whole = len(names) > 1 or not names.isdisjoint(_WHOLE_PARTS)
    if not is_whole or found != [*range(first, last + 1)]:
        return wording.TITLE_UNSURE.format(column=column_letter(last), field=field)
    for column in range(last + 1, min(columns.width, len(filled))):
        if columns.titles[column]:
            break
        if filled[column]:
            return wording.COLUMN_WITHOUT_TITLE.format(column=column_letter(column), field=field)
    return ""


def _counts(nims: Sequence[str]) -> bool:
    """Whether a column numbers the rows: short numbers that ascend."""
    numbers = [int(nim) for nim in nims if re.fullmatch("[0-9]{1,3}", nim.rstrip("."))]
    ascend = all(first < second for first, second in pairwise(numbers))
    return bool(numbers) and ascend and 10 * len(numbers) >= 9 * len(nims)


def join(row: Sequence[Cell], of: Mapping[int, str]) -> tuple[Cell, Cell, Cell]:
    """NIM, Nama and Alamat of a row. The parts of a name and of an address are joined in the order of the file."""
    length = len(row)
    nim: Cell = None
    nama: list[tuple[str, Cell]] = []
    alamat: list[tuple[str, Cell]] = []
    for column in sorted(of):
        part = of[column]
        cell = row[column] if column < length else None
        if part in NIM_PARTS:
            nim = cell
        else:
            (nama if part in NAMA_PARTS else alamat).append((part, cell))
    return nim, _joined(nama, " "), _joined(alamat, ", ")


def _joined(cells: Sequence[tuple[str, Cell]], separator: str) -> Cell:
    if len(cells) == 1 and not PARTS[cells[0][0]].label:
        return cells[0][1]
    whole = next((text_of(cell) for part, cell in cells if part == "alamat"), "").strip()
    texts = []
    for part, cell in cells:
        if isinstance(cell, Bad) and cell.kind != "error":
            return cell
        text = " ".join(text_of(cell).split()) if part != "alamat" else whole
        # Dapodik writes 0 or `-` for a part that is missing.
        if (
            not text
            or (part not in NAMA_PARTS and _is_nothing(text))
            or _is_said(part, text, whole)
        ):
            continue
        sign = PARTS[part].label
        texts.append(f"{sign} {text}" if sign and not _is_label(text) else text)
    return separator.join(texts) or whole or None


def _is_said(part: str, text: str, whole: str) -> bool:
    """Whether the text of a part stands in the address already, among others."""
    if part == "alamat" or len(text) >= len(whole):
        return False
    if part in ("rt", "rw", "rumah"):
        return (
            re.search(rf"\b{part[:2]}\W*0*{re.escape(text.lstrip('0'))}\b", whole, re.IGNORECASE)
            is not None
        )
    return re.search(rf"\b{re.escape(text)}\b", whole, re.IGNORECASE) is not None
