"""Browser tests of a person's actions, also by keyboard and without scripts, of the CDN's style sheet, and of the policy."""

import base64
import hashlib
import re
from pathlib import Path

import pytest
from apsw import Connection
from harness import Site
from playwright.sync_api import Dialog, expect
from spreadsheets import numbered
from stores import refill
from web.browser import SHEET, OpenWindow, Window
from web.pages.test_every_page import SITI

from mahasiswa.settings import BOOTSTRAP, BOOTSTRAP_INTEGRITY

QUESTION = "Apakah Anda yakin ingin menghapus data ini?"
SCRIPT = """<script>document.title = "x"</script>"""
IMAGE = """<img src="data:," onerror="document.title = 'x'">"""


def test_pages_are_usable_while_the_cdn_hangs_and_a_deletion_is_sent_after_its_question(
    window: Window, site: Site
) -> None:
    """The first texts are painted, and records are added and deleted, before the style sheet arrives."""
    window.route(BOOTSTRAP, lambda _: None)
    window.goto("/", wait_until="commit")
    expect(window.get_by_text("Belum ada data mahasiswa.")).to_be_visible()
    window.wait_for_function("performance.getEntriesByName('first-contentful-paint').length")
    assert window.evaluate("document.readyState") == "loading"
    for nim, nama, alamat in (SITI, ("1105", "Budi Santoso", "Bantul")):
        window.get_by_role("link", name="Tambah Data").click()
        for field, text in (("nim", nim), ("nama", nama), ("alamat", alamat)):
            window.fill(f"input[name={field}]", text)
        window.get_by_role("button", name="Simpan", exact=True).click()
    questions: list[str] = []
    window.on("dialog", lambda dialog: questions.append(dialog.message))
    for answer, left in ((Dialog.dismiss, 2), (Dialog.accept, 1)):
        window.once("dialog", answer)
        window.get_by_role("row", name="Budi").get_by_role("button", name="Delete").click()
        expect(window.locator("tbody tr")).to_have_count(left)
        window.goto("/", wait_until="commit")
        expect(window.locator("tbody tr")).to_have_count(left)
    assert questions == [QUESTION] * 2
    assert site.records == [SITI]


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_a_browser_removes_outer_spaces_of_typed_texts(
    open_window: OpenWindow, site: Site, *, scripts: bool
) -> None:
    """A text that the person does not change is stored as it was. Without scripts every text is stored as it was typed."""
    site.add(" 1", " Siti ", "Solo ")
    window = open_window(java_script_enabled=scripts)
    window.goto("/mahasiswa/edit/%201")
    window.fill("input[name=alamat]", " Solo  Baru ")
    window.keyboard.press("Enter")
    expect(window.get_by_role("heading", name="List")).to_be_visible()
    assert site.records == [(" 1", " Siti ", "Solo  Baru" if scripts else " Solo  Baru ")]


def test_each_further_record_is_added_with_three_key_presses(open_window: OpenWindow) -> None:
    """Tab and Enter reach every field and the list, and edit and delete records there. The focus is always visible."""
    window = open_window(cdn=True)
    window.goto("/")
    tab_to(window, "Tambah Data")
    for number in range(3):
        follow(window)
        expect(window.get_by_label("NIM")).to_be_focused()
        window.keyboard.type(f"23000{number}")
        presses = 1 + tab_to(window, "nama")
        window.keyboard.type(f"Nama {number}")
        presses += tab_to(window, "alamat")
        window.keyboard.type("Sleman")
        assert presses == 3
        if number == 0:
            tab_to(window, "Simpan dan tambah lagi")
    tab_to(window, "Simpan")
    follow(window)
    expect(window.locator("tbody tr")).to_have_count(3)
    tab_to(window, "Edit")
    follow(window)
    expect(window.get_by_label("Nama")).to_be_focused()
    window.keyboard.press("End")
    window.keyboard.type(" Baru")
    follow(window)  # Enter in a text field also sends the form
    expect(window.get_by_role("row", name="1 230000 Nama 0 Baru Sleman")).to_be_visible()
    tab_to(window, "Edit")
    assert tab(window) == "Delete"
    window.once("dialog", Dialog.accept)
    window.keyboard.press("Enter")
    expect(window.locator("tbody tr")).to_have_count(2)


