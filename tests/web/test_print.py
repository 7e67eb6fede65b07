"""Lists on paper, as Chromium prints them: rows on a page, the header on each page, and the lines above it."""

import re
import shutil
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from browser import OpenWindow, Window, each_look
from processes import run
from spreadsheets import Database

from mahasiswa import wording

A4 = ("210mm", "297mm")
F4 = ("215mm", "330mm")
ADDRESSES = (
    "Jl. Kaliurang KM 5 No. 12, Caturtunggal, Depok, Sleman",
    "Perum Griya Asri Blok C4, RT 03/RW 11, Kasihan, Bantul",
    "Gg. Mawar No. 7, Umbulharjo, Yogyakarta",
)
STUDENTS = [(f"20/{456000 + n}/TK/{50000 + n}", f"Siti Nur Rahmawati {n}", ADDRESSES[n % 3]) for n in range(300)]
"""Records with names and addresses of a usual length."""
FOUND = [nim for nim, _, alamat in STUDENTS if "Bantul" in alamat]


def printed(window: Window, folder: Path, paper: tuple[str, str]) -> list[str]:
    """Print the page of a window; return the text of each sheet of paper, with its layout."""
    pdftotext = shutil.which("pdftotext")
    if pdftotext is None:
        pytest.skip("pdftotext is not installed (Debian: poppler-utils)")
    window.page.wait_for_load_state("load")
    window.page.pdf(path=folder / "daftar.pdf", width=paper[0], height=paper[1])
    return run(pdftotext, "-layout", folder / "daftar.pdf", "-").split("\f")[:-1]


def rows(*sheets: str) -> list[list[str]]:
    """Return the words of each row of the tables on sheets."""
    return [row.split() for row in re.findall(r"^ *\d+ +20/.*$", "\n".join(sheets), re.MULTILINE)]


def today() -> str:
    """Return the date in the default time zone of the service, as “21 November 2026”."""
    return wording.date(datetime.now(ZoneInfo("Asia/Jakarta")))


def test_the_whole_list_is_printed_as_a_table(open_window: OpenWindow, other: Database, tmp_path: Path) -> None:
    """At least 35 rows stand on each full page, below the header, with title, number of students and date on the first."""
    other.fill(STUDENTS)
    window = open_window("if possible")
    before = today()
    window.open("/")
    for look in each_look(window):
        sheets = printed(window, tmp_path, A4 if look == "without the CDN" else F4)
        assert all(len(rows(sheet)) >= 35 for sheet in sheets[:-1]), look
        assert [row[:2] for row in rows(*sheets)] == [[str(n), nim] for n, (nim, _, _) in enumerate(STUDENTS, 1)]
        for number, sheet in enumerate(sheets, 1):
            assert re.search(r"^ *No +NIM +Nama +Alamat$", sheet, re.MULTILINE)
            assert f"Halaman {number} dari {len(sheets)}" in sheet
        title, line = [text.strip() for text in sheets[0].splitlines() if text.strip()][:2]
        assert title == "List Data Mahasiswa"
        assert re.split(" {2,}", line) in [["300 mahasiswa", day] for day in (before, today())]


def test_all_hits_of_a_search_are_printed(window: Window, other: Database, tmp_path: Path) -> None:
    """The link "Cetak semua" shows a page whose print has every hit, the text of the search, and no links and buttons.

    A page of 50 hits is printed as densely: its ticks are not printed. A class list has its columns on each sheet.
    """
    other.fill(STUDENTS)
    window.open("/?cari=bantul")
    assert len(rows(printed(window, tmp_path, A4)[0])) >= 35
    with window.leaving():
        window.page.get_by_role("link", name="Cetak semua").click()
    sheets = printed(window, tmp_path, A4)
    assert [row[1] for row in rows(*sheets)] == FOUND
    text = "\n".join(sheets)
    assert "100 mahasiswa ditemukan" in text
    assert f"Pencarian: “bantul”. {today()}" in text
    words = "Edit Delete Tambah Impor Riwayat Cari Hapus Unduh Terakhir Aksi versi Ctrl"
    assert [hidden for hidden in words.split() if hidden in text] == []
    window.open("/mahasiswa/cetak?cari=bantul&judul=Kelas+7A&kolom=16&tanpa=alamat")
    sheets = printed(window, tmp_path, A4)
    assert [row[1] for row in rows(*sheets)] == FOUND
    assert all(len(rows(sheet)) >= 35 for sheet in sheets[:-1])
    for sheet in sheets:
        assert re.search(r"^ *No +NIM +Nama +1 +2 .* 15 +16$", sheet, re.MULTILINE)
    first = sheets[0].split()
    assert first[:2] == ["Kelas", "7A"]
    assert not {"Judul", "Tampilkan", "Kembali", "Tanpa", "Ctrl+P."} & set(first)


def test_a_long_address_takes_more_lines_and_is_not_cut(window: Window, other: Database, tmp_path: Path) -> None:
    """A long text is printed whole, and a row is never divided between two sheets."""
    words = [f"kata{n:03}" for n in range(300)]
    other.fill([(f"20/{n}", "Siti", " ".join(words)) for n in range(12)])
    window.open("/")
    for sheet in printed(window, tmp_path, A4):
        assert [len(re.findall(word, sheet)) for word in words] == [len(rows(sheet))] * len(words)
