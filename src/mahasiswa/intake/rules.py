"""The rules for a line of an import: they clean its texts, and find its problems or the reason why it is skipped."""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from mahasiswa.intake.cells import Bad, Cell, Row, is_blank, odd_letters, text_of, unescaped
from mahasiswa.intake.columns import Columns, join, parts_of
from mahasiswa.record import NIM_MAX_CHARACTERS, UNADDRESSABLE_NIMS, tidy
from mahasiswa.wording import MONTHS


class Problem(NamedTuple):
    """A sentence with fields of a line in braces; whether the line cannot be stored; the label of the repair of all lines."""

    sentence: str
    is_fault: bool = False
    repair: str = ""


PROBLEMS: Mapping[str, Problem] = {
    "no_nim": Problem("NIM kosong.", is_fault=True),
    "long_nim": Problem("NIM terlalu panjang (maksimal 255 karakter).", is_fault=True),
    "dot_nim": Problem("NIM tidak boleh hanya “.” atau “..”.", is_fault=True),
    "rounded": Problem("NIM dibulatkan Excel ({nim}). Ketik NIM-nya.", is_fault=True),
    "masked": Problem("NIM berisi “{nim}”. Lebarkan kolomnya di Excel, lalu salin lagi; atau ketik NIM-nya.", is_fault=True),
    "date_nim": Problem("NIM berisi tanggal ({nim}). Ketik NIM-nya.", is_fault=True),
    "error_nim": Problem("NIM berisi kesalahan rumus ({nim}). Ketik NIM-nya.", is_fault=True),
    "formula_nim": Problem("Rumus NIM tidak menyimpan hasil. Buka berkasnya di Excel, simpan, lalu unggah lagi.", is_fault=True),
    "bad_nim": Problem("NIM ini rusak di berkasnya. Ketik NIM-nya.", is_fault=True),
    "bad_text": Problem("Nama atau Alamat rusak di berkasnya, atau rumusnya tidak menyimpan hasil. Ketik isinya.", is_fault=True),
    "more_cells": Problem("Baris ini memiliki sel lebih banyak daripada judulnya.", is_fault=True),
    "swallowed": Problem("Sel ini memuat beberapa baris; mungkin tanda kutipnya tidak ditutup.", is_fault=True),
    "rest": Problem("Baris ini tampaknya lanjutan baris di atasnya.", is_fault=True),
    "nim_twice": Problem("NIM {nim} ada di beberapa baris dengan isi yang berbeda.", is_fault=True),
    "no_nama": Problem("Nama kosong. Mahasiswa baru harus memiliki nama.", is_fault=True),
    "no_alamat": Problem("Alamat kosong. Mahasiswa baru harus memiliki alamat.", is_fault=True, repair="Isi {count} alamat kosong dengan “-”"),
    "separators": Problem("NIM berisi tanda lain, misalnya {nim}.", repair="Bersihkan {count} NIM ({bare})"),
    "no_digit": Problem("NIM ini tidak berisi angka."),
    "zeros": Problem("Angka terakhir NIM ini mungkin sudah dibulatkan Excel menjadi nol."),
    "near": Problem("NIM ini mirip dengan {near} ({near_nama}) yang sudah ada.", repair="Pakai NIM yang sudah ada di {count} baris"),
    "odd_length": Problem("Panjang NIM ini berbeda dari hampir semua NIM lain."),
    "other_nama": Problem("Nama ini berbeda sama sekali dari yang tersimpan ({stored_nama})."),
    "exchanged": Problem("Nama dan Alamat tampaknya tertukar."),
    "degree": Problem("Alamat ini tampaknya gelar ({alamat})."),
    "date_alamat": Problem("Alamat ini tampaknya tanggal ({alamat})."),
    "letters": Problem("Ada huruf yang rusak: “{nama}”, “{alamat}”."),
    "not_nama": Problem("“{nama}” tampaknya bukan nama."),
    "not_alamat": Problem("“{alamat}” bukan alamat."),
    "continued": Problem("Baris di bawahnya tampaknya lanjutan baris ini."),
    "hidden": Problem("Baris ini tersembunyi di Excel."),
}  # fmt: skip
"""The problems of a line by their codes, in the order of their importance. The document shows this table."""

