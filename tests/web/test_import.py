"""Spreadsheets in: a preview that writes nothing, a confirmation that writes what was shown, and clear refusals."""

import datetime as dt
import json
import re
import sys
import time
import zipfile
from collections.abc import Callable, Iterable, Sequence
from io import BytesIO
from pathlib import Path
from urllib.parse import quote

import pytest
from harness import Service, Site
from hypothesis import given, settings
from hypothesis import strategies as st
from spreadsheets import (
    HEADER,
    IMPORT,
    SAVE,
    SHEET,
    Database,
    Importer,
    Preview,
    Record,
    another_program,
    by_libreoffice,
    by_openpyxl,
    by_xlsxwriter,
    csv,
    own_database,
    own_service,
    own_site,
)

# The fixtures, which pytest finds by these names.
__all__ = ["another_program", "own_database", "own_service", "own_site"]

CHANGED = "Sebagian data sudah diubah orang lain sejak pratinjau. Belum ada yang disimpan. Periksa lagi, lalu simpan."
DAMAGED = "Data yang akan disimpan tidak lengkap atau berubah. Ulangi dari unggah berkas."
TOO_HEAVY = "Berkas ini terlalu berat untuk dibaca."
NO_SHEET = "Berkas ini bukan lembar kerja yang dapat dibaca."

APOSTROPHE = "'"
FIVE: list[Record] = [
    ("00123", "Ani", "Jl. Mawar 1"),
    ("20/456839/TK/50663", "Émile; “Budi”", "Gang 'B', no. 2"),
    ("12345678901234567890", '"Citra"', "Baris satu\nbaris dua"),
    ("A-7", "Dewi <b>", "=1+1"),
    ("B_8", "  Eko  ", "‘kutip’"),
]
"""Texts that a careless import would alter."""


@pytest.fixture
def importer(site: Site, other: Database) -> Importer:
    """Import into an empty list."""
    other.fill([])
    return Importer(site)


def quoted(rows: Sequence[Sequence[str]], separator: str, end: str = "\r\n") -> str:
    """Return rows as a program writes them that quotes every cell."""
    return "".join(separator.join('"' + cell.replace('"', '""') + '"' for cell in row) + end for row in rows)


# ---- every kind of file

ALL_FIVE = [HEADER, *FIVE]
FILES: dict[str, tuple[str, Callable[[], bytes]]] = {
    "csv with semicolons": ("daftar.csv", lambda: quoted(ALL_FIVE, ";").encode()),
    "csv with commas": ("daftar.csv", lambda: quoted(ALL_FIVE, ",").encode()),
    "csv with tabs": ("daftar.csv", lambda: quoted(ALL_FIVE, "\t").encode()),
    "csv with a mark": ("daftar.csv", lambda: quoted(ALL_FIVE, ";").encode("utf-8-sig")),
    "csv in UTF-16": ("daftar.csv", lambda: quoted(ALL_FIVE, "\t").encode("utf-16")),
    "csv in UTF-16, the other way round": (
        "daftar.txt",
        lambda: ("\ufeff" + quoted(ALL_FIVE, ";")).encode("utf-16-be"),
    ),
    "csv in Windows-1252": ("daftar.csv", lambda: quoted(ALL_FIVE, ";").encode("windows-1252")),
    "csv of Unix": ("daftar.csv", lambda: quoted(ALL_FIVE, ",", "\n").encode()),
    "csv that says its separator": ("daftar.csv", lambda: b"sep=,\r\n" + quoted(ALL_FIVE, ",").encode()),
    "xlsx of XlsxWriter": ("daftar.xlsx", lambda: by_xlsxwriter(*ALL_FIVE)),
    "xlsx under another name": ("daftar.csv", lambda: by_xlsxwriter(*ALL_FIVE)),
}


@pytest.mark.parametrize(("name", "make"), FILES.values(), ids=FILES)
def test_a_file_of_any_kind(importer: Importer, name: str, make: Callable[[], bytes]) -> None:
    """What it is, its content tells; every text comes in to the byte, and only when it is confirmed."""
    preview = importer.upload(make(), name)
    assert preview.counts == {"Baru": 5, "Berubah": 0, "Tidak berubah": 0, "Perlu diperbaiki": 0}
    assert [(row.nim, *row.after) for row in preview.new] == FIVE
    assert (preview.wrong, preview.noticed, importer.records()) == ([], [], [])
    importer.save(preview)
    assert importer.records() == sorted(FIVE)
    again = importer.upload(make(), name)
    assert again.counts == {"Baru": 0, "Berubah": 0, "Tidak berubah": 5, "Perlu diperbaiki": 0}
    assert [(row.nim, *row.after) for row in again.same] == FIVE
    assert again.buttons == []


@pytest.mark.parametrize("ending", ["ods", "xls", "xlsx"])
def test_a_file_of_libreoffice(importer: Importer, ending: str, tmp_path: Path) -> None:
    """Likewise; a number that is shown as one comes in as its digits, with the zeros its format shows."""
    rows = [*ALL_FIVE, (9001, "Fajar", 7), (77, "Gita", "Solo")]
    preview = importer.upload(by_libreoffice(by_openpyxl(*rows[:-2], *rows[-2:]), ending, tmp_path), f"a.{ending}")
    importer.save(preview)
    # openpyxl wrote the text `=1+1` as a formula, whose result LibreOffice has worked out.
    expected = [(nim, nama, "2" if alamat == "=1+1" else alamat) for nim, nama, alamat in FIVE]
    assert importer.records() == sorted([*expected, ("9001", "Fajar", "7"), ("77", "Gita", "Solo")])


