"""The preview of an import: its rows and counts, its repairs, and its messages about cells that a spreadsheet damaged."""

import datetime as dt
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import BytesIO
from pathlib import Path

import openpyxl  # type: ignore[import-untyped]
import pytest
from harness import Service
from spreadsheets import (
    HEADER,
    IMPORT,
    KEPT,
    MIXED,
    SAVE,
    SHEET,
    Database,
    Importer,
    Preview,
    as_records,
    by_openpyxl,
    chosen,
    csv,
    numbered,
    repaired,
    students,
    with_columns,
)
from visitor import texts_in

from mahasiswa import wording


def table(*rows: str, titles: str = "NIM|Nama|Alamat") -> bytes:
    """Return a CSV file. The cells of each row are separated by `|`."""
    return csv(*(row.split("|") for row in (titles, *rows)))


def test_a_preview_shows_what_an_import_would_write_and_writes_nothing(
    importer: Importer, other: Database, service: Service
) -> None:
    """It counts the rows, shows old and new texts side by side, and names each invalid row with the reason."""
    other.fill(KEPT)
    preview = importer.upload(MIXED)
    assert preview.counts == {"Baru": 1, "Berubah": 1, "Tidak berubah": 1, "Perlu diperbaiki": 2}
    assert preview.changed == [(3, "2", ("Budi S.", "Bantul"), ("Budi", "Bantul"))]
    assert preview.new == [(4, "4", ("Dewi", "Sleman"), None)]
    assert preview.same == [(2, "1", ("Ani", "Solo"), None)]
    assert preview.wrong == [
        "Baris 5: NIM kosong. Isi NIM-nya. Eko · Solo",
        "Baris 6: Nama kosong. Mahasiswa baru harus memiliki nama. 5 · S",
    ]
    assert preview.texts(".compare del, .compare ins") == ["Budi", "Budi S."]
    assert preview.buttons == [
        ("Simpan 1 mahasiswa baru saja, lewati 2", "ada", "lewati"),
        ("Simpan 1 mahasiswa baru dan perbarui 1 data lama, lewati 2", "ada", "perbarui"),
    ]
    assert isinstance(service.database, Path)  # the first use, above, may still write
    files = [service.database, service.database.with_name("mahasiswa.db-wal")]
    before = [importer.site.get("/").content, *(file.read_bytes() for file in files)]
    assert importer.upload(MIXED).data
    assert importer.upload(by_openpyxl(HEADER, (9, "Baru", "Solo")), "a.xlsx").data
    assert importer.paste("23001\tX Y\tJl. Y").data
    assert [importer.site.get("/").content, *(file.read_bytes() for file in files)] == before


def test_a_blank_cell_of_an_import_never_erases_a_text(importer: Importer, other: Database) -> None:
    """The record also keeps its text if the file has no such column. With changed records only, there is one button."""
    other.fill(KEPT)
    preview = importer.upload(table("1||Solo Baru", "2|Budi S.|  ", "3||"))
    assert preview.counts == {"Berubah": 2, "Tidak berubah": 1}
    assert [button.text for button in preview.buttons] == ["Perbarui 2 data lama"]
    importer.save(preview, "perbarui")
    assert importer.records == [("1", "Ani", "Solo Baru"), ("2", "Budi S.", "Bantul"), KEPT[2]]
    importer.save(importer.upload(table("3|Jogja", titles="NIM|Alamat")), "perbarui")
    assert importer.records[2] == ("3", "Citra", "Jogja")


def test_markup_in_cells_is_shown_as_text_by_a_preview(importer: Importer, other: Database) -> None:
    """In rows that change a record or none, that add one, and that are to be repaired or checked."""
    mark = "<b>'</b>"
    other.fill([("1", mark, mark), ("2", mark, mark)])
    texts = f"{mark}|{mark}"
    preview = importer.upload(
        table(f"1|{texts}", f"2|{mark}|x{mark}", f"3|{texts}", f"'5{mark}|{texts}", f"|{mark}|")
    )
    assert preview.changed[0].after == (mark, f"x{mark}")
    assert {row.after for row in (*preview.new, *preview.same)} == {(mark, mark)}
    assert [mark in text for text in (*preview.wrong, *preview.noticed)] == [True, True]
    assert not preview.tree.css("main b")


# ---- cells that a spreadsheet has damaged
ROUNDED = ("1,23457E+11", "1.23E+11", "1E+11", "2e+15", "2E-5")
DAMAGED_ROWS: list[tuple[tuple[object, object, object], str]] = [
    *(((nim, "A", "B"), f"NIM {nim} sudah dibulatkan") for nim in ROUNDED),
    ((" '1,2E+12 ", "A", "B"), "NIM 1,2E+12 sudah dibulatkan oleh Excel"),
    *(
        ((nim, "A", "B"), "NIM ini berupa angka lebih dari 15 digit")
        for nim in (10**15, 12345678901234567890.0)
    ),
    ((12.5, "A", "B"), "NIM 12,5 bukan bilangan bulat positif"),
    ((-7, "A", "B"), "NIM -7 bukan bilangan bulat positif"),
    ((dt.date(2020, 1, 2), "A", "B"), "NIM terbaca sebagai tanggal atau waktu (2020-01-02)"),
    (("=A1", "A", "B"), "NIM berisi rumus tanpa hasil"),
    (("#N/A", "A", "#REF!"), "NIM berisi kesalahan rumus (#N/A)"),
    ((True, "A", "B"), "NIM berisi TRUE, bukan teks"),
    (("'", "A", "B"), "NIM kosong"),
    (("..", "A", "B"), "NIM tidak boleh hanya “.” atau “..”"),
    (("9" * 256, "A", "B"), "NIM lebih dari 255 karakter"),
    (("####", "A", "B"), "NIM berisi “####”, bukan angka aslinya"),
    (
        ("5", "A", dt.datetime(2020, 1, 2, 3, 4)),  # noqa: DTZ001 - a spreadsheet knows no zone
        "Alamat terbaca sebagai tanggal atau waktu (2020-01-02T03:04:00)",
    ),
    (("6", dt.time(3, 4), "B"), "Nama terbaca sebagai tanggal atau waktu (03:04:00)"),
    (("8", "A", 10.5), "Alamat terbaca sebagai angka (10,5)"),
    (("10", "A", 1e20), "Alamat terbaca sebagai angka (1E+20)"),
    (("12", "A", "####"), "Alamat berisi “####”"),
    ((1.5, dt.date(2020, 1, 3), "#NULL!"), "NIM 1,5|2020-01-03|#NULL!"),
]
"""Cells, and what their row is refused with. All faults of a row are told at once."""