SKIPPED: Mapping[str, str] = {
    "titles": "Tampaknya judul kolom, bukan data.",
    "heading": "Tampaknya judul atau keterangan, bukan data mahasiswa.",
    "total": "Tampaknya jumlah atau catatan, bukan data mahasiswa.",
    "signature": "Tampaknya bagian tanda tangan, bukan data mahasiswa.",
    "same": "Sama persis dengan baris lain, jadi dihitung sekali.",
    "person": "Dilewati.",
}
"""The reasons why a line is skipped, by their codes."""


def is_fault(code: str) -> bool:
    """Whether a line with this problem cannot be stored."""
    return code != "" and PROBLEMS[code].is_fault


def first_open(own: str, accepted: str) -> str:
    """The first code in `own` that a person has not accepted, or a blank text. Blanks separate the codes."""
    return next((code for code in own.split() if code not in accepted.split()), "")


# ---- the texts of a cell

_is_formula = re.compile(r'="([^"]*)"').fullmatch
_is_decimal = re.compile(r"[0-9]+[.,](?:0|00|0{6})").fullmatch
_APOSTROPHES = "'’‘`´ "


def cleaned(cell: Cell) -> str:
    """The text of a cell in NFC, without what nobody would miss: needless spaces, marks that cannot be seen, ="…", entities of HTML."""
    text = text_of(cell)
    if text.isascii() and text.isalnum():
        return text
    if "&" in text:
        text = unescaped(text)
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    if not text.isprintable():
        text = "".join(
            sign
            for sign in text
            if sign.isprintable() or sign.isspace() or unicodedata.category(sign) == "Co"
        )
    text = tidy(text)
    formula = _is_formula(text) if text.startswith("=") else None
    return tidy(formula[1]) if formula else text


def _cleaned_nim(cell: Cell) -> str:
    nim = cleaned(cell).lstrip(_APOSTROPHES)
    return re.split("[.,]", nim)[0] if _is_decimal(nim) else nim


def _cleaned_alamat(cell: Cell) -> str:
    """An address, in which a line break becomes a comma."""
    text = text_of(cell).strip()
    if "\n" not in text and "\r" not in text:
        return cleaned(cell)
    lines = (cleaned(line).rstrip(" ,") for line in text.splitlines())
    return ", ".join(filter(None, lines))


# ---- the problems of a cell