def test_cells_pasted_from_excel(importer: Importer) -> None:
    """With tabs between cells and a browser's line ends; a cell with a line break comes in quotes."""
    pasted = 'NIM\tNama\tAlamat\r\n007\tAni "A"\t"Baris satu\r\nbaris ""dua"""\r\n008\t"Budi"\tSolo\r\n'
    preview = importer.paste(pasted)
    importer.save(preview)
    assert importer.records() == [("007", 'Ani "A"', 'Baris satu\nbaris "dua"'), ("008", '"Budi"', "Solo")]


def test_a_file_goes_before_what_was_pasted(importer: Importer) -> None:
    """Where both were given, the file is read."""
    preview = importer.shown(
        importer.send(csv(HEADER, ("1", "Berkas", "A")), "a.csv", "NIM\tNama\tAlamat\n2\tTempel\tB")
    )
    assert [row.nim for row in preview.new] == ["1"]


# ---- columns


@pytest.mark.parametrize(
    "header",
    [
        "NIM Nama Alamat",
        "nim NAMA alamat",
        "NPM Nama|Mahasiswa Alamat|Rumah",
        "NIPD Nama|Lengkap Alamat",
        "No.|Mahasiswa nama|mahasiswa ALAMAT|LENGKAP",
        "Nomor|Induk|Mahasiswa Nama|Lengkap|* Alamat|(KTP)",
    ],
)
@pytest.mark.parametrize("order", ["012", "210", "120"])
def test_headers_in_any_order_and_case(importer: Importer, header: str, order: str) -> None:
    """The columns are known by the names people give them, wherever they stand; others are ignored."""
    names = [name.replace("|", " ") for name in header.split()]
    rows = [names, ["007", "Ani", "Solo"]]
    table = [["No", *(row[int(place)] for place in order), "Telepon"] for row in rows]
    table[1] = ["1", *table[1][1:-1], "0812"]
    importer.save(importer.upload(csv(*table, separator=",")))
    assert importer.records() == [("007", "Ani", "Solo")]


def test_without_a_header_three_columns_in_order(importer: Importer) -> None:
    """NIM, Nama, Alamat."""
    importer.save(importer.upload(csv(("007", "Ani", "Solo"), ("008", "Budi", "Bantul"))))
    assert importer.records() == [("007", "Ani", "Solo"), ("008", "Budi", "Bantul")]


def test_a_title_above_the_header(importer: Importer) -> None:
    """School files begin with titles; rows are still numbered as Excel numbers them."""
    data = by_openpyxl(
        ("DAFTAR MAHASISWA",), (), ("Semester Ganjil",), HEADER, ("1", "Ani", "Solo"), (), ("2", "B", "")
    )
    preview = importer.upload(data, "a.xlsx")
    assert [(row.number, row.nim) for row in preview.new] == [(5, "1")]
    assert preview.wrong == ["Baris 7: Alamat kosong. Isi Alamat untuk mahasiswa baru. 2 · B"]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ([("Nama", "Alamat"), ("Ani", "Solo")], "Kolom NIM tidak ditemukan."),
        ([("NIM", "Telepon"), ("1", "0812")], "Kolom Nama dan Alamat tidak ditemukan."),
        ([("NIM", "Nama", "Alamat", "NIM"), ("1", "A", "B", "2")], "Kolom NIM ada dua (kolom A dan D)."),
        ([("1", "Ani", "Solo", "0812")], "Judul kolom tidak ditemukan."),
    ],
)
def test_columns_that_cannot_be_told(importer: Importer, table: list[Sequence[str]], words: str) -> None:
    """They are not guessed; the page says what is missing and what to do."""
    for data, name in ((csv(*table), "a.csv"), (by_openpyxl(*table), "a.xlsx")):
        assert importer.refused(importer.send(data, name)).startswith(words)
    assert importer.records() == []


# ---- the preview

KEPT: list[Record] = [("1", "Ani", "Solo"), ("2", "Budi", "Bantul"), ("3", "Citra", "Klaten")]
MIXED = csv(
    HEADER,
    ("1", "Ani", "Solo"),
    ("2", "Budi S.", "Bantul"),
    ("4", "Dewi", "Sleman"),
    ("", "Eko", "Solo"),
    ("5", "", "S"),
)


def test_a_preview_shows_what_would_be_written(importer: Importer, other: Database) -> None:
    """How many are new, changed, the same, wrong; old and new side by side; wrong rows with number and reason."""
    other.fill(KEPT)
    preview = importer.upload(MIXED)
    assert preview.counts == {"Baru": 1, "Berubah": 1, "Tidak berubah": 1, "Perlu diperbaiki": 2}
    assert [(row.number, row.nim, row.before, row.after) for row in preview.changed] == [
        (3, "2", ("Budi", "Bantul"), ("Budi S.", "Bantul"))
    ]
    assert [(row.number, row.nim, row.after) for row in preview.new] == [(4, "4", ("Dewi", "Sleman"))]
    assert [(row.number, row.nim, row.after) for row in preview.same] == [(2, "1", ("Ani", "Solo"))]
    assert preview.wrong == [
        "Baris 5: NIM kosong atau berisi galat. Isi NIM-nya. Eko · Solo",
        "Baris 6: Nama kosong. Isi Nama untuk mahasiswa baru. 5 · S",
    ]
    (removed,), (inserted,) = preview.tree.css(".compare del"), preview.tree.css(".compare ins")
    assert (removed.text(), inserted.text()) == ("Budi", "Budi S.")
    assert [button.text for button in preview.buttons] == ["Lewati: simpan 1 data baru", "Perbarui: simpan 2 data"]
    assert "NIM yang sudah ada: Lewati" in preview.tree.css(".hint")[0].text()


