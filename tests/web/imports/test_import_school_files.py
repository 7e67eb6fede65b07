"""Files as schools have them, uploaded and pasted: one table says what each preview must show."""

import datetime as dt
import html
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from spreadsheets import (
    SAVE,
    Database,
    Importer,
    Preview,
    Record,
    as_records,
    by_libreoffice,
    by_openpyxl,
)

from mahasiswa import wording

STORED: list[Record] = as_records(
    "022100008|Rizki Lestari|Jl. Kaliurang 5, Sleman",
    "22000186201|M. Rizal|Jl. Solo 1",
    "22000186202|Siti Aminah|Jl. Wates 2",
    "TAMU|Tamu  Kampus |-",
)
"""The records of the list into which each file is imported."""

SAME = "22000186201|M. Rizal|Jl. Solo 1"
MOVED = "22000186202|Siti Aminah|Jl. Wates 9"
DEWI = "22000186203|Dewi Lestari|Jl. Godean 3"
ELSA = "22000186204|Renée “Elsa” P.|Jl. Magelang 4, Sleman"
ROWS = (SAME, MOVED, DEWI, ELSA)
"""A record that is stored as it is, one with another address, and two new ones."""

HEADER = "NIM|Nama|Alamat"
GUESSED = "Judul kolom tidak ditemukan"
OF_EXCEL = (
    "022100008|Rizki Lestari|Jl. Kaliurang 5, Sleman",
    "22000186205|Fajar|2020-01-02",
    "=1/0|Gita|Solo",
)
"""A number with a format that adds a zero, which .xls does not tell, a date and an error."""

LETTERHEAD = (
    "PEMERINTAH KABUPATEN SLEMAN",
    "SMK NEGERI 2 DEPOK",
    "DAFTAR NAMA SISWA KELAS X TKJ 1",
    "TAHUN 2026/2027",
)
SIGNATURES = (
    "||Sleman, 12 Juli 2026",
    "Mengetahui,||Wali Kelas",
    "Drs. Agus||Siti, S.Pd.",
    "NIP. 19650101||NIP. 1970",
)
COUNTED = ("Baru", "Berubah", "Perlu diperbaiki", "Perlu diperiksa", "Dilewati")


def numbered(*rows: str, mark: str = "") -> list[str]:
    return [f"{number}{mark}|{row}" for number, row in enumerate(rows, 1)]


def in_one_column(separator: str, *rows: str) -> list[str]:
    return [row.replace("|", separator) for row in rows]


def split_at(separator: str, *rows: str) -> list[str]:
    """Return the rows of a CSV file with semicolons as a program shows them that splits lines at another character."""
    lines = (
        ";".join(f'"{cell}"' if "," in cell else cell for cell in row.split("|")) for row in rows
    )
    return [line.replace(separator, "|") for line in lines]


class File(NamedTuple):
    """A file of this kind with these rows, and what its preview must show."""

    kind: str
    rows: Sequence[str]
    # The letters of NIM, Nama and Alamat. `-` is a column that was not found. It is blank if no choice is offered.
    columns: str = ""
    new: int = 0
    changed: int = 0
    repair: int = 0
    check: int = 0
    skipped: int = 0
    # In a message. Without any count, the file is not previewed, and the columns are those that are suggested.
    says: str = ""


NUMBERED = numbered(*ROWS)
TOTALS = ["Laki-laki 12||", "Laki-laki|2|", "|Perempuan : 2|", "|Jumlah|4"]
TWO_PAGES = [
    "No|" + HEADER,
    "|KELAS A 1||",
    "1|" + DEWI,
    "No|" + HEADER,
    "2|" + SAME,
    "||Total|2",
    "|Jumlah: 2||",
]
ODD_NIMS = [
    HEADER, "22 000 186 203|Dewi|Solo", "22O00186204|Elsa|Solo", "l2000186205|Fajar|Solo", "A11.2020.1|Gita|Solo",
    "9.0|A|B",
]  # fmt: skip
NAMES_FIRST = ["Dewi|22000186203|Godean", "Elsa|22000186204|Depok"]
PARENTS = [
    "NIM|Nama Ayah|Nama Siswa|Alamat Orang Tua|Alamat Tempat Tinggal Siswa|Alamat Email",
    "2301|Budi|Dewi|Depok|Jl. Solo 3|d@x",
]
PARTS = [
    "NIM|Nama Depan|Nama Belakang|Jalan|Kelurahan|Kecamatan|Kab/Kota",
    "2401|Nur|Aini|Jl. A 5|Bener||Yogya",
]
ONE_LONG_NIM = [HEADER, *(f"23010{n}|Ani|Solo" for n in range(10, 29)), "23010299|B|S"]
UNQUOTED_COMMA = ["NIM,Nama,Alamat", "2401,Nur Aini,Gg. Mawar II, Bantul"]
UNTIDY = [HEADER.replace("|", ";"), '2401;" Nur  Aini ";"Gg. 2,\n Solo"']