_is_rounded = re.compile(r"[+-]?[0-9]+(?:[.,][0-9]+[eE][+-]?|[eE][+-])[0-9]+").fullmatch
_is_masked = re.compile("##+").fullmatch
_is_error = re.compile("#[A-Z0-9/]+[!?]|#N/A").fullmatch
_DAY = "(?:0?[1-9]|[12][0-9]|3[01])"
_MONTH = "(?:Jan|Feb|Mar|Apr|May|Mei|Jun|Jul|Aug|Agu|Ags|Sep|Oct|Okt|Nov|Dec|Des)"
_DATE = (
    rf"{_DAY}([-/.]){_DAY}\1(?:19|20)[0-9]{{2}}(?: [0-9:]+)?|{_DAY}/{_DAY}/[0-9]{{2}}"
    r"|(?:19|20)[0-9]{2}-(?:0[1-9]|1[0-2])-[0-3][0-9](?:[ T][0-9:.]+)?"
    rf"|[0-9]{{1,2}}-{_MONTH}(?:-[0-9]{{2,4}})?|{_MONTH}-[0-9]{{2,4}}"
)
_is_date = re.compile(_DATE).fullmatch
_has_date = re.compile(rf"\b(?:[0-9]{{1,2}}-{_MONTH}|{_MONTH}-[0-9]{{2}})\b").search
_is_plain_nim = re.compile("[0-9A-Za-z](?:[0-9A-Za-z./_-]*[0-9A-Za-z])?").fullmatch
_has_thousands = re.compile(r"[0-9]{1,3}([.,])[0-9]{3}(?:\1[0-9]{3})*").fullmatch
_has_letter_for_digit = re.compile(r"(?=.*[0-9])[0-9./_-]*[OolI][0-9OolI./_-]*").fullmatch
_are_two_nims = re.compile(r"[0-9]{5,}[/._-][0-9]{8,}").fullmatch
_swallowed = re.compile(
    r"[\r\n](?:\W{0,3}(?:[0-9]{1,4}\W{1,3})?(?:[0-9]{5,}\W{0,2}[;\t|]|[0-9]{6,}\W{0,2},)|[^\r\n]*[;\t|][^\r\n]*[;\t|])"
).search
_has_lost_letter = re.compile(r"[^\W\d_]\?[^\W\d_]|(?<=[A-Z])Õ(?=[A-Z])").search
_is_address = re.compile(
    r"\b(?:jl|jln|jalan|gg|rt|rw|dusun|dsn|desa|kel|kelurahan|kec|kecamatan|perum|perumahan|komplek|kompleks|blok|kab"
    r"|kabupaten|no\W{0,2}[0-9])\b",
    re.IGNORECASE,
).search
_is_nothing = re.compile(
    r"\W*(?:0+|x+|null|none|nan|\\n|n\W?a\W*|idem|s\W?d\W?a\W*|(?:belum|tidak|tdk|blm) (?:ada|diketahui|diisi)"
    r"|kosong|nihil|sama(?: dengan)?(?: di)? ?(?:atas)?|true|false|l|p)?\W*",
    re.IGNORECASE,
).fullmatch
_NOTHING_MAX_CHARACTERS = 20
_is_degree = re.compile(
    r"(?:(?:[SMD]|A\.?Md|Sp|Ph|Amd)\.\s?[A-Z][A-Za-z.]{0,8}|A\.?Md|S[EHT]|M[MT]|MBA|Ners|Apt|Ph\.?D)\.?(?:,|$)"
).match


def _problem_of_nim(cell: Cell, nim: str) -> str:
    if isinstance(cell, Bad):
        return {"error": "error_nim", "date": "date_nim", "formula": "formula_nim"}.get(
            cell.kind, "bad_nim"
        )
    if isinstance(cell, float) and (not cell.is_integer() or cell < 0):
        return "rounded"
    problems = {
        "no_nim": not nim,
        "long_nim": len(nim) > NIM_MAX_CHARACTERS,
        "dot_nim": nim in UNADDRESSABLE_NIMS,
        "masked": _is_masked(nim),
        "error_nim": _is_error(nim),
        "rounded": _is_rounded(nim),
        "date_nim": _is_date(nim),
    }
    found = next(filter(problems.get, problems), "")
    return found or _doubt_about_nim(nim)


def _doubt_about_nim(nim: str) -> str:
    if not any(map(str.isdecimal, nim)):
        return "no_digit"
    if len(nim) > 15 and nim.isdecimal() and not nim[15:].strip("0"):
        return "zeros"
    is_odd = _has_thousands(nim) or _has_letter_for_digit(nim) or _are_two_nims(nim)
    return "separators" if is_odd or not _is_plain_nim(nim) else ""


def _stands_for_nothing(text: str) -> bool:
    return len(text) <= _NOTHING_MAX_CHARACTERS and bool(
        _is_nothing(text) or _is_error(text) or _is_masked(text)
    )


