"""The preview of an import: its rows and counts, its repairs, and its messages about cells that a spreadsheet damaged."""

import datetime as dt
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import Service
from spreadsheets import (
    HEADER,
    IMPORT,
    KEPT,
    MIXED,
    SAVE,
    Database,
    Importer,
    Preview,
    by_openpyxl,
    by_openpyxl_sheets,
    csv,
    repaired,
    students,
)

from mahasiswa import wording


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
    assert [button.text for button in preview.buttons] == [
        "Simpan 1 mahasiswa baru saja",
        "Simpan 1 mahasiswa baru dan perbarui 1 data lama",
    ]


def test_a_preview_writes_nothing(importer: Importer, other: Database, service: Service) -> None:
    """The list and the files of the database do not change by a byte."""
    other.fill(KEPT)
    importer.upload(MIXED)  # the first use may still write
    assert isinstance(service.database, Path)
    files = [service.database, service.database.with_name("mahasiswa.db-wal")]
    before = [importer.site.get("/").content, *(file.read_bytes() for file in files)]
    assert importer.upload(MIXED).data
    assert importer.upload(by_openpyxl(HEADER, (9, "Baru", "Solo")), "a.xlsx").data
    assert importer.paste("2301\tX\tY").data
    assert [importer.site.get("/").content, *(file.read_bytes() for file in files)] == before


@pytest.mark.parametrize("ada", [{}, {"ada": "hapus"}, {"ada": "lewati"}, {"ada": "perbarui"}], ids=str)
def test_an_import_updates_existing_records_only_if_it_is_told_to(
    importer: Importer, other: Database, ada: dict[str, str]
) -> None:
    """The first button skips them, and so does a confirmation without a choice. Records that are not in the file stay."""
    other.fill(KEPT)
    preview = importer.upload(MIXED)
    assert [(button.name, button.value) for button in preview.buttons] == [("ada", "lewati"), ("ada", "perbarui")]
    assert importer.site.post(SAVE, {"data": preview.data, **ada}).status_code == 302
    second = ("2", "Budi S.", "Bantul") if "perbarui" in ada.values() else KEPT[1]
    assert importer.records() == [KEPT[0], second, KEPT[2], ("4", "Dewi", "Sleman")]


def test_a_preview_of_only_new_or_only_changed_records_has_one_button(importer: Importer, other: Database) -> None:
    """The button says how many records it saves."""
    preview = importer.upload(csv(HEADER, *((str(n), "N", "A") for n in range(1200))))
    assert [button.text for button in preview.buttons] == ["Simpan 1.200 mahasiswa baru"]
    other.fill(KEPT)
    preview = importer.upload(csv(HEADER, ("1", "Ani", "Solo"), ("2", "Budi S.", "Bantul")))
    assert [button.text for button in preview.buttons] == ["Perbarui 1 data lama"]


def test_a_blank_cell_of_an_import_never_erases_a_text(importer: Importer, other: Database) -> None:
    """The record also keeps its text if the file has no such column."""
    other.fill(KEPT)
    preview = importer.upload(csv(HEADER, ("1", "", "Solo Baru"), ("2", "Budi S.", "  "), ("3", "", "")))
    assert preview.counts == {"Berubah": 2, "Tidak berubah": 1}
    importer.save(preview, "perbarui")
    assert importer.records() == [("1", "Ani", "Solo Baru"), ("2", "Budi S.", "Bantul"), KEPT[2]]
    importer.save(importer.upload(csv(("NIM", "Alamat"), ("3", "Jogja"))), "perbarui")
    assert importer.records()[2] == ("3", "Citra", "Jogja")


def test_markup_in_cells_is_shown_as_text_by_a_preview(importer: Importer, other: Database) -> None:
    """Each part of the preview escapes it."""
    mark = "<b>&amp;\"'</b>"
    other.fill([("1", mark, mark), ("2", mark, mark)])
    table = csv(
        HEADER,
        ("1", mark, mark),
        ("2", mark, "x" + mark),
        ("3", mark, mark),
        (f"'5{mark}", mark, mark),
        ("", mark, ""),
        separator="\t",
    )
    preview = importer.upload(table)
    assert preview.counts == {
        "Baru": 2, "Berubah": 1, "Tidak berubah": 1, "Perlu diperbaiki": 1, "Perlu diperiksa": 1
    }  # fmt: skip
    assert preview.changed[0].after == (mark, "x" + mark)
    assert {row.after for row in (*preview.new, *preview.same)} == {(mark, mark)}
    assert mark in preview.wrong[0]
    assert not preview.tree.css("main b")


