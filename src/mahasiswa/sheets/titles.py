"""Recognises the titles of columns: the field that each one names, and the rows of a sheet that hold titles."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from operator import itemgetter
from typing import Literal, NamedTuple, TypeVar

from mahasiswa.record import Field
from mahasiswa.sheets.cells import Cell, Cells, cell_text, has_digit, has_digits, has_nim
from mahasiswa.sheets.limits import MAX_TITLES

T = TypeVar("T")

HEADER_WITHIN_ROWS = 25  # the header is among the first rows that are not blank: often below a date
# Maximum length of a cell that can be a header. To look for names in a huge cell would only cost
# time.
HEADER_MAX_CHARACTERS = 100


def _by_title(titles_of: Mapping[T, str]) -> dict[str, T]:
    """The keys of a table by each of their titles, which are parted by spaces."""
    return {title: key for key, titles in titles_of.items() for title in titles.split()}


# Titles that say their field and nothing else. Only letters count: `No. Mahasiswa *` is `nomahasiswa`.
_FIELDS: dict[str, Field] = _by_title(
    {
        "nim": (
            "nim npm nrp stambuk nimmahasiswa npmmahasiswa nomorindukmahasiswa noindukmahasiswa nomorpokokmahasiswa "
            "nopokokmahasiswa nomormahasiswa nomahasiswa nomormhs nomhs studentid studentnumber nipd nis nissiswa "
            "nomorinduksiswa noinduksiswa nislokal nomorindukmadrasah noindukmadrasah nomorinduk noinduk idnumber nisn"
        ),
        "nama": (
            "nama namalengkap namamahasiswa namalengkapmahasiswa namamhs namasiswa namalengkapsiswa namapesertadidik "
            "namalengkappesertadidik namasantri namamurid namapeserta namaanak name fullname studentname"
        ),
        "alamat": (
            "alamat alamatlengkap alamatrumah alamatmahasiswa alamatmhs alamatsiswa alamattinggal alamattempattinggal "
            "alamatdomisili alamatsekarang alamatasal alamatktp alamatsesuaiktp alamatpesertadidik alamatsantri "
            "alamatmurid domisili jalan jl address homeaddress"
        ),
    }
)
# Titles of a name or of an address that stands in several columns. A bare value gets the label.
_PARTS: dict[str, tuple[Field, str]] = _by_title(
    {
        ("nama", ""): (
            "namadepan namaawal namatengah namabelakang namaakhir firstname middlename lastname surname"
        ),
        ("alamat", ""): (
            "kota kabupaten kab kabkota kotakabupaten kabupatenkota provinsi prov propinsi nomorrumah norumah"
        ),
        ("alamat", "RT"): "rt",
        ("alamat", "RW"): "rw",
        ("alamat", "RT/RW"): "rtrw",
        ("alamat", "Dusun"): "dusun padukuhan pedukuhan",
        ("alamat", "Desa"): "desa",
        ("alamat", "Blok"): "blok",
        ("alamat", "Kel."): "kelurahan kel desakelurahan kelurahandesa desakel keldesa",
        ("alamat", "Kec."): "kecamatan kec",
        ("alamat", "Kode Pos"): "kodepos",
    }
)
_RANKS = {title: rank for titles in (_FIELDS, _PARTS) for rank, title in enumerate(titles)}
is_labelled = re.compile(
    r"(?:rt|rw|dusun|dsn|padukuhan|pedukuhan|dukuh|dk|blok|desa|ds|kelurahan|kel|kecamatan|kec|kode ?pos)\b",
    re.IGNORECASE,
).match

# Another title may name a field by one of these words, if no word says that it is about something else.
_WORDS: dict[str, Field] = _by_title(
    {
        "nim": "nim npm nrp nis nipd nisn stambuk induk pokok id",
        "nama": "nama name mahasiswa siswa",
        "alamat": "alamat domisili address",
    }
)
_is_of_others = re.compile(
    r"\b(?:ayah|bapak|ibu|ortu|orang|orangtua|wali|suami|istri|dosen|pembimbing|guru|kepala|pegawai|kependudukan|sekolah|smp"
    r"|smk|sma|slta|kampus|universitas|perguruan|instansi|perusahaan|kantor|e|email|mail|surel|web|website|akun|panggilan"
    r"|prodi|program|studi|jurusan|fakultas|kelas|kelompok|mk|mata|pt|bank)\b"
).search
# Finds a word that a title above others may have.
_is_of_students = re.compile(
    r"\b(?:identitas|data|biodata|profil|siswa|mahasiswa|murid|santri|peserta|anak|alamat|domisili|tinggal|rumah|nama|nim"
    r"|npm|nis|nisn|nipd|induk|no|nomor)\b"
).search
is_total = re.compile(
    r"\s*(?:sub\s?-?total|total|jumlah|rata-rata|keterangan|catatan|dicetak|laki-laki|perempuan)\b",
    re.IGNORECASE,
).match


class Heading(NamedTuple):
    """A cell that names a field: surely, surely a part of it, or perhaps (by one of its words)."""

    field: Field
    kind: Literal["sure", "part", "word"]
    column: int
    label: str = ""  # of a part of an address
    # If several titles are sure, that with the lowest rank wins, until a person decides. The ranks of
    # the parts of a name ascend from the first name to the last one.
    rank: int = 0


def headings(row: Iterable[object]) -> list[Heading]:
    """The cells of a row that name a field."""
    found = (
        _heading(column, cell)
        for column, cell in enumerate(row)
        if isinstance(cell, str) and len(cell) <= HEADER_MAX_CHARACTERS
    )
    return [heading for heading in found if heading]


def _heading(column: int, cell: str) -> Heading | None:
    text = cell.casefold()
    letters = re.sub("[^a-z]+", "", text)
    # `RT 1` is an address.
    if not has_digit(cell) and (part := _PARTS.get(letters)):
        return Heading(part[0], "part", column, part[1], _RANKS[letters])
    names = [re.sub("[^a-z]+", "", name) for name in re.split("[/()]", text)]
    names = [name for name in names if len(name) > 1]  # not the last letter of `Mahasiswa/i`
    sure = {_FIELDS.get(name) for name in names}
    # NIS/NISN are two numbers in one cell, and NIM/NPM are two words for one number.
    are_two = "nisn" in names and len(names) > 1
    if len(sure) == 1 and not are_two and (field := sure.pop()):
        return Heading(field, "sure", column, rank=_RANKS[names[0]])

    words = re.findall("[a-z]+", text)
    fields = {_WORDS[word] for word in words if word in _WORDS}
    if not fields or _is_of_others(" ".join(words)):
        return None
    # `NIM Mahasiswa` is a NIM, and `Mahasiswa` alone a name.
    return Heading(min(fields, key=("nim", "alamat", "nama").index), "word", column)


def names_nim_and_nama(cell: Cell) -> bool:
    """Whether a title names both, as `NIM / Nama`."""
    words = re.findall("[a-z]+", cell_text(cell)[:HEADER_MAX_CHARACTERS].casefold())
    return {"nim", "nama"} <= {_WORDS.get(word) for word in words}


def find_titles(top: Sequence[Cells], *, nim_only: bool) -> tuple[int, Cells]:
    """The index of the first row below the titles, and the titles, of up to two rows; (0, ()) without any in `top`."""
    # `NIM: 2300018101` is no title.
    rows = [() if nim_only and any(map(has_nim, map(cell_text, row))) else row for row in top]
    candidates = sorted([*enumerate(rows, 1), *_pairs(rows, top)], key=itemgetter(0))
    headers = [candidate for candidate in candidates if is_header(candidate[1], nim_only=nim_only)]
    near = [header for header in headers if header[0] <= headers[0][0] + 1]
    if near:
        return max(near, key=_titled)
    for index, row in candidates:
        if len(fields_in(row)) > 1 or sure_fields(row):
            return index, row  # probably titles
    return 0, ()


def _titled(header: tuple[int, Cells]) -> tuple[int, int, int]:
    """How much a row names: sure fields, fields, and columns. Below `Alamat` may stand its parts."""
    row = header[1]
    return len(sure_fields(row)), len(fields_in(row)), len(headings(row))


def _pairs(rows: Sequence[Cells], below: Sequence[Cells]) -> Iterator[tuple[int, Cells]]:
    """The titles of two rows, and the index below them. A row below with a digit is that of a student."""
    for index, (upper, lower) in enumerate(zip(rows, below[1:], strict=False), 2):
        if not has_digits(lower):
            yield index, _combined_titles(upper, lower)


def _combined_titles(upper: Cells, lower: Cells) -> list[Cell]:
    """The titles of two rows. A title of the upper row also belongs to the blank cells beside it, as in `Data Ayah`."""
    titles: list[Cell] = []
    group = ""
    for above, below in zip_longest(upper[:MAX_TITLES], lower[:MAX_TITLES]):
        own = cell_text(above)[:HEADER_MAX_CHARACTERS].strip()
        title = cell_text(below)[:HEADER_MAX_CHARACTERS].strip()
        group = own or group
        folded = group.casefold()
        is_own = not group or (_is_of_students(folded) and not _is_of_others(folded))
        joined = title if is_own and sure_fields([title]) else f"{group} {title}"
        titles.append(joined if title else own)
    return titles


def is_header(row: Iterable[object], *, nim_only: bool = False) -> bool:
    """Whether a row names the column of the NIM and, unless `nim_only`, at least one other."""
    fields = fields_in(row)
    return "nim" in fields if nim_only else fields > {"nim"}


def sure_fields(row: Iterable[object]) -> set[Field]:
    """The fields that a row surely names, whole or in part."""
    return {heading.field for heading in headings(row) if heading.kind != "word"}


def fields_in(row: Iterable[object]) -> set[Field]:
    """The fields that a row names."""
    return {heading.field for heading in headings(row)}