def test_a_preview_writes_nothing(importer: Importer, other: Database, database: Path) -> None:
    """The list is the same to the byte, and so are the database's files."""
    other.fill(KEPT)
    importer.upload(MIXED)  # whatever opening the database for the first time may write
    files = [database, database.with_name("mahasiswa.db-wal")]
    before = [importer.site.get("/").content, *(file.read_bytes() for file in files)]
    assert importer.upload(MIXED).data
    assert importer.upload(by_openpyxl(HEADER, (9, "Baru", "Solo")), "a.xlsx").data
    assert importer.paste("1\tX\tY").data
    assert [importer.site.get("/").content, *(file.read_bytes() for file in files)] == before


@pytest.mark.parametrize(
    ("button", "records"),
    [
        ("Lewati", [*KEPT, ("4", "Dewi", "Sleman")]),
        ("Perbarui", [KEPT[0], ("2", "Budi S.", "Bantul"), KEPT[2], ("4", "Dewi", "Sleman")]),
    ],
)
def test_existing_nims_are_skipped_or_updated(
    importer: Importer, other: Database, button: str, records: list[Record]
) -> None:
    """As the person chooses; what the file does not name stays."""
    other.fill(KEPT)
    importer.save(importer.upload(MIXED), button)
    assert importer.records() == records


def test_skipping_is_the_default(importer: Importer, other: Database) -> None:
    """The first button skips, and so does a confirmation that names no choice or an unknown one."""
    other.fill(KEPT)
    preview = importer.upload(MIXED)
    assert [(button.name, button.value) for button in preview.buttons] == [("ada", "lewati"), ("ada", "perbarui")]
    assert importer.site.post(SAVE, {"data": preview.data}).status_code == 302
    assert importer.records() == [*KEPT, ("4", "Dewi", "Sleman")]
    assert importer.site.post(SAVE, {"data": importer.upload(MIXED).data, "ada": "hapus"}).status_code == 302
    assert importer.records()[1] == KEPT[1]


def test_only_new_or_only_changed(importer: Importer, other: Database) -> None:
    """Where there is nothing to choose, there is one button, and it says how many."""
    preview = importer.upload(csv(HEADER, *((str(n), "N", "A") for n in range(1200))))
    assert [button.text for button in preview.buttons] == ["Simpan 1.200 data"]
    other.fill(KEPT)
    preview = importer.upload(csv(HEADER, ("1", "Ani", "Solo"), ("2", "Budi S.", "Bantul")))
    assert [button.text for button in preview.buttons] == ["Perbarui: simpan 1 data"]


def test_a_blank_cell_never_erases(importer: Importer, other: Database) -> None:
    """A blank Nama or Alamat, or no such column at all, keeps what the record has."""
    other.fill(KEPT)
    preview = importer.upload(csv(HEADER, ("1", "", "Solo Baru"), ("2", "Budi S.", "  "), ("3", "", "")))
    assert preview.counts == {"Baru": 0, "Berubah": 2, "Tidak berubah": 1, "Perlu diperbaiki": 0}
    importer.save(preview, "Perbarui")
    assert importer.records() == [("1", "Ani", "Solo Baru"), ("2", "Budi S.", "Bantul"), KEPT[2]]
    importer.save(importer.upload(csv(("NIM", "Alamat"), ("3", "Jogja"))), "Perbarui")
    assert importer.records()[2] == ("3", "Citra", "Jogja")


def test_blank_rows_are_skipped(importer: Importer) -> None:
    """They are neither wrong nor counted, and rows after them keep their numbers."""
    preview = importer.upload(
        csv(HEADER, ("", "", ""), ("1", "A", "B"), (" ", "", "\t"), ("2", "C", "D"), ("", "", ""))
    )
    assert [(row.number, row.nim) for row in preview.new] == [(3, "1"), (5, "2")]
    assert preview.wrong == []


def test_markup_in_cells_is_text(importer: Importer, other: Database) -> None:
    """In each part of the preview."""
    mark = "<b>&amp;\"'</b>"
    other.fill([("1", mark, mark), ("2", mark, mark)])
    table = csv(
        HEADER,
        ("1", mark, mark),
        ("2", mark, "x" + mark),
        ("3", mark, mark),
        (f"'{mark}", mark, mark),
        ("", mark, ""),
        separator="\t",
    )
    preview = importer.upload(table)
    assert preview.counts == {"Baru": 2, "Berubah": 1, "Tidak berubah": 1, "Perlu diperbaiki": 1}
    assert preview.changed[0].after == (mark, "x" + mark)
    assert {row.after for row in (*preview.new, *preview.same)} == {(mark, mark)}
    assert mark in preview.wrong[0]
    assert not preview.tree.css("main b")


# ---- what a spreadsheet has damaged

DAMAGES: dict[str, tuple[object, str]] = {
    "rounded, Indonesian": ("1,23457E+11", "NIM 1,23457E+11 sudah dibulatkan oleh Excel"),
    "rounded, English": ("1.23E+11", "NIM 1.23E+11 sudah dibulatkan oleh Excel"),
    "rounded, small letter": ("2e+15", "NIM 2e+15 sudah dibulatkan oleh Excel"),
    "a number of 16 digits": (1234567890123456, "NIM ini berupa angka lebih dari 15 digit"),
    "a number of 20 digits": (12345678901234567890.0, "NIM ini berupa angka lebih dari 15 digit"),
    "a fraction": (12.5, "NIM 12,5 bukan bilangan bulat positif"),
    "a negative number": (-7, "NIM -7 bukan bilangan bulat positif"),
    "a date": (dt.date(2020, 1, 2), "NIM terbaca sebagai tanggal atau waktu (2020-01-02)"),
    "a formula without a result": ("=A1", "NIM berisi rumus tanpa hasil"),
    "an error": ("#N/A", "NIM berisi galat Excel (#N/A)"),
    "a boolean": (True, "NIM berisi TRUE, bukan teks"),
    "dots": ("..", "NIM tidak boleh hanya “.” atau “..”"),
    "256 characters": ("9" * 256, "NIM lebih dari 255 karakter"),
    "a header": ("NIM", "Baris ini tampaknya judul kolom, bukan data"),
}


