"""The rules for a line of an import: they clean its texts, and find its problems or the reason why it is skipped."""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from mahasiswa.record import FIELDS, INVISIBLE
from mahasiswa.sheets.cells import ODD_LETTERS, Bad, Cell, Row, is_blank, text_of, unescaped
from mahasiswa.sheets.columns import Columns, join, parts_of
from mahasiswa.wording import MONTHS

_ADDRESS = (
    r"\b(?:jl|jln|jalan|gg|rt|rw|dusun|dsn|desa|kel|kelurahan|kec|kecamatan|perum|perumahan|komplek|kompleks|blok|kab"
    r"|kabupaten|no\W{0,2}[0-9])\b"
)
_DAY = "(?:0?[1-9]|[12][0-9]|3[01])"
_MONTH = "(?:Jan|Feb|Mar|Apr|May|Mei|Jun|Jul|Aug|Agu|Ags|Sep|Oct|Okt|Nov|Dec|Des)"
_DATE = (
    rf"{_DAY}[-/.]{_DAY}[-/.](?:19|20)[0-9]{{2}}(?: [0-9:]+)?|{_DAY}/{_DAY}/[0-9]{{2}}"
    r"|(?:19|20)[0-9]{2}-(?:0[1-9]|1[0-2])-[0-3][0-9](?:[ T][0-9:.]+)?"
    rf"|[0-9]{{1,2}}-{_MONTH}(?:-[0-9]{{2,4}})?|{_MONTH}-[0-9]{{2,4}}"
)
_NOTHING = (
    r"\W*(?:0+|x+|null|none|nan|\\n|n\W?a|idem|s\W?d\W?a|(?:belum|tidak|tdk|blm) (?:ada|diketahui|diisi)|kosong|nihil"
    r"|sama(?: dengan)?(?: di)? ?(?:atas)?|true|false|l|p|#[a-z0-9/]+[!?])?\W*"
)
_THOUSANDS = r"[0-9]{1,3}([.,])[0-9]{3}(?:\1[0-9]{3})*"
_LETTERS_FOR_DIGITS = r"(?=.*[0-9])[0-9./_-]*[OolI][0-9OolI./_-]*"


class Problem(NamedTuple):
    """A problem of a line: its sentence, with fields of the line in braces, and whether the line cannot be stored.

    `repair` is the label of the repair of all lines. The texts that have the problem match a pattern: the NIM, a
    name, an address, both in one text with a NUL between them, or a cell as it is in the file.
    """

    sentence: str
    is_fault: bool = False
    repair: str = ""
    nim: str | None = None
    nama: str | None = None
    alamat: str | None = None
    both: str | None = None
    raw: str | None = None