# ---- cells that a spreadsheet has damaged

ROUNDED = ("1,23457E+11", "1.23E+11", "1E+11", "2e+15", "2E-5")
DAMAGED_ROWS: list[tuple[tuple[object, object, object], str]] = [
    *(((nim, "A", "B"), f"NIM {nim} sudah dibulatkan oleh Excel") for nim in ROUNDED),
    ((" '1,2E+12 ", "A", "B"), "NIM 1,2E+12 sudah dibulatkan oleh Excel"),
    *(((nim, "A", "B"), "NIM ini berupa angka lebih dari 15 digit") for nim in (10**15, 12345678901234567890.0)),
    ((12.5, "A", "B"), "NIM 12,5 bukan bilangan bulat positif"),
    ((-7, "A", "B"), "NIM -7 bukan bilangan bulat positif"),
    ((dt.date(2020, 1, 2), "A", "B"), "NIM terbaca sebagai tanggal atau waktu (2020-01-02)"),
    (("=A1", "A", "B"), "NIM berisi rumus tanpa hasil"),
    (("#N/A", "A", "#REF!"), "NIM berisi kesalahan rumus (#N/A)"),
    ((True, "A", "B"), "NIM berisi TRUE, bukan teks"),
    (("'", "A", "B"), "NIM kosong"),
    ((".", "A", "B"), "NIM tidak boleh hanya “.” atau “..”"),
    (("..", "A", "B"), "NIM tidak boleh hanya “.” atau “..”"),
    (("9" * 256, "A", "B"), "NIM lebih dari 255 karakter"),
    (("####", "A", "B"), "NIM berisi “####”, bukan angka aslinya"),
    (("##", "A", "B"), "Lebarkan kolomnya"),
    (("5", "A", dt.datetime(2020, 1, 2, 3, 4)), "Alamat terbaca sebagai tanggal atau waktu (2020-01-02T03:04:00)"),  # noqa: DTZ001 - a spreadsheet knows no zone
    (("6", dt.time(3, 4), "B"), "Nama terbaca sebagai tanggal atau waktu (03:04:00)"),
    (("7", "#DIV/0!", "B"), "Nama berisi kesalahan rumus (#DIV/0!)"),
    (("8", "A", 10.5), "Alamat terbaca sebagai angka (10,5)"),
    (("10", "A", 1e20), "Alamat terbaca sebagai angka (1E+20)"),
    (("9", "A", False), "Alamat berisi FALSE, bukan teks"),
    (("11", "A", "=A1"), "Alamat berisi rumus tanpa hasil"),
    (("12", "A", "####"), "Alamat berisi “####”"),
    ((1.5, dt.date(2020, 1, 3), "#NULL!"), "NIM 1,5|2020-01-03|#NULL!"),
]
"""Cells, and what their row is refused with. All faults of a row are told at once."""


def test_a_damaged_cell_is_refused_with_advice(importer: Importer) -> None:
    """The program does not guess. It names the row, and the other rows can be saved."""
    rows = [cells for cells, _ in DAMAGED_ROWS]
    preview = importer.upload(by_openpyxl(HEADER, ("1", "Ani", "Solo"), *rows), "a.xlsx")
    wrong = [text for text in preview.tree.css("#perbaiki")[0].text().split("Baris ") if ": " in text]
    numbers = range(3, 3 + len(DAMAGED_ROWS))
    for number, (_, words) in zip(numbers, DAMAGED_ROWS, strict=True):
        (message,) = [
            text
            for text in wrong
            if all(word in text for word in words.split("|")) and str(number) in text.partition(":")[0]
        ]
        assert len(re.findall(r"[.;] [A-Z]", message)) >= 1, "the advice"
    importer.save(preview)
    assert importer.records() == [("1", "Ani", "Solo")]


def test_an_import_turns_numbers_into_digits(importer: Importer) -> None:
    """A number in the column Nama or Alamat becomes digits too. Excel keeps 15 digits exactly."""
    data = by_openpyxl(HEADER, (123456789012345, 7.0, 12), (2.0, "Budi", 5), formats={"A3": "000000"})
    importer.save(importer.upload(data, "a.xlsx"))
    assert importer.records() == [("000002", "Budi", "5"), ("123456789012345", "7", "12")]