@pytest.mark.parametrize(("cell", "words"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_nim_is_refused_with_the_cure(importer: Importer, cell: object, words: str) -> None:
    """It is never guessed: the row is named, the others can be saved."""
    damaged = (cell, "Nama", "Alamat")
    preview = importer.upload(by_openpyxl(HEADER, ("1", "Ani", "Solo"), damaged), "a.xlsx")
    (wrong,) = preview.wrong
    assert wrong.startswith(f"Baris 3: {words}")
    assert len(re.findall(r"[.;] [A-Z]", wrong)) >= 1, "the cure"
    importer.save(preview)
    assert importer.records() == [("1", "Ani", "Solo")]


@pytest.mark.parametrize("cell", ["1,23457E+11", "1.23E+11", "'1,23457E+11"])
@pytest.mark.parametrize("make", [csv, lambda *rows: csv(*rows, separator="\t")], ids=["semicolons", "tabs"])
def test_a_rounded_nim_in_a_text_file(importer: Importer, make: Callable[..., bytes], cell: str) -> None:
    """Excel writes the rounded number into a CSV file."""
    preview = importer.upload(make(HEADER, (cell, "Ani", "Solo")))
    assert preview.wrong[0].startswith(f"Baris 2: NIM {cell.removeprefix(APOSTROPHE)} sudah dibulatkan oleh Excel")
    assert preview.buttons == []


def test_numbers_become_digits(importer: Importer) -> None:
    """Without a point, also where they are text in the other columns; 15 digits are still whole."""
    data = by_openpyxl(HEADER, (123456789012345, 7.0, 12), (2.0, "Budi", 5), formats={"A3": "000000"})
    importer.save(importer.upload(data, "a.xlsx"))
    assert importer.records() == [("000002", "Budi", "5"), ("123456789012345", "7", "12")]


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (
            dt.datetime(2020, 1, 2, 3, 4),  # noqa: DTZ001 - a spreadsheet knows no zone
            "Alamat terbaca sebagai tanggal atau waktu (2020-01-02T03:04:00)",
        ),
        ("#DIV/0!", "Alamat berisi galat Excel (#DIV/0!)"),
        ("=A1", "Alamat berisi rumus tanpa hasil"),
        (10.5, "Alamat terbaca sebagai angka (10,5)"),
        (False, "Alamat berisi FALSE, bukan teks"),
    ],
)
def test_other_cells_that_are_no_text(importer: Importer, cell: object, words: str) -> None:
    """Dates, errors, formulas and fractions in the other columns have their messages too."""
    preview = importer.upload(by_openpyxl(HEADER, ("1", "Ani", cell)), "a.xlsx")
    assert preview.wrong[0].startswith(f"Baris 2: {words}")


def test_what_was_cleaned_is_shown(importer: Importer) -> None:
    """An apostrophe before a NIM and spaces around it are taken off, and the preview says at which rows."""
    preview = importer.upload(
        csv(HEADER, ("'001", "Ani", "Solo"), (" 002\u00a0", "B", "S"), ("’ 003", "C", "S"), ("004", "D", "S"))
    )
    spaces, apostrophe = "Spasi di awal atau akhir NIM dihapus.", "Tanda petik di awal NIM dihapus."
    assert preview.noticed == [
        f"Baris 2: {apostrophe} 001 · Ani · Solo",
        f"Baris 3: {spaces} 002 · B · S",
        f"Baris 4: {apostrophe} 003 · C · S",
    ]
    importer.save(preview)
    assert [nim for nim, _, _ in importer.records()] == ["001", "002", "003", "004"]


def test_lost_zeros_are_doubted(importer: Importer) -> None:
    """A NIM shorter than all others by its leading zeros gets a warning, and can still be saved."""
    preview = importer.upload(csv(HEADER, ("0012", "A", "S"), ("0013", "B", "S"), ("14", "C", "S"), ("X", "D", "S")))
    (doubted,) = preview.noticed
    assert doubted.startswith("Baris 4: NIM 14 lebih pendek dari NIM lainnya (4 digit).")
    importer.save(preview)
    assert len(importer.records()) == 4


def test_a_nim_twice_names_both_rows(importer: Importer) -> None:
    """Which of them is right only a person can tell: neither is saved, also where cleaning made them the same."""
    preview = importer.upload(
        csv(HEADER, ("1", "Ani", "Solo"), ("2", "Budi", "Solo"), ("'1", "Ana", "Solo"), ("2 ", "B", "S"))
    )
    assert [message.split(" Sisakan")[0] for message in preview.wrong] == [
        "Baris 2: NIM 1 muncul lagi di baris 4 berkas ini.",
        "Baris 3: NIM 2 muncul lagi di baris 5 berkas ini.",
        "Baris 4: NIM 1 sudah ada di baris 2 berkas ini.",
        "Baris 5: NIM 2 sudah ada di baris 3 berkas ini.",
    ]
    assert preview.buttons == []


