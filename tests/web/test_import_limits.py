"""The limits of an import: rows, bytes, memory and the size of its pages; and files that are not spreadsheets."""

import base64
import bz2
import io
import json
import random
import string
import sys
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence

import pytest
from attack import memory, workers
from harness import URL_ENCODED, Service
from spreadsheets import (
    HEADER,
    IMPORT,
    SAVE,
    Database,
    Importer,
    Preview,
    billion_laughs,
    by_openpyxl,
    csv,
    with_sheet,
    zip_bomb,
)

from mahasiswa import wording
from mahasiswa.sheets.carried_file import BZ2_LEVEL

OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(2000)  # the signature of an OLE compound file
NO_SHEET = "Berkas ini bukan lembar kerja yang dapat dibaca."


def test_an_import_takes_10000_rows_and_refuses_10001(importer: Importer) -> None:
    """The page says that the file must be divided, and also refuses a confirmation that no preview sends."""
    rows = [(f"{n:05}", f"Nama {n}", f"Alamat {n}") for n in range(10_001)]
    preview = importer.upload(csv(HEADER, *rows[:-1]))
    assert preview.counts["Baru"] == 10_000
    assert [button.text for button in preview.buttons] == ["Simpan 10.000 mahasiswa baru"]
    importer.save(preview)
    assert importer.records() == rows[:-1]
    columns = [list(column) for column in zip(HEADER, *rows, strict=True)]
    for answer, status in (
        (importer.send(csv(HEADER, *rows), "a.csv"), 413),
        (importer.send(by_openpyxl(HEADER, *rows), "a.xlsx"), 413),
        (importer.site.post(SAVE, {"data": field(["", [[1, 10_002]], columns], others=["B"])}), 400),
    ):
        assert importer.refused(answer, status).startswith("Berkas ini berisi lebih dari 10.000 baris.")


def test_an_import_takes_16_mib_and_refuses_a_larger_file(importer: Importer) -> None:
    line = ("Ani", "Solo", "x" * 100_000)
    data = csv((*HEADER, "Lain"), *((f"{n:03}", *line) for n in range(167)))
    data += b"999;Budi;Solo;" + b"y" * ((16 << 20) - len(data) - 16) + b"\r\n"
    assert len(data) == 16 << 20
    assert importer.upload(data).counts["Baru"] == 168
    for more in (1, 60_000, 4 << 20):
        answer = importer.send(data + b"\n" * more, "a.csv")
        assert answer.status_code == 413
        assert "Ukuran berkas melebihi 16 MB" in answer.text


def test_a_confirmation_over_8_mib_is_refused(importer: Importer) -> None:
    """The page names the limit, which holds for the form as it is sent, its unpacked contents, and their memory.

    A file whose confirmation would be longer is refused before its preview.
    """
    answer = importer.site.post(SAVE, {"data": "x" * (8 << 20)})
    assert answer.status_code == 413
    assert "8 MB" in Preview(answer.text, IMPORT).tree.css("main p")[0].text()
    bomb = base64.urlsafe_b64encode(bz2.compress(bytes(1 << 27), BZ2_LEVEL)).decode()
    assert len(bomb) < 1 << 12
    long = csv(HEADER, *((str(n), "é" * 500, "é" * 500) for n in range(5000)), encoding="windows-1252")
    assert importer.refused(importer.site.post(SAVE, {"data": bomb})) == wording.CONFIRMATION_DAMAGED
    wide = csv(HEADER, *((str(n), "🎓" + "x" * 5000, "Solo") for n in range(500)))
    for data in (long, wide):
        said = importer.refused(importer.send(data, "a.csv"))
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
    assert len(importer.records()) == len(rows)


@pytest.mark.torture
def test_a_slow_confirmation_has_the_time_that_its_bytes_need(importer: Importer) -> None:
    """At 64 kbit/s it takes 15 seconds. A body has 10 seconds, and one more for each 4 KB."""

    def pieces() -> Iterator[bytes]:
        for _ in range(30):
            time.sleep(0.5)
            yield b"data=".ljust(4096, b"x")

    answer = importer.site.client.post(SAVE, content=pieces(), headers={"content-type": URL_ENCODED})
    assert importer.refused(answer) == wording.CONFIRMATION_DAMAGED


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux limits a process's memory")
@pytest.mark.parametrize("make", [zip_bomb, billion_laughs])
def test_a_malicious_workbook_is_refused_in_bounded_memory(
    importer: Importer, service: Service, make: Callable[[], bytes]
) -> None:
    data = make()
    importer.upload(csv(HEADER, ("1", "A", "B")))
    (worker,) = workers(service)
    before = memory(worker, "VmHWM")
    answer = importer.send(data, "a.xlsx")
    assert importer.refused(answer, answer.status_code).startswith((wording.TOO_HEAVY, "Berkas ini rusak"))
    assert answer.status_code in {400, 413}
    assert memory(worker, "VmHWM") - before < 64


def letter() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as package:
        package.writestr("word/document.xml", "<document/>")
    return file.getvalue()


