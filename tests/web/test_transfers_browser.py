"""Spreadsheets in a real browser: chosen or pasted, looked at, saved, found again, and downloaded."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest
from browser import (
    DESKTOP,
    PHONE,
    Network,
    OpenWindow,
    Window,
    install_node_modules,
    start_chromium,
    window_opener,
)
from harness import Service, Site
from playwright.sync_api import Download, FilePayload, expect
from spreadsheets import (
    HEADER,
    Database,
    Record,
    another_program,
    by_openpyxl,
    by_xlsxwriter,
    cells_of,
    csv,
    own_database,
    own_service,
    own_site,
)

# The fixtures, which pytest finds by these names.
__all__ = [
    "another_program",
    "install_node_modules",
    "own_database",
    "own_service",
    "own_site",
    "start_chromium",
    "window_opener",
]

FILE = by_xlsxwriter(
    HEADER,
    ("00001", "Ani Lestari", "Solo"),
    ("00002", "Budi Santoso", "Sleman"),
    *((f"{n:05}", f"Nama {n}", f"Jalan Émile {n % 7}") for n in range(3, 31)),
    ("1,2E+11", "Rusak", "Solo"),
)
STORED: list[Record] = [("00001", "Ani Lestari", "Solo"), ("00002", "Budi", "Bantul"), ("99999", "Zainab", "Klaten")]


class Hands(NamedTuple):
    """What a person has in hands, and how the delivery network is."""

    network: Network
    size: tuple[int, int]
    scheme: str


@pytest.fixture
def empty(site: Site, other: Database) -> Site:
    """Visit an empty list."""
    other.fill([])
    return site


def choose(window: Window, name: str, data: bytes) -> None:
    """Choose a file on the form and look at the preview."""
    file: FilePayload = {"name": name, "mimeType": "", "buffer": data}
    window.page.get_by_label("Berkas").set_input_files([file])
    press(window, "Pratinjau")


def press(window: Window, name: str) -> None:
    """Press a button and wait for the page it leads to."""
    with window.leaving():
        window.page.get_by_role("button", name=name).click()


def follow(window: Window, name: str, *, exact: bool = True) -> None:
    """Follow a link and wait for the page it leads to."""
    with window.leaving():
        window.page.get_by_role("link", name=name, exact=exact).click()


def download(window: Window, name: str) -> Download:
    """Follow a link to a file; the page stays."""
    with window.page.expect_download() as download:
        window.page.get_by_role("link", name=name, exact=True).click()
    return download.value


def counts(window: Window) -> list[str]:
    """Return the four counts of the preview."""
    return window.page.locator(".summary dd").all_inner_texts()


@pytest.mark.parametrize(
    "hands",
    [Hands("answers", DESKTOP, "light"), Hands("unreachable", PHONE, "dark"), Hands("hangs", DESKTOP, "dark")],
    ids=["desktop", "phone, dark, alone", "dark, a network that hangs"],
)
def test_the_whole_round(hands: Hands, open_window: OpenWindow, site: Site, other: Database, tmp_path: Path) -> None:
    """A workbook is chosen, looked at, saved, searched, sorted, paged, downloaded, and comes back without a change."""
    other.fill(STORED)
    phone = hands.size == PHONE
    window = open_window(hands.network, hands.size, color_scheme=hands.scheme, is_mobile=phone, has_touch=phone)
    page = window.page
    window.open("/")
    follow(window, "Impor")
    choose(window, "daftar.xlsx", FILE)
    assert counts(window) == ["28", "1", "1", "1"]
    expect(page.get_by_text("Baris 32: NIM 1,2E+11 sudah dibulatkan oleh Excel")).to_be_visible()
    assert page.get_by_role("cell").all_inner_texts() == ["3", "00002", "Budi\nBantul", "Budi Santoso\nSleman"]
    page.get_by_text("Baru (28)").click()
    expect(page.get_by_role("cell", name="Nama 30", exact=True)).to_be_visible()
    assert [row[1:] for row in site.list().rows] == STORED
    press(window, "Perbarui: simpan 29 data")
    expect(page.get_by_role("heading", name="List Data Mahasiswa")).to_be_visible()
    expect(window.rows).to_have_count(31)
    page.get_by_role("searchbox").fill("émile")
    press(window, "Cari")
    expect(window.rows).to_have_count(28)
    follow(window, "Nama")
    expect(page.locator("th", has_text="Nama")).to_have_attribute("aria-sort", "ascending")
    window.open(page.url.removeprefix(window.url) + "&per=10")
    follow(window, "Berikutnya")
    expect(page.get_by_text("11–20 dari 28")).to_be_visible()
    follow(window, "Terakhir")
    expect(page.get_by_text("21–28 dari 28")).to_be_visible()
    names = sorted(f"Nama {n}" for n in range(3, 31))
    assert [cells[1] for cells in window.cells()] == names[20:]
    found = download(window, "Ekspor Excel")
    assert found.suggested_filename == "mahasiswa.xlsx"
    found.save_as(tmp_path / "mahasiswa.xlsx")
    rows = [tuple(cell.value for cell in row) for row in cells_of((tmp_path / "mahasiswa.xlsx").read_bytes())]
    assert rows[0] == HEADER
    assert [row[1] for row in rows[1:]] == names
    text = download(window, "Ekspor CSV")
    assert text.suggested_filename == "mahasiswa.csv"
    follow(window, "Tampilkan semua")
    expect(window.rows).to_have_count(31)
    follow(window, "Impor")
    choose(window, "mahasiswa.csv", text.path().read_bytes())
    assert counts(window) == ["0", "0", "28", "0"]
    expect(page.get_by_role("button")).to_have_count(0)


def test_pasting_cells(open_window: OpenWindow, empty: Site) -> None:
    """Cells copied in Excel: tabs and line breaks of the text area come through, a line break in a cell too."""
    window = open_window()
    window.open("/mahasiswa/impor")
    window.page.get_by_label("Atau tempel sel").fill('NIM\tNama\tAlamat\n007\tAni\t"Baris\ndua"\n008\tBudi "B"\tSolo\n')
    press(window, "Pratinjau")
    assert counts(window) == ["2", "0", "0", "0"]
    press(window, "Simpan 2 data")
    assert window.cells() == [["007", "Ani", "Baris\ndua"], ["008", 'Budi "B"', "Solo"]]
    assert [row[1:] for row in empty.list().rows] == [("007", "Ani", "Baris\ndua"), ("008", 'Budi "B"', "Solo")]


def test_texts_that_a_form_might_alter(open_window: OpenWindow, other: Database) -> None:
    """Line ends, tabs, quotes and signs of any script pass through the confirmation's one field to the byte."""
    other.fill([])
    texts = ("007", "A\r\nB\rC\nD\tE", " \"'<>&amp;+%20 漢字 👩🏽‍🎓 ")
    cells = "\t".join('"' + text.replace('"', '""') + '"' for text in texts).encode()
    window = open_window()
    window.open("/mahasiswa/impor")
    choose(window, "a.csv", b"NIM\tNama\tAlamat\r\n" + cells + b"\r\n")
    press(window, "Simpan 1 data")
    assert window.cells() == [list(texts)]