def _problem_of_texts(nama: str, alamat: str) -> str:
    """The doubt about a name and an address, each perhaps blank."""
    is_swapped = bool(_is_address(nama)) and not _is_address(alamat)
    odd = (
        text for text in (nama, alamat) if text and (odd_letters(text) or _has_lost_letter(text))
    )
    problems = {
        "exchanged": is_swapped and alamat,
        "letters": next(odd, ""),
        "not_nama": nama and (_stands_for_nothing(nama) or not _is_like_a_name(nama)),
        "degree": _is_degree(alamat),
        "date_alamat": _is_date(alamat) or _has_date(alamat),
        "not_alamat": alamat
        and (_stands_for_nothing(alamat) or not re.search(r"[^\W\d_]", alamat) or "@" in alamat),
    }
    return " ".join(filter(problems.get, problems))


def _is_like_a_name(text: str) -> bool:
    return not re.search(r"[\d_@:;/|]", text) and any(map(str.isalpha, text))


class Judged(NamedTuple):
    """The cleaned texts of a line, and the codes of its own problems, separated by blanks; blank if there are none."""

    nim: str
    nama: str
    alamat: str
    own: str


def judge(nim: Cell, nama: Cell, alamat: Cell) -> Judged:
    """Clean and judge a line by itself. A typed line is judged by the same rules."""
    texts = (_cleaned_nim(nim), cleaned(nama), _cleaned_alamat(alamat))
    problems = [_problem_of_nim(nim, texts[0])]
    cells = (nama, alamat)
    if any(isinstance(cell, Bad) and cell.kind not in ("error", "date") for cell in cells):
        problems.append("bad_text")
    if any(isinstance(cell, str) and _swallowed(cell) for cell in (nim, nama, alamat)):
        problems.append("swallowed")
    problems.append(_problem_of_texts(texts[1], texts[2]))
    return Judged(*texts, _sorted(problems))


def _sorted(problems: Iterable[str]) -> str:
    """The codes, faults first."""
    codes = " ".join(filter(None, problems)).split()
    return " ".join(sorted(codes, key=lambda code: not is_fault(code)))


# ---- NIMs that carry something else

_word_nim = re.compile(
    r"\W*(?:NIM|NPM|NRP|NISN?|NIPD|NO(?:MOR)?\W*(?:INDUK|MHS|MAHASISWA))(?![A-Z])[\W_]*",
    re.IGNORECASE,
).match
_running_number = re.compile(r"[0-9]{1,3}(?:[.)]\s*(?=[0-9]{5})|\s+(?=[0-9]{8}))").match
_runs = re.compile(r"[0-9](?:[ .]?[0-9]){4,}").findall
_AS_DIGITS = str.maketrans("OoIl", "0011")
_DASHES = dict.fromkeys(map(ord, "‐‑‒–—−﹣－"), "-")


def bare_nim(nim: str) -> str:
    """The NIM without its separators, or what else it carries; blank if nothing surely is the NIM."""
    text = "".join(str(unicodedata.decimal(sign, sign)) for sign in nim.translate(_DASHES))
    if _has_thousands(text):
        return re.sub("[.,]", "", text)
    if _has_letter_for_digit(text) and len(_runs(text.translate(_AS_DIGITS))) == 1:
        return text.translate(_AS_DIGITS)
    start = _word_nim(text) or _running_number(text)
    rest = text[start.end() if start else 0 :].strip(" *#:;,.'\"()[]-_")
    if _are_two_nims(rest):
        return ""
    if _is_plain_nim(rest):
        return rest if rest != nim else ""
    runs = _runs(rest)
    return re.sub("[ .]", "", runs[0]) if len(runs) == 1 else ""


def shares_no_word(nama: str, stored: str) -> bool:
    """Whether two names share no word."""
    return _words(nama).isdisjoint(_words(stored))


def _words(text: str) -> set[str]:
    plain = unicodedata.normalize("NFKD", text.casefold())
    letters = "".join(
        sign for sign in plain if not unicodedata.combining(sign) and sign not in "'’‘`´-"
    )
    return set(re.findall(r"\w+", letters))


# ---- the lines of a sheet