def test_a_damaged_cell_is_refused_with_advice(importer: Importer) -> None:
    """The program does not guess. It names the row, and the other rows can be saved."""
    rows = [cells for cells, _ in DAMAGED_ROWS]
    preview = importer.upload(by_openpyxl(HEADER, ("1", "Ani", "Solo"), *rows), "a.xlsx")
    messages = preview.texts("#perbaiki .bad")
    for number, (_, words) in enumerate(DAMAGED_ROWS, 3):
        (message,) = [text for text in messages if re.match(rf"Baris [\d, –]*\b{number}\b", text)]
        assert all(word in message for word in words.split("|")), message
        assert re.search(r"[.;] [A-Z]", message), "the advice"
    importer.save(preview)
    assert importer.records == [("1", "Ani", "Solo")]


# ---- a preview that is repaired
@pytest.mark.parametrize("button", ["periksa", "ada"])
def test_a_wrong_row_is_repaired_in_the_preview(importer: Importer, button: str) -> None:
    """The row's cells are inputs. The answer is a preview of the repair, also if the button that saves was pressed."""
    preview = importer.upload(table("1|Ani|Solo", "1,2E+11|Budi|Bantul", "|Eko|Sleman"))
    assert preview.counts == {"Baru": 1, "Perlu diperbaiki": 2}
    fields = repaired(preview, nim=["120000000001", ""], periksa=[])
    again = importer.shown(importer.site.post(SAVE, [*fields, (button, "lewati")]))
    assert again.status.startswith("Perubahan Anda sudah diperiksa. Belum ada yang disimpan.")
    budi = (3, "120000000001", ("Budi", "Bantul"), None)
    assert again.new == [(2, "1", ("Ani", "Solo"), None), budi]
    assert again.wrong == ["Baris 4: NIM kosong. Isi NIM-nya. Eko · Sleman"]
    assert importer.records == []
    importer.save(again)
    assert importer.records == as_records("1|Ani|Solo", "120000000001|Budi|Bantul")


def test_inputs_that_were_not_changed_repair_nothing(importer: Importer) -> None:
    """A cell with an error stays one, although the input shows its text, until a button empties it. Saving does not ask.

    The number 0 stands for no address, because a formula that refers to a blank cell gives it.
    """
    rows = [("1", "Ani", "Solo"), ("2", "Budi", "#N/A"), ("3", "Citra", 0)]
    preview = importer.upload(by_openpyxl(HEADER, *rows), "a.xlsx")
    assert importer.check_again(preview).wrong == preview.wrong
    (emptied,) = importer.check_again(preview, perbaiki="kosong").wrong
    assert emptied.startswith("Baris 3–4: Alamat kosong.")
    importer.save(preview, "lewati", ticks=True)
    assert importer.records == as_records("1|Ani|Solo", "3|Citra|0")


def test_a_spoilt_nim_is_saved_as_it_is_after_a_tick(importer: Importer, other: Database) -> None:
    """One without a digit may be a word of a title. A NIM that is already in the list needs no tick."""
    other.fill([("TAMU", "Ani", "Solo")])
    preview = importer.upload(table("ABC|Budi|Solo", "TAMU|Ani|Bantul", "01/02/2023|Eko|Solo"))
    assert preview.counts == {"Berubah": 1, "Perlu diperbaiki": 2}
    assert preview.wrong[0] == f"Baris 2: {wording.NO_DIGIT} ABC · Budi · Solo"
    importer.save(importer.check_again(preview, benar=["2", "4"]), "lewati")
    assert [nim for nim, _, _ in importer.records] == ["01/02/2023", "ABC", "TAMU"]


@pytest.mark.parametrize("make", [csv, by_openpyxl], ids=["csv", "xlsx"])
def test_the_columns_are_chosen_in_the_preview(
    importer: Importer, make: Callable[..., bytes]
) -> None:
    """The file need not be chosen again. If no NIM was found, the answer is the form with the reason and the choice."""
    preview = importer.upload(
        make(("No", "NIM", "Nama", "Ayah", "Alamat"), ("1", "7", "Ani", "Budi", "Solo")), "a"
    )
    assert preview.what_was_read.endswith(
        ", 1 baris. NIM dari kolom B, Nama dari kolom C, Alamat dari kolom E. Tidak dibaca: No, Ayah."
    )
    again = importer.check_again(preview, **with_columns(preview, B="nim", D="nama"))
    assert (
        "NIM dari kolom B, Nama dari kolom D (Ayah), Alamat belum dipilih." in again.what_was_read
    )
    assert again.alert.startswith("Kolom Alamat tidak ditemukan.")
    several = with_columns(preview, B="nim", C="nama", D="nama", E="alamat")
    importer.save(importer.check_again(preview, **several))
    answer = importer.send(make(("Kode", "Nama", "Alamat"), ("08", "Ani", "Solo")), "a")
    assert importer.refused(answer).startswith("Kolom NIM tidak ditemukan.")
    form = Preview(answer.text, SAVE)
    assert "NIM belum dipilih, Nama dari kolom B, Alamat dari kolom C." in form.what_was_read
    twice = with_columns(form, A="nim", B="nim", C="alamat")
    words = importer.refused(importer.site.post(SAVE, repaired(form, **twice)))
    assert words == wording.COLUMN_CHOSEN_TWICE
    right = with_columns(form, A="nim", B="nama", C="alamat")
    importer.save(importer.check_again(form, **right))
    assert importer.records == as_records("08|Ani|Solo", "7|Ani Budi|Solo")