_BAD = "Nama atau Alamat rusak di berkasnya, atau rumusnya tidak menyimpan hasil. Ketik isinya."
PROBLEMS: Mapping[str, Problem] = {
    "no_nim": Problem("NIM kosong.", is_fault=True, nim=""),
    "long_nim": Problem("NIM terlalu panjang (maksimal 255 karakter).", is_fault=True, nim=".{256,}"),
    "dot_nim": Problem("NIM tidak boleh hanya “.” atau “..”.", is_fault=True, nim=r"\.\.?"),
    "masked": Problem("NIM berisi “{nim}”. Lebarkan kolomnya di Excel, lalu salin lagi.", is_fault=True, nim="##+"),
    "error_nim": Problem("NIM berisi kesalahan rumus ({nim}).", is_fault=True, nim="#[A-Z0-9/]+[!?]|#N/A"),
    "rounded": Problem("NIM dibulatkan Excel ({nim}). Ketik NIM-nya.", is_fault=True, nim="[+-]?[0-9]+(?:[.,][0-9]+E[+-]?|E[+-])[0-9]+"),
    "date_nim": Problem("NIM berisi tanggal ({nim}).", is_fault=True, nim=_DATE),
    "formula_nim": Problem("Rumus NIM tidak menyimpan hasil. Buka berkasnya di Excel, simpan, lalu unggah lagi.", is_fault=True),
    "damaged_nim": Problem("NIM ini rusak di berkasnya. Ketik NIM-nya.", is_fault=True),
    "bad_text": Problem(_BAD, is_fault=True),
    "more_cells": Problem("Baris ini memiliki sel lebih banyak daripada judulnya.", is_fault=True),
    "swallowed": Problem(
        "Sel ini memuat beberapa baris; mungkin tanda kutipnya tidak ditutup.", is_fault=True,
        raw=r".*[\r\n](?:\W{0,3}(?:[0-9]{1,4}\W{1,3})?(?:[0-9]{5,}\W{0,2}[;\t|]|[0-9]{6,}\W{0,2},)|[^\r\n]*[;\t|][^\r\n]*[;\t|]).*",
    ),
    "rest": Problem("Baris ini tampaknya lanjutan baris di atasnya.", is_fault=True),
    "nim_twice": Problem("NIM {nim} ada di beberapa baris dengan isi yang berbeda.", is_fault=True),
    "no_nama": Problem("Nama kosong. Mahasiswa baru harus memiliki nama.", is_fault=True),
    "no_alamat": Problem("Alamat kosong.", is_fault=True, repair="Isi {count} alamat kosong dengan “-”"),
    "no_digit": Problem("NIM ini tidak berisi angka.", nim=r"\D+"),
    "zeros": Problem("Angka terakhir NIM ini mungkin sudah dibulatkan Excel menjadi nol.", nim="[0-9]{15}0+"),
    "separators": Problem(
        "NIM berisi tanda lain, misalnya {nim}.", repair="Bersihkan {count} NIM ({bare})",
        nim=rf"(?![0-9A-Z](?:[0-9A-Z./_-]*[0-9A-Z])?\Z).*|{_THOUSANDS}|{_LETTERS_FOR_DIGITS}|[0-9]{{6,}}[.,][0-9]{{1,2}}"
        "|[0-9]{5,}[/._-][0-9]{8,}",
    ),
    "near": Problem("NIM ini mirip dengan {near} ({near_nama}) yang sudah ada.", repair="Pakai NIM yang sudah ada di {count} baris"),
    "odd_length": Problem("Panjang NIM ini berbeda dari hampir semua NIM lain."),
    "other_nama": Problem("Nama ini berbeda sama sekali dari yang tersimpan ({stored_nama})."),
    "continued": Problem("Baris di bawahnya tampaknya lanjutan baris ini."),
    "exchanged": Problem("Nama dan Alamat tampaknya tertukar.", both=rf"[^\0]*{_ADDRESS}[^\0]*\0(?!.*{_ADDRESS}).+"),
    "letters": Problem("Ada huruf yang rusak: “{nama}”, “{alamat}”.", both=rf"(?=[\0->@-\x7f]*[^\0->@-\x7f]).*(?:{ODD_LETTERS}|[^\W\d_]\?[^\W\d_]|(?-i:(?<=[A-Z])Õ(?=[A-Z]))).*"),
    "not_nama": Problem("“{nama}” tampaknya bukan nama.", nama=rf"{_NOTHING}|.*[\d_@:;/|].*|[\W\d_]+"),
    "degree": Problem(
        "Alamat ini tampaknya gelar ({alamat}).",
        alamat=r"(?-i:(?:(?:[SMD]|A\.?Md|Sp|Ph|Amd)\.\s?[A-Z][A-Za-z.]{0,8}|A\.?Md|S[EHT]|M[MT]|MBA|Ners|Apt|Ph\.?D)\.?(?:,.*)?)",
    ),
    "date_alamat": Problem("Alamat ini tampaknya tanggal ({alamat}).", alamat=rf"{_DATE}|(?=[^-]*-).*\b(?:[0-9]{{1,2}}-{_MONTH}|{_MONTH}-[0-9]{{2}})\b.*"),
    "not_alamat": Problem("“{alamat}” bukan alamat.", alamat=rf"{_NOTHING}|[\W\d_]+|.*@.*"),
    "hidden": Problem("Baris ini tersembunyi di Excel."),
    "missing": Problem("NIM ini tidak ada di daftar.", is_fault=True),
}  # fmt: skip
"""The problems of a line by their codes. The document shows this table."""

