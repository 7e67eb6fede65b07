"""The preview of an import: what it shows and counts, and how it reports what a spreadsheet has damaged."""

import datetime as dt
import re
from collections.abc import Callable
from pathlib import Path

import openpyxl  # type: ignore[import-untyped]
import pytest
from spreadsheets import (
    HEADER,
    KEPT,
    MIXED,
    SAVE,
    Database,
    Importer,
    Record,
    another_program,
    by_openpyxl,
    csv,
    own_database,
    own_importer,
    own_service,
    own_site,
)

# The fixtures, which pytest finds by these names.
__all__ = ["another_program", "own_database", "own_importer", "own_service", "own_site"]

APOSTROPHE = "'"


def test_a_preview_shows_what_an_import_would_write(importer: Importer, other: Database) -> None:
    """It counts the rows, shows old and new texts side by side, and names each invalid row with the reason."""
    other.fill(KEPT)
    preview = importer.upload(MIXED)
    assert preview.counts == {"Baru": 1, "Berubah": 1, "Tidak berubah": 1, "Perlu diperbaiki": 2}
    assert [(row.number, row.nim, row.before, row.after) for row in preview.changed] == [
        (3, "2", ("Budi", "Bantul"), ("Budi S.", "Bantul"))
    ]
    assert [(row.number, row.nim, row.after) for row in preview.new] == [(4, "4", ("Dewi", "Sleman"))]
    assert [(row.number, row.nim, row.after) for row in preview.same] == [(2, "1", ("Ani", "Solo"))]
    assert preview.wrong == [
        "Baris 5: NIM kosong atau berisi kesalahan rumus (misalnya #N/A). Isi NIM-nya. Eko · Solo",
        "Baris 6: Nama kosong. Mahasiswa baru harus punya nama. 5 · S",
    ]
    (removed,), (inserted,) = preview.tree.css(".compare del"), preview.tree.css(".compare ins")
    assert (removed.text(), inserted.text()) == ("Budi", "Budi S.")
    assert [button.text for button in preview.buttons] == ["Lewati: simpan 1 data baru", "Perbarui: simpan 2 data"]
    assert "NIM yang sudah ada: Lewati" in preview.tree.css(".hint")[0].text()


def test_a_preview_writes_nothing(importer: Importer, other: Database, database: Path) -> None:
    """The list and the files of the database do not change by a byte."""
    other.fill(KEPT)
    importer.upload(MIXED)  # the first use may still write
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
def test_an_import_skips_or_updates_existing_records(
    importer: Importer, other: Database, button: str, records: list[Record]
) -> None:
    """The person chooses. Records that are not in the file stay."""
    other.fill(KEPT)
    importer.save(importer.upload(MIXED), button)
    assert importer.records() == records


def test_an_import_skips_existing_records_by_default(importer: Importer, other: Database) -> None:
    """The first button skips, and so does a confirmation without a choice or with an unknown one."""
    other.fill(KEPT)
    preview = importer.upload(MIXED)
    assert [(button.name, button.value) for button in preview.buttons] == [("ada", "lewati"), ("ada", "perbarui")]
    assert importer.site.post(SAVE, {"data": preview.data}).status_code == 302
    assert importer.records() == [*KEPT, ("4", "Dewi", "Sleman")]
    assert importer.site.post(SAVE, {"data": importer.upload(MIXED).data, "ada": "hapus"}).status_code == 302
    assert importer.records()[1] == KEPT[1]


def test_a_preview_of_only_new_or_only_changed_records_has_one_button(importer: Importer, other: Database) -> None:
    """The button says how many records it saves."""
    preview = importer.upload(csv(HEADER, *((str(n), "N", "A") for n in range(1200))))
    assert [button.text for button in preview.buttons] == ["Simpan 1.200 data"]
    other.fill(KEPT)
    preview = importer.upload(csv(HEADER, ("1", "Ani", "Solo"), ("2", "Budi S.", "Bantul")))
    assert [button.text for button in preview.buttons] == ["Perbarui: simpan 1 data"]


def test_a_blank_cell_of_an_import_never_erases_a_text(importer: Importer, other: Database) -> None:
    """The record also keeps its text if the file has no such column."""
    other.fill(KEPT)
    preview = importer.upload(csv(HEADER, ("1", "", "Solo Baru"), ("2", "Budi S.", "  "), ("3", "", "")))
    assert preview.counts == {"Baru": 0, "Berubah": 2, "Tidak berubah": 1, "Perlu diperbaiki": 0}
    importer.save(preview, "Perbarui")
    assert importer.records() == [("1", "Ani", "Solo Baru"), ("2", "Budi S.", "Bantul"), KEPT[2]]
    importer.save(importer.upload(csv(("NIM", "Alamat"), ("3", "Jogja"))), "Perbarui")
    assert importer.records()[2] == ("3", "Citra", "Jogja")


def test_an_import_skips_blank_rows(importer: Importer) -> None:
    """They are not counted, and the rows after them keep their numbers."""
    preview = importer.upload(
        csv(HEADER, ("", "", ""), ("1", "A", "B"), (" ", "", "\t"), ("2", "C", "D"), ("", "", ""))
    )
    assert [(row.number, row.nim) for row in preview.new] == [(3, "1"), (5, "2")]
    assert preview.wrong == []


