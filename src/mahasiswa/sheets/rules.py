"""The rules for a line of an import: they clean its texts, and find its problems or the reason why it is skipped."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mahasiswa import wording
from mahasiswa.record import FIELDS, INVISIBLE
from mahasiswa.sheets.cells import (
    DAMAGED,
    DATE,
    ERROR,
    FORMULA,
    HIDDEN,
    MARKS,
    ODD_LETTERS,
    Cell,
    Cells,
    Refused,
    Row,
    text_of,
    unescaped,
)
from mahasiswa.sheets.columns import Table, parts_of

_ADDRESS = (
    r"\b(?:jl|jln|jalan|gg|rt|rw|dusun|dsn|desa|kel|kelurahan|kec|kecamatan|perum|perumahan|komplek|kompleks|blok|kab"
    r"|kabupaten|no\W{0,2}[0-9])\b"
)
_MONTH = "(?:Jan|Feb|Mar|Apr|May|Mei|Jun|Jul|Aug|Agu|Ags|Sep|Oct|Okt|Nov|Dec|Des)"
_DATE = (
    r"(?:0?[1-9]|[12][0-9]|3[01])(?:[-/.](?:0?[1-9]|[12][0-9]|3[01])[-/.](?:19|20)[0-9]{2}(?: [0-9:]+)?"
    r"|/(?:0?[1-9]|[12][0-9]|3[01])/[0-9]{2})|(?:19|20)[0-9]{2}-(?:0[1-9]|1[0-2])-[0-3][0-9](?:[ T][0-9:.]+)?"
    rf"|[0-9]{{1,2}}-{_MONTH}(?:-[0-9]{{2,4}})?|{_MONTH}-[0-9]{{2,4}}"
)
_NOTHING = (
    r"(?!\Z)\W*(?:0+|x+|null|none|nan|\\n|n\W?a|idem|s\W?d\W?a|(?:belum|tidak|tdk|blm) (?:ada|diketahui|diisi)|kosong|nihil"
    r"|sama(?: dengan)?(?: di)? ?(?:atas)?|true|false|l|p|#[a-z0-9/]+[!?])?\W*"
)
_THOUSANDS = r"[0-9]{1,3}([.,])[0-9]{3}(?:\1[0-9]{3})*"
_LETTERS_FOR_DIGITS = r"(?=.*[0-9])[0-9./_-]*[OolI][0-9OolI./_-]*"


FAULTS = {
    "bad_text": "Nama atau Alamat rusak di berkasnya, atau rumusnya tidak menyimpan hasil. Ketik isinya.",
    "swallowed": "Sel ini memuat beberapa baris; mungkin tanda kutipnya tidak ditutup.",
    "formula_nim": "Rumus NIM tidak menyimpan hasil. Buka berkasnya di Excel, simpan, lalu unggah lagi.",
    "damaged_nim": "NIM ini rusak di berkasnya. Ketik NIM-nya.",
    "error_nim": "NIM berisi kesalahan rumus ({nim}).",
    "date_nim": "NIM berisi tanggal ({nim}).",
    "no_nim": "NIM kosong.",
    "long_nim": "NIM terlalu panjang (maksimal 255 karakter).",
    "dot_nim": "NIM tidak boleh hanya “.” atau “..”.",
    "masked": "NIM berisi “{nim}”. Lebarkan kolomnya di Excel, lalu salin lagi.",
    "rounded": "NIM dibulatkan Excel ({nim}). Ketik NIM-nya.",
    "more_cells": "Baris ini memiliki sel lebih banyak daripada judulnya.",
    "rest": "Baris ini tampaknya lanjutan baris di atasnya.",
    "nim_twice": "NIM {nim} ada di beberapa baris dengan isi yang berbeda.",
    "no_nama": "Nama kosong. Mahasiswa baru harus memiliki nama.",
    "no_alamat": "Alamat kosong.",
    "missing": "NIM ini tidak ada di daftar.",
}
"""The problems of lines that cannot be stored: a sentence for each code, with fields of the line in braces."""

DOUBTS = {
    "no_digit": "NIM ini tidak berisi angka.",
    "zeros": "Angka terakhir NIM ini mungkin sudah dibulatkan Excel menjadi nol.",
    "separators": "NIM berisi tanda lain, misalnya {nim}.",
    "near": "NIM ini mirip dengan {near} ({near_nama}) yang sudah ada.",
    "odd_length": "Panjang NIM ini berbeda dari hampir semua NIM lain.",
    "other_nama": "Nama ini berbeda sama sekali dari yang tersimpan ({stored_nama}).",
    "continued": "Baris di bawahnya tampaknya lanjutan baris ini.",
    "exchanged": "Nama dan Alamat tampaknya tertukar.",
    "letters": "Ada huruf yang rusak: “{nama}”, “{alamat}”.",
    "not_nama": "“{nama}” tampaknya bukan nama.",
    "degree": "Alamat ini tampaknya gelar ({alamat}).",
    "date_alamat": "Alamat ini tampaknya tanggal ({alamat}).",
    "not_alamat": "“{alamat}” bukan alamat.",
    "hidden": "Baris ini atau kolomnya tersembunyi di Excel.",
}
"""The problems of lines that may be right all the same."""

PROBLEMS = FAULTS | DOUBTS
"""All problems. The document shows this table."""

REPAIRS = {
    "no_alamat": "Isi {count} alamat kosong dengan “-”",
    "separators": "Bersihkan {count} NIM ({bare})",
    "near": "Pakai NIM yang sudah ada di {count} baris",
}
"""The labels of the repairs of all lines with a problem."""

# The patterns of texts with a problem, faults first: of the three cells as they are in the file, with NULs between them;
# of the NIM, or of its mark; of name and address, with a NUL between them; of the name; of the address; and of the three cells again.
_PATTERNS = (
    {
        "bad_text": f"[^\0]*\0.*[{FORMULA}{DAMAGED}].*",
        "swallowed": r".*[\r\n](?:\W{0,3}(?:[0-9]{1,4}\W{1,3})?(?:[0-9]{5,}\W{0,2}[;\t|]|[0-9]{6,}\W{0,2},)"
        r"|[^\0\r\n]*[;\t|][^\0\r\n]*[;\t|]).*",
    },
    {
        "formula_nim": FORMULA,
        "damaged_nim": DAMAGED,
        "error_nim": f"{ERROR}|#[A-Z0-9/]+[!?]|#N/A",
        "date_nim": f"{DATE}|{_DATE}",
        "no_nim": "",
        "long_nim": ".{256,}",
        "dot_nim": r"\.\.?",
        "masked": "##+",
        "rounded": "[+-]?[0-9]+(?:[.,][0-9]+E[+-]?|E[+-])[0-9]+",
        "no_digit": r"\D+",
        "zeros": "[0-9]{15}0+",
        "separators": r"(?=.*[0-9])(?![0-9A-Z](?:[0-9A-Z./_-]*[0-9A-Z])?\Z).*"
        rf"|{_THOUSANDS}|{_LETTERS_FOR_DIGITS}|[0-9]{{6,}}[.,][0-9]{{1,2}}|[0-9]{{5,}}[/._-][0-9]{{8,}}",
    },
    {
        "exchanged": rf"[^\0]*{_ADDRESS}[^\0]*\0(?!.*{_ADDRESS}).+",
        "letters": rf"(?=[\0->@-\x7f]*[^\0->@-\x7f]).*(?:{ODD_LETTERS}|[^\W\d_]\?[^\W\d_]|(?-i:(?<=[A-Z])Õ(?=[A-Z]))).*",
    },
    {"not_nama": rf"{_NOTHING}|.*[\d_@:;/|].*|[\W\d_]+"},
    {
        "degree": r"(?-i:(?:(?:[SMD]|A\.?Md|Sp|Ph|Amd)\.\s?[A-Z][A-Za-z.]{0,8}|A\.?Md|S[EHT]|M[MT]|MBA|Ners|Apt|Ph\.?D)\.?(?:,.*)?)",
        "date_alamat": rf"{_DATE}|(?=[^-]*-).*\b(?:[0-9]{{1,2}}-{_MONTH}|{_MONTH}-[0-9]{{2}})\b.*",
        "not_alamat": rf"{_NOTHING}|[\W\d_]+|.*@.*",
    },
    {"hidden": f".*{HIDDEN}.*"},
)

SKIPPED = {
    "titles": "Tampaknya judul kolom, bukan data.",
    "heading": "Tampaknya judul atau keterangan, bukan data mahasiswa.",
    "total": "Tampaknya jumlah atau catatan, bukan data mahasiswa.",
    "signature": "Tampaknya bagian tanda tangan, bukan data mahasiswa.",
    "same": "Sama persis dengan baris lain, jadi dihitung sekali.",
    "person": "Dilewati.",
}
"""The reasons why a line is skipped, by their codes."""

_matches = [
    (code, text, re.compile(pattern, re.IGNORECASE | re.DOTALL).fullmatch)
    for text, patterns in enumerate(_PATTERNS)
    for code, pattern in patterns.items()
]
# A line in which no rule finds anything. Most lines match, and this takes less time than the rules.
_WORD = rf"(?!(?i:{_ADDRESS}|(?:belum|tidak|tdk|blm|sama)\b))[A-Z][A-Za-z'ß-öø-ÿ]+"
_is_ordinary = re.compile(
    rf"[0-9]{{5,15}}\0{_WORD}(?: {_WORD})+"
    r"\0(?!S[EHT]\b|M[MT]\b|[SMDA]\.|A\.?Md|Sp|Ph|MBA|Ners|Apt)(?=[^\0]*[0-9,])[A-Z][A-Za-z0-9.,/]+(?: [A-Za-z0-9.,/]+)*"
).fullmatch


def is_fault(code: str) -> bool:
    """Whether a line with this problem cannot be stored."""
    return code in FAULTS


def first_open(own: str, accepted: str) -> str:
    """The first code in `own` that a person has not accepted, or a blank text. Blanks separate the codes."""
    return next((code for code in own.split() if code not in accepted.split()), "")


_without_unseen = re.compile(f"[\0-\x08\x0e-\x1b\x7f-\x84\x86-\x9f{INVISIBLE}{MARKS}]+").sub
_bad_mark = re.compile(f"[{ERROR}{DATE}{FORMULA}{DAMAGED}]").search
_without_formula = re.compile(r'\A="\s*([^"]*?)\s*"\Z').sub
_without_decimals = re.compile(r"\A([0-9]+)[.,](?:0|00|0{6})\Z").sub


def cleaned(cell: Cell) -> str:
    """The text of a cell in NFC, without needless spaces, marks that cannot be seen, ="…" and entities of HTML."""
    text = unescaped(_without_unseen("", text_of(cell)))
    text = " ".join(unicodedata.normalize("NFC", text).split())
    return _without_formula(r"\1", text)


def cleaned_alamat(cell: Cell) -> str:
    """A cleaned address, in which a line break has become a comma."""
    lines = (cleaned(line).rstrip(" ,") for line in text_of(cell).splitlines())
    return ", ".join(filter(None, lines))


class JudgedLine(NamedTuple):
    """A line of a sheet: the number of its row, its texts, the codes of its problems, and the reason why it is skipped."""

    number: int
    nim: str
    nama: str
    alamat: str
    own: str = ""
    skipped: str = ""


def judge(number: int, cells: Cells) -> JudgedLine:
    """Clean and judge the NIM, the name and the address of a line. A typed line is judged by the same rules."""
    raw = "\0".join(map(text_of, cells))
    if _is_ordinary(raw):
        return JudgedLine(number, *raw.split("\0"))
    nim = _without_decimals(r"\1", cleaned(cells[0]).lstrip("'’‘`´ "))
    nama, alamat = cleaned(cells[1]), cleaned_alamat(cells[2])
    mark = _bad_mark(text_of(cells[0]))
    texts = raw, mark[0] if mark else nim, f"{nama}\0{alamat}", nama, alamat, raw
    found = (code for code, text, matches in _matches if matches(texts[text]))
    return JudgedLine(number, nim, nama, alamat, " ".join(found))


_before_nim = re.compile(
    r"(?i)\W*(?:(?:NIM|NPM|NRP|NISN?|NIPD|NO(?:MOR)?\W*(?:INDUK|MHS|MAHASISWA))(?![A-Z])[\W_]*|[0-9]{1,3}(?:[.)]\s*(?=[0-9]{5})|\s+(?=[0-9]{8})))"
).sub
_ALIKE = str.maketrans("OoIl‐‑‒–—−", "0011------")


def bare_nim(nim: str) -> str:
    """The NIM without its separators, or what else it carries; blank if nothing surely is the NIM."""
    text = _before_nim("", nim, count=1).strip(" *#:;,.'\"()[]-_")
    text = re.sub("(?<=[0-9]) +(?=[0-9])", "", text)
    if re.fullmatch(_THOUSANDS, text):
        text = re.sub("[.,]", "", text)
    if re.fullmatch(_LETTERS_FOR_DIGITS, text) or not text.isascii():
        text = text.translate(_ALIKE)
    is_clean = text != nim and not judge(0, (text, "", "")).own
    return text if is_clean else ""


def shares_no_word(nama: str, stored: str) -> bool:
    """Whether two names share no word."""
    return _words(nama).isdisjoint(_words(stored))


def _words(text: str) -> set[str]:
    plain = unicodedata.normalize("NFKD", text.casefold())
    return set(re.findall(r"\w+", re.sub("['’‘`´-]|[\u0300-\u036f]", "", plain)))


_BLANK = ("", "", "", "no_nim")
_TITLES = JudgedLine(-1, "", "", "", skipped="titles")
_has_digit = re.compile("[0-9]").search
_is_lone = re.compile(r"[^\0]*[^\0\W\d_][^\0]*").fullmatch
_has_address = re.compile(_ADDRESS, re.IGNORECASE).search
_COLUMN_NUMBER = r"(?:[A-Z][A-Za-z/]*\.? )?\(?[0-9]{1,2}\)?"
_are_column_numbers = re.compile(rf"{_COLUMN_NUMBER}(?:(?:\0|, ){_COLUMN_NUMBER})+").fullmatch
# The texts of a row of no student, with NULs between them. Its groups are reasons to skip a line.
_note = re.compile(
    r"(?i)(?:\A|\0)(?P<signature>mengetahui|menyetujui|mengesahkan|kepala (?:sekolah|madrasah|program|jurusan|tata|bagian)|wali kelas|dekan\b"
    r"|rektor\b|ketua (?:program|prodi|jurusan|kelas)|tata usaha|nip\b|ttd\b|tanda tangan|a\.?n\. "
    rf"|[^\W\d][\w .]+, (?:[0-9]{{1,2}}|_+|\.+) (?:{'|'.join(wording.MONTHS)}|_+|\.+))"
    r"|(?:\A|\0)(?P<total>(?:sub\s?-?total|total|jumlah|rata-rata|keterangan|catatan|sumber|dicetak|laki-laki|perempuan|\*)(?![^\W\d]))"
    r"|\A\W*(?P<heading>kelas|program|prodi|jurusan|fakultas|semester|angkatan|kelompok|rombel|tingkat|tahun|daftar|data"
    r"|universitas|sekolah)\b[^\0]*\Z"
).search


def lines(rows: Iterable[Row], table: Table) -> Iterator[JudgedLine]:
    """The lines of a table. Raises Refused if the titles of another table follow."""
    last = _TITLES
    for number, row in rows:
        if number <= table.header:
            continue
        line = _line(number, row, table, last)
        if line[1:5] == _BLANK:
            continue
        if "rest" in line.own:
            last = last._replace(own=f"{last.own} continued".lstrip())
        if last is not _TITLES:
            yield last
        last = line
    if last is not _TITLES:
        yield last


def _line(number: int, row: Cells, table: Table, last: JudgedLine) -> JudgedLine:
    line = judge(number, table.join(row))
    if line[1:5] == _BLANK and last.number == number - 1:
        line = judge(number, _lone(row))
    if line.own or not (line.nama and line.alamat):
        line = _other(line, row, table, last)
    if table.exceeds(row) and not line.skipped:
        line = line._replace(own=f"more_cells {line.own}".rstrip())
    return line


def _lone(row: Cells) -> Cells:
    """The only text of a row, in the place of the NIM. It may belong to the line above."""
    texts = "\0".join(filter(str.strip, map(text_of, row)))
    return [texts if _is_lone(texts) else "", "", ""]


def _other(line: JudgedLine, row: Cells, table: Table, last: JudgedLine) -> JudgedLine:
    """A line that lacks a field or has a problem: perhaps it is skipped, or the rest of the line above."""
    texts = [text for text in line[1:4] if text]
    joined = "\0".join(texts)
    titles = {} if _has_digit(joined) else parts_of(row)
    if len(texts) > 1 and (titles or _are_column_numbers(joined)):
        if titles not in ({}, table.columns, parts_of(table.titles)) and table.header:
            raise Refused(wording.OTHER_TITLES.format(row=line.number))
        return line._replace(own="", skipped="titles")
    if len(texts) == len(FIELDS):
        return line

    has_nim = _has_digit(line.nim) and not _has_address(line.nim)
    before = map(cleaned, row[: min(table.columns)])
    note = _note("\0".join(filter(None, [*before, *([line.nim] if has_nim else texts)])))
    if note or (last.skipped == "signature" and not has_nim):
        return line._replace(skipped=(note and note.lastgroup) or "signature")
    is_below = last.number == line.number - 1 and last.nim and not last.skipped
    return line._replace(own="rest") if is_below and len(texts) == 1 and not has_nim else line