def test_a_workbook_of_several_sheets_says_which_is_read(importer: Importer, tmp_path: Path) -> None:
    """Only one sheet is read, and the preview names the others."""
    import openpyxl  # type: ignore[import-untyped]  # noqa: PLC0415 - here alone

    workbook = openpyxl.Workbook()
    workbook.active.title = "Petunjuk"
    workbook.active.append(["Isi lembar kedua"])
    for row in (HEADER, ("1", "Ani", "Solo")):
        (workbook["Data"] if "Data" in workbook else workbook.create_sheet("Data")).append(row)
    workbook.save(tmp_path / "a.xlsx")
    preview = importer.upload((tmp_path / "a.xlsx").read_bytes(), "a.xlsx")
    assert "Hanya lembar “Data” yang dibaca. Lembar lain tidak dibaca: Petunjuk." in preview.html
    assert [row.nim for row in preview.new] == ["1"]


# ---- changed between preview and confirmation

MEANWHILE: dict[str, tuple[str, str, dict[str, int]]] = {
    "changed": ("Perbarui", "UPDATE mahasiswa SET nama = 'Orang lain' WHERE nim = '2'", {"Baru": 1, "Berubah": 1}),
    "added": ("Lewati", "INSERT INTO mahasiswa VALUES ('4', 'Orang lain', 'X')", {"Baru": 0, "Berubah": 2}),
    "removed": ("Perbarui", "DELETE FROM mahasiswa WHERE nim = '2'", {"Baru": 2, "Berubah": 0}),
}


@pytest.mark.parametrize(("button", "statement", "counts"), MEANWHILE.values(), ids=MEANWHILE)
def test_what_someone_did_meanwhile_is_not_overwritten(
    importer: Importer, other: Database, button: str, statement: str, counts: dict[str, int]
) -> None:
    """Nothing is written; the preview comes again, against what the list holds now, and can be confirmed then."""
    other.fill(KEPT)
    rows = csv(HEADER, ("2", "Budi S.", "Bantul"), ("4", "Dewi", "Sleman"))
    preview = importer.upload(rows)
    other.run(statement)
    before = importer.records()
    again = importer.shown(importer.press(preview, button), 409)
    assert again.alert == CHANGED
    assert importer.records() == before
    assert {name: again.counts[name] for name in counts} == counts
    assert again.counts["Perlu diperbaiki"] == 0
    shown = {row.nim: row.after for row in (*again.new, *again.changed)}
    assert shown == {"2": ("Budi S.", "Bantul"), "4": ("Dewi", "Sleman")}
    by_nim = {nim: (nama, alamat) for nim, nama, alamat in before}
    assert all(row.before == by_nim[row.nim] for row in again.changed)
    importer.save(again, "Perbarui" if again.changed else "Simpan")
    assert importer.records() == [KEPT[0], ("2", "Budi S.", "Bantul"), KEPT[2], ("4", "Dewi", "Sleman")]


def test_what_is_skipped_may_change_meanwhile(importer: Importer, other: Database) -> None:
    """A record that the choice leaves alone is no reason to ask again."""
    other.fill(KEPT)
    preview = importer.upload(MIXED)
    other.run("UPDATE mahasiswa SET nama = 'Orang lain' WHERE nim = '2'")
    importer.save(preview, "Lewati")
    assert importer.records() == [KEPT[0], ("2", "Orang lain", "Bantul"), KEPT[2], ("4", "Dewi", "Sleman")]


def test_a_blank_cell_does_not_undo_what_someone_did_meanwhile(importer: Importer, other: Database) -> None:
    """What the file left blank is still blank when the preview comes again: the record's newest text stays."""
    other.fill(KEPT)
    preview = importer.upload(csv(HEADER, ("2", "Budi S.", "")))
    other.run("UPDATE mahasiswa SET alamat = 'Alamat baru' WHERE nim = '2'")
    again = importer.shown(importer.press(preview, "Perbarui"), 409)
    assert [(row.before, row.after) for row in again.changed] == [(("Budi", "Alamat baru"), ("Budi S.", "Alamat baru"))]
    importer.save(again, "Perbarui")
    assert importer.records()[1] == ("2", "Budi S.", "Alamat baru")


def test_the_second_preview_counts_rows_as_the_file_does(importer: Importer, other: Database) -> None:
    """A row keeps the number it has in the file, by which a person finds it there."""
    other.fill(KEPT)
    preview = importer.upload(csv(("Daftar",), HEADER, ("1", "Ani", "Solo"), ("4", "Dewi", "Sleman"), ("2", "B", "C")))
    numbers = {row.nim: row.number for row in (*preview.new, *preview.changed)}
    assert numbers == {"4": 4, "2": 5}
    other.run("DELETE FROM mahasiswa WHERE nim = '2'")
    again = importer.shown(importer.press(preview, "Perbarui"), 409)
    assert {row.nim: row.number for row in (*again.new, *again.changed)} == numbers


@pytest.mark.parametrize("button", ["Lewati", "Perbarui"])
def test_a_confirmation_sent_twice_is_no_conflict(importer: Importer, other: Database, button: str) -> None:
    """A second click finds all as it should be: nobody else did anything, and all of it is saved."""
    other.fill(KEPT)
    preview = importer.upload(MIXED)
    importer.save(preview, button)
    records = importer.records()
    importer.save(preview, button)
    assert importer.records() == records


def test_all_or_nothing(importer: Importer, other: Database) -> None:
    """Where the database refuses one row, none is written, and the page says so."""
    other.fill(KEPT)
    other.run("CREATE TRIGGER no BEFORE INSERT ON mahasiswa WHEN NEW.nim = '8' BEGIN SELECT RAISE(ABORT, 'no'); END")
    try:
        preview = importer.upload(csv(HEADER, ("2", "X", "Y"), ("7", "A", "B"), ("8", "C", "D"), ("9", "E", "F")))
        words = importer.refused(importer.press(preview, "Perbarui"))
    finally:
        other.run("DROP TRIGGER no")
    assert words.startswith("Data ditolak oleh aturan basis data")
    assert "()" not in words
    assert importer.records() == KEPT