def test_other_sheets_or_all_of_them_are_chosen_in_the_preview(
    importer: Importer, other: Database
) -> None:
    """Every row has the name of its sheet, and is repaired and saved like one of a single sheet."""
    other.fill([("006", "Fajar", "Solo")])
    solo = as_records("3|Citra|Solo", "|Dewi|Solo", "2|Eko|Solo", "6|F|S")
    file = by_openpyxl(
        several={
            "Petunjuk": [["Isi lembar berikut"]],
            "Kelas A": [HEADER, ("1", "Ani", "Solo"), ("2", "Budi", "Solo")],
            "Kelas B": [("Kelas B",), HEADER, *solo],
            "Kelas C": [HEADER, ("8", "Hadi", "Solo"), ("9", "", "Solo")],
            "Rahasia": [HEADER],
        },
        hidden="Rahasia",
    )
    preview = importer.upload(file, "a.xlsx")
    classes = ["Kelas A", "Kelas B", "Kelas C"]
    assert preview.values("[name=lembar][type=checkbox]") == [*classes, "Petunjuk"]
    assert preview.values("[name=lembar][checked]") == classes
    assert "lembar (sheet) “Kelas A”, “Kelas B”, “Kelas C”, 8 baris. NIM" in preview.what_was_read
    assert preview.what_was_read.endswith("Lembar lain tidak dibaca.")
    one = importer.check_again(preview, lembar="Kelas A")
    assert "lembar (sheet) “Kelas A”, 2 baris. NIM dari kolom A" in one.what_was_read
    assert [row.nim for row in one.new] == ["1", "2"]
    of_6000 = [HEADER, *numbered(6000, "A", "B", nim="{}")]
    long = importer.upload(by_openpyxl(several={"A": of_6000, "B": of_6000}), "a.xlsx")
    for page, read, buttons in (
        (preview, "3 dari 4", ["Baca semua lembar"]),
        (long, "1 dari 2", []),
    ):
        again = importer.check_again(page)
        assert f"Baru {read} lembar (sheet) yang dibaca." in again.texts(".actions")[0]
        assert page.texts("button[name=semua]") == again.texts("button[name=semua]") == buttons
    cells = [texts_in(row, "td")[:2] for row in preview.tree.css("#baru tbody tr")]
    assert cells == [
        ["Kelas A, baris 2", "1"],
        ["Kelas B, baris 3", "3"],
        ["Kelas B, baris 6", "6"],
        ["Kelas C, baris 2", "8"],
    ]
    twice = "NIM 2 ada di Kelas A, baris 3 dan Kelas B, baris 5. Hapus salah satunya."
    assert preview.wrong[0].startswith(f"Kelas A, baris 3; Kelas B, baris 5: {twice}")
    assert preview.wrong[1].startswith("Kelas B, baris 4: NIM kosong")
    assert preview.wrong[2].startswith("Kelas C, baris 3: Nama kosong")
    assert preview.noticed[0].startswith("Kelas B, baris 6: NIM ini mirip")
    labels = preview.values("#perbaiki input[name='nim[]']", "aria-label")
    places = ["Kelas A, baris 3", "Kelas B, baris 5", "Kelas B, baris 4", "Kelas C, baris 3"]
    assert labels == [f"NIM, {place}" for place in places]
    numbers = preview.values("input[name='baris[]']")
    (near,) = preview.values("input[type=checkbox][name='pakai[]']")
    nims = ["2", "2", "4", "9"]
    again = importer.check_again(preview, lewati=numbers[1], nim=nims, pakai=near)
    importer.save(again, "perbarui")
    new = as_records("1|Ani|Solo", "2|Budi|Solo", "3|Citra|Solo", "4|Dewi|Solo", "8|Hadi|Solo")
    assert importer.records == [("006", "F", "S"), *new]


def test_all_sheets_are_read_with_the_texts_and_columns_of_the_same_press(
    importer: Importer,
) -> None:
    """If a sheet is no longer read, the texts are left out, because rows have other numbers then."""
    titles = (*HEADER, "Asal")
    of_a = [titles, ("1", "Ani", "Solo", "Wates"), ("", "Budi", "Solo", "Bantul")]
    file = by_openpyxl(several={"A": of_a, "B": [("2300018107", "Citra", "Jl. A 5", "Klaten")]})
    preview = importer.upload(file, "a.xlsx")
    columns = with_columns(preview, A="nim", B="nama", D="alamat")
    every = importer.read_all_sheets(preview, nim=["2"], alamat=["Depok"], **columns)
    assert [
        (row.css("td")[1].text(), row.css("td")[3].text())
        for row in every.tree.css("#baru tbody tr")
    ] == [
        ("1", "Wates"),
        ("2", "Depok"),
        ("2300018107", "Klaten"),
    ]
    other_sheet = importer.check_again(every, lembar="B")
    assert [row.nim for row in other_sheet.new] == ["2300018107"]


def test_a_repair_is_asked_for_again_if_other_columns_are_read(importer: Importer) -> None:
    rows = ["1|Ani|Solo|-", "2|Budi|-|Wates"]
    preview = importer.upload(table(*rows, titles="NIM|Nama|Alamat|Catatan"))
    emptied = importer.check_again(preview, perbaiki="kosong")
    assert emptied.questions == []
    columns = with_columns(preview, A="nim", B="nama", D="alamat")
    again = importer.check_again(emptied, **columns)
    assert again.questions == ["Baris 2: “-” bukan nama atau alamat."]
    assert [row.after for row in again.new] == [("Ani", "-"), ("Budi", "Wates")]


def with_hidden(*rows: Sequence[str], columns: tuple[str, str] = ("E", "E")) -> bytes:
    """Return a workbook of two sheets, whose third row and whose `columns` from one to another are hidden."""
    workbook = openpyxl.Workbook()
    for sheet in (workbook.active, workbook.create_sheet("Kelas B")):
        for nim, *texts in (HEADER, *rows):
            sheet.append([nim if nim == "NIM" else f"{nim}{len(sheet.title)}", *texts])
        sheet.row_dimensions[3].hidden = True
        sheet.column_dimensions.group(*columns, hidden=True)
    file = BytesIO()
    workbook.save(file)
    return file.getvalue()


FEW, MANY = as_records("30001|Ani|Solo", "30002|Budi|Wates"), 3000


@pytest.mark.parametrize("length", [0, MANY], ids=["a small file", "a file that is not carried"])
def test_hidden_rows_of_all_sheets_are_left_out_by_one_press(
    importer: Importer, length: int
) -> None:
    more = [(f"4{n:04}", "Citra", f"Jl. {n} {'x' * 200}") for n in range(length)]
    preview = importer.upload(with_hidden(*FEW, *more), "a.xlsx")
    (question,) = preview.questions
    assert question.startswith("Sheet, baris 3; Kelas B, baris 3: Baris ini tersembunyi")
    again = importer.check_again(preview, perbaiki="tersembunyi")
    assert (again.questions, again.counts["Baru"]) == ([], 2 + 2 * length)
    importer.save(importer.check_again(again))
    assert len(importer.records) == 2 + 2 * length


