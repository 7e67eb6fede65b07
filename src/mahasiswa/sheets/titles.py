"""Recognises the titles of columns: the field that each one names, and the rows of a sheet that hold titles."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise, zip_longest
from operator import itemgetter
from typing import NamedTuple

from mahasiswa.record import Field
from mahasiswa.sheets.cells import Cell, cell_text, has_digit, is_blank
from mahasiswa.sheets.limits import MAX_TITLES

HEADER_WITHIN_ROWS = 25  # that are not blank: school files often begin with titles and a date
# Of a cell that can be a header; looking for names in a huge cell would only cost time.
HEADER_MAX_CHARACTERS = 100

# Only lower case letters count: `No. Mahasiswa *` is `nomahasiswa`. If a sheet has several of them, the first one wins.
_ALIASES: Mapping[Field, str] = {
    "nim": (
        "nim npm nimmahasiswa npmmahasiswa nomorindukmahasiswa nomorpokokmahasiswa noindukmahasiswa nopokokmahasiswa "
        "nomormahasiswa nomahasiswa nomormhs nomhs nrp nipd nis nomorinduksiswa noinduksiswa nomorinduk noinduk nisn"
    ),
    "nama": "nama namalengkap namamahasiswa namalengkapmahasiswa namamhs namasiswa namalengkapsiswa namapesertadidik",
    "alamat": (
        "alamat alamatlengkap alamatrumah alamatmahasiswa alamatmhs alamatsiswa alamattinggal alamattempattinggal "
        "alamatdomisili alamatsekarang alamatasal alamatktp"
    ),
}
_RANKS = {
    alias: (field, rank)
    for field, aliases in _ALIASES.items()
    for rank, alias in enumerate(aliases.split())
}

# A title such as `NAMA LENGKAP MAHASISWA BARU` is known by one of these words, if no word says that it is about others.
_NIMS = ("nim", "npm", "nrp", "nis", "nipd", "nisn", "stambuk", "induk", "pokok")
_WORDS: Mapping[str, Field] = {
    **dict.fromkeys(_NIMS, "nim"),
    "nama": "nama",
    "alamat": "alamat",
    "domisili": "alamat",
}
_is_of_others = re.compile(
    r"\b(?:ayah|bapak|ibu|ortu|orang|orangtua|wali|suami|istri|dosen|pembimbing|guru|kepala|pegawai|kependudukan|sekolah|smp"
    r"|smk|sma|slta|kampus|universitas|perguruan|instansi|perusahaan|kantor|email|mail|surel|web|website|panggilan|prodi"
    r"|program|studi|jurusan|fakultas|kelas|jalan|dusun|desa|kelurahan|kecamatan|kota|kabupaten|provinsi|bank)\b"
).search
is_total = re.compile(
    r"\s*(?:sub\s?-?total|total|jumlah|rata-rata|keterangan|catatan|dicetak|laki-laki|perempuan)\b",
    re.IGNORECASE,
).match
# Titles of a name or of an address that stands in several columns.
_PARTS: Mapping[Field, re.Pattern[str]] = {
    "nama": re.compile("nama (?:depan|tengah|belakang)"),
    "alamat": re.compile(
        r"(?:(?:jalan|jl|rt|rw|dusun|desa|kelurahan|kecamatan|kota|kabupaten|kab|provinsi|kode pos)\b\W*)+"
    ),
}
BY_WORDS, PART = 100, 200  # ranks of titles that are not aliases; each alias has a lower one


class Heading(NamedTuple):
    """A cell that names a field. If several cells name it, the lowest rank wins."""

    field: Field
    rank: int
    column: int


def headings(row: Iterable[object]) -> list[Heading]:
    """The cells of a row that name a field."""
    return [
        Heading(*found, column)
        for column, cell in enumerate(row)
        if isinstance(cell, str)
        and len(cell) <= HEADER_MAX_CHARACTERS
        and (found := _field_and_rank(cell))
    ]


def _field_and_rank(cell: str) -> tuple[Field, int] | None:
    """The field that a title names, and its rank: the whole title, a part of `NIM/NPM`, or one of its words."""
    text = re.sub(r"\([^()]*\)", "", cell.casefold())
    for part in (text, *text.split("/")):
        if found := _RANKS.get(re.sub(r"[^a-z]+", "", part)):
            return found
    for field, pattern in _PARTS.items():
        if pattern.fullmatch(" ".join(text.split())):
            return field, PART
    words = re.findall("[a-z]+", text)
    fields = {_WORDS[word] for word in words if word in _WORDS}
    return (
        (fields.pop(), BY_WORDS + len(words))
        if len(fields) == 1 and not _is_of_others(" ".join(words))
        else None
    )


def find_titles(top: Sequence[Sequence[Cell]], *, nim_only: bool) -> tuple[int, Sequence[Cell]]:
    """The index of the first row below the titles, and the titles, of up to two rows; (0, ()) without any in `top`."""
    pairs = [
        (index, _combined_titles(upper, lower))
        for index, (upper, lower) in enumerate(pairwise(top), 2)
        # A student's row has one in the NIM.
        if not any(has_digit(cell_text(cell)) for cell in lower)
    ]
    candidates = sorted([*enumerate(top, 1), *pairs], key=itemgetter(0))
    headers = [candidate for candidate in candidates if is_header(candidate[1], nim_only=nim_only)]
    if headers:
        near = [header for header in headers if header[0] <= headers[0][0] + 1]
        return max(near, key=lambda header: len(fields_in(header[1])))
    for index, row in candidates:
        if len(fields_in(row)) > 1 or any(heading.rank < BY_WORDS for heading in headings(row)):
            return index, row  # probably titles
    return 0, ()


def _combined_titles(upper: Sequence[Cell], lower: Sequence[Cell]) -> list[Cell]:
    """The titles of two rows. A title of the upper row also belongs to the blank cells beside it, as in `Data Ayah`."""
    titles: list[Cell] = []
    group = ""
    for above, below in zip_longest(upper[:MAX_TITLES], lower[:MAX_TITLES]):
        own = "" if is_blank((above,)) else cell_text(above)[:HEADER_MAX_CHARACTERS]
        group = own or group
        titles.append(own if is_blank((below,)) else f"{group} {cell_text(below)}")
    return titles


def is_header(row: Iterable[object], *, nim_only: bool = False) -> bool:
    """Whether a row names the column of the NIM and, unless `nim_only`, at least one other."""
    fields = fields_in(row)
    return "nim" in fields if nim_only else fields > {"nim"}


def fields_in(row: Iterable[object]) -> set[Field]:
    """The fields that a row names."""
    return {heading.field for heading in headings(row)}


def second_table(titles: Sequence[str]) -> int | None:
    """The first column of a second table beside the first one: NIM and Nama stand twice in the titles."""
    own = [
        heading
        for heading in headings(titles)
        if heading.rank < BY_WORDS and heading.field != "alamat"
    ]
    is_double = [heading.field for heading in own[:4]] == ["nim", "nama"] * 2
    return own[2].column if is_double else None
