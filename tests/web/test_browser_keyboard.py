"""Browser tests of the keyboard: the order of the stops, their visible focus, and where the focus starts."""

import pytest
from browser import CONFIRMATION, Network, OpenWindow, Window, contrast
from every_page import add_many
from harness import Site
from playwright.sync_api import Page, expect


@pytest.mark.parametrize("network", ["answers", "unreachable"])
def test_records_are_added_edited_and_deleted_by_keyboard(network: Network, open_window: OpenWindow) -> None:
    """Tab and Enter are enough to add, edit and delete, in the order of the page, with a visible focus at each stop."""
    window = open_window(network)
    page = window.page
    window.open("/")
    tab_to(window, "Tambah Data")
    follow(window)
    expect(page.get_by_label("NIM")).to_be_focused()
    page.keyboard.type("2207")
    assert tab(window) == "nama"
    page.keyboard.type("Siti")
    assert tab(window) == "alamat"
    page.keyboard.type("Sleman")
    assert [tab(window), tab(window)] == ["Simpan", "Simpan dan tambah lagi"]
    assert tab(window, "Shift+Tab") == "Simpan"
    follow(window)
    assert window.cells() == [["2207", "Siti", "Sleman"]]
    tab_to(window, "Edit")
    follow(window)
    expect(page.get_by_label("Nama")).to_be_focused()
    page.keyboard.press("End")
    page.keyboard.type(" Aminah")
    # Enter in a text field also sends the form.
    follow(window)
    assert window.cells() == [["2207", "Siti Aminah", "Sleman"]]
    tab_to(window, "Edit")
    assert tab(window) == "Delete"
    page.keyboard.press("Enter")
    expect(window.rows).to_have_count(0)
    assert window.dialogs == [CONFIRMATION]


def test_ten_records_are_added_with_forty_key_presses(window: Window) -> None:
    """Beside the texts, the keys lead to the form, from field to field, and back to the list."""
    presses = 0
    window.open("/")

    def press(key: str, until: str = "") -> None:
        nonlocal presses
        while True:
            presses += 1
            if tab(window, key) in ("", until) or not until:
                return

    press("Tab", "Tambah Data")
    for number in range(10):
        follow(window)
        presses += 1
        expect(window.page.get_by_label("NIM")).to_be_focused()
        for text in (f"23000{number}", f"Nama {number}", "Sleman"):
            window.page.keyboard.type(text)
            if text != "Sleman":
                press("Tab")
        if number == 0:
            press("Tab", "Simpan dan tambah lagi")
    press("Tab", "Simpan")
    follow(window)
    assert len(window.cells()) == 10
    assert presses + 1 <= 40


def test_focus_is_never_hidden_under_the_header(open_window: OpenWindow, site: Site) -> None:
    """When a person moves up a long list by keyboard, the sticky header never covers the focused element."""
    add_many(site, 12)
    window = open_window(size=(1280, 300))
    window.open("/")
    window.rows.last.get_by_role("button").focus()
    covered = """() => {
      const focus = document.activeElement, box = focus.getBoundingClientRect(), x = box.x + box.width / 2;
      return [box.y + 1, box.bottom - 1].some(y => !focus.contains(document.elementFromPoint(x, y)));
    }"""
    for stop in range(2 * 12 - 1):
        window.page.keyboard.press("Shift+Tab")
        assert not window.page.evaluate(covered), f"stop {stop}"
    assert focused(window.page) == "Edit"
    expect(window.rows.first.get_by_role("link")).to_be_focused()


def tab_to(window: Window, name: str) -> None:
    """Press Tab until the element with this name or text has the focus."""
    stops = [tab(window)]
    while stops[-1] != name:
        assert stops.count(stops[0]) == 1, f"{name} is none of {stops}"
        stops.append(tab(window))


def tab(window: Window, key: str = "Tab") -> str:
    """Press Tab, check that the focus is visible, and return the name or text of the focused element."""
    window.page.keyboard.press(key)
    width, style, colour, visible = window.page.evaluate("""() => {
      const {outlineWidth, outlineStyle, outlineColor} = getComputedStyle(document.activeElement);
      return [outlineWidth, outlineStyle, outlineColor, document.activeElement.matches(":focus-visible")];
    }""")
    where = focused(window.page)
    assert visible, where
    assert (style, float(width.removesuffix("px")) >= 2) == ("solid", True), where
    assert contrast(colour, window.style("body", "backgroundColor")) >= 3, where
    return where


def focused(page: Page) -> str:
    """Return the name or text of the focused element."""
    return str(page.evaluate("document.activeElement.name || document.activeElement.textContent"))


def follow(window: Window) -> None:
    """Press Enter and wait for the next page."""
    with window.leaving():
        window.page.keyboard.press("Enter")