@pytest.mark.parametrize(("first", "letters"), [("D", ""), ("C", "C"), ("B", "B, C")])
def test_hidden_columns_are_a_question_only_if_they_are_read(
    importer: Importer, first: str, letters: str
) -> None:
    """An office hides the unused columns up to the last one that Excel has.

    A question about the whole file stands above those about rows, and has the focus.
    """
    preview = importer.upload(with_hidden(*FEW, columns=(first, "XFD")), "a.xlsx")
    refused = importer.shown(importer.press(preview, "lewati"))
    asked = [f"Kolom {letters} tersembunyi, tetapi ikut dibaca."] if letters else []
    assert refused.questions[:-1] == asked
    assert refused.values("[autofocus]") == refused.answers[:1]


def test_a_large_file_is_asked_for_again_with_the_reason(importer: Importer) -> None:
    """Its other columns are not in the page, so a person chooses them together with the file.

    For another sheet, columns that were not chosen are not sent: it is read by its own titles.
    """
    long = [(*HEADER, "Ayah"), *((f"{n}", "Ani", "x" * 500, "Budi") for n in range(3000))]
    file = by_openpyxl(several={"A": long, "B": [HEADER[::-1], ("Solo", "Budi", "7")]})

    def sent_again(fields: Mapping[str, Sequence[str] | str]) -> Preview:
        upload = {"berkas": ("a.xlsx", file)}
        return importer.shown(importer.site.client.post(IMPORT, files=upload, data=fields))

    preview = importer.upload(file, "a.xlsx")
    assert "terlalu besar untuk disimpan di halaman ini" in preview.html
    again = sent_again({**with_columns(preview, A="nim", D="nama", C="alamat"), "lembar": "A"})
    assert "NIM dari kolom A, Nama dari kolom D (Ayah), Alamat dari kolom C." in again.what_was_read
    sent = [value for _, value in chosen(again.tree.css("form[enctype]")[0])]
    assert sent[:4] == ["nim", "", "alamat", "nama"]
    importer.save(again)
    assert importer.records[0] == ("0", "Budi", "x" * 500)
    kept = dict(chosen(preview.tree.css("form[enctype]")[0]))
    assert sent_again(kept | {"lembar": "B"}).changed[0].after == ("Budi", "Solo")


def test_a_row_with_more_cells_than_titles_changes_nothing_about_the_columns(
    importer: Importer,
) -> None:
    """It stands below the rows by which the columns are found. The first press saves, or reads the chosen columns."""
    lines = [
        f"{2300018100 + at},{nama},{alamat},Solo"
        for at, (_, nama, alamat) in enumerate(students(40))
    ]
    lines[35] += ",RT 3"
    preview = importer.upload("\n".join(["NIM,Nama,Alamat,Kota Asal", *lines]).encode())
    again = importer.check_again(preview, **with_columns(preview, A="nim", B="nama", D="alamat"))
    assert "Alamat dari kolom D" in again.what_was_read
    importer.save(preview, ticks=True)
    assert len(importer.records) == 40


@pytest.mark.parametrize(
    ("nim", "other_nim", "words"),
    [
        ("23OOOO7O3", "0230000703", wording.LOST_ZEROS),
        ("023-0000703", "0230000703", wording.NEAR_STORED),
        ("a11.202O", "A11-2020", wording.NEAR_STORED),
    ],
)
def test_a_nim_that_is_nearly_a_stored_one_can_become_that_one(
    importer: Importer, other: Database, nim: str, other_nim: str, words: str
) -> None:
    """As it is, it would become a second record of the same student. It can still be saved as it is."""
    other.fill(as_records("0230000703|Ani|Solo", "A11-2020|Ani|Solo"))
    preview = importer.upload(table(f"{nim}|Ani S.|Solo", "99|Citra|Solo"))
    tick = f"Pakai NIM yang sudah ada ({other_nim}), Ani"
    assert preview.noticed == [f"Baris 2: {words} {nim} · Ani S. · Solo {tick}"]
    again = importer.check_again(preview, pakai="2")
    assert again.changed == [(2, other_nim, ("Ani S.", "Solo"), ("Ani", "Solo"))]
    assert (again.noticed, again.counts) == ([], {"Baru": 1, "Berubah": 1})
    importer.save(preview)
    assert len(importer.records) == 4


def test_one_button_restores_all_lost_zeros(importer: Importer, other: Database) -> None:
    """Also those of rows that the page does not show. Nothing is saved before its preview."""
    other.fill([(f"0{nim}", nama, alamat) for nim, nama, alamat in students(300)])
    rows = [(nim, f"{nama} S.", alamat) for nim, nama, alamat in students(300)]
    preview = importer.upload(csv(HEADER, *rows, ("9.99", "Eko", "Solo"), ("7", "Eko", "Solo")))
    (lost, other_length, short) = preview.noticed
    tick = "Pakai NIM yang sudah ada untuk semua baris ini"
    assert lost.startswith(f"Baris 2–301: {wording.LOST_ZEROS} {tick} {rows[0][0]} · ")
    assert lost.endswith("dan 200 baris lain")
    assert other_length.startswith(
        "Baris 302: Panjang NIM ini berbeda dari NIM lain (10 karakter)."
    )
    assert short.startswith("Baris 303: NIM ini lebih pendek daripada NIM lain (10 digit).")
    again = importer.shown(importer.site.post(SAVE, {"data": preview.data, "pakai[]": "nol"}))
    assert again.status.startswith("Perubahan Anda sudah diperiksa. Belum ada yang disimpan.")
    assert again.counts == {"Baru": 2, "Berubah": 300, "Perlu diperiksa": 2}
    importer.save(again, "perbarui", ticks=True)
    assert importer.records[:300] == [(f"0{nim}", nama, alamat) for nim, nama, alamat in rows]