# ---- a confirmation that nobody was shown

Rows = list[list[object]]


def swapped(old: object, new: object) -> Callable[[Rows], object]:
    """Return what puts one cell in another's place, wherever it stands."""
    return lambda rows: [[new if cell == old and type(cell) is type(old) else cell for cell in row] for row in rows]


TAMPERED: dict[str, Callable[[Rows], object]] = {
    "no list": lambda rows: {"rows": rows},
    "a list less": lambda rows: rows[0],
    "a list more": lambda rows: [rows],
    "a cell less": lambda rows: [rows[0][:-1]],
    "a cell more": lambda rows: [[*rows[0], None]],
    "a null": swapped("Ani", None),
    "a number": swapped("1", 1),
    "a boolean": swapped("Solo", new=True),
    "a list in a list": swapped("1", ["1"]),
    "an empty nim": swapped("1", ""),
    "a dot": swapped("1", "."),
    "dots": swapped("1", ".."),
    "a long nim": swapped("1", "9" * 256),
    "a NUL": swapped("Ani", "A\0ni"),
    "half a surrogate pair": swapped("Ani", "\ud83d"),
    "a nim twice": lambda rows: rows * 2,
    "a version that is none": swapped(None, "x"),
    "a version of another kind": swapped(None, 5),
}


def genuine(importer: Importer) -> Rows:
    """Return the one row that a preview would send back, as JSON has it."""
    rows: Rows = json.loads(importer.upload(csv(HEADER, ("1", "Ani", "Solo"))).data)
    (row,) = rows
    assert {"1", "Ani", "Solo", None} <= set(row)
    return rows


@pytest.mark.parametrize("tamper", TAMPERED.values(), ids=TAMPERED)
def test_a_tampered_confirmation_is_refused(importer: Importer, tamper: Callable[[Rows], object]) -> None:
    """Nothing of it is written, and the page leads back to the form; untampered it would have been written."""
    rows = genuine(importer)
    sent = json.dumps(tamper(rows))
    assert importer.refused(importer.site.post(SAVE, {"data": sent, "ada": "perbarui"})) == DAMAGED
    assert importer.records() == []
    assert importer.site.post(SAVE, {"data": json.dumps(rows), "ada": "perbarui"}).status_code == 302
    assert importer.records() == [("1", "Ani", "Solo")]


@pytest.mark.parametrize("data", ["", "[[", "NaN", "null", "[" * 100_000, "\ufeff[]"], ids=lambda data: repr(data[:8]))
def test_a_confirmation_that_is_no_json_is_refused(importer: Importer, data: str) -> None:
    """Likewise."""
    assert importer.refused(importer.site.post(SAVE, {"data": data})) == DAMAGED


@pytest.mark.parametrize(
    "form",
    ["", "ada=perbarui", "data=DATA&data=DATA", "data=DATAX"],
    ids=["an empty body", "no data", "data twice", "no UTF-8"],
)
def test_a_confirmation_that_is_damaged_on_its_way(importer: Importer, form: str) -> None:
    """Its text is not repaired: what would be written is not what was shown."""
    data = quote(json.dumps(genuine(importer)))
    body = form.replace("DATAX", data.replace("Ani", "A%FF")).replace("DATA", data).encode()
    answer = importer.site.send("POST", SAVE, body, content_type="application/x-www-form-urlencoded")
    assert importer.refused(answer) == DAMAGED
    assert importer.records() == []


def test_too_many_rows_to_confirm(importer: Importer) -> None:
    """More than a preview has."""
    rows = genuine(importer)
    many = [row for n in range(10_001) for row in swapped("1", str(n))(rows)]  # type: ignore[attr-defined]
    words = importer.refused(importer.site.post(SAVE, {"data": json.dumps(many, separators=(",", ":"))}))
    assert words.startswith("Data yang akan disimpan melebihi 10.000 baris.")
    assert importer.records() == []


def test_too_much_to_confirm(importer: Importer) -> None:
    """A body over 8 MiB is refused with a page that says how much it may be."""
    answer = importer.site.post(SAVE, {"data": json.dumps(swapped("Solo", "x" * (8 << 20))(genuine(importer)))})
    assert answer.status_code == 413
    words = Preview(answer.text, IMPORT).tree.css("main p")[0].text()
    assert "8 MB" in words
    assert importer.records() == []


def test_a_conflict_in_a_confirmation_of_almost_8_mib(importer: Importer, other: Database) -> None:
    """Also where the second preview would not fit, the answer is a page that says so, and nothing is written."""
    rows = genuine(importer)
    other.fill(KEPT)
    data = json.dumps(swapped("Solo", "x" * ((8 << 20) - 200))(rows), separators=(",", ":"))
    words = importer.refused(importer.site.post(SAVE, {"data": data}))
    assert words.startswith("Data yang akan disimpan melebihi 8 MB.")
    assert importer.records() == KEPT


@pytest.mark.parametrize(
    ("target", "kind"), [(SAVE, "application/json"), (SAVE, "multipart/form-data"), (IMPORT, "application/json")]
)
def test_what_is_no_form(importer: Importer, target: str, kind: str) -> None:
    """JSON and the like are refused with a page."""
    answer = importer.site.send("POST", target, b'{"data": []}', content_type=kind)
    assert answer.status_code in {400, 415}
    assert "Kembali ke daftar" in answer.text or "Impor Data Mahasiswa" in answer.text


