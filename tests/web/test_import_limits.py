"""The limits of an import: rows, bytes, memory and time; and files that are not spreadsheets."""

import io
import random
import string
import sys
import time
import zipfile
from collections.abc import Callable

import pytest
from harness import Service
from spreadsheets import (
    HEADER,
    IMPORT,
    Importer,
    Preview,
    billion_laughs,
    by_openpyxl,
    by_xlsxwriter,
    compound_file,
    csv,
    peak_memory,
    with_sheet,
    zip_bomb,
)

from mahasiswa import wording

TOO_HEAVY = "Isi berkas ini terlalu banyak atau rumit untuk dibaca."
NO_SHEET = "Berkas ini bukan lembar kerja yang dapat dibaca."


def test_an_import_takes_10000_rows_and_refuses_10001(importer: Importer) -> None:
    """The page says that the file must be divided."""
    rows = [(f"{n:05}", f"Nama {n}", f"Alamat {n}") for n in range(10_001)]
    preview = importer.upload(csv(HEADER, *rows[:-1]))
    assert preview.counts["Baru"] == 10_000
    assert preview.buttons[0].text == "Simpan 10.000 mahasiswa baru"
    importer.save(preview)
    assert importer.records() == rows[:-1]
    for data, name in ((csv(HEADER, *rows), "a.csv"), (by_xlsxwriter(HEADER, *rows), "a.xlsx")):
        assert importer.refused(importer.send(data, name), 413).startswith("Berkas ini berisi lebih dari 10.000 baris.")


def test_an_import_takes_16_mib_and_refuses_a_larger_file(importer: Importer) -> None:
    """One byte more is refused with a page, and so is a file that is far too large."""
    line = ("Ani", "Solo", "x" * 100_000)
    data = csv((*HEADER, "Lain"), *((f"{n:03}", *line) for n in range(167)))
    data += b"999;Budi;Solo;" + b"y" * ((16 << 20) - len(data) - 16) + b"\r\n"
    assert len(data) == 16 << 20
    assert importer.upload(data).counts["Baru"] == 168
    for more in (1, 60_000, 4 << 20):
        answer = importer.send(data + b"\n" * more, "a.csv")
        assert answer.status_code == 413
        assert "Ukuran berkas melebihi 16 MB" in answer.text


def test_a_file_whose_preview_could_not_be_confirmed_is_refused(importer: Importer) -> None:
    """Its rows would not fit into the confirmation, so the person learns of it before the preview and not after."""
    data = csv(HEADER, *((str(n), "é" * 500, "é" * 500) for n in range(5000)), encoding="windows-1252")
    words = importer.refused(importer.send(data, "a.csv"))
    assert words.startswith("Isi pratinjau ini melebihi 8 MB. Bagi berkasnya")


@pytest.mark.torture
def test_every_preview_can_be_confirmed_even_the_largest(importer: Importer) -> None:
    """The limit counts the form as the browser sends it. Texts that cannot be made shorter are the worst."""
    chance = random.Random(1)
    count = next(
        count
        for count in range(800, 0, -50)
        if importer.send(incompressible(chance, count), "a.csv").status_code == 200
    )
    assert count >= 500
    importer.save(importer.upload(incompressible(chance, count)))
    assert len(importer.records()) == count


def incompressible(chance: random.Random, count: int) -> bytes:
    """Return rows of 10 KB of random letters."""
    letters = string.ascii_letters + string.digits
    return csv(HEADER, *((f"{n:04}", "".join(chance.choices(letters, k=10_000)), "x") for n in range(count)))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux limits a process's memory")
@pytest.mark.parametrize("make", [zip_bomb, billion_laughs])
def test_a_malicious_workbook_is_refused_in_bounded_memory_and_time(
    importer: Importer, service: Service, make: Callable[[], bytes]
) -> None:
    """The memory of the service itself does not grow."""
    data = make()
    importer.upload(csv(HEADER, ("1", "A", "B")))
    before = peak_memory(service)
    began = time.monotonic()
    words = Preview((answer := importer.send(data, "a.xlsx")).text, IMPORT).alert
    assert answer.status_code in {400, 413}
    assert words.startswith((TOO_HEAVY, NO_SHEET, "Berkas ini rusak", "Berkas ini kosong"))
    assert time.monotonic() - began < 25
    assert peak_memory(service) - before < 64 << 20
    assert importer.records() == []


def letter() -> bytes:
    """Return a ZIP file that is no workbook."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as package:
        package.writestr("word/document.xml", "<document/>")
    return file.getvalue()


NOT_SPREADSHEETS = {
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(200), NO_SHEET),
    "a zip": (b"PK\3\4" + bytes(100), NO_SHEET),
    "a web page": (b"<!doctype html><p>NIM", "Isi berkas ini halaman web atau XML"),
    "half a workbook": (by_xlsxwriter(HEADER, ("1", "Ani", "Solo"))[:-900], "Berkas ini rusak"),
    "spaces": (b" \r\n \r\n", "Berkas ini kosong."),
    "an open quote": (b'NIM;Nama;Alamat\r\n1;"Ani;Solo\r\n2;Budi;Solo\r\n', 'Baris 2: tanda kutip (“"”) dibuka'),
    "a document": (b"%PDF-1.7\n\0\1\2", NO_SHEET),
    "half a character of UTF-16": (b"\xff\xfea\0\x00\xd8b\0", NO_SHEET),
    "a byte that Windows-1252 lacks": (b"NIM;Nama;Alamat\n1;A;\x81\n", NO_SHEET),
    "a byte order mark": (b"\xef\xbb\xbf", "Berkas ini kosong."),
    "separators": (b";;\r\n;;\r\n", "Berkas ini kosong."),
    "an empty workbook": (by_openpyxl(), "Berkas ini kosong."),
    "a broken sheet": (with_sheet([b"<worksheet><sheetData><row><c r="]), "Berkas ini rusak"),
    "a letter of Word": (letter(), NO_SHEET),
    "a workbook with a password": (compound_file("EncryptedPackage", "EncryptionInfo"), wording.PASSWORD),
    "an old Office file": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(2000), NO_SHEET),
}


@pytest.mark.parametrize(("data", "words"), NOT_SPREADSHEETS.values(), ids=NOT_SPREADSHEETS)
def test_a_file_that_is_not_a_spreadsheet_is_refused(importer: Importer, data: bytes, words: str) -> None:
    """The page says why, and for an open quote in which row."""
    assert importer.refused(importer.send(data, "daftar.xlsx")).startswith(words)


def test_an_import_form_without_file_and_text_comes_back_with_a_message(importer: Importer) -> None:
    """A file of 0 bytes has its own message."""
    nothing = "Pilih berkas atau tempel data dari Excel, lalu lanjutkan ke pratinjau."
    assert importer.refused(importer.send()) == nothing
    assert importer.refused(importer.send(pasted=" \r\n\t ")) == nothing
    assert importer.refused(importer.send(b"", "kosong.xlsx")) == wording.EMPTY_FILE
    assert importer.site.post(IMPORT, {}).status_code == 415
