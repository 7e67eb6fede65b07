"""Browser tests of the history: a change is taken back with a keyboard and a phone, and the page fits a phone and paper."""

import re

import pytest
from browser import PHONE, Network, OpenWindow, Window
from every_page import SITI
from harness import Site
from playwright.sync_api import expect

SMALL_PHONE = (360, 640)


def latest(window: Window, words: str) -> None:
    """Check that the line with the latest change begins with these words."""
    expect(window.page.locator("p.latest")).to_have_text(re.compile(f"^Terakhir: {re.escape(words)} .*"))


def test_a_keyboard_takes_back_a_deletion(open_window: OpenWindow, site: Site) -> None:
    """Tab reaches the button of the latest change before those of older changes, and Enter presses it."""
    site.add(*SITI)
    site.delete(SITI[0])
    window = open_window()
    window.open("/mahasiswa/riwayat")
    window.page.get_by_role("button", name="Cari").focus()
    button = window.page.get_by_role("button", name="Kembalikan data yang dihapus").first
    for _ in range(6):  # past the links to other pages
        window.page.keyboard.press("Tab")
        if button.evaluate("button => button === document.activeElement"):
            break
    expect(button).to_be_focused()
    expect(button).to_have_accessible_description(re.compile("^Dihapus .*2207$"))
    with window.leaving():
        window.page.keyboard.press("Enter")
    latest(window, "Siti Aminah (2207) dikembalikan")
    window.open("/")
    assert window.cells() == [list(SITI)]


def test_a_phone_shows_a_twin_above_the_list_and_takes_it_back(open_window: OpenWindow, site: Site) -> None:
    """The warning stands above the first row, below the line that names the new record. One touch removes the record."""
    site.add(*SITI)
    site.add("22O7", *SITI[1:])
    window = open_window(size=PHONE)
    window.open("/?halaman=1")
    parts = [window.page.locator(part) for part in ("p.latest", ".twin", "tbody tr >> nth=0")]
    tops = [part.evaluate("element => element.getBoundingClientRect().top") for part in parts]
    assert tops == sorted(tops)
    with window.leaving():
        window.page.get_by_role("button", name="Batalkan penambahan").click()
    assert window.cells() == [list(SITI)]
    assert window.page.url == window.url + "/?halaman=1"


@pytest.mark.parametrize("network", ["answers", "unreachable"])
def test_the_history_fits_a_small_phone(network: Network, open_window: OpenWindow, site: Site) -> None:
    """On a phone each change is a card as wide as the screen, with a button that a finger can hit."""
    site.add("9" * 255, "Wolfeschlegelsteinhausenbergerdorff" * 20, "https://maps.example/" + "x" * 900)
    site.edit("9" * 255, "Siti", "Sleman")
    window = open_window(network, SMALL_PHONE)
    window.open("/mahasiswa/riwayat")
    window.page.wait_for_load_state("load")
    assert window.page.evaluate("document.documentElement.scrollWidth") == SMALL_PHONE[0]
    box = window.page.get_by_role("button", name="Batalkan").first.bounding_box()
    assert box is not None
    assert box["height"] >= 44
    texts = [window.page.locator(f"td[data-label={label}]").first.bounding_box() for label in ("Sebelum", "Sesudah")]
    assert None not in texts
    assert [text and text["y"] for text in texts] == [texts[0] and texts[0]["y"]] * 2, "side by side"


@pytest.mark.parametrize("network", ["answers", "unreachable"])
def test_the_history_prints_without_buttons(network: Network, open_window: OpenWindow, site: Site) -> None:
    """On paper the history is a table with its texts; nothing that needs a click is printed."""
    site.add("20/456830/TK/50660", *SITI[1:])
    window = open_window(network)
    window.open("/mahasiswa/riwayat")
    window.page.wait_for_load_state("load")
    window.page.emulate_media(media="print")
    for name in ("button", "search", "navigation"):
        expect(window.page.get_by_role(name).first).to_be_hidden()
    expect(window.page.locator("tbody tr").first).to_contain_text("20/456830/TK/50660")