NOT_SPREADSHEETS = {
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(200), NO_SHEET),
    "a zip": (b"PK\3\4" + bytes(100), NO_SHEET),
    "a web page": (b"<!doctype html><p>NIM", "Isi berkas ini halaman web atau XML"),
    "half a workbook": (by_openpyxl(HEADER, ("1", "Ani", "Solo"))[:-900], "Berkas ini rusak"),
    "0 bytes": (b"", wording.EMPTY_FILE),
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
    "a workbook with a password": (OLD_OFFICE + "EncryptedPackage".encode("utf-16-le"), wording.PASSWORD),
    "an old Office file": (OLD_OFFICE, NO_SHEET),
}


@pytest.mark.parametrize(("data", "words"), NOT_SPREADSHEETS.values(), ids=NOT_SPREADSHEETS)
def test_a_file_that_is_not_a_spreadsheet_is_refused(importer: Importer, data: bytes, words: str) -> None:
    assert importer.refused(importer.send(data, "daftar.xlsx")).startswith(words)


# ---- the page that answers a preview's form, however small its field is packed

PAGE_MAX_BYTES, PAGE_MAX_RATIO = 64 << 10, 8

MARK = "'"
"""A character of one byte in the field and of five in the page."""

TITLES, NAMES = [MARK * 30] * 100, [MARK * 255] * 199


def nims(count: int) -> list[str]:
    return [f"{number:05}" for number in range(count)]


def sheet(*columns: list[str]) -> list[object]:
    """Return a sheet of these columns, whose first row has the titles."""
    cells = [[title, *column] for title, column in zip([*HEADER, *TITLES], columns, strict=False)]
    return ["", [[1, len(cells[0])]], cells]


def equal(rows: int, nama: str, alamat: str) -> list[object]:
    """Return a sheet of rows that differ only by their NIM."""
    return sheet(nims(rows), [nama] * rows, [alamat] * rows)


def field(*sheets: Sequence[object], others: Sequence[str] = (), titles: Sequence[str] = ("", "", "")) -> str:
    """Return the field of a preview's form, packed as a preview packs it."""
    has_all_cells = len(sheets) > 1 or bool(others) or len(titles) > 3
    names = [sheet[0] for sheet in sheets]
    file = ["a.csv", names, sheets, others, [[0, 1, 2], titles], has_all_cells, [], [], [], [], False, ""]
    text = json.dumps(file, ensure_ascii=False, separators=(",", ":"))
    return base64.urlsafe_b64encode(bz2.compress(text.encode(), BZ2_LEVEL)).decode()


ONE = equal(1, "Ani", "Solo")
WIDE = sheet(["1"], ["Ani"], ["Solo"], *[[""]] * 97)
MARKS, LONG_MARKS = [MARK * 99] * 4_000, [MARK * 3_000] * 299
LARGEST: dict[str, Callable[[], str]] = {
    "titles": lambda: field(WIDE, titles=TITLES),
    "names of sheets": lambda: field(ONE, others=NAMES),
    "sheets": lambda: field(ONE, *[[name, [], []] for name in NAMES]),
    "titles and names of sheets": lambda: field(WIDE, others=NAMES, titles=TITLES),
    "a few long texts": lambda: field(equal(20, MARK * 100_000, MARK * 100_000)),
    "500 long texts": lambda: field(equal(500, MARK * 5_000, MARK * 5_000)),
    "10,000 rows": lambda: field(equal(9_999, MARK * 300, MARK * 300)),
    "rows to repair": lambda: field(equal(9_999, "", MARK * 600)),
    "rows with messages of their own": lambda: field(sheet([f"1,{n}E+11" for n in range(4_000)], MARKS, MARKS)),
    "rows to look at": lambda: field(sheet([f"'{n:05}.0" for n in range(4_000)], MARKS, MARKS)),
    "rows that are skipped": lambda: field(sheet(["Total " + MARK * 900] * 5_000, [""] * 5_000, [""] * 5_000)),
    "rows without a column": lambda: field(equal(9_999, MARK * 300, "")),
    "rows without zeros": lambda: field(sheet([str(n) for n in range(1, 300)], LONG_MARKS, LONG_MARKS)),
    "rows of sheets with long names": lambda: field(
        [MARK * 255, *equal(4_000, "", MARK)[1:]], [MARK * 254, *equal(5_000, "Ani", "Solo")[1:]]
    ),
    "row numbers": lambda: field(sheet([str(n % 2 or "") for n in range(9_999)], ["x"] * 9_999, ["y"] * 9_999)),
}
SHORT = {"titles and names of sheets", "500 long texts", "rows to repair"}


@pytest.mark.parametrize(
    "largest",
    [pytest.param(make, id=name, marks=[pytest.mark.torture] * (name not in SHORT)) for name, make in LARGEST.items()],
)
def test_a_small_field_does_not_make_a_large_page(
    importer: Importer, other: Database, largest: Callable[[], str]
) -> None:
    """Whatever part of it is opened. The list has long texts, too, which the page shows beside the file's."""
    other.fill([(nim, MARK * 3_000, MARK * 3_000) for nim in [*nims(300), *string.ascii_letters]])
    data = largest()
    for part in ("1", "baru", "baru-9000", "berubah", "sisa"):
        answer = importer.site.post(SAVE, {"data": data, "periksa": part})
        assert importer.shown(answer).data
        assert len(answer.content) <= PAGE_MAX_BYTES + PAGE_MAX_RATIO * len(data), (part, len(data))