def test_a_preview_shows_what_was_removed_from_a_nim(importer: Importer) -> None:
    """An apostrophe before a NIM and spaces around it are removed."""
    preview = importer.upload(
        csv(HEADER, ("'001", "Ani", "Solo"), (" 002\u00a0", "B", "S"), ("’ 003", "C", "S"), ("004", "D", "S"))
    )
    spaces, apostrophe = "Spasi di awal atau akhir NIM dihapus.", "Tanda petik di awal NIM dihapus."
    assert preview.noticed == [
        f"Baris 2, 4: {apostrophe} 001 · Ani · Solo 003 · C · S",
        f"Baris 3: {spaces} 002 · B · S",
    ]
    importer.save(preview)
    assert [nim for nim, _, _ in importer.records()] == ["001", "002", "003", "004"]


def test_a_preview_names_the_sheet_it_read_and_says_that_it_read_no_other(importer: Importer) -> None:
    data = by_openpyxl_sheets({"Petunjuk": [["Isi lembar kedua"]], "Data": [HEADER, ("1", "Ani", "Solo")]})
    preview = importer.upload(data, "a.xlsx")
    assert "Berkas: a.xlsx, lembar (sheet) “Data”, 1 baris. NIM = kolom A" in preview.what_was_read
    assert preview.what_was_read.endswith("Lembar lain tidak dibaca.")
    assert [row.nim for row in preview.new] == ["1"]


# ---- a preview that is repaired


def test_a_wrong_row_is_repaired_in_the_preview(importer: Importer) -> None:
    """The row's cells are inputs. After "Periksa lagi" the repaired row is among the new ones, and the rest is the same."""
    preview = importer.upload(csv(HEADER, ("1", "Ani", "Solo"), ("1,2E+11", "Budi", "Bantul"), ("", "Eko", "Sleman")))
    assert preview.counts == {"Baru": 1, "Perlu diperbaiki": 2}
    again = importer.check_again(preview, nim=["120000000001", ""])
    assert again.status.startswith("Perbaikan Anda sudah diperiksa. Belum ada yang disimpan.")
    assert [(row.number, row.nim, row.after) for row in again.new] == [
        (2, "1", ("Ani", "Solo")),
        (3, "120000000001", ("Budi", "Bantul")),
    ]
    assert again.wrong == ["Baris 4: NIM kosong atau berisi kesalahan rumus (misalnya #N/A). Isi NIM-nya. Eko · Sleman"]
    assert importer.records() == []
    importer.save(again)
    assert importer.records() == [("1", "Ani", "Solo"), ("120000000001", "Budi", "Bantul")]


def test_a_repair_that_was_not_previewed_is_not_saved(importer: Importer) -> None:
    """If a person types and presses the button that saves, a preview shows the result first."""
    preview = importer.upload(csv(HEADER, ("1", "Ani", "Solo"), ("", "Eko", "Sleman")))
    fields = [(name, value) for name, value in repaired(preview, nim="2") if name != "periksa"]
    again = importer.shown(importer.site.post(SAVE, [*fields, ("ada", "lewati")]))
    assert again.status.startswith("Perbaikan Anda sudah diperiksa. Belum ada yang disimpan.")
    assert (again.counts, importer.records()) == ({"Baru": 2}, [])
    importer.save(again)
    assert len(importer.records()) == 2


def test_inputs_that_were_not_changed_repair_nothing(importer: Importer) -> None:
    """A cell with an error stays one, although the input shows its text. Saving does not ask again."""
    preview = importer.upload(by_openpyxl(HEADER, ("1", "Ani", "Solo"), ("2", "Budi", "#N/A")), "a.xlsx")
    assert importer.check_again(preview).wrong == preview.wrong
    fields = [(name, value) for name, value in repaired(preview) if name != "periksa"]
    assert importer.site.post(SAVE, [*fields, ("ada", "lewati")]).status_code == 302
    assert importer.records() == [("1", "Ani", "Solo")]