def test_markup_in_cells_is_shown_as_text_by_a_preview(importer: Importer, other: Database) -> None:
    """Each part of the preview escapes it."""
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
    "an error": ("#N/A", "NIM berisi kesalahan rumus (#N/A)"),
    "a boolean": (True, "NIM berisi TRUE, bukan teks"),
    "dots": ("..", "NIM tidak boleh hanya “.” atau “..”"),
    "256 characters": ("9" * 256, "NIM lebih dari 255 karakter"),
    "a header": ("NIM", "Tampaknya judul kolom, bukan data"),
}


@pytest.mark.parametrize(("cell", "words"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_nim_is_refused_with_advice(importer: Importer, cell: object, words: str) -> None:
    """The program does not guess. It names the row, and the other rows can be saved."""
    damaged = (cell, "Nama", "Alamat")
    preview = importer.upload(by_openpyxl(HEADER, ("1", "Ani", "Solo"), damaged), "a.xlsx")
    (wrong,) = preview.wrong
    assert wrong.startswith(f"Baris 3: {words}")
    assert len(re.findall(r"[.;] [A-Z]", wrong)) >= 1, "the advice"
    importer.save(preview)
    assert importer.records() == [("1", "Ani", "Solo")]


@pytest.mark.parametrize("cell", ["1,23457E+11", "1.23E+11", "'1,23457E+11"])
@pytest.mark.parametrize("make", [csv, lambda *rows: csv(*rows, separator="\t")], ids=["semicolons", "tabs"])
def test_a_rounded_nim_in_a_text_file_is_refused(importer: Importer, make: Callable[..., bytes], cell: str) -> None:
    """Excel writes the rounded number into a CSV file."""
    preview = importer.upload(make(HEADER, (cell, "Ani", "Solo")))
    assert preview.wrong[0].startswith(f"Baris 2: NIM {cell.removeprefix(APOSTROPHE)} sudah dibulatkan oleh Excel")
    assert preview.buttons == []


def test_an_import_turns_numbers_into_digits(importer: Importer) -> None:
    """A number in the column Nama or Alamat becomes digits too. Excel keeps 15 digits exactly."""
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
        ("#DIV/0!", "Alamat berisi kesalahan rumus (#DIV/0!)"),
        ("=A1", "Alamat berisi rumus tanpa hasil"),
        (10.5, "Alamat terbaca sebagai angka (10,5)"),
        (False, "Alamat berisi FALSE, bukan teks"),
    ],
)
def test_a_nama_or_alamat_that_is_not_text_is_refused(importer: Importer, cell: object, words: str) -> None:
    """The message says what the cell is instead."""
    preview = importer.upload(by_openpyxl(HEADER, ("1", "Ani", cell)), "a.xlsx")
    assert preview.wrong[0].startswith(f"Baris 2: {words}")


def test_a_preview_shows_what_was_removed_from_a_nim(importer: Importer) -> None:
    """An apostrophe before a NIM and spaces around it are removed."""
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


def test_a_nim_that_may_have_lost_zeros_gets_a_warning(importer: Importer) -> None:
    """It is shorter than most others. It can still be saved."""
    preview = importer.upload(csv(HEADER, ("0012", "A", "S"), ("0013", "B", "S"), ("14", "C", "S"), ("X", "D", "S")))
    (doubted,) = preview.noticed
    assert doubted.startswith("Baris 4: NIM 14 lebih pendek dari NIM lainnya (4 digit).")
    importer.save(preview)
    assert len(importer.records()) == 4


def test_a_repeated_nim_is_refused_in_both_rows(importer: Importer) -> None:
    """Only a person can tell which row is right. Cleaning may be what made the two NIMs equal."""
    preview = importer.upload(
        csv(HEADER, ("1", "Ani", "Solo"), ("2", "Budi", "Solo"), ("'1", "Ana", "Solo"), ("2 ", "B", "S"))
    )
    assert [message.split(" salah satunya.")[0] for message in preview.wrong] == [
        "Baris 2: NIM 1 ada di baris 2 dan 4. Hapus",
        "Baris 3: NIM 2 ada di baris 3 dan 5. Hapus",
        "Baris 4: NIM 1 ada di baris 2 dan 4. Hapus",
        "Baris 5: NIM 2 ada di baris 3 dan 5. Hapus",
    ]
    assert preview.buttons == []


def test_a_preview_names_the_sheet_that_was_read_and_the_others(importer: Importer, tmp_path: Path) -> None:
    workbook = openpyxl.Workbook()
    workbook.active.title = "Petunjuk"
    workbook.active.append(["Isi lembar kedua"])
    for row in (HEADER, ("1", "Ani", "Solo")):
        (workbook["Data"] if "Data" in workbook else workbook.create_sheet("Data")).append(row)
    workbook.save(tmp_path / "a.xlsx")
    preview = importer.upload((tmp_path / "a.xlsx").read_bytes(), "a.xlsx")
    assert "Yang dibaca hanya lembar (sheet) “Data”. Lembar lain tidak dibaca: Petunjuk." in preview.html
    assert [row.nim for row in preview.new] == ["1"]