class JudgedLine(NamedTuple):
    """A line of a sheet: the number of its row, its texts, the codes of its problems, and the reason why it is skipped."""

    number: int
    nim: str
    nama: str
    alamat: str
    own: str = ""
    skipped: str = ""


class OtherTitles(Exception):
    """Another table begins further below. The argument is the number of the row."""


_is_total = re.compile(
    r"(?:sub\s?-?total|total|jumlah|rata-rata|keterangan|catatan|sumber|dicetak|laki-laki|perempuan|\*)(?![^\W\d])",
    re.IGNORECASE,
).match
_is_only_total = re.compile(
    r"(?:sub\s?-?total|total|jumlah|rata-rata|laki-laki|perempuan)[\s:=0-9]*", re.IGNORECASE
).fullmatch
_is_heading = re.compile(
    r"\W*(?:kelas|program|prodi|jurusan|fakultas|semester|angkatan|kelompok|rombel|tingkat|tahun|daftar|data|universitas"
    r"|sekolah)\b",
    re.IGNORECASE,
).match
_is_signature = re.compile(
    r"(?:mengetahui|menyetujui|mengesahkan|kepala (?:sekolah|madrasah|program|jurusan|tata|bagian)|wali kelas|dekan\b"
    r"|rektor\b|ketua (?:program|prodi|jurusan|kelas)|tata usaha|nip\b|ttd\b|tanda tangan)"
    rf"|[^\W\d][\w .]+, (?:[0-9]{{1,2}}|_+|\.+) (?:{'|'.join(MONTHS)}|_+|\.+)",
    re.IGNORECASE,
).match
_is_column_number = re.compile(r"(?:(?:[A-Z][A-Za-z/]*\.? )?\(?[0-9]{1,2}\)?(?:, )?)+").fullmatch


# A line in which no rule finds anything. Most lines match, and this takes less time than the rules.
_is_ordinary = re.compile(
    r"[0-9]{5,15}\0[A-Z][A-Za-z]+(?: [A-Z][A-Za-z]+)+"
    r"\0(?!S[EHT]\b|M[MT]\b|[SMDA]\.|A\.?Md|Sp|Ph|MBA|Ners|Apt)(?=[^\0]*[0-9,])[A-Z][A-Za-z0-9.,/]+(?: [A-Za-z0-9.,/]+)*"
).fullmatch
_NOT_IN_NAMES = {
    *("jl", "jln", "jalan", "gg", "rt", "rw", "dusun", "dsn", "desa", "kel", "kelurahan", "kec", "kecamatan", "perum", "perumahan"),
    *("komplek", "kompleks", "blok", "kab", "kabupaten", "belum", "tidak", "tdk", "blm", "sama"),
}  # fmt: skip


