"""Lists on paper, as Chromium prints them: rows on a page, the header on each page, and the lines above it."""

import re
import shutil
from datetime import datetime
from html import unescape
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pytest
from browser import OpenWindow, Window, each_look
from processes import run
from spreadsheets import Database

from mahasiswa import wording

A4 = ("210mm", "297mm")
F4 = ("215mm", "330mm")
LINE_MAX_POINTS = 3
"""Words of one line may begin at different heights, because digits and bold letters have boxes of their own."""

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


class Word(NamedTuple):
    """A word on paper, with its edges in points from the left and the upper edge of the sheet."""

    left: float
    top: float
    right: float
    text: str


class Sheet:
    """A sheet of paper: the words of each line from left to right, and all of them as one text."""

    def __init__(self, words: list[Word]) -> None:
        self.lines: list[list[Word]] = []
        for word in sorted(words, key=attrgetter("top")):
            if not self.lines or word.top - self.lines[-1][0].top > LINE_MAX_POINTS:
                self.lines.append([])
            self.lines[-1].append(word)
        for line in self.lines:
            line.sort()
        self.texts = [" ".join(word.text for word in line) for line in self.lines]
        self.text = "\n".join(self.texts)


def printed(window: Window, folder: Path, paper: tuple[str, str]) -> list[Sheet]:
    """Print the page of a window; return its sheets of paper. `-bbox` depends on no font and on no guess of columns."""
    pdftotext = shutil.which("pdftotext")
    if pdftotext is None:
        pytest.skip("pdftotext is not installed (Debian: poppler-utils)")
    window.page.wait_for_load_state("load")
    window.page.pdf(path=folder / "daftar.pdf", width=paper[0], height=paper[1])
    pages = run(pdftotext, "-bbox", folder / "daftar.pdf", "-").split("<page ")[1:]
    pattern = r'<word xMin="(.+?)" yMin="(.+?)" xMax="(.+?)" yMax=".+?">(.*?)</word>'
    words = [re.findall(pattern, page) for page in pages]
    return [
        Sheet([Word(float(x), float(y), float(end), unescape(text)) for x, y, end, text in page])
        for page in words
    ]


def rows(*sheets: Sheet) -> list[list[str]]:
    return [line.split() for sheet in sheets for line in sheet.texts if re.match(r"\d+ 20/", line)]


def today() -> str:
    """Return the date in the default time zone of the service, as “21 November 2026”."""
    return wording.date(datetime.now(ZoneInfo("Asia/Jakarta")))


def test_the_whole_list_is_printed_as_a_table(
    open_window: OpenWindow, other: Database, tmp_path: Path
) -> None:
    """At least 35 rows stand on each full page, below the header, with title, number of students and date on the first."""
    other.fill(STUDENTS[:120])
    window = open_window("answers")
    before = today()
    window.open("/")
    for look in each_look(window):
        sheets = printed(window, tmp_path, A4 if look == "without the CDN" else F4)
        assert all(len(rows(sheet)) >= 35 for sheet in sheets[:-1]), look
        assert [row[:2] for row in rows(*sheets)] == [
            [str(n), nim] for n, (nim, _, _) in enumerate(STUDENTS[:120], 1)
        ]
        for number, sheet in enumerate(sheets, 1):
            assert "No NIM Nama Alamat" in sheet.texts
            assert f"Halaman {number} dari {len(sheets)}" in sheet.text
        title, line = sheets[0].texts[:2]
        assert title == "List Data Mahasiswa"
        assert line in [f"120 mahasiswa {day}" for day in (before, today())]
        _, unit, day, *_ = sheets[0].lines[1]
        assert day.left - unit.right > 100  # the number is on the left, and the date on the right


def test_all_hits_of_a_search_are_printed(window: Window, other: Database, tmp_path: Path) -> None:
    """A class list has titles on each sheet."""
    other.fill(STUDENTS)
    window.open("/?cari=bantul")
    assert len(rows(printed(window, tmp_path, A4)[0])) >= 35
    for columns, rows_min in ((10, 30), (16, 18)):  # more than 10 columns are printed in landscape
        window.open(
            f"/mahasiswa/cetak?cari=bantul&judul=Kelas+7A&kolom={columns}&tanpa=alamat&kota=Sleman&nama=Agus"
        )
        sheets = printed(window, tmp_path, A4)
        assert [row[1] for row in rows(*sheets)] == FOUND
        assert all(len(rows(sheet)) >= rows_min for sheet in sheets[:-1])
        for sheet in sheets:
            assert f"No NIM Nama {' '.join(map(str, range(1, columns + 1)))}" in sheet.texts
        first = sheets[0].text.split()
        assert first[:2] == ["Kelas", "7A"]
        assert not {"Judul", "Tampilkan", "Kembali", "Tanpa", "Ctrl+P."} & set(first)
        assert f"Sleman, {today()}" in sheets[-1].texts
        window.page.pdf(path=tmp_path / "asked.pdf", prefer_css_page_size=True)
        asked = run("pdftotext", "-bbox", tmp_path / "asked.pdf", "-")
        width, height = map(float, re.findall(r'<page width="(.+?)" height="(.+?)"', asked)[0])
        assert (width > height) == (columns == 16)


SIGNED = "/mahasiswa/cetak?judul=Remedi&kolom=5&kota=Sleman&jabatan=Wali+Kelas&nama=Agus&nip=1965"


def test_a_signature_stands_below_students_and_the_title_and_the_date_on_each_sheet(
    window: Window, other: Database, tmp_path: Path
) -> None:
    """Whatever the number of students is. A row to write in is at least 8 mm high."""
    for count in (27, 28, 44, 101):
        other.fill(STUDENTS[:count])
        window.open(f"{SIGNED}&kop=Dinas+Pendidikan%0D%0ASMP+1")
        sheets = printed(window, tmp_path, A4)
        last = sheets[-1]
        assert f"Remedi {count} mahasiswa, {today()}" in last.text
        assert all(sheet.texts.count("No NIM Nama Alamat 1 2 3 4 5") == 1 for sheet in sheets)
        assert all("Remedi" in sheet.text for sheet in sheets)
        assert last.texts[-5:-1] == [f"Sleman, {today()}", "Wali Kelas", "Agus", "NIP 1965"]
        assert rows(last), count
        tops = [line[0].top for line in sheets[0].lines if "/TK/" in "".join(w.text for w in line)]
        assert min(b - a for a, b in pairwise(tops)) >= 8 * 72 / 25.4 - 0.5
    assert sheets[0].texts[:2] == ["Dinas Pendidikan", "SMP 1"]
    assert "SMP 1" not in last.text