def test_a_nim_that_is_stored_as_it_is_gives_no_warning(
    importer: Importer, other: Database
) -> None:
    """However short or strange. So the list's own workbook comes back without a row to look at or to repair."""
    odd = [(nim, "Ani", "S") for nim in ("'x", " 7 ", "12", "77", "9.0", "TAMU")]
    other.fill([*odd, *numbered(20, "F", "S", nim="{:06}")])
    workbook = importer.site.get("/mahasiswa/ekspor.xlsx").content
    assert importer.upload(workbook, "mahasiswa.xlsx").counts == {"Tidak berubah": 26}
    other.fill([])
    counts = {"Baru": 24, "Perlu diperbaiki": 2, "Perlu diperiksa": 5}
    assert importer.upload(workbook, "mahasiswa.xlsx").counts == counts


def test_long_lists_of_rows_end_with_the_number_of_the_others(importer: Importer) -> None:
    """A message that repeats is shown once. A NIM that begins with 0 has not lost its zeros."""
    rows = (f"{'' if n in {4, 9} or 12 <= n <= 30 else n}|Nama {n}|Solo" for n in range(2, 40))
    (wrong,) = importer.upload(table(*rows)).wrong
    assert wrong.startswith("Baris 4, 9, 12–30: NIM kosong.")
    assert (
        importer.upload(
            table(*(f"0{n}|A|S" if n % 2 else f"{n:09}|A|S" for n in range(501)))
        ).noticed
        == []
    )
    (short,) = importer.upload(
        table(*(f"{n}|A|S" if n % 2 else f"{n:09}|A|S" for n in range(501)))
    ).noticed
    assert " 39, 41 dan 230 baris lain: NIM ini lebih pendek" in short
    assert short.endswith(" dan 150 baris lain")


def test_records_that_a_file_lacks_are_counted_and_listed(
    importer: Importer, other: Database
) -> None:
    """Folded, and only if the file has half of the stored records and no row in doubt: it could be another list."""
    other.fill(KEPT)
    preview = importer.upload(table("2|Budi|Bantul", "3|Citra|Klaten"))
    assert preview.texts("#sisa summary") == ["Ada di daftar, tidak ada di berkas: 1 mahasiswa"]
    shown = importer.check_again(preview, periksa="sisa")
    cells = [texts_in(row, "td")[1:] for row in shown.tree.css("#sisa tbody tr")]
    assert cells == [list(KEPT[0])]
    for doubtful in (["2|Budi|Bantul"], ["2|Budi|Bantul", "3|Citra|Klaten", "4||"], []):
        assert not importer.upload(table(*doubtful)).tree.css("#sisa")


STORED = as_records("30001|Ani|Solo", "30002|Budi|Wates", "30003|Citra|Solo", "30004|Dewi|Solo")
# The sheets of a file with all of STORED. The titles of the second one are not known.
HALVES = {"Kelas A": [HEADER, *STORED[:3]], "Pindahan": [("Nomor", "Teks"), STORED[3][:2]]}
UNREADABLE = [*STORED[:3], (), ("Nama", "Alamat"), ("Dewi", "Solo")]


@pytest.mark.parametrize(
    ("several", "pressed"),
    [
        (HALVES, {}),
        ({"A": [HEADER, *STORED[:3]], "B": [HEADER, STORED[3]]}, {"lembar": "A"}),
        ({"A": [HEADER, *UNREADABLE]}, {}),
        ({"A": [HEADER, *STORED]}, {"perbaiki": "tersembunyi"}),
        ({"A": [HEADER, *STORED[:3], (STORED[3][0], "####", "Solo")]}, {"lewati": "5"}),
        (
            {"A": [HEADER, *STORED[:3], (STORED[3][0], "####", "Solo")]},
            {"nim": "", "nama": "", "alamat": ""},
        ),
    ],
    ids=["an unread sheet", "a sheet", "a table", "hidden rows", "a skipped row", "a cleared row"],
)
def test_no_deletion_is_offered_of_records_in_rows_that_were_not_read_or_left_out(
    importer: Importer,
    other: Database,
    several: Mapping[str, Iterable[Iterable[object]]],
    pressed: Mapping[str, str],
) -> None:
    """If the button of an older page is pressed together with the choice, it leads to the preview again."""
    other.fill(STORED)
    hidden_rows = [5] if "perbaiki" in pressed else []
    preview = importer.upload(by_openpyxl(several=several, hidden_rows=hidden_rows), "a.xlsx")
    again = importer.check_again(preview, **pressed)
    assert (again.counts["Tidak berubah"], again.texts("#sisa")) == (3, [])
    for fields in (repaired(preview, **pressed), repaired(again)):
        fields.append(("periksa", "sisa"))
        asked = importer.shown(importer.site.post("/mahasiswa/pilih/simpan", fields))
        assert (asked.counts, asked.texts("#sisa")) == (again.counts, [])
    assert importer.records == STORED


def test_a_stale_preview_without_names_does_not_ask_for_them(
    importer: Importer, other: Database
) -> None:
    """The record was deleted meanwhile, and no other choice of columns would bring it back."""
    other.fill(KEPT)
    preview = importer.upload(table("1|Jl. Baru", "2|Jl. Lama", titles="NIM|Alamat"))
    other.fill(KEPT[1:])
    stale = importer.shown(importer.press(preview, "perbarui"), 409)
    assert stale.alert.startswith("Sebagian data sudah diubah orang lain")
    assert [line.split(" 1 ·")[0] for line in stale.wrong] == [f"Baris 2: {wording.GONE}"]
    assert "Kolom Nama tidak ditemukan" not in stale.html