def test_nothing_chosen(open_window: OpenWindow, empty: Site) -> None:
    """The form again, with a word that assistive technology reads out."""
    window = open_window()
    window.open("/mahasiswa/impor")
    press(window, "Pratinjau")
    words = "Pilih berkas atau tempel data dari Excel, lalu lanjutkan ke pratinjau."
    expect(window.page.get_by_role("alert")).to_have_text(words)
    expect(window.page.get_by_label("Berkas")).to_have_accessible_description(re.compile(re.escape(words)))
    assert empty.list().rows == []


@pytest.mark.parametrize("mebibytes", [17, 40])
def test_a_file_that_is_too_large(open_window: OpenWindow, empty: Site, tmp_path: Path, mebibytes: int) -> None:
    """The browser shows the page that says so, and not that the connection was lost; the way back leads on."""
    (tmp_path / "besar.csv").write_bytes(csv(HEADER) + b"x" * (mebibytes << 20))
    window = open_window()
    window.open("/mahasiswa/impor")
    window.page.get_by_label("Berkas").set_input_files(tmp_path / "besar.csv")
    press(window, "Pratinjau")
    expect(window.page.get_by_text("Ukuran berkas melebihi 16 MB")).to_be_visible()
    assert empty.list().rows == []


def test_someone_else_meanwhile(open_window: OpenWindow, site: Site, other: Database) -> None:
    """The preview comes again with the newest texts, and what it shows can be saved."""
    other.fill(STORED)
    window = open_window()
    window.open("/mahasiswa/impor")
    choose(window, "a.csv", csv(HEADER, ("00002", "Budi S.", "Bantul"), ("00003", "Citra", "Solo")))
    site.edit("00002", "Budi Orang Lain", "Klaten")
    press(window, "Perbarui: simpan 2 data")
    expect(window.page.get_by_role("alert")).to_contain_text("sudah diubah orang lain sejak pratinjau")
    assert window.page.get_by_role("cell").all_inner_texts()[1:] == [
        "00002",
        "Budi Orang Lain\nKlaten",
        "Budi S.\nBantul",
    ]
    press(window, "Perbarui: simpan 2 data")
    assert [cells[1] for cells in window.cells()] == ["Ani Lestari", "Budi S.", "Citra", "Zainab"]