def test_a_nim_without_a_digit_needs_a_tick(importer: Importer, other: Database) -> None:
    """It may be a word of a title. A NIM that is already in the list needs no tick."""
    other.fill([("TAMU", "Ani", "Solo")])
    preview = importer.upload(csv(HEADER, ("ABC", "Budi", "Solo"), ("TAMU", "Ani", "Bantul")))
    assert (preview.counts, len(preview.changed)) == ({"Berubah": 1, "Perlu diperbaiki": 1}, 1)
    assert preview.wrong == [
        "Baris 2: NIM ini tidak berisi angka. Centang jika memang benar, atau perbaiki. ABC · Budi · Solo"
    ]
    again = importer.check_again(preview, benar="2")
    assert [(row.nim, row.after) for row in again.new] == [("ABC", ("Budi", "Solo"))]
    importer.save(again, "lewati")
    assert importer.records() == [("ABC", "Budi", "Solo"), ("TAMU", "Ani", "Solo")]


def test_the_columns_are_changed_in_the_preview(importer: Importer) -> None:
    """The file need not be chosen again, and the preview says which column became which."""
    preview = importer.upload(csv(("No", "NIM", "Nama", "Nama Ayah", "Alamat"), ("1", "7", "Ani", "Budi", "Solo")))
    assert preview.what_was_read == "Berkas: daftar.csv, 1 baris. NIM = kolom B, Nama = kolom C, Alamat = kolom E."
    again = importer.check_again(preview, kolom=["1", "3", ""])
    assert again.what_was_read.endswith("NIM = kolom B, Nama = kolom D, Alamat = tidak ditemukan.")
    assert again.alert.startswith("Kolom Alamat tidak ditemukan.")
    again = importer.check_again(preview, kolom=["1", "3", "4"])
    importer.save(again)
    assert importer.records() == [("7", "Budi", "Solo")]


@pytest.mark.parametrize("make", [csv, by_openpyxl], ids=["csv", "xlsx"])
def test_columns_that_were_not_found_are_chosen_by_a_person(importer: Importer, make: Callable[..., bytes]) -> None:
    """The answer is the form with the reason, and three lists of columns."""
    answer = importer.send(make(("Kode", "Nama", "Alamat"), ("07", "Ani", "Solo")), "daftar")
    assert importer.refused(answer).startswith("Kolom NIM tidak ditemukan.")
    form = Preview(answer.text, SAVE)
    assert form.what_was_read.endswith("NIM = tidak ditemukan, Nama = kolom B, Alamat = kolom C.")
    preview = importer.check_again(form, kolom=["0", "1", "2"])
    assert [(row.nim, *row.after) for row in preview.new] == [("07", "Ani", "Solo")]
    words = importer.refused(importer.site.post(SAVE, repaired(form, kolom=["0", "0", "2"])))
    assert words == wording.COLUMN_CHOSEN_TWICE
    importer.save(preview)


def test_other_sheets_or_all_of_them_are_chosen_in_the_preview(importer: Importer, other: Database) -> None:
    """Every row has the name of its sheet, and is repaired and saved like one of a single sheet."""
    other.fill([("006", "Fajar", "Solo")])
    file = by_openpyxl_sheets(
        {
            "Kelas A": [HEADER, ("1", "Ani", "Solo"), ("2", "Budi", "Solo")],
            "Kelas B": [
                ("Kelas B",),
                HEADER,
                ("3", "Citra", "Solo"),
                ("", "Dewi", "Solo"),
                ("2", "Eko", "Solo"),
                ("6", "F", "S"),
            ],
        }
    )
    preview = importer.upload(file, "a.xlsx")
    ticks = [node.attributes for node in preview.tree.css("input[name=lembar]")]
    assert [(tick["type"], tick["value"], "checked" in tick) for tick in ticks] == [
        ("checkbox", "Kelas A", True), ("checkbox", "Kelas B", False)
    ]  # fmt: skip
    assert [row.nim for row in preview.new] == ["1", "2"]
    one = importer.check_again(preview, lembar="Kelas B")
    assert "lembar (sheet) “Kelas B”" in one.what_was_read
    every = importer.check_again(preview, lembar=["Kelas A", "Kelas B"])
    assert "lembar (sheet) “Kelas A”, “Kelas B”, 6 baris" in every.what_was_read
    cells = [[cell.text() for cell in row.css("td")][:2] for row in every.tree.css("#baru tbody tr")]
    assert cells == [["Kelas A, baris 2", "1"], ["Kelas B, baris 3", "3"], ["Kelas B, baris 6", "6"]]
    twice = "NIM 2 ada di Kelas A, baris 3 dan Kelas B, baris 5. Hapus salah satunya."
    assert every.wrong[0].startswith(f"Kelas A, baris 3; Kelas B, baris 5: {twice}")
    assert every.wrong[1].startswith("Kelas B, baris 4: NIM kosong")
    assert every.noticed[0].startswith("Kelas B, baris 6: NIM ini mirip")
    labels = [node.attributes["aria-label"] for node in every.tree.css(".repair input[name='nim[]']")]
    assert labels == ["NIM, Kelas A, baris 3", "NIM, Kelas B, baris 5", "NIM, Kelas B, baris 4"]
    numbers = [str(node.attributes["value"]) for node in every.tree.css("input[name='baris[]']")]
    (near,) = (str(node.attributes["value"]) for node in every.tree.css("input[type=checkbox][name='pakai[]']"))
    again = importer.check_again(every, lewati=numbers[1], nim=["2", "2", "4"], pakai=near)
    importer.save(again, "perbarui")
    records = [
        ("006", "F", "S"),
        ("1", "Ani", "Solo"),
        ("2", "Budi", "Solo"),
        ("3", "Citra", "Solo"),
        ("4", "Dewi", "Solo"),
    ]
    assert importer.records() == records