SKIPPED: Mapping[str, str] = {
    "titles": "Tampaknya judul kolom, bukan data.",
    "heading": "Tampaknya judul atau keterangan, bukan data mahasiswa.",
    "total": "Tampaknya jumlah atau catatan, bukan data mahasiswa.",
    "signature": "Tampaknya bagian tanda tangan, bukan data mahasiswa.",
    "same": "Sama persis dengan baris lain, jadi dihitung sekali.",
    "person": "Dilewati.",
}
"""The reasons why a line is skipped, by their codes."""

Match = Callable[[str], object]


def _matching(field: str) -> dict[str, Match]:
    """The functions that find the problems of a field, by their codes."""
    patterns = {code: getattr(problem, field) for code, problem in PROBLEMS.items()}
    return {
        code: re.compile(pattern, re.IGNORECASE | re.DOTALL).fullmatch
        for code, pattern in patterns.items()
        if pattern is not None
    }


_OF_NIM, _OF_NAMA, _OF_ALAMAT, _OF_BOTH, _OF_CELL = map(
    _matching, ("nim", "nama", "alamat", "both", "raw")
)


def is_fault(code: str) -> bool:
    """Whether a line with this problem cannot be stored."""
    return code != "" and PROBLEMS[code].is_fault


def first_open(own: str, accepted: str) -> str:
    """The first code in `own` that a person has not accepted, or a blank text. Blanks separate the codes."""
    return next((code for code in own.split() if code not in accepted.split()), "")


_without_unseen = re.compile(f"[\0-\x08\x0e-\x1b\x7f-\x84\x86-\x9f{INVISIBLE}]+").sub
_is_formula = re.compile(r'="([^"]*)"').fullmatch
_is_decimal = re.compile(r"([0-9]+)[.,](?:0|00|0{6})").fullmatch


def cleaned(cell: Cell) -> str:
    """The text of a cell in NFC, without needless spaces, marks that cannot be seen, ="…" and entities of HTML."""
    text = _without_unseen("", text_of(cell))
    text = " ".join(unicodedata.normalize("NFC", unescaped(text)).split())
    formula = _is_formula(text)
    return formula[1].strip() if formula else text


def cleaned_alamat(cell: Cell) -> str:
    """A cleaned address, in which a line break has become a comma."""
    lines = (cleaned(line).rstrip(" ,") for line in text_of(cell).splitlines())
    return ", ".join(filter(None, lines))


class Judged(NamedTuple):
    """The cleaned texts of a line, and the codes of its own problems, faults first; blank if there are none."""

    nim: str
    nama: str
    alamat: str
    own: str


def judge(*cells: Cell) -> Judged:
    """Clean and judge the NIM, the name and the address of a line. A typed line is judged by the same rules."""
    nim = cleaned(cells[0]).lstrip("'’‘`´ ")
    decimal = _is_decimal(nim)
    nim = decimal[1] if decimal else nim
    nama, alamat = cleaned(cells[1]), cleaned_alamat(cells[2])

    codes = [f"{cell.kind}_nim" for cell in cells[:1] if isinstance(cell, Bad)] or _found(
        _OF_NIM, nim
    )[:1]
    if any(isinstance(cell, Bad) and cell.kind in ("formula", "damaged") for cell in cells[1:]):
        codes.append("bad_text")
    codes += _found(_OF_CELL, *map(text_of, cells))
    codes += _found(_OF_BOTH, f"{nama}\0{alamat}")
    codes += _found(_OF_NAMA, nama) * bool(nama) + _found(_OF_ALAMAT, alamat) * bool(alamat)
    return Judged(nim, nama, alamat, " ".join(sorted(codes, key=is_fault, reverse=True)))


def _found(of_field: Mapping[str, Match], *texts: str) -> list[str]:
    return [code for code, matches in of_field.items() if any(map(matches, texts))]


_before_nim = re.compile(
    r"\W*(?:(?:NIM|NPM|NRP|NISN?|NIPD|NO(?:MOR)?\W*(?:INDUK|MHS|MAHASISWA))(?![A-Z])[\W_]*|[0-9]{1,3}(?:[.)]\s*(?=[0-9]{5})|\s+(?=[0-9]{8})))",
    re.IGNORECASE,
).sub  # fmt: skip
_is_number = re.compile(r"[0-9][0-9 ]*[0-9]").fullmatch
_has_thousands = re.compile(_THOUSANDS).fullmatch
_has_letters_for_digits = re.compile(_LETTERS_FOR_DIGITS).fullmatch
_ALIKE = str.maketrans("OoIl‐‑‒–—−", "0011------")


