"""Lists on paper, as Chromium prints them: rows on a page, the header on each page, and the lines above it."""

import re
import shutil
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from apsw import Connection
from processes import run
from stores import refill
from web.browser import OpenWindow, Window, each_look

from mahasiswa import wording

A4 = ("210mm", "297mm")
F4 = ("215mm", "330mm")

ADDRESSES = (
    "Jl. Kaliurang KM 5 No. 12, Caturtunggal, Depok, Sleman",
    "Perum Griya Asri Blok C4, RT 03/RW 11, Kasihan, Bantul",
    "Gg. Mawar No. 7, Umbulharjo, Yogyakarta",
)
STUDENTS = [
    (f"20/{456000 + n}/TK/{50000 + n}", f"Siti Nur Rahmawati {n}", ADDRESSES[n % 3])
    for n in range(300)
]
"""Records with names and addresses of a usual length."""
FOUND = [nim for nim, _, alamat in STUDENTS if "Bantul" in alamat]


def printed(window: Window, folder: Path, paper: tuple[str, str]) -> list[list[str]]:
    """Print the page of a window; return the lines of each sheet of paper."""
    pdftotext = shutil.which("pdftotext")
    if pdftotext is None:
        pytest.skip("pdftotext is not installed (Debian: poppler-utils)")
    window.wait_for_load_state("load")
    window.pdf(path=folder / "daftar.pdf", width=paper[0], height=paper[1])
    sheets = run(pdftotext, "-layout", folder / "daftar.pdf", "-").split("\f")[:-1]
    return [[" ".join(line.split()) for line in sheet.splitlines() if line] for sheet in sheets]


def rows(*sheets: list[str]) -> list[list[str]]:
    return [line.split() for sheet in sheets for line in sheet if re.match(r"\d+ 20/", line)]


def today() -> str:
    """Return the date in the default time zone of the service, as “21 November 2026”."""
    return wording.date(datetime.now(ZoneInfo("Asia/Jakarta")))


def test_the_whole_list_is_printed_as_a_table(
    open_window: OpenWindow, other: Connection, tmp_path: Path
) -> None:
    """At least 35 rows stand on each full page, below the header, with title, number of students and date on the first."""
    refill(other, STUDENTS[:120])
    window = open_window(cdn=True)
    window.goto("/")
    for look in each_look(window):
        sheets = printed(window, tmp_path, A4 if look == "without the CDN" else F4)
        assert all(len(rows(sheet)) >= 35 for sheet in sheets[:-1]), look
        numbered = [[str(n), nim] for n, (nim, _, _) in enumerate(STUDENTS[:120], 1)]
        assert [row[:2] for row in rows(*sheets)] == numbered
        for number, sheet in enumerate(sheets, 1):
            assert "No NIM Nama Alamat" in sheet
            assert f"Halaman {number} dari {len(sheets)}" in sheet
        heading, position, *_ = sheets[0]
        assert heading == "List Data Mahasiswa"
        assert position == f"120 mahasiswa {today()}"


def test_all_hits_of_a_search_are_printed(
    window: Window, other: Connection, tmp_path: Path
) -> None:
    """A class list has titles on each sheet. More than 10 columns are printed in landscape."""
    refill(other, STUDENTS)
    window.goto("/?cari=bantul")
    assert len(rows(printed(window, tmp_path, A4)[0])) >= 35
    for columns, rows_min in ((10, 30), (16, 18)):
        window.goto(
            f"/mahasiswa/cetak?cari=bantul&judul=Kelas+7A&kolom={columns}&tanpa=alamat&kota=Sleman&nama=Agus"
        )
        sheets = printed(window, tmp_path, A4)
        nims = [row[1] for row in rows(*sheets)]
        assert nims == FOUND
        assert all(len(rows(sheet)) >= rows_min for sheet in sheets[:-1])
        titles = f"No NIM Nama {' '.join(map(str, range(1, columns + 1)))}"
        assert all(titles in sheet for sheet in sheets)
        first = " ".join(sheets[0]).split()
        assert first[:2] == ["Kelas", "7A"]
        assert not {"Judul", "Tampilkan", "Kembali", "Tanpa", "Ctrl+P."} & set(first)
        assert f"Sleman, {today()}" in sheets[-1]
        window.pdf(path=tmp_path / "asked.pdf", prefer_css_page_size=True)
        asked = run("pdfinfo", tmp_path / "asked.pdf")
        width, height = map(float, re.findall(r"Page size: +(\S+) x (\S+)", asked)[0])
        assert (width > height) == (columns == 16)


SIGNED = "/mahasiswa/cetak?judul=Remedi&kolom=5&kota=Sleman&jabatan=Wali+Kelas&nama=Agus&nip=1965"


def test_a_signature_stands_below_students_and_the_title_and_the_date_on_each_sheet(
    window: Window, other: Connection, tmp_path: Path
) -> None:
    """Whatever the number of students is. A row to write in is at least 8 mm high."""
    for count in (28, 101):
        refill(other, STUDENTS[:count])
        window.goto(f"{SIGNED}&kop=Dinas+Pendidikan%0D%0ASMP+1")
        sheets = printed(window, tmp_path, A4)
        last = sheets[-1]
        assert f"Remedi {count} mahasiswa, {today()}" in last
        assert all(sheet.count("No NIM Nama Alamat 1 2 3 4 5") == 1 for sheet in sheets)
        assert last[-5:-1] == [f"Sleman, {today()}", "Wali Kelas", "Agus", "NIP 1965"]
        assert rows(last), count
        assert all(len(rows(sheet)) <= 297 / 8 for sheet in sheets)
    assert sheets[0][:2] == ["Dinas Pendidikan", "SMP 1"]
    assert "SMP 1" not in last