def test_a_large_file_is_asked_for_again_with_the_reason(importer: Importer) -> None:
    """Its other columns are not in the page, so a person chooses them together with the file."""
    data = csv(
        ("NIM", "Nama", "Alamat", "Ayah", "Lain"), *((str(n), "Ani", "Solo", "Budi", "x" * 500) for n in range(3000))
    )
    preview = importer.upload(data)
    assert "terlalu besar untuk disimpan di halaman ini" in preview.html
    answer = importer.site.client.post(
        IMPORT, files={"berkas": ("a.csv", data)}, data={"kolom[]": ["0", "3", "2"], "lembar": ""}
    )
    again = importer.shown(answer)
    assert again.what_was_read.endswith("NIM = kolom A, Nama = kolom D, Alamat = kolom C.")
    assert again.new[0].after == ("Budi", "Solo")
    importer.save(again)
    assert importer.records()[0] == ("0", "Budi", "Solo")


def test_messages_that_repeat_are_shown_once(importer: Importer) -> None:
    rows = [("" if n in {4, 9} or 12 <= n <= 30 else str(n), f"Nama {n}", "Solo") for n in range(2, 40)]
    (wrong,) = importer.upload(csv(HEADER, *rows)).wrong
    assert wrong.startswith("Baris 4, 9, 12–30: NIM kosong atau")


LOST_ZEROS = "NIM ini mirip dengan NIM yang sudah ada. Mungkin angka nol di depannya hilang."


@pytest.mark.parametrize(
    ("nim", "other_nim", "words"),
    [
        ("230000703", "0230000703", LOST_ZEROS),
        ("0230.000-703", "0230000703", "NIM ini mirip dengan NIM yang sudah ada."),
        ("O23OOOO7O3", "0230000703", LOST_ZEROS),
        ("a11.202O", "A11-2020", "NIM ini mirip dengan NIM yang sudah ada."),
    ],
)
def test_a_nim_that_is_nearly_a_stored_one_can_become_that_one(
    importer: Importer, other: Database, nim: str, other_nim: str, words: str
) -> None:
    """As it is, it would become a second record of the same student. It can still be saved as it is."""
    other.fill([("0230000703", "Ani", "Solo"), ("A11-2020", "Ani", "Solo")])
    preview = importer.upload(csv(HEADER, (nim, "Ani S.", "Solo"), ("99", "Citra", "Solo")))
    tick = f"Pakai NIM yang sudah ada ({other_nim}), Ani"
    assert preview.noticed == [f"Baris 2: {words} {nim} · Ani S. · Solo {tick}"]
    again = importer.check_again(preview, pakai="2")
    assert [(row.nim, row.before, row.after) for row in again.changed] == [
        (other_nim, ("Ani", "Solo"), ("Ani S.", "Solo"))
    ]
    assert (again.noticed, again.counts) == ([], {"Baru": 1, "Berubah": 1})
    importer.save(preview)
    assert len(importer.records()) == 4