class Judge:
    """Judges the lines of the sheets of a file, one by one. It remembers a hash of each line."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        self.twice: list[
            int
        ] = []  # the numbers of rows whose NIM an earlier row has with other texts

    def lines(
        self,
        rows: Iterable[Row],
        columns: Columns,
        hidden: Collection[int] = (),
        *,
        is_chosen: bool = False,
    ) -> Iterator[JudgedLine]:
        """The lines of a sheet. Raises OtherTitles at the titles of another table, unless a person has chosen the columns."""
        last: JudgedLine | None = None
        in_signature = False
        for number, row in rows:
            cells = join(row, columns.of)
            if number <= columns.header or (is_blank(cells) and not _has_more(row, columns)):
                continue
            line = _ordinary(number, row, cells, columns) or _line(
                number, row, cells, columns, last, in_signature=in_signature
            )
            if line.skipped == "titles" and not is_chosen:
                _check_titles(number, row, columns)
            in_signature = line.skipped == "signature" or (in_signature and bool(line.skipped))
            if number in hidden:
                line = line._replace(own=f"{line.own} hidden".lstrip())
            if last:
                is_continued = line.own.startswith("rest") and not is_fault(
                    last.own.partition(" ")[0]
                )
                yield last._replace(own=f"continued {last.own}".rstrip()) if is_continued else last
            last = self._once(line)
        if last:
            yield last

    def _once(self, line: JudgedLine) -> JudgedLine:
        """The line, or a skipped one if an earlier one is equal."""
        if line.skipped or not line.nim:
            return line
        nim, texts = hash(line.nim), hash(line[1:4])
        first = self._seen.setdefault(nim, texts)
        if first is texts:
            return line
        if first == texts:
            return line._replace(skipped="same")
        self.twice.append(line.number)
        return line


def _check_titles(number: int, row: Sequence[Cell], columns: Columns) -> None:
    """Raise OtherTitles if the titles in a row are not those of the sheet."""
    named = parts_of(row)
    if named and not named.items() <= parts_of(columns.titles).items():
        raise OtherTitles(number)


def _has_more(row: Sequence[Cell], columns: Columns) -> bool:
    """Whether a row has more cells than there are titles, or a comma has split a cell."""
    return len(row) > columns.width and not is_blank(row[columns.width :])


def _ordinary(
    number: int, row: Sequence[Cell], cells: Sequence[Cell], columns: Columns
) -> JudgedLine | None:
    """The line if no rule concerns it."""
    nim, nama, alamat = cells
    if (
        len(row) <= columns.width
        and isinstance(nama, str)
        and _is_ordinary(f"{nim}\0{nama}\0{alamat}")
        and _NOT_IN_NAMES.isdisjoint(nama.lower().split())
    ):
        return JudgedLine(number, str(nim), nama, str(alamat))
    return None


def _line(
    number: int,
    row: Sequence[Cell],
    cells: Sequence[Cell],
    columns: Columns,
    last: JudgedLine | None,
    *,
    in_signature: bool,
) -> JudgedLine:
    nim, nama, alamat, own = judge(*cells)
    line = JudgedLine(number, nim, nama, alamat, own)
    before = [cleaned(cell) for cell in row[: min(columns.of, default=0)]]
    if reason := _reason_to_skip(line, row, before, in_signature=in_signature):
        return line._replace(own="", skipped=reason)
    if _has_more(row, columns):
        return line._replace(own=f"more_cells {own}".rstrip())
    is_below = (
        last is not None and last.number == number - 1 and bool(last.nim) and not last.skipped
    )
    return line._replace(own="rest") if is_below and _is_rest(line) else line


def _is_rest(line: JudgedLine) -> bool:
    """Whether a line has one text and no NIM."""
    has_nim = any(map(str.isdigit, line.nim)) and not _is_address(line.nim)
    return not has_nim and sum(map(bool, line[1:4])) == 1


def _reason_to_skip(
    line: JudgedLine, row: Sequence[Cell], before: Sequence[str], *, in_signature: bool
) -> str:
    """The reason why a line is of no student, or a blank text. `before` are the texts on the left of the columns that are read."""
    texts = [text for text in line[1:4] if text]
    if len(texts) > 1 and all(map(_is_column_number, texts)):
        return "titles"
    has_digit = any(map(str.isdigit, "".join(texts)))
    if not has_digit and len(texts) > 1 and parts_of(row):
        return "titles"
    if len(texts) == 3:
        return ""

    has_nim = any(map(str.isdigit, line.nim))
    is_signature = any(map(_is_signature, texts if not has_nim else (line.nim,)))
    if is_signature or (in_signature and (not has_nim or len(texts) == 1)):
        return "signature"
    totals = [*before, line.nim] if has_nim else [*before, *texts]
    if any(map(_is_total, totals)) or (has_nim and _is_only_total(line.nama)):
        return "total"
    is_lone_text = (
        len(texts) == 1
        and bool(line.nim)
        and " " in line.nim
        and line.nim[0].isalpha()
        and not _runs(line.nim)
    )
    is_heading = len(texts) == 1 and bool(_is_heading(texts[0]))
    return "heading" if is_heading or (is_lone_text and not _is_address(line.nim)) else ""