def bare_nim(nim: str) -> str:
    """The NIM without its separators, or what else it carries; blank if nothing surely is the NIM."""
    text = _before_nim("", nim, count=1).strip(" *#:;,.'\"()[]-_")
    if _has_thousands(text):
        return re.sub("[.,]", "", text)
    if _has_letters_for_digits(text) or not text.isascii():
        text = text.translate(_ALIKE)
    text = text.replace(" ", "") if _is_number(text) else text
    is_clean = text != nim and not _found(_OF_NIM, text)
    return text if is_clean else ""


def shares_no_word(nama: str, stored: str) -> bool:
    """Whether two names share no word."""
    return _words(nama).isdisjoint(_words(stored))


def _words(text: str) -> set[str]:
    plain = unicodedata.normalize("NFKD", text.casefold())
    return set(re.findall(r"\w+", re.sub("['’‘`´-]|[\u0300-\u036f]", "", plain)))


class JudgedLine(NamedTuple):
    """A line of a sheet: the number of its row, its texts, the codes of its problems, and the reason why it is skipped."""

    number: int
    nim: str
    nama: str
    alamat: str
    own: str = ""
    skipped: str = ""


# Texts of a line that lacks a field, and is of no student.
_REASONS: Mapping[str, Match] = {
    reason: re.compile(pattern, re.IGNORECASE).match
    for reason, pattern in {
        "signature": (
            r"(?:mengetahui|menyetujui|mengesahkan|kepala (?:sekolah|madrasah|program|jurusan|tata|bagian)|wali kelas|dekan\b"
            r"|rektor\b|ketua (?:program|prodi|jurusan|kelas)|tata usaha|nip\b|ttd\b|tanda tangan|a\.?n\. )"
            rf"|[^\W\d][\w .]+, (?:[0-9]{{1,2}}|_+|\.+) (?:{'|'.join(MONTHS)}|_+|\.+)"
        ),
        "total": r"(?:sub\s?-?total|total|jumlah|rata-rata|keterangan|catatan|sumber|dicetak|laki-laki|perempuan|\*)(?![^\W\d])",
        "heading": (
            r"\W*(?:kelas|program|prodi|jurusan|fakultas|semester|angkatan|kelompok|rombel|tingkat|tahun|daftar|data"
            r"|universitas|sekolah)\b"
        ),
    }.items()
}
OTHER_TITLES, _BLANK = "other_titles", "blank"
_has_digit = re.compile("[0-9]").search
_COLUMN_NUMBER = r"(?:[A-Z][A-Za-z/]*\.? )?\(?[0-9]{1,2}\)?"
_is_column_number = re.compile(f"{_COLUMN_NUMBER}(?:, {_COLUMN_NUMBER})*").fullmatch
_has_address = re.compile(_ADDRESS, re.IGNORECASE).search
# A line in which no rule finds anything. Most lines match, and this takes less time than the rules.
_is_ordinary = re.compile(
    r"[0-9]{5,15}\0[A-Z][A-Za-z'ß-öø-ÿ]+(?: [A-Z][A-Za-z'ß-öø-ÿ]+)+"
    r"\0(?!S[EHT]\b|M[MT]\b|[SMDA]\.|A\.?Md|Sp|Ph|MBA|Ners|Apt)(?=[^\0]*[0-9,])[A-Z][A-Za-z0-9.,/]+(?: [A-Za-z0-9.,/]+)*"
).fullmatch
_NOT_IN_NAMES = {*_ADDRESS[5:].split("|"), "belum", "tidak", "tdk", "blm", "sama"}