# Every kind of file. The options of CSV are its separator, its encoding and its line end.
KINDS = (
    *(
        "csv ;",
        "csv ,",
        "csv \t",
        "csv ; utf-8 \n",
        "csv , utf-8 \r",
        "csv ; utf-8-sig",
        "csv ; windows-1252",
    ),
    *("csv \t utf-16", "paste", "paste ;", "xlsx", "xlsx numbers", "html"),
)
CHAT = ["22000186203 Nur Aini, Gg. Mawar II, Bantul", "22000186205 Budi, Solo"]
FILES = {
    **{kind: File(kind, (HEADER, *ROWS), "ABC", 2, 1) for kind in KINDS},
    "big-endian UTF-16": File("csv ; utf-16-be", ("\ufeff" + HEADER, *ROWS), "ABC", 2, 1),
    "a line that names the separator": File("csv ;", ("sep=;", HEADER, *ROWS), "ABC", 2, 1),
    "a line that names a space as the separator": File(
        "csv ;", ("sep= ", HEADER, *ROWS), "ABC", 2, 1
    ),
    "bars": File("csv |", (HEADER, *ROWS), "ABC", 2, 1),
    "a line that names a bar": File("csv |", ("sep=|", HEADER, *ROWS), "ABC", 2, 1),
    "pasted without titles": File("paste", ROWS, "ABC", 2, 1),
    "pasted without the last cell": File(
        "paste", (SAME, "22000186203|Dewi|"), "ABC", repair=1, says="Alamat kosong"
    ),
    "ods": File("ods", (HEADER, *ROWS, *OF_EXCEL), "ABC", 2, 1, 2),
    "xls": File("xls", (HEADER, *ROWS, *OF_EXCEL), "ABC", 3, 1, 2, 1, says="022100008"),
    "our own export": File("csv ; utf-8-sig", (HEADER, *map("|".join, STORED)), "ABC"),
    # ---- columns
    "a letterhead and signatures": File(
        "xlsx", (*LETTERHEAD, HEADER, *ROWS, *SIGNATURES), "ABC", 2, 1, skipped=4
    ),
    "columns that count and others": File("csv ;", ["No|" + HEADER, *NUMBERED], "BCD", 2, 1),
    "long titles": File(
        "xlsx",
        ["Stambuk|NAMA LENGKAP MAHASISWA BARU|Alamat Lengkap sesuai KTP", *ROWS],
        "ABC",
        2,
        1,
    ),
    "other words": File(
        "csv ;",
        ["No. Urut|No. Induk Siswa|Nama Peserta Didik (akta)|Domisili", *NUMBERED],
        "BCD",
        2,
        1,
    ),
    "titles with signs": File(
        "csv ;", ["N.I.M.|Nama  Lengkap *|Alamat (sesuai KTP) :", *ROWS], "ABC", 2, 1
    ),
    "several NIMs": File(
        "csv ;", ["NISN|NIS|Alamat KTP|Nama|No. Mahasiswa|Alamat", "9|8|K|Dewi|2301|Solo"], "EDF", 1
    ),
    "parents beside students": File("csv ;", PARENTS, "ACE", 1),
    "two rows of titles": File(
        "xlsx", ["NOMOR||NAMA|ALAMAT", "URUT|INDUK||", *NUMBERED], "BCD", 2, 1
    ),
    "an address above the others": File(
        "xlsx", ["No|Identitas||Alamat", "|NIM|Nama|", *NUMBERED], "BCD", 2, 1
    ),
    "parts of an address below its title": File(
        "xlsx",
        ["NIM|Nama|Alamat|", "||Jalan|Desa", *(row + "|Caturtunggal" for row in ROWS)],
        "ABC–D",
        2,
        2,
    ),
    "parents in the second row of titles": File(
        "csv ;",
        ["No|Nama|NIPD|Alamat|Data Ayah|", "||||Nama|NIK", "1|Dewi|22000186203|Solo|Budi|340401"],
        "CBD",
        1,
    ),
    "numbers below the titles": File(
        "xlsx", ["No|" + HEADER, "(1)|(2)|(3)|(4)", *NUMBERED], "BCD", 2, 1, skipped=1
    ),
    "numbers without brackets below the titles": File(
        "xlsx numbers", [HEADER, "1|2|3", *ROWS], "ABC", 2, 1, skipped=1
    ),
    "no address": File(
        "csv ;", ["NIM|Nama|Kelas", SAME, DEWI], "AB-", repair=1, says="Kolom Alamat"
    ),
    "no NIM": File(
        "csv ;", ["Kode|Nama|Alamat", *ROWS], "ABC", 2, 1, says="Kolom A mungkin bukan NIM."
    ),
    "a NIM and nothing else": File(
        "xlsx", ["NIM|Telepon", "2301|0812"], "A--", says="Kolom Nama dan Alamat tidak"
    ),
    "the title NIM far to the right again": File(
        "xlsx",
        ["NIM|" + "x|" * 26 + "NIM|Nama", "2301" + "|" * 28],
        "AAC-",
        repair=1,
        says="Ada dua kolom NIM (A dan AB).",
    ),
    # ---- no titles
    "pasted numbers": File(
        "paste",
        ["1|22000186201|M. Rizal", "2|22000186203|Dewi"],
        "BC-",
        repair=1,
        says=GUESSED,
    ),
    "numbers before the NIM": File("csv ;", NUMBERED, "BCD", 2, 1, says=GUESSED),
    "numbers with dots before the NIM": File(
        "xlsx", numbered(*ROWS, mark="."), "BCD", 2, 1, says=GUESSED
    ),
    "numbers that go on": File(
        "paste", numbered(*["x"] * 40, *ROWS)[40:], "BCD", 2, 1, says=GUESSED
    ),
    "numbers before four columns": File(
        "csv ;", numbered(f"{DEWI}|7A", f"{ELSA}|7B"), "BCD", 2, says=GUESSED
    ),
    "numbers before a name only": File(
        "paste", ["1|Dewi|Godean", "2|Elsa|Sleman"], "-BC", says=GUESSED
    ),
    "numbers before two columns that look like NIMs": File(
        "csv ;",
        ["1|22000186203|Dewi|3404010101010001", "2|22000186204|Elsa|34040101010102"],
        "BC-",
        repair=2,
        says=GUESSED,
    ),
    "names before the NIM": File("paste", NAMES_FIRST, "BAC", 2, says=GUESSED),
    "a class before the NIM": File("paste", ["7A|22000186203|Dewi"], "BC-", repair=1, says=GUESSED),
    "classes before the NIM": File(
        "paste", [f"10|{row}" for row in ROWS], "BCD", 2, 1, says=GUESSED
    ),
    "names below the title NIM": File("xlsx", [HEADER, *NAMES_FIRST], "BAC", 2, says="tertukar"),
    "texts far to the right": File("csv ;", ["|" * 120 + "x|y"], "---", says=GUESSED),
    "four columns that nothing tells apart": File(
        "csv ;", ["a|b|c|d", "e|f|g|h"], "---", says=GUESSED
    ),
    # ---- CSV that a program has split at another character
    "our export split at commas": File(
        "xlsx", split_at(",", HEADER, *ROWS), "ABC", 2, 1, says="satu kolom"
    ),
    "commas in one column": File(
        "xlsx", in_one_column(",", HEADER, *ROWS[:3]), "ABC", 1, 1, says="satu kolom"
    ),
    "semicolons in one column": File(
        "xlsx", in_one_column(";", *ROWS[:3]), "ABC", 1, 1, says="satu kolom"
    ),
    "tabs in one column": File(
        "xlsx", in_one_column("\t", HEADER, *ROWS), "ABC", 2, 1, says="satu kolom"
    ),
    "rows of both": File(
        "xlsx",
        [*split_at(",", HEADER, *ROWS), "22000186205;Fajar"],
        "ABC",
        2,
        1,
        1,
        says="satu kolom",
    ),
    "a chat in one column": File("xlsx", CHAT, "ABC", 2, says="Teks ini tidak berkolom"),
    # ---- rows
    "totals": File("csv ;", [HEADER, *ROWS, *TOTALS], "ABC", 2, 1, skipped=4),
    "classes": File(
        "csv ;",
        [HEADER, "KELAS X 1||", *ROWS[:3], HEADER, "Kelas X 2||", ELSA],
        "ABC",
        2,
        1,
        skipped=3,
    ),
    "damaged numbers": File(
        "csv ;",
        [HEADER, "2,3E+10|Dewi|S", "####|Elsa|S", "|Fajar|S", "#DIV/0!|Gita|S", DEWI],
        "ABC",
        1,
        repair=4,
    ),
    "a removed zero": File(
        "xlsx numbers", [HEADER, "22100008|Rizki Lestari|S"], "ABC", 1, check=1, says="022100008"
    ),
    "NIMs with spaces and letters for digits": File(
        "csv ;", ODD_NIMS, "ABC", 5, check=2, says="Angka nol di belakang koma pada NIM dihapus."
    ),
    "names with spaces, and without letters": File(
        "csv ;",
        [HEADER, "22000186203| Dewi |Godean", "22000186204|-|Depok", "22000186205|Fajar|-"],
        "ABC",
        3,
        check=2,
    ),
    "spaces of other programs, and characters that cannot be seen": File(
        "csv ;",
        [
            HEADER,
            "22000186201|\u00a0M. Rizal|Jl.\u00a0Solo 1\u00a0",
            "22000\u200b186202|Siti\tAminah|Jl. Wates 2",
            "\u202a22000186203\u202c|\u00a0Dewi \u00a0Lestari\u00a0|Jl. Godean 3",
        ],
        "ABC",
        1,
        check=2,
        says="22000186203Dewi LestariJl. Godean 3",
    ),
    "two NIMs and two names": File(
        "csv ;",
        ["NISN|Nama|NIS|Nama Lengkap|Alamat", "0061234567|Dewi|10234|Dewi Sri|Solo"],
        "CBE",
        1,
        says="Ada dua kolom NIM",
    ),
    "codes of a programme before the NIM": File(
        "csv ;",
        ["55201|22000186203|Dewi|Solo", "55201|22000186204|Elsa|Wates"],
        "BCD",
        2,
        says=GUESSED,
    ),
    "a note in a column without a title": File(
        "csv ;",
        ["NIM|Nama||Alamat", "2401|Dewi||Solo", "2402|Elsa|pindah|Solo", "2403|Fajar||Solo"],
        "ABD",
        3,
    ),
    "the parts of a name apart": File(
        "csv ;",
        ["NIM|Nama Depan|Alamat|Nama Belakang", "2401|Dewi|Solo|Sri"],
        "ABC",
        1,
        says="Kolom B mungkin bukan Nama",
    ),
    "the first name alone": File(
        "csv ;",
        ["NIM|Nama Depan|Alamat", "2401|Dewi|Solo"],
        "ABC",
        1,
        says="Kolom B mungkin bukan Nama",
    ),
    "a number and nothing else": File("csv ;", ["No|" + HEADER, "1|" + DEWI, "2|||"], "BCD", 1),
    "an RT alone": File("csv ;", ["NIM|Nama|RT", "2401|Dewi|3"], "ABC", 1, says="2401DewiRT 3"),
    "a cell far behind the address": File(
        "csv ;", [HEADER, "2401|Dewi|Solo||x"], "ABC", 1, check=1, says="lebih banyak sel"
    ),
    "titles with a slash and a short one": File(
        "csv ;", ["NIM|Nama Mahasiswa/i|Jl.", "2401|Dewi|Solo"], "ABC", 1
    ),
    "a title with a long number": File(
        "xlsx",
        ["NIM|Nama|Alamat (data 20231231)", "2401|Dewi|Solo"],
        "ABC",
        1,
        says="Kolom C mungkin bukan Alamat",
    ),
    "titles that only contain words": File(
        "xlsx",
        ["Kode|Nama calon siswa|Alamat calon siswa", "22000186203|Dewi|Solo"],
        "ABC",
        1,
        says="Kolom A mungkin bukan NIM",
    ),
    "a zero too many": File(
        "csv ;", [HEADER, "0022100008|Rizki Lestari|S"], "ABC", 1, check=1, says=wording.NEAR_STORED
    ),
    "a row and a NIM twice": File(
        "csv ;", [HEADER, DEWI, DEWI, ELSA, ELSA + "B"], "ABC", 1, repair=2, skipped=1
    ),
    "a NIM alone": File(
        "csv ;", [HEADER, "2301||", ELSA], "ABC", 1, repair=1, says="Nama dan alamat kosong"
    ),
    "a title and a total on each page": File("csv ;", TWO_PAGES, "BCD", 1, skipped=4),
    "nearly a NIM": File(
        "csv ;",
        [HEADER, "0012|A|S", "7|B|S", "12|A|S"],
        "ABC",
        3,
        check=1,
        says="mirip dengan 0012",
    ),
    "a wrong row only": File(
        "csv ;", [HEADER, "|Ani|Solo"], "ABC", repair=1, says=wording.NO_ROW_TO_SAVE
    ),
    # ---- mistakes that nobody sees
    "an address with a comma": File(
        "csv , plain", UNQUOTED_COMMA, "ABC", 1, check=1, says="Gg. Mawar II, Bantul"
    ),
    "more cells than titles": File(
        "csv ;", ["NIM|Alamat|Nama", "2401|Solo|Ani|x"], "ACB", 1, check=1, says="lebih banyak sel"
    ),
    "a total beside the numbers": File(
        "csv ;", ["No|" + HEADER, "1|" + DEWI, "Jumlah|20||"], "BCD", 1, skipped=1
    ),
    "a total with its number first": File(
        "csv ;", [HEADER, DEWI, "20|Total|", "8|Laki-laki: 8|"], "ABC", 1, skipped=2
    ),
    "an address in several columns": File(
        "csv ;", PARTS, "AB–CD–G", 1, says="Nur AiniJl. A 5, Kel. Bener, Yogya"
    ),
    "a second table beside the first one": File(
        "csv ;",
        [HEADER + "||" + HEADER, DEWI + "||22000186204|Elsa|Depok"],
        "ABCEFG",
        2,
        says=". “kolom E”: NIM dari kolom E",
    ),
    "a second table below the first one": File(
        "csv ;", [HEADER, DEWI, "||", "Nama|NIM|Alamat", "Elsa|22000186204|Depok"], "ABCBAC", 2
    ),
    "an address with its details": File(
        "xlsx numbers",
        [
            "NIM|Nama|Alamat|RT|RW|Kecamatan|Kode Pos|Kota|L/P",
            "2401|Nur|Jl. A|3|7|Depok|55281|Solo|P",
        ],
        "ABC–H",
        1,
        says="Jl. A, RT 3/RW 7, Kec. Depok, Kode Pos 55281, Solo",
    ),
    "details of an address that stand for nothing": File(
        "csv ;",
        [
            "NIM|Nama|Alamat|RT|RW|Desa/Kelurahan|Kecamatan|Kota",
            "2401|Nur|Jl. A|0|00|-|Depok|NULL",
            "2402|Budi|-|0|0|(kosong)||N.A.",
        ],
        "ABC–H",
        1,
        repair=1,
        says="2401NurJl. A, Kec. Depok",
    ),
    "an address with a comma before a blank cell": File(
        "csv , plain",
        ["NIM,Nama,Alamat,Telepon", "2401,Nur,Gg. A 2, Bantul,", "2402,Budi,Solo,"],
        "ABC",
        2,
        check=1,
        says="lebih banyak sel",
    ),
    "blank cells behind the titles and the rows": File(
        "csv ;", [HEADER + "|", DEWI + "|", ELSA + "|"], "ABC", 2
    ),
    "blank cells behind the addresses": File("csv ;", [HEADER, DEWI + "|", ELSA + "|"], "ABC", 2),
    "a second table below with other titles": File(
        "csv ;",
        [HEADER, DEWI, "NIM Ketua|Alamat|Nama Ketua", "22000186204|Depok|Elsa"],
        "ABCACB",
        2,
        says="mungkin bukan NIM",
    ),
    "a second table below whose NIM has another name": File(
        "xlsx",
        [HEADER, DEWI, "No. Peserta|Alamat|Nama", "22000186204|Depok|Elsa", HEADER, SAME],
        "ABCACB",
        2,
        says="Depok",
    ),
    "an address of parents in the second row of titles": File(
        "csv ;",
        ["No|Nama|NIPD|Alamat|Data Ayah|", "||||Nama|Alamat", "1|Dewi|22000186203|Solo|Budi|Wates"],
        "CBD",
        1,
    ),
    "the title NIM above the numbers of the rows": File(
        "csv ;",
        [HEADER, "1|22000186203|Dewi", "2|22000186204|Elsa"],
        "B-C",
        repair=2,
        says="Kolom A tampaknya nomor urut, bukan NIM. NIM dibaca dari kolom B.",
    ),
    "a NIM that is too long": File(
        "csv ;", ONE_LONG_NIM, "ABC", 20, check=1, says="Panjang NIM ini berbeda"
    ),
    "spaces and line breaks": File("csv ; plain", UNTIDY, "ABC", 1, check=1, says="Gg. 2, Solo"),
    "a name and its parts": File(
        "csv ;",
        ["NIM|Nama|Nama Depan|Nama Belakang|Alamat", "22000186203|Dewi Sri|Dewi|Sri|Solo"],
        "ABE",
        1,
        says="Ada dua kolom Nama",
    ),
    "an address that has its parts already": File(
        "csv ;",
        ["NIM|Nama|Alamat|RT|Desa", "22000186203|Dewi|Jl. Solo 1, RT 2, Wates|2|Wates"],
        "ABC–E",
        1,
        says="Ada dua kolom Alamat",
    ),
    "the last name before the first": File(
        "csv ;",
        ["NIM|Last Name|First Name|Alamat", "22000186203|Sri|Dewi|Solo"],
        "AB–CD",
        1,
        says="Kolom B mungkin bukan Nama",
    ),
    "a name in a column without a title": File(
        "csv ;",
        ["NIM|Nama||Alamat", "22000186203|Dewi|Sri|Solo"],
        "ABD",
        1,
        says="Kolom B mungkin bukan Nama",
    ),
    "names behind row numbers": File(
        "csv ;", [HEADER, "22000186203|1. Dewi|Solo"], "ABC", 1, says="Nama berisi nomor"
    ),
    "letters that are lost": File(
        "csv ;", [HEADER, "22000186203|Nur\ufffdaini|Solo"], "ABC", 1, says="huruf yang hilang"
    ),
    "an address that became a date": File(
        "csv ;",
        [HEADER, "22000186203|Dewi|Solo 03-Jul"],
        "ABC",
        1,
        says="Alamat ini berisi tanggal",
    ),
    "NIMs with one digit less": File(
        "csv ;",
        [HEADER, "910001|Dewi|Solo", "1010002|Elsa|Wates"],
        "ABC",
        2,
        says="satu digit lebih pendek",
    ),
    "NIMs between marks": File(
        "csv ;", [HEADER, "_22000186203_|Dewi|Solo"], "ABC", 1, says="NIM berisi tanda lain"
    ),
    "lecturers below the students": File(
        "csv ;",
        [HEADER, *ROWS, "NIDN|Nama|Alamat", "0512018801|Budi|Solo"],
        "ABCABC",
        3,
        1,
        says="Kolom A mungkin bukan NIM",
    ),
    "no titles, and an address of RT and RW": File(
        "csv ;",
        ["22000186203|Dewi|RT 1/RW 7", "22000186204|Elsa|RT 2/RW 7 Wates"],
        "AB-",
        repair=2,
        says=GUESSED,
    ),
    "numbers of a school beside those of the state": File(
        "csv ;",
        ["NISN|Nomor Induk Siswa (NIS)|Nama Murid|Alamat", "0061234567|10234|Dewi|Solo"],
        "BCD",
        1,
        says="Ada dua kolom NIM",
    ),
    "titles of other people and places below their groups": File(
        "xlsx",
        [
            "No|NIM|Nama|Alamat|Tempat Magang|||Penguji",
            "||||Nama|Alamat|Kota|Nama",
            "1|22000186203|Dewi|Solo|PT A|Jl. B|Klaten|Budi",
        ],
        "BCD",
        1,
    ),
    "the NIM and the name in one column": File(
        "csv ;",
        ["NIM / Nama|Alamat", "22000186203 Dewi|Solo", "22000186204 Elsa|Wates"],
        "A-B",
        repair=2,
        says="NIM dan Nama ada di kolom yang sama",
    ),
    "days below the titles": File(
        "xlsx",
        ["NIM|Nama|Alamat|Pertemuan|", "|||1|2", "22000186203|Dewi|Solo|v|v"],
        "ABC",
        1,
    ),
    "NIMs with dots that are no dates": File(
        "csv ;", [HEADER, "23.11.5401|Dewi|Solo", "23.12.5402|Elsa|Wates"], "ABC", 2
    ),
    "the rest of an address in a column that is not read": File(
        "csv ;",
        ["No|NIM|Nama|Alamat", "1|22000186203|Dewi|Solo", "RT 3/RW 7|||"],
        "BCD",
        1,
        skipped=1,
        says="lanjutan baris di atasnya",
    ),
    "lines of a chat": File("paste", CHAT, "ABC", 2),
    "titles only": File("csv ;", [HEADER], "ABC", says=wording.NO_ROWS),
}


