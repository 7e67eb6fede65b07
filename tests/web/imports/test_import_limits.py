"""The limits of an import: rows, bytes, memory and the size of its pages; and files that are not spreadsheets."""

import random
import string
import time
from collections.abc import Iterator

import pytest
from harness import URL_ENCODED
from spreadsheets import (
    HEADER,
    SAVE,
    Database,
    Importer,
    billion_laughs,
    by_openpyxl,
    csv,
    numbered,
    with_sheet,
)

from mahasiswa import wording
from mahasiswa.sheets.limits import MAX_TITLES
from mahasiswa.sheets.public import UPLOAD_MAX_ROWS

# The signature of an OLE compound file.
OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(2000)
NO_SHEET = "Berkas ini bukan lembar kerja yang dapat dibaca."


def test_the_largest_file_is_saved(importer: Importer) -> None:
    rows = numbered(UPLOAD_MAX_ROWS, "Nama {}", "Alamat {}")
    preview = importer.upload(csv(HEADER, *rows))
    assert [button.text for button in preview.buttons] == ["Simpan 10.000 mahasiswa baru"]
    importer.save(preview)
    assert importer.records == rows


def test_titles_beyond_the_columns_that_can_be_chosen_do_not_count(importer: Importer) -> None:
    others = [""] * MAX_TITLES
    rows = [(*others, *HEADER), (*others, "1", "Ani", "Solo")]
    answer = importer.send(pasted="\n".join("\t".join(["x", *row]) for row in rows))
    assert importer.refused(answer).startswith("Judul kolom tidak ditemukan.")


def test_a_file_gets_no_preview_that_could_not_be_confirmed(importer: Importer) -> None:
    """The page names the limit of the form as sent and unpacked."""
    long = csv(HEADER, *numbered(5000, "é" * 500, "é" * 500, nim="{}"), encoding="windows-1252")
    said = importer.refused(importer.send(long, "a.csv"))
    assert said.startswith("Isi pratinjau ini melebihi 8 MB. Bagi berkasnya")


@pytest.mark.torture
def test_every_preview_can_be_confirmed_even_the_largest(importer: Importer) -> None:
    """The limit counts the form as the browser sends it. Texts that cannot be made shorter are the worst."""
    chance = random.Random(1)
    letters = string.ascii_letters + string.digits
    rows = [(f"{n:04}", "".join(chance.choices(letters, k=10_000)), "x") for n in range(800)]
    while rows and importer.send(csv(HEADER, *rows), "a.csv").status_code != 200:
        rows = rows[:-50]
    assert len(rows) >= 500
    importer.save(importer.upload(csv(HEADER, *rows)))
    assert len(importer.records) == len(rows)


@pytest.mark.torture
def test_a_slow_confirmation_has_the_time_that_its_bytes_need(importer: Importer) -> None:
    """At 64 kbit/s it takes 15 seconds. A body has 10 seconds, and one more for each 4 KB."""

    def pieces() -> Iterator[bytes]:
        for _ in range(30):
            time.sleep(0.5)
            yield b"data=".ljust(4096, b"x")

    answer = importer.site.client.post(
        SAVE, content=pieces(), headers={"content-type": URL_ENCODED}
    )
    assert importer.refused(answer) == wording.CONFIRMATION_DAMAGED


NOT_SPREADSHEETS = {
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(200), wording.PICTURE),
    "a zip": (b"PK\3\4" + bytes(100), NO_SHEET),
    "a web page": (b"<!doctype html><p>NIM", "Isi berkas ini halaman web atau XML"),
    "half a workbook": (by_openpyxl(HEADER, ("1", "Ani", "Solo"))[:-900], "Berkas ini rusak"),
    "0 bytes": (b"", wording.EMPTY_FILE),
    "spaces": (b" \r\n \r\n", "Berkas ini kosong."),
    "an open quote": (
        b'NIM;Nama;Alamat\r\n1;"Ani;Solo\r\n2;Budi;Solo\r\n',
        'Baris 2: tanda kutip (“"”) dibuka',
    ),
    "a document": (b"%PDF-1.7\n\0\1\2", wording.PDF),
    "entities of entities": (billion_laughs(), "Berkas ini rusak"),
    "half a character of UTF-16": (b"\xff\xfea\0\x00\xd8b\0", NO_SHEET),
    "a byte that Windows-1252 lacks": (b"NIM;Nama;Alamat\n1;A;\x81\n", NO_SHEET),
    "a byte order mark": (b"\xef\xbb\xbf", "Berkas ini kosong."),
    "separators": (b";;\r\n;;\r\n", "Berkas ini kosong."),
    "an empty workbook": (by_openpyxl(), "Berkas ini kosong."),
    "a broken sheet": (with_sheet([b"<worksheet><sheetData><row><c r="]), "Berkas ini rusak"),
    "a workbook with a password": (
        OLD_OFFICE + "EncryptedPackage".encode("utf-16-le"),
        wording.PASSWORD,
    ),
    "an old Office file": (OLD_OFFICE, NO_SHEET),
}


@pytest.mark.parametrize(("data", "words"), NOT_SPREADSHEETS.values(), ids=NOT_SPREADSHEETS)
def test_a_file_that_is_not_a_spreadsheet_is_refused(
    importer: Importer, data: bytes, words: str
) -> None:
    assert importer.refused(importer.send(data, "daftar.xlsx")).startswith(words)


# ---- the page of a preview, whatever the file holds
PAGE_MAX_BYTES = 4 << 20

MARK = "'"
"""A character of one byte in the file and of five in the page."""

LONG = (MARK * 300, MARK * 300)
LARGEST: dict[str, list[tuple[str, ...]]] = {
    "titles and long texts": [
        (*HEADER, *[MARK * 99] * 97),
        *numbered(200, MARK * 9_000, MARK * 9_000, nim="{}"),
    ],
    "new rows": [HEADER, *((f"{n:05}", *LONG) for n in range(9_999))],
    "rows to repair": [HEADER, *[("", *LONG)] * 9_999],
    "rows with messages of their own": [HEADER, *((f"1,{n}E+11", *LONG) for n in range(4_000))],
    "rows to look at": [HEADER, *((f"x{n:05}.0", *LONG) for n in range(4_000))],
    "rows that are skipped": [HEADER, *[("Total " + MARK * 900, "", "")] * 5_000],
    "rows without zeros": [HEADER, *((str(n), *LONG) for n in range(1, 300))],
}
SHORT = {"titles and long texts", "rows to look at"}


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(rows, id=name, marks=[pytest.mark.torture] * (name not in SHORT))
        for name, rows in LARGEST.items()
    ],
)
def test_the_page_of_a_preview_is_bounded(
    importer: Importer, other: Database, rows: list[tuple[str, ...]]
) -> None:
    """Whatever part of it is opened. The list has long texts, too, which the page shows beside the file's."""
    other.fill(numbered(300, MARK * 3_000, MARK * 3_000))
    shown = importer.upload(csv(*rows))
    for part in ("1", "baru", "baru-9000", "berubah", "sisa"):
        answer = importer.site.post(SAVE, {"data": shown.data, "periksa": part})
        page = importer.shown(answer)
        assert len(answer.content) - len(page.data) <= PAGE_MAX_BYTES, part