# ---- limits


def test_ten_thousand_rows_and_one_more(importer: Importer) -> None:
    """10,000 rows are taken, whole; 10,001 are refused with a page that says what to do."""
    rows = [(f"{n:05}", f"Nama {n}", f"Alamat {n}") for n in range(10_001)]
    preview = importer.upload(csv(HEADER, *rows[:-1]))
    assert preview.counts["Baru"] == 10_000
    assert preview.buttons[0].text == "Simpan 10.000 data"
    importer.save(preview)
    assert importer.records() == rows[:-1]
    for data, name in ((csv(HEADER, *rows), "a.csv"), (by_xlsxwriter(HEADER, *rows), "a.xlsx")):
        assert importer.refused(importer.send(data, name), 413).startswith("Berkas ini berisi lebih dari 10.000 baris.")


def test_sixteen_mebibytes_and_more(importer: Importer) -> None:
    """A file of 16 MiB is read; one byte more is refused with a page, and so is one that is far too large."""
    line = ("Ani", "Solo", "x" * 100_000)
    data = csv((*HEADER, "Lain"), *((f"{n:03}", *line) for n in range(167)))
    data += b"999;Budi;Solo;" + b"y" * ((16 << 20) - len(data) - 16) + b"\r\n"
    assert len(data) == 16 << 20
    assert importer.upload(data).counts["Baru"] == 168
    for more in (1, 60_000, 4 << 20):
        answer = importer.send(data + b"\n" * more, "a.csv")
        assert answer.status_code == 413
        assert "Ukuran berkas melebihi 16 MB" in answer.text


def test_a_preview_that_could_not_be_confirmed(importer: Importer) -> None:
    """A file whose rows would not fit into the confirmation is refused at once, not after the person has confirmed."""
    data = csv(HEADER, *((str(n), "é" * 500, "é" * 500) for n in range(2000)))
    words = importer.refused(importer.send(data, "a.csv"))
    assert words.startswith("Data yang akan disimpan melebihi 8 MB. Bagi berkasnya")


def test_the_largest_preview_can_be_confirmed(importer: Importer) -> None:
    """What was previewed fits through the confirmation, whatever it costs to encode."""
    count = next(count for count in range(900, 0, -10) if importer.send(heavy(count), "a.csv").status_code == 200)
    assert count >= 600
    importer.save(importer.upload(heavy(count)))
    assert len(importer.records()) == count


def heavy(count: int) -> bytes:
    """Return rows of letters that take six bytes each in JSON, and more in a form."""
    return csv(HEADER, *((f"{n:04}", "é" * 1000, "x") for n in range(count)))


def bomb(rows: int = 300_000) -> bytes:
    """Return a workbook that is small, and large when it is unpacked."""
    cell = b'<c t="inlineStr"><is><t>' + b"A" * 100 + b"</t></is></c>"
    row = b"<row>" + cell * 10 + b"</row>"
    return with_sheet(b"", (row * 1000 for _ in range(rows // 1000)))


def laughs() -> bytes:
    """Return a workbook whose one text is entities of entities."""
    entities = b"".join(b'<!ENTITY a%d "%s">' % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 12))
    cell = b'<c t="inlineStr"><is><t>&a11;</t></is></c>'
    return with_sheet(b'<!DOCTYPE worksheet [<!ENTITY a0 "ha">' + entities + b"]>", [b"<row>" + cell * 3 + b"</row>"])


def with_sheet(prologue: bytes, rows: Iterable[bytes]) -> bytes:
    """Return a workbook whose sheet is this XML."""
    file = BytesIO()
    namespace = b'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    with (
        zipfile.ZipFile(BytesIO(by_openpyxl(HEADER))) as source,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as target,
    ):
        for name in source.namelist():
            if name != "xl/worksheets/sheet1.xml":
                target.writestr(name, source.read(name))
        with target.open("xl/worksheets/sheet1.xml", "w") as part:
            part.write(b'<?xml version="1.0"?>' + prologue + b"<worksheet " + namespace + b"><sheetData>")
            part.writelines(rows)
            part.write(b"</sheetData></worksheet>")
    return file.getvalue()


def peak(service: Service) -> int:
    """Return the most memory that the service's own process has ever held, in bytes."""
    status = Path(f"/proc/{service.pid}/status").read_text("ascii")
    return int(status.split("VmHWM:")[1].split()[0]) << 10


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux limits a process's memory")
@pytest.mark.parametrize("make", [bomb, laughs])
def test_a_bomb_is_refused_and_the_service_goes_on(
    importer: Importer, service: Service, make: Callable[[], bytes]
) -> None:
    """In bounded time; the service's own memory does not grow with it, and it answers others all the while."""
    data = make()
    importer.upload(csv(HEADER, ("1", "A", "B")))
    before = peak(service)
    began = time.monotonic()
    words = Preview((answer := importer.send(data, "a.xlsx")).text, IMPORT).alert
    assert answer.status_code in {400, 413}
    assert words.startswith((TOO_HEAVY, NO_SHEET, "Berkas ini rusak", "Berkas ini kosong"))
    assert time.monotonic() - began < 25
    assert peak(service) - before < 64 << 20
    assert importer.records() == []


NO_SHEETS = {
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(200), NO_SHEET),
    "a zip": (b"PK\3\4" + bytes(100), NO_SHEET),
    "a web page": (b"<!doctype html><table><tr><td>NIM</td></tr></table>", "Isi berkas ini halaman web atau XML"),
    "half a workbook": (by_xlsxwriter(*ALL_FIVE)[:-900], NO_SHEET),
    "spaces": (b" \r\n \r\n", "Berkas ini kosong."),
    "an open quote": (b'NIM;Nama;Alamat\r\n1;"Ani;Solo\r\n2;Budi;Solo\r\n', 'Baris 2: tanda kutip (“"”) dibuka'),
    "an old Office file": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(2000), NO_SHEET),
}