def cell_of(text: str) -> object:
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return dt.date.fromisoformat(text)
    return int(text) if text.isdecimal() else text or None


def content(file: File, folder: Path) -> bytes:
    kind, *options = file.kind.split(" ")
    rows = [row.split("|") for row in file.rows]
    if kind == "csv":
        separator, encoding, end = (*options, *("", "utf-8", "\r\n")[len(options) :])
        if encoding == "plain":
            return "".join(line + end for line in file.rows).encode()
        lines = (
            separator.join(f'"{cell}"' if separator in cell else cell for cell in row)
            for row in rows
        )
        return "".join(line + end for line in lines).encode(encoding)
    if kind == "html":
        cells = ("".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows)
        return b"<p>SIAKAD</p>" + "".join(f"<table><tr>{row}" for row in cells).encode()
    if kind == "xlsx" and not options:
        return by_openpyxl(*rows)
    formats = {
        f"A{number}": "0" * len(row[0])
        for number, row in enumerate(rows, 1)
        if row[0].startswith("0")
    }
    data = by_openpyxl(*(map(cell_of, row) for row in rows), formats=formats)
    return data if kind == "xlsx" else by_libreoffice(data, kind, folder)


@pytest.mark.parametrize("file", FILES.values(), ids=FILES)
def test_a_file_that_a_school_has_is_previewed_as_its_staff_expect(
    importer: Importer, other: Database, tmp_path: Path, file: File
) -> None:
    other.fill(STORED)
    kind, _, separator = file.kind.partition(" ")
    if kind == "paste":
        answer = importer.send(
            pasted="\r\n".join(row.replace("|", separator or "\t") for row in file.rows)
        )
    else:
        # The kind is recognised by the content.
        answer = importer.send(content(file, tmp_path), "daftar")
    page = Preview(answer.text, SAVE)
    shown = page.letters
    counts = page.counts if answer.status_code == 200 else {}
    text = page.tree.css("main")[0].text()
    expected = dict(zip(COUNTED, file[3:8], strict=True))
    assert ({name: counts.get(name, 0) for name in COUNTED}, shown) == (expected, file.columns), (
        text
    )
    assert file.says in text
    if answer.status_code != 200 and shown and "-" not in shown:
        assert importer.check_again(page).new, "the suggested columns can be taken"