def test_names_that_belong_to_others_are_written_only_after_a_tick(
    importer: Importer, other: Database
) -> None:
    """As in a file whose names are shifted by one row. Two such names, or other spellings, need no tick.

    A tick answers only the question beside it: if another name is typed, the question is about other rows.
    """
    names = ["Ani Sari", "Budi", "Citra", "Dewi", "Eko P."]
    people = [(f"230{n}", nama, "Solo") for n, nama in enumerate(names)]
    other.fill(people)
    shifted = [f"{nim}|{people[n - 1][1]}|Solo" for n, (nim, _, _) in enumerate(people)]
    preview = importer.upload(table(*shifted))
    assert preview.noticed[0].startswith("Baris 2–6: Nama di berkas berbeda sama sekali")
    refused = importer.shown(importer.press(preview, "perbarui"))
    assert refused.alert.startswith("Belum ada yang disimpan. Jawab dahulu pertanyaan")
    asked = "nama berbeda sama sekali dari yang tersimpan. Periksa apakah barisnya bergeser."
    assert refused.questions == [f"Baris 2–6: 5 dari 5 {asked}"]
    assert refused.values("[autofocus]", "name") == ["benar[]"]
    ticked = importer.check_again(preview, benar=preview.answers)
    assert ticked.values(".question [checked]") == preview.answers
    typed = importer.check_again(ticked, nama=["Ani Sari", *names[:4]], benar=preview.answers)
    assert typed.questions == [f"Baris 3–6: 4 dari 4 {asked}"]
    sent = {"data": typed.data, "ada": "perbarui", "benar[]": preview.answers[0]}
    assert importer.shown(importer.site.post(SAVE, sent)).questions == typed.questions
    assert importer.records == people
    importer.save(importer.upload(table(*shifted[:2], "2303|dewi K|Solo")), "perbarui")
    stale = importer.press(preview, "perbarui", ticks=True)
    assert importer.shown(stale, 409).alert.startswith("Sebagian data sudah diubah")
    other.fill(people)
    importer.save(preview, "perbarui", ticks=True)
    assert importer.records[1] == ("2301", "Ani Sari", "Solo")


NIMS = [f"23000181{n:02}" for n in range(1, 13)]
QUESTIONS = {
    "thousands": (
        ["2.300.018.101|Ani|Solo", "2,300,018,102|Budi|Solo"],
        "Bersihkan 2 NIM: 2.300.018.101 menjadi 2300018101",
        ["2300018101|Ani|Solo", "2300018102|Budi|Solo"],
    ),
    "words, numbers, stars and names beside the NIM": (
        [
            *("NIM. 2300018101|Ani|Solo", "2. 2300018102|Budi|Solo", "*2300018103|Citra|Solo"),
            *("NPM: A11.2020.12345|Dewi|Solo", "5. 2300018105 Eko Prasetyo||Solo"),
        ],
        "Bersihkan 5 NIM: NIM. 2300018101 menjadi 2300018101",
        [
            *("2300018101|Ani|Solo", "2300018102|Budi|Solo", "2300018103|Citra|Solo"),
            *("2300018105|Eko Prasetyo|Solo", "A11.2020.12345|Dewi|Solo"),
        ],
    ),
    "letters and Arabic digits": (
        ["23OOO181O1|Ani|Solo", "٢٣٠٠٠١٨١٠٢|Budi|Solo"],
        "Bersihkan 2 NIM: 23OOO181O1 menjadi 2300018101",
        ["2300018101|Ani|Solo", "2300018102|Budi|Solo"],
    ),
    "texts that stand for nothing": (
        ["1|Ani|Solo", *(f"2|{text}|{text}" for text in ["NULL"]), "3|Citra|idem"],
        "Kosongkan di 2 baris",
        ["1|Ani|Solo"],
    ),
    "names and addresses that go on in the next row": (
        ["1|Siti|Jl. Wates", "|Nur|", "|Aini|", "2|Budi|Jl. Solo 25,", "||Klaten", "3|Ani|Solo"],
        "Sambung 3 baris",
        ["1|Siti Nur Aini|Jl. Wates", "2|Budi|Jl. Solo 25, Klaten", "3|Ani|Solo"],
    ),
    "the rest of an address in the first column": (
        ["1|Siti|Jl. Wates", "Depok Sleman||", "2|Budi|Solo"],
        "Sambung 1 baris",
        ["1|Siti|Jl. Wates Depok Sleman", "2|Budi|Solo"],
    ),
    "exchanged": (
        ["1|Jl. Wates 5|Siti Aini", "2|Budi|Solo"],
        "Tukar Nama dan Alamat di 1 baris",
        ["1|Siti Aini|Jl. Wates 5", "2|Budi|Solo"],
    ),
    "exchanged, with a name that shows nothing": (
        ["1|Jl. A 1|Ani", "2|Gg. B 2|Budi", "3|Perumnas|Citra", "4||Dewi", "5|Jl. C 3|Eko"],
        "Tukar Nama dan Alamat di 5 baris",
        ["1|Ani|Jl. A 1", "2|Budi|Gg. B 2", "3|Citra|Perumnas", "5|Eko|Jl. C 3"],
    ),
    "towns in the place of names": (
        ["1|Sleman|Ani B", "2|Bantul|Budi", "3|Sleman|Citra", "4|Bantul|Dewi"],
        "Tukar Nama dan Alamat di 4 baris",
        ["1|Ani B|Sleman", "2|Budi|Bantul", "3|Citra|Sleman", "4|Dewi|Bantul"],
    ),
    "other texts that stand for nothing": (
        ["1|Ani|Solo", "2|Budi|(kosong)", "3|nihil|N.A.", "4|Dewi|tidak diketahui"],
        "Kosongkan di 3 baris",
        ["1|Ani|Solo"],
    ),
    "degrees behind commas": (
        ["1|Fauzi|S.Pd.|M.Pd.|Jl. Solo 5", "2|Budi|Solo"],
        "Pindahkan 1 gelar ke Nama: Fauzi, S.Pd., M.Pd.",
        ["1|Fauzi, S.Pd., M.Pd.|Jl. Solo 5", "2|Budi|Solo"],
    ),
    "letters of web pages in quotes": (
        ['1|"Nur&#039;aini"|"Jl. A &amp; B&nbsp;5"', '2|"R&D; &x"|Solo'],
        "Perbaiki 1 baris, misalnya menjadi “Nur'aini”",
        ["1|Nur'aini|Jl. A & B 5", "2|R&D; &x|Solo"],
    ),
    "letters that were decoded twice": (
        ["1|Nurâ€™aini|Jl. CafÃ© 5", "2|José|Solo"],
        "Perbaiki 1 baris, misalnya menjadi “Nur’aini”",
        ["1|Nur’aini|Jl. Café 5", "2|José|Solo"],
    ),
}