class Judge:
    """Judges the lines of the sheets of a file, one by one. It remembers a hash of each line."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        # The number of the last row of the sheet whose NIM an earlier row has with other texts.
        self.twice = 0

    def lines(
        self, rows: Iterable[Row], columns: Columns, hidden: Collection[int] = ()
    ) -> Iterator[JudgedLine]:
        """The lines of a sheet. The titles of another table are skipped, and have OTHER_TITLES as their problem."""
        last: JudgedLine | None = None
        self.twice = 0
        # Most sheets have one column for each field.
        places = {part: column for column, part in columns.of.items()}
        pick = itemgetter(*map(places.get, FIELDS)) if {*places} == {*FIELDS} else None
        for number, row in rows:
            line = (pick and _ordinary(number, row, pick, columns)) or _line(
                number, row, columns, last
            )
            if number <= columns.header or line.skipped == _BLANK:
                continue
            if line.own.startswith("rest") and last and not is_fault(last.own.partition(" ")[0]):
                last = last._replace(own=f"continued {last.own}".rstrip())
            if number in hidden:
                line = line._replace(own=f"{line.own} hidden".lstrip())
            if last:
                yield last
            last = self._once(line)
        if last:
            yield last

    def _once(self, line: JudgedLine) -> JudgedLine:
        """The line, or a skipped one if an earlier one is equal."""
        nim, texts = hash(line.nim), hash(line[1:4])
        if line.nim and not line.skipped:
            first = self._seen.get(nim)
            if first == texts:
                return line._replace(skipped="same")
            if first is not None:
                self.twice = line.number
            self._seen[nim] = texts
        return line


def _line(
    number: int, row: Sequence[Cell], columns: Columns, last: JudgedLine | None
) -> JudgedLine:
    cells = join(row, columns.of)
    has_more = columns.exceeds(row)
    is_below = last is not None and last.number == number - 1
    if is_blank(cells) and is_below:
        cells = _lone_text(row)

    line = JudgedLine(number, *judge(*cells))
    texts = [text for text in line[1:4] if text]
    if not texts and line.own == "no_nim" and not has_more:
        return line._replace(skipped=_BLANK)
    titles = parts_of(row) if len(texts) > 1 and not _has_digit("".join(texts)) else {}
    if titles or (len(texts) > 1 and all(map(_is_column_number, texts))):
        is_same = not titles or columns.of.items() <= titles.items()
        return line._replace(own="" if is_same else OTHER_TITLES, skipped="titles")
    if has_more:
        return line._replace(own=f"more_cells {line.own}".rstrip())
    reason = _reason_to_skip(line, texts, row[: min(columns.of, default=0)], last)
    has_nim = _has_digit(line.nim) and not _has_address(line.nim)
    if (
        not reason
        and is_below
        and last
        and last.nim
        and not (last.skipped or has_nim)
        and len(texts) == 1
    ):
        return line._replace(own="rest")
    return line._replace(skipped=reason)


def _reason_to_skip(
    line: JudgedLine, texts: Sequence[str], before: Sequence[Cell], last: JudgedLine | None
) -> str:
    """The reason why a line that lacks a field is of no student, or a blank text. `before` are the cells beside the NIM."""
    has_nim = _has_digit(line.nim) is not None
    is_lone = len(texts) == 1
    if len(texts) == len(FIELDS):
        return ""
    if last and last.skipped == "signature" and (is_lone or not has_nim):
        return "signature"
    shown = [*map(cleaned, before), *([line.nim] if has_nim else texts)]
    reasons = (reason for reason, matches in _REASONS.items() if any(map(matches, shown)))
    return next((reason for reason in reasons if is_lone or reason != "heading"), "")


def _ordinary(
    number: int,
    row: Sequence[Cell],
    pick: Callable[[Sequence[Cell]], Sequence[Cell]],
    columns: Columns,
) -> JudgedLine | None:
    """The line if no rule concerns it."""
    if len(row) != columns.width:
        return None
    nim, nama, alamat = pick(row)
    nim = text_of(nim) if isinstance(nim, float) else nim
    is_plain = (
        isinstance(nama, str)
        and _is_ordinary(f"{nim}\0{nama}\0{alamat}")
        and _NOT_IN_NAMES.isdisjoint(nama.lower().split())
        and not columns.exceeds(row)
    )
    return JudgedLine(number, f"{nim}", f"{nama}", f"{alamat}") if is_plain else None


def _lone_text(row: Sequence[Cell]) -> tuple[Cell, Cell, Cell]:
    """The only text of a row that stands in a column that is not read, in place of the NIM."""
    texts = [text for text in map(text_of, row) if text.strip()]
    is_text = len(texts) == 1 and not texts[0].strip(" .)").isdecimal()
    return (texts[0] if is_text else None, None, None)