def test_focus_is_never_hidden_under_the_header(open_window: OpenWindow, other: Connection) -> None:
    """The column names stay visible in a long list. They never cover the element that has the focus."""
    refill(other, numbered(12))
    window = open_window(viewport={"width": 1280, "height": 300})
    window.goto("/")
    window.locator("tbody tr").last.get_by_role("button").focus()
    assert window.evaluate("scrollY") > 0
    expect(window.get_by_role("columnheader", name="Alamat")).to_be_in_viewport(ratio=1)
    covered = """() => {
      const focus = document.activeElement, box = focus.getBoundingClientRect(), x = box.x + box.width / 2;
      return [box.y + 1, box.bottom - 1].some(y => !focus.contains(document.elementFromPoint(x, y)));
    }"""
    for stop in range(2 * 12 - 1):
        window.keyboard.press("Shift+Tab")
        assert not window.evaluate(covered), f"stop {stop}"
    expect(window.locator("tbody tr").first.get_by_role("link", name="Edit")).to_be_focused()


def test_the_first_stop_of_the_keyboard_skips_to_the_table(window: Window, site: Site) -> None:
    """The skip link is visible while it has the focus. After it, the first stop is in the table."""
    site.add(*SITI)
    window.goto("/")
    skip = window.get_by_role("link", name="Langsung ke tabel")
    for side in ("width", "height"):
        expect(skip).to_have_css(side, "1px")
    assert tab(window) == "Langsung ke tabel"
    expect(skip).to_be_in_viewport(ratio=1)
    window.keyboard.press("Enter")
    assert tab(window) == "Edit"


def tab_to(window: Window, name: str) -> int:
    """Press Tab until the element with this name or text has the focus; return how often."""
    stops = [tab(window)]
    while stops[-1] != name:
        assert stops.count(stops[0]) == 1, f"{name} is none of {stops}"
        stops.append(tab(window))
    return len(stops)


def tab(window: Window) -> str:
    """Press Tab, check that the focus is visible, and return the name or text of the focused element."""
    window.keyboard.press("Tab")
    where, outline, visible = window.evaluate("""() => {
      const focus = document.activeElement, style = getComputedStyle(focus);
      const link = getComputedStyle(document.querySelector(".skip"));
      const isSolid = style.outlineStyle === "solid" && parseFloat(style.outlineWidth) >= 2;
      const isStrong = style.outlineColor === link.backgroundColor;  // test_every_page.py has its contrast
      return [focus.name || focus.textContent, isSolid && isStrong, focus.matches(":focus-visible")];
    }""")
    assert (outline, visible) == (True, True), where
    return str(where)


def follow(window: Window) -> None:
    """Press Enter, and wait for the last element of the next page. The document's "load" event would wait for the CDN."""
    with window.expect_navigation(wait_until="commit"):
        window.keyboard.press("Enter")
    window.locator("link[rel=stylesheet]").wait_for(state="attached")


def test_the_default_integrity_is_the_hash_of_the_default_style_sheet(node_modules: Path) -> None:
    """The default hash is that of the style sheet in the npm package, whose version the default address names."""
    digest = base64.b64encode(hashlib.sha384((node_modules / SHEET).read_bytes()).digest()).decode()
    assert f"sha384-{digest}" == BOOTSTRAP_INTEGRITY
    package = (node_modules / "bootstrap" / "package.json").read_text("utf-8")
    assert f'"version": "{re.findall("bootstrap@([0-9.]+)/", BOOTSTRAP)[0]}"' in package


def test_the_policy_blocks_scripts_that_are_inserted_into_a_page(window: Window) -> None:
    """If a text were ever written as markup, the policy would block its scripts."""
    insert = (
        "markup => document.body.append(document.createRange().createContextualFragment(markup))"
    )
    window.goto("/")
    for markup, kind in ((SCRIPT, "inline script"), (IMAGE, "inline event handler")):
        with window.expect_console_message() as message:
            window.evaluate(insert, markup)
        assert kind in message.value.text
    assert window.title() == "Program Input Data Mahasiswa"
    window.clear_console_messages()