@pytest.mark.parametrize(("data", "words"), NO_SHEETS.values(), ids=NO_SHEETS)
def test_what_is_no_spreadsheet(importer: Importer, data: bytes, words: str) -> None:
    """The page says what it is not, or where it is damaged."""
    assert importer.refused(importer.send(data, "daftar.xlsx")).startswith(words)


def test_an_empty_form(importer: Importer) -> None:
    """Neither a file nor text: the form again, with a word; an empty file is as good as none."""
    nothing = "Pilih berkas atau tempel data dari Excel, lalu lanjutkan ke pratinjau."
    assert importer.refused(importer.send()) == nothing
    assert importer.refused(importer.send(pasted=" \r\n\t ")) == nothing
    assert importer.refused(importer.send(b"", "kosong.xlsx")) == nothing
    assert importer.refused(importer.site.post(IMPORT, {})) == nothing


def test_a_header_and_nothing_below_it(importer: Importer) -> None:
    """A file without a record has nothing to save, and no button that would."""
    preview = importer.upload(csv(HEADER))
    assert set(preview.counts.values()) == {0}
    assert preview.buttons == []


# ---- the form and the template


def test_the_way_to_the_form(importer: Importer) -> None:
    """The list links to it; it has a file field, a text area and a template, and sends a file as browsers do."""
    (link,) = [link for link in importer.site.list().links if link.text == "Impor"]
    page = importer.site.page(link.target)
    assert link.target == IMPORT
    (form,) = page.forms
    assert (form.method, form.target, form.enctype, form.submit) == ("post", IMPORT, "multipart/form-data", "Pratinjau")
    assert [(field.name, field.type) for field in form.inputs] == [("berkas", "file")]
    (area,) = page.tree.css("textarea")
    assert area.attributes["name"] == "tempel"
    assert importer.site.send("POST", "/mahasiswa/impor/templat.xlsx").status_code == 405
    assert importer.site.get(SAVE).status_code == 405


def test_the_template_passes_its_own_import(importer: Importer) -> None:
    """As it is there is nothing to save; filled in by another program, its rows come in."""
    import openpyxl  # noqa: PLC0415 - here alone

    (link,) = [link for link in importer.site.page(IMPORT).links if link.text == "Unduh templat"]
    answer = importer.site.get(link.target)
    assert answer.headers["content-type"] == SHEET
    assert answer.headers["content-disposition"] == 'attachment; filename="templat-mahasiswa.xlsx"'
    preview = importer.upload(answer.content, "templat.xlsx")
    assert (set(preview.counts.values()), preview.buttons) == ({0}, [])
    workbook = openpyxl.load_workbook(BytesIO(answer.content))
    assert [cell.value for cell in workbook.active[1]] == list(HEADER)
    assert {workbook.active.column_dimensions[column].width > 15 for column in "ABC"} == {True}
    for column, text in enumerate(("00012", "Ani", "Solo"), 1):
        workbook.active.cell(2, column, text)
    file = BytesIO()
    workbook.save(file)
    importer.save(importer.upload(file.getvalue(), "templat.xlsx"))
    assert importer.records() == [("00012", "Ani", "Solo")]


def test_below_a_path(tmp_path: Path) -> None:
    """Where a proxy serves the application below a path, the whole round stays there."""
    with Service(tmp_path / "a.db", {"BASE_URL": "http://localhost:3000/ti"}) as service, service.site() as site:
        importer = Importer(site)
        assert {link.target[:4] for link in site.page("/ti/mahasiswa/impor").links} == {"/ti/"}
        importer.save(importer.upload(csv(HEADER, ("1", "Ani", "Solo"))))
        assert importer.records() == [("1", "Ani", "Solo")]


# ---- together

NIM = st.text("0123456789/A", min_size=3, max_size=5).filter(lambda nim: nim[0] in "0123456789A")
TEXT = st.text("aé;,\"'<\t =-", max_size=6).map(lambda text: f"N{text}N")
ROWS = st.dictionaries(NIM, st.tuples(TEXT, TEXT), max_size=12)


@given(ROWS, ROWS, st.booleans())
@settings(max_examples=60, deadline=None)
def test_what_is_written_is_what_a_model_writes(
    site: Site, other: Database, stored: dict[str, tuple[str, str]], file: dict[str, tuple[str, str]], update: object
) -> None:
    """Whatever is stored and whatever the file says, by either choice; the counts are the model's too."""
    importer = Importer(site)
    other.fill([(nim, *texts) for nim, texts in stored.items()])
    preview = importer.upload(quoted([HEADER, *((nim, *texts) for nim, texts in file.items())], ";").encode())
    new = file.keys() - stored.keys()
    changed = {nim for nim in file.keys() & stored.keys() if file[nim] != stored[nim]}
    assert (preview.counts["Baru"], preview.counts["Berubah"]) == (len(new), len(changed))
    assert preview.counts["Tidak berubah"] == len(file) - len(new) - len(changed)
    if preview.buttons:
        answer = site.post(SAVE, {"data": preview.data, "ada": "perbarui" if update else "lewati"})
        assert answer.status_code == 302
    assert bool(preview.buttons) == bool(new or changed)
    expected = {**file, **stored, **(file if update else {})}
    assert importer.records() == sorted((nim, *texts) for nim, texts in expected.items())