def test_one_button_restores_all_lost_zeros(importer: Importer, other: Database) -> None:
    """Also those of rows that the page does not show. Nothing is saved before its preview."""
    stored = [(f"0{nim}", nama, alamat) for nim, nama, alamat in students(300)]
    other.fill(stored)
    rows = [(nim, f"{nama} S.", alamat) for nim, nama, alamat in students(300)]
    preview = importer.upload(csv(HEADER, *rows, ("9.99", "Eko", "Solo"), ("7", "Eko", "Solo")))
    (lost, short) = preview.noticed
    assert lost.startswith(f"Baris 2–301: {LOST_ZEROS} Pakai NIM yang sudah ada untuk semua baris ini {rows[0][0]} · ")
    assert lost.endswith("dan 200 baris lain")
    assert short.startswith("Baris 303: NIM ini lebih pendek dari NIM lainnya (10 digit).")
    again = importer.shown(importer.site.post(SAVE, {"data": preview.data, "pakai[]": "nol"}))
    assert again.status.startswith("Pilihan Anda sudah diperiksa. Belum ada yang disimpan.")
    assert again.counts == {"Baru": 2, "Berubah": 300, "Perlu diperiksa": 1}
    importer.save(again, "perbarui")
    assert importer.records()[:300] == [(nim, f"{nama} S.", alamat) for nim, nama, alamat in stored]


def test_a_nim_that_is_stored_as_it_is_gives_no_warning(importer: Importer, other: Database) -> None:
    """However short or strange. So the list's own workbook comes back without a row to look at or to repair."""
    records = [
        ("'x", "Ani", "S"),
        (" 7 ", "B", "S"),
        ("12", "C", "S"),
        ("77", "G", "S"),
        ("9.0", "D", "S"),
        ("TAMU", "E", "S"),
    ]
    other.fill([*records, *((f"{n:06}", "F", "S") for n in range(20))])
    workbook = importer.site.get("/mahasiswa/ekspor.xlsx").content
    assert importer.upload(workbook, "mahasiswa.xlsx").counts == {"Tidak berubah": 26}
    other.fill([])
    assert importer.upload(workbook, "mahasiswa.xlsx").counts == {
        "Baru": 24,
        "Perlu diperbaiki": 2,
        "Perlu diperiksa": 5,
    }


def test_long_lists_of_rows_end_with_the_number_of_the_others(importer: Importer) -> None:
    """A NIM that begins with 0 has not lost its zeros."""
    rows = [(f"0{n}" if n % 2 else f"{n:09}", "Ani", "Solo") for n in range(501)]
    assert importer.upload(csv(HEADER, *rows)).noticed == []
    rows = [(f"{n}" if n % 2 else f"{n:09}", "Ani", "Solo") for n in range(501)]
    (short,) = importer.upload(csv(HEADER, *rows)).noticed
    assert " 39, 41 dan 230 baris lain: NIM ini lebih pendek" in short
    assert short.endswith(" dan 240 baris lain")


def test_a_nim_that_is_nearly_one_of_another_row_is_pointed_out(importer: Importer) -> None:
    preview = importer.upload(csv(HEADER, ("0012", "Ani", "Solo"), ("7", "B", "C"), ("12", "Ani", "Solo")))
    assert any("NIM 12 mirip dengan 0012 di baris 2." in text for text in preview.noticed)


def test_records_that_a_file_lacks_are_counted_and_listed(importer: Importer, other: Database) -> None:
    """The records stay. They are shown when a person asks for them."""
    other.fill(KEPT)
    preview = importer.upload(csv(HEADER, ("2", "Budi", "Bantul"), ("4", "", "")))
    assert "Ada di daftar, tidak ada di berkas: 2 mahasiswa" in preview.headings
    shown = importer.check_again(preview, periksa="sisa")
    cells = [[cell.text() for cell in row.css("td")][1:] for row in shown.tree.css("#sisa tbody tr")]
    assert cells == [list(KEPT[0]), list(KEPT[2])]


def test_a_row_is_left_out_by_a_tick_or_by_emptying_its_inputs(importer: Importer) -> None:
    """This removes one of two rows with the same NIM, as the page says."""
    file = csv(HEADER, ("1", "Ani", "Solo"), ("1", "Ani S.", "Solo"))
    preview = importer.check_again(importer.upload(file), nim=["", "1"], nama=["", "Ani S."], alamat=["", "Solo"])
    assert preview.counts == {"Baru": 1}
    preview = importer.check_again(importer.upload(file), lewati="2")
    assert preview.counts == {"Baru": 1}
    importer.save(preview)
    assert importer.records() == [("1", "Ani S.", "Solo")]