@pytest.mark.parametrize(("rows", "label", "stored"), QUESTIONS.values(), ids=QUESTIONS)
def test_rows_that_need_the_same_repair_are_one_question_and_one_press(
    importer: Importer, rows: list[str], label: str, stored: list[str]
) -> None:
    """Nothing is saved while it is open. The repair stays applied when the page comes again."""
    preview = importer.upload(table(*rows))
    (repair,) = preview.values("[name='perbaiki[]']")
    assert (preview.texts("[name='perbaiki[]']"), len(preview.questions)) == ([label], 1)
    importer.shown(importer.press(preview, "lewati"))
    assert importer.records == []
    again = importer.check_again(importer.check_again(preview, perbaiki=repair))
    assert again.questions == []
    importer.save(again, "lewati")
    assert ["|".join(record) for record in importer.records] == stored


USUAL = [f"{nim}|Ani|Solo" for nim in NIMS]
WITH_DOTS = [f"A11.2020.{nim[-5:]}|A|S" for nim in NIMS]
OTHER_LENGTH = "berbeda panjang"
TICKED = {
    "a digit less": ([*USUAL, "230001813|B|Solo"], OTHER_LENGTH),
    "a letter in the place of a digit": ([*USUAL, "23A0018113|B|Solo"], OTHER_LENGTH),
    "a letter more": ([*USUAL, "2300018199x|B|Solo"], OTHER_LENGTH),
    "a sign and a digit more": ([*USUAL, "2300018199-2|B|Solo"], OTHER_LENGTH),
    "a digit less behind a zero": ([*USUAL, "030001819|B|Solo"], OTHER_LENGTH),
    "two digits less behind dots": ([*WITH_DOTS, "A11.2020.123|B|S"], OTHER_LENGTH),
    "more cells than titles": (["1|Ani|Solo|Depok", "2|Budi|Solo"], "lebih banyak sel"),
    "rows in a cell": (
        ['1|"Ani\n2300018102|Budi|Solo\n"|Wates', "3|Citra|Solo"],
        "berisi baris lain",
    ),
    "numbered rows in a cell": (
        ['1|Ani|"Jl. Mawar 5\n2|2300018102|Budi|Solo\n3|2300018103|Citra|Asri"', "4|Dewi|Solo"],
        "berisi baris lain",
    ),
    "the suggested columns, which contradict the titles": (
        [f"{nama}|{nim}|{alamat}" for nim, nama, alamat in students(5)],
        wording.SWAPPED,
    ),
    "a sign before the NIM": (["NIM-2300018102|Budi|Solo"], "NIM berisi tanda lain"),
}


@pytest.mark.parametrize(("rows", "words"), TICKED.values(), ids=TICKED)
def test_a_question_that_is_ticked_saves_the_rows_as_they_are(
    importer: Importer, rows: list[str], words: str
) -> None:
    preview = importer.upload(table(*rows))
    (question,) = preview.questions
    assert words in question
    importer.shown(importer.press(preview, "lewati"))
    assert importer.records == []
    importer.save(preview, "lewati", ticks=True)
    assert len(importer.records) == len(rows)


def test_a_repair_that_changes_no_digit_and_no_letter_is_no_question(importer: Importer) -> None:
    nims = ["2300018101.00", "2300018102,00", "`2300018103", " 2300018104 ", '="2300018105"']
    shorter = "030001810"  # its zero is not lost
    preview = importer.upload(table(*(f"{nim}|Ani|Solo" for nim in [shorter, *nims])))
    assert preview.questions == []
    importer.save(preview)
    stored = [nim for nim, _, _ in importer.records]
    assert stored == [shorter, *(f"230001810{n}" for n in range(1, 6))]


def test_an_address_of_several_lines_is_no_question(importer: Importer) -> None:
    """Its lines may begin with the number of a house or of an RT."""
    addresses = ['"Jl. A\nRT 3, RW 7"', '"Jl. B\n5, RT 3, Solo"', '"Jl. C,\n12, Depok 55281"']
    rows = [f"{nim}|Ani|{alamat}" for nim, alamat in zip(NIMS, addresses, strict=False)]
    assert importer.upload(table(*rows)).questions == []


ZEROS = ["230001800001345000", "230001800001346000"]
EXACT = [f"2300018000013460{n}" for n in range(10, 29)]
# NIMs that are to be repaired, and others.
SPOILT = {
    "a tenth of the long ones ends in zeros": (ZEROS, EXACT[:18]),
    "fewer end in zeros": ([], [*ZEROS, *EXACT]),
    "dates": (["Feb-23", "23-Feb", "2-Feb-2023", "01/02/23", "2023-01-02"], ["20-1", "Feb1"]),
    "two in a cell": (
        ["2300018101 / 2300018102", "2300018103, 2300018104", '"2300018105;2300018106"'],
        ["230/181000"],
    ),
    "no digit": (["ABC"], ["A1"]),
}


@pytest.mark.parametrize(("spoilt", "right"), SPOILT.values(), ids=SPOILT)
def test_nims_that_are_spoilt_are_typed_or_skipped_or_ticked(
    importer: Importer, spoilt: list[str], right: list[str]
) -> None:
    """They do not block the other rows."""
    preview = importer.upload(table(*(f"{nim}|Ani|S" for nim in [*spoilt, *right])))
    wrong = {"Perlu diperbaiki": len(spoilt)} if spoilt else {}
    assert preview.counts == {"Baru": len(right)} | wrong
    importer.save(preview)
    assert {nim for nim, _, _ in importer.records} == {*right}


def test_rows_that_are_left_are_counted_in_the_button_and_downloaded(importer: Importer) -> None:
    """With their problems, so that none is forgotten. The workbook can be repaired and uploaded."""
    preview = importer.upload(table("1|Ani|Solo", "|Budi|Klaten", "TAMU|Citra|=x", "4||Wates"))
    assert [button.text for button in preview.buttons] == ["Simpan 1, lewati 3"]
    assert preview.texts("[value=belum]") == ["Unduh 3 baris itu (.xlsx)"]
    answer = importer.site.post(SAVE, repaired(preview, periksa="belum"))
    assert answer.headers["content-type"] == SHEET
    named = 'attachment; filename="baris-yang-dilewati.xlsx"'
    assert answer.headers["content-disposition"] == named
    sheet = openpyxl.load_workbook(BytesIO(answer.content)).active
    rows = [[cell.value or "" for cell in row] for row in sheet]
    assert [row[:3] for row in rows] == [
        ["NIM", "Nama", "Alamat"],
        ["", "Budi", "Klaten"],
        ["TAMU", "Citra", "=x"],
        ["4", "", "Wates"],
    ]
    assert [row[3][:12] for row in rows[1:]] == ["NIM kosong. ", "NIM ini tida", "Nama kosong."]
    again = importer.upload(answer.content, "baris-yang-dilewati.xlsx")
    assert again.counts == {"Perlu diperbaiki": 3}
    assert importer.records == []