def test_going_back_and_refreshing(open_window: OpenWindow, empty: Site) -> None:
    """After saving, a refresh asks for the list alone, and nothing is written twice."""
    window = open_window()
    window.open("/mahasiswa/impor")
    choose(window, "a.csv", csv(HEADER, ("1", "Ani", "Solo")))
    press(window, "Simpan 1 data")
    window.requests.clear()
    window.reload()
    assert window.requests == ["GET /"]
    assert window.cells() == [["1", "Ani", "Solo"]]
    assert len(empty.list().rows) == 1


def test_everything_by_keyboard(open_window: OpenWindow, empty: Site) -> None:
    """Searching, sorting, paging, and the import of pasted cells need no mouse."""
    for number in range(12):
        empty.add(f"{number:02}", f"Nama {number}", "Solo")
    window = open_window()
    page = window.page
    window.open("/?per=10")
    page.get_by_role("searchbox").focus()
    page.keyboard.type("nama")
    enter(window)
    assert window.requests[-1] == "GET /?cari=nama&per=10"
    for name in ("Berikutnya", "Alamat", "Impor"):
        page.get_by_role("link", name=name, exact=True).focus()
        enter(window)
    page.get_by_label("Berkas").focus()
    page.keyboard.press("Tab")  # past the template
    page.keyboard.press("Tab")
    page.keyboard.insert_text("77\tAni\tSolo")
    page.keyboard.press("Tab")
    enter(window)
    assert counts(window) == ["1", "0", "0", "0"]
    page.get_by_role("button", name="Simpan 1 data").focus()
    enter(window)
    expect(window.rows).to_have_count(13)


def enter(window: Window) -> None:
    """Press Enter and wait for the page it leads to."""
    with window.leaving():
        window.page.keyboard.press("Enter")


def test_a_phone_shows_how_the_list_is_sorted(open_window: OpenWindow, site: Site, other: Database) -> None:
    """Where the list has no header row, its sorting links are there all the same, large enough for a thumb."""
    other.fill(STORED)
    window = open_window(size=PHONE, is_mobile=True, has_touch=True)
    window.open("/?cari=a")
    for name in ("NIM", "Nama", "Alamat"):
        link = window.page.get_by_role("link", name=name, exact=True)
        expect(link).to_be_in_viewport(ratio=1)
        box = link.bounding_box()
        assert box is not None
        assert box["height"] >= 24
    with window.leaving():
        window.page.get_by_role("link", name="Nama", exact=True).tap()
    assert [cells[1] for cells in window.cells()] == sorted(record[1] for record in STORED)
    assert site.page("/?cari=a&urut=nama").nims == [cells[0] for cells in window.cells()]


def test_a_preview_of_thousands(open_window: OpenWindow, empty: Site, service: Service) -> None:
    """A long preview is a page that a browser shows and sends back whole."""
    rows = [(f"{n:05}", f"Nama Mahasiswa {n}", "Jalan Kaliurang 5, Sleman") for n in range(5_000)]
    window = open_window()
    window.open("/mahasiswa/impor")
    choose(window, "a.csv", csv(HEADER, *rows))
    assert counts(window) == ["5.000", "0", "0", "0"]
    with window.page.expect_request(f"{service.url}/mahasiswa/impor/simpan"):
        press(window, "Simpan 5.000 data")
    assert [row[1:] for row in empty.list().rows] == rows


def test_the_template(open_window: OpenWindow, empty: Site) -> None:
    """It is downloaded from the form, and its own import has nothing against it."""
    window = open_window()
    window.open("/mahasiswa/impor")
    template = download(window, "Unduh templat")
    assert template.suggested_filename == "templat-mahasiswa.xlsx"
    choose(window, "templat-mahasiswa.xlsx", template.path().read_bytes())
    assert counts(window) == ["0", "0", "0", "0"]
    window.open("/mahasiswa/impor")
    choose(window, "isi.xlsx", by_openpyxl(HEADER, ("007", "Ani", "Solo")))
    press(window, "Simpan 1 data")
    assert [row[1:] for row in empty.list().rows] == [("007", "Ani", "Solo")]