def test_a_missing_column_is_named_once_and_can_be_filled(importer: Importer, other: Database) -> None:
    """New records get “-” as their address, and stored ones keep theirs."""
    other.fill([("1", "Ani", "Solo")])
    file = csv(("NIM", "Nama"), ("1", "Ani S."), *((str(n), "Budi") for n in range(100, 340)), ("999", ""))
    preview = importer.upload(file)
    assert preview.alert == "Kolom Alamat tidak ditemukan. Pilih kolomnya, atau isi semua dengan “-”."
    assert [text.strip() for text in preview.wrong] == [f"Baris 3–243: {preview.alert}"]
    assert "open" in preview.tree.css("details")[0].attributes
    assert preview.tree.css(".repair") == []
    filled = importer.shown(importer.site.post(SAVE, {"data": preview.data, "isi": "alamat"}))
    assert filled.wrong == ["Baris 243: Nama kosong. Mahasiswa baru harus punya nama. 999"]
    assert filled.counts == {"Baru": 240, "Berubah": 1, "Perlu diperbaiki": 1}
    importer.save(filled, "perbarui")
    assert importer.records()[:2] == [("1", "Ani S.", "Solo"), ("100", "Budi", "-")]
    assert importer.upload(csv(("NIM", "Alamat"), ("8", "Solo"))).alert == "Kolom Nama tidak ditemukan. Pilih kolomnya."


def test_a_line_break_in_a_cell_becomes_a_comma_with_a_notice(importer: Importer, other: Database) -> None:
    """If the cell equals the stored text, the record does not change and keeps its line break."""
    other.fill([("1", "Ani", "Jl. A\nRT 3"), ("2", "Budi", "Jl. B\r\nRT 4")])
    quoted = 'NIM;Nama;Alamat\n1;Ani;"Jl. A\r\nRT 3"\n2;Budi S.;"Jl. B\nRT 4"\n3;Citra;"Jl. C \n\n RT 5\n"\n'
    preview = importer.upload(quoted.encode())
    assert preview.counts == {"Baru": 1, "Berubah": 1, "Tidak berubah": 1, "Perlu diperiksa": 1}
    assert preview.new[0].after == ("Citra", "Jl. C, RT 5")
    assert preview.noticed == ["Baris 4: Baris baru di dalam sel diganti dengan koma. 3 · Citra · Jl. C, RT 5"]
    importer.save(preview, "perbarui")
    rows = other.run("SELECT nim, nama, alamat FROM mahasiswa ORDER BY nim")
    assert rows == [["1", "Ani", "Jl. A\nRT 3"], ["2", "Budi S.", "Jl. B\r\nRT 4"], ["3", "Citra", "Jl. C, RT 5"]]


def test_a_preview_shows_ten_new_rows_and_opens_the_others(importer: Importer) -> None:
    """A few hundred more are in the page. The rows of a long file come when a person asks for them, page by page."""
    few = importer.upload(csv(HEADER, *students(60)))
    assert len(few.tree.css("#baru > .scroll tbody tr")) == 10
    assert [row.nim for row in few.new] == [nim for nim, _, _ in students(60)]
    many = importer.upload(csv(HEADER, *students(3000)))
    assert len(many.new) == 10
    (button,) = many.tree.css("#baru button")
    assert button.text() == "Tampilkan 2.990 baris lainnya"
    shown = many.new
    while buttons := many.tree.css("#baru button"):
        many = importer.check_again(many, periksa=str(buttons[0].attributes["value"]))
        assert many.new[:10] == shown[:10]
        shown += many.new[10:]
    assert [row.nim for row in shown] == [nim for nim, _, _ in students(3000)]
    beyond = importer.check_again(many, periksa="baru-99999")
    assert (len(beyond.new), beyond.tree.css("#baru button")) == (10, [])


def test_the_empty_template_and_a_list_of_wrong_rows_only_are_told_apart(importer: Importer) -> None:
    template = importer.site.get("/mahasiswa/impor/templat.xlsx").content
    assert importer.upload(template, "templat.xlsx").alert == wording.TEMPLATE_EMPTY
    preview = importer.upload(csv(HEADER))
    assert (preview.alert, preview.counts, preview.buttons) == (wording.NO_ROWS, {}, [])
    assert importer.upload(csv(HEADER, ("", "Ani", "Solo"))).alert == wording.NO_ROW_TO_SAVE