def test_a_row_to_check_has_inputs_once(importer: Importer) -> None:
    """A typed text is previewed, as that of a row to repair. A row with two notices has inputs below the first."""
    preview = importer.upload(table("2300018101|Ani  Sari|Solo", "12 34|7|Wates", "|Budi|Klaten"))
    assert preview.values("[name='baris[]']") == ["4", "2", "3"]
    ticks = [" ".join(label.text().split()) for label in preview.tree.css("#periksa .ticks label")]
    assert ticks == ["Lewati baris 2", "Lewati baris 3"]
    typed = {"nim": ["", "2300018101", "1234"], "nama": ["Budi", "Ani  Sari", "Dewi"]}
    again = importer.check_again(preview, **typed)
    assert ("1234", ("Dewi", "Wates")) in [(row.nim, row.after) for row in again.new]
    assert again.texts(".summary .zero dd") == ["0"] * 3
    assert again.values(".summary a", "href")[0] == "#baru"


def test_any_of_the_first_hundred_rows_to_check_can_be_repaired(importer: Importer) -> None:
    """Rows without inputs are only counted, except for the first ones."""
    preview = importer.upload(table(*(f"{n}|Ani  Sari|Solo" for n in range(1000, 1150))))
    assert len(preview.tree.css("#periksa .repair")) == 100
    (noticed,) = preview.noticed
    assert noticed.endswith("dan 50 baris lain")
    again = importer.check_again(preview, nama=["Ani Sari"] * 100)
    (noticed,) = again.noticed
    assert noticed.startswith("Baris 102–151: Spasi yang berlebih")


def test_a_row_is_left_out_by_a_tick_or_by_emptying_its_inputs(importer: Importer) -> None:
    first = importer.upload(table("1|Ani|Solo", "1|Ani S.|Solo"))
    emptied = importer.check_again(first, nim=["", "1"], nama=["", "Ani S."], alamat=["", "Solo"])
    ticked = importer.check_again(first, lewati="2")
    assert emptied.counts == ticked.counts == {"Baru": 1}
    importer.save(ticked)
    assert importer.records == [("1", "Ani S.", "Solo")]


def test_a_missing_column_is_named_once_and_can_be_filled(
    importer: Importer, other: Database
) -> None:
    """New records get “-” as their address, and stored ones keep theirs."""
    other.fill([("1", "Ani", "Solo")])
    preview = importer.upload(
        table("1|Ani S.", *(f"{n}|Budi" for n in range(100, 340)), "999|", titles="NIM|Nama")
    )
    assert (
        preview.alert
        == "Kolom Alamat tidak ditemukan. Pilih kolomnya di bawah, atau isi semua dengan “-”."
    )
    assert [text.strip() for text in preview.wrong] == ["Baris 3–243"]
    assert "open" in preview.tree.css("details")[0].attributes
    assert preview.tree.css(".repair") == []
    assert "dapat diperbaiki setelah ini" not in preview.html
    filled = importer.shown(importer.site.post(SAVE, {"data": preview.data, "isi": "alamat"}))
    assert filled.wrong == ["Baris 243: Nama kosong. Mahasiswa baru harus memiliki nama. 999"]
    assert filled.counts == {"Baru": 240, "Berubah": 1, "Perlu diperbaiki": 1}
    importer.save(filled, "perbarui", ticks=True)
    assert importer.records[:2] == as_records("1|Ani S.|Solo", "100|Budi|-")
    without_names = importer.upload(table("8|Solo", titles="NIM|Alamat"))
    assert without_names.alert == "Kolom Nama tidak ditemukan. Pilih kolomnya di bawah."


def test_a_line_break_in_a_cell_becomes_a_comma_with_a_notice(
    importer: Importer, other: Database
) -> None:
    """If the cell equals the stored text, the record does not change and keeps its line break."""
    other.fill(as_records("1|Ani|Jl. A\nRT 3", "2|Budi|Jl. B\r\nRT 4"))
    preview = importer.upload(
        table('1|Ani|"Jl. A\r\nRT 3"', '2|Budi S.|"Jl. B\nRT 4"', '3|Citra|"Jl. C \n\n RT 5\n"')
    )
    assert preview.counts == {"Baru": 1, "Berubah": 1, "Tidak berubah": 1, "Perlu diperiksa": 1}
    assert preview.new[0].after == ("Citra", "Jl. C, RT 5")
    assert preview.noticed == [
        "Baris 4: Ganti baris di dalam sel diubah menjadi koma. 3 · Citra · Jl. C, RT 5"
    ]
    importer.save(preview, "perbarui")
    rows = other.run("SELECT nim, nama, alamat FROM mahasiswa ORDER BY nim")
    assert rows == as_records("1|Ani|Jl. A\nRT 3", "2|Budi S.|Jl. B\r\nRT 4", "3|Citra|Jl. C, RT 5")


def test_a_preview_shows_ten_new_rows_and_opens_the_others(importer: Importer) -> None:
    """A few hundred more are in the page. The rows of a long file come when a person asks for them, page by page."""
    nims = [nim for nim, _, _ in students(3000)]
    few = importer.upload(csv(HEADER, *students(60)))
    assert len(few.tree.css("#baru > .scroll tbody tr")) == 10
    assert [row.nim for row in few.new] == nims[:60]
    answer = importer.send(csv(HEADER, *students(3000)), "a.csv")
    assert answer.num_bytes_downloaded <= 60_000, "1.2 seconds at 400 kbit/s"
    many = importer.shown(answer)
    shown = many.new
    assert [row.nim for row in shown] == nims[:10]
    assert many.texts("#baru button") == ["Tampilkan 2.990 baris lainnya"]
    while buttons := many.values("#baru button"):
        many = importer.check_again(many, periksa=buttons[0])
        assert many.new[:10] == shown[:10]
        shown += many.new[10:]
    assert [row.nim for row in shown] == nims
    beyond = importer.check_again(many, periksa="baru-99999")
    assert (len(beyond.new), beyond.tree.css("#baru button")) == (10, [])
