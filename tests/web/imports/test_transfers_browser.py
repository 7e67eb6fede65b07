"""Imports in a real browser, by keyboard and on a phone. test_panduan.py imports and downloads, too."""

import re

from apsw import Connection
from harness import Site
from playwright.sync_api import expect
from spreadsheets import numbered
from stores import refill
from web.browser import PHONE, OpenWindow, Window
from web.pages.test_browser import follow

from mahasiswa import wording
from mahasiswa.settings import BOOTSTRAP


def test_an_import_form_without_a_file_is_announced_to_assistive_technology(window: Window) -> None:
    """The message is an alert, has the focus, and describes the file field."""
    window.goto("/mahasiswa/impor")
    window.get_by_role("button", name="Lihat pratinjau").click()
    words = "Pilih berkas atau tempel data dari Excel, lalu lanjutkan ke pratinjau."
    expect(window.get_by_role("alert")).to_have_text(words)
    expect(window.get_by_role("alert")).to_be_focused()
    expect(window.get_by_label("Berkas")).to_have_accessible_description(
        re.compile(re.escape(words))
    )


def test_search_sorting_paging_and_import_work_by_keyboard(
    open_window: OpenWindow, other: Connection
) -> None:
    """They work while the CDN hangs. Enter in a field of a preview checks again, and saves nothing."""
    refill(other, numbered(12, "Nama {}"))
    window = open_window()
    window.route(BOOTSTRAP, lambda _: None)
    window.goto("/?per=10", wait_until="commit")
    window.get_by_role("searchbox").focus()
    window.keyboard.type("nama")
    follow(window)
    expect(window).to_have_url("/?cari=nama&di=&per=10")
    for name in ("Berikutnya", "Alamat", "Impor"):
        window.get_by_role("link", name=name, exact=True).first.focus()
        follow(window)
    window.get_by_label("Berkas").focus()
    for _ in range(3):  # past the template and the guide
        window.keyboard.press("Tab")
    window.keyboard.insert_text("NIM\tNama\tAlamat\n230077\tAni\tSolo\n\tEko\tSleman")
    window.keyboard.press("Tab")
    follow(window)
    window.get_by_label("NIM, baris 3").fill("230078")
    follow(window)
    window.get_by_role("button", name="Simpan 2 mahasiswa baru").focus()
    assert len(other.execute("SELECT 1 FROM mahasiswa").fetchall()) == 12
    follow(window)
    expect(window.locator("tbody tr")).to_have_count(14)


def test_a_tick_in_the_head_of_the_table_selects_the_page(
    open_window: OpenWindow, other: Connection
) -> None:
    """A second click takes the ticks away. Without scripts it is absent, because it would do nothing."""
    refill(other, numbered(12))
    for are_enabled in (False, True):
        window = open_window(java_script_enabled=are_enabled)
        window.goto("/?per=10")
        of_page = window.get_by_label(wording.TICK_ALL)
        expect(of_page).to_be_visible(visible=are_enabled)
        expect(window.locator("tbody tr").get_by_role("checkbox")).to_have_count(10)
    for ticks in (10, 0, 10):
        of_page.click()
        expect(window.locator("tbody tr").get_by_role("checkbox", checked=True)).to_have_count(
            ticks
        )
    window.get_by_role("button", name="Pilih yang dicentang").first.click()
    expect(window.get_by_role("button", name="Hapus 10 mahasiswa")).to_be_visible()


def test_a_browser_that_goes_back_moves_no_tick_to_another_row(
    open_window: OpenWindow, site: Site
) -> None:
    """It keeps the ticks by the places of the boxes, and a student was added meanwhile."""
    for number in range(1, 5):
        site.add(f"{number:02}", f"Nama {number}", "Solo")
    window = open_window()
    # A browser that keeps no pages asks for the list again. Playwright keeps none if it has a route.
    window.route("**/none", lambda route: route.abort())
    window.goto("/?halaman=1")
    window.locator("tbody tr").filter(has_text="Nama 2").get_by_role("checkbox").check()
    window.get_by_role("button", name="Pilih yang dicentang").first.click()
    expect(window.get_by_role("button", name="Hapus 1 mahasiswa")).to_be_visible()
    site.add("00", "Nama 0", "Solo")
    window.go_back()
    expect(window.locator("tbody tr")).to_have_count(5)
    ticked = window.locator("tbody tr").filter(has=window.get_by_role("checkbox", checked=True))
    expect(ticked.filter(has_not_text="Nama 2")).to_have_count(0)


def test_a_phone_shows_the_links_that_sort_the_list(
    open_window: OpenWindow, other: Connection
) -> None:
    """There the list has no header row."""
    refill(other, numbered(3, "Nama {}"))
    window = open_window(**PHONE)
    window.goto("/?cari=a&arah=turun")
    link = window.get_by_role("link", name="Nama", exact=True)
    expect(link).to_be_in_viewport(ratio=1)
    link.tap()
    expect(window.locator("tbody tr")).to_contain_text(["Nama 0", "Nama 1", "Nama 2"])
