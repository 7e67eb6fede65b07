"""Browser tests of the layout of the list, the forms and the history: phones, screen readers, text browsers, and print."""

import re

import pytest
from apsw import Connection
from harness import Site
from playwright.sync_api import Dialog, Locator, expect
from spreadsheets import numbered
from stores import refill
from web.browser import PHONE, OpenWindow, each_look
from web.pages.test_every_page import SITI, show

LAPTOP = {"viewport": {"width": 1366, "height": 768}}
TALL_PHONE = {**PHONE, "viewport": {"width": 390, "height": 844}}


def in_window(locator: Locator) -> bool:
    """Return whether a person sees the whole element without scrolling: inside the window, and covered by nothing."""
    return bool(
        locator.evaluate("""element => {
          const box = element.getBoundingClientRect();
          const isInside = box.width && box.top >= 0 && box.left >= 0 && box.bottom <= innerHeight && box.right <= innerWidth;
          const shown = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
          return Boolean(isInside && shown && (element.contains(shown) || shown.contains(element)));
        }""")
    )


def test_a_phone_shows_all_cells_and_large_buttons(open_window: OpenWindow, site: Site) -> None:
    """On a phone each record shows its number, texts and buttons, and the buttons are large enough for a thumb."""
    site.add(*SITI)
    window = open_window(**PHONE)
    window.goto("/")
    for cell in window.locator("tbody tr").locator("td").all():
        expect(cell).to_be_in_viewport(ratio=1)
    rectangles = "elements => elements.map(element => element.getBoundingClientRect())"
    edit, delete = window.locator("tbody tr").locator("a, button").evaluate_all(rectangles)
    assert min(box[side] for box in (edit, delete) for side in ("width", "height")) >= 44
    assert delete["x"] - edit["x"] - edit["width"] >= 8
    window.once("dialog", Dialog.accept)
    window.get_by_role("button", name="Delete").tap()
    expect(window.locator("tbody tr")).to_have_count(0)


COLOUR = "element => getComputedStyle(element).color"
ADDRESSES = (
    "Perum Griya Asri Blok C4, RT 03/RW 11, Kasihan, Bantul",
    "Jl. Kaliurang KM 5 No. 12, Caturtunggal, Depok, Sleman",
)


def test_a_laptop_shows_thirteen_students_with_quiet_buttons(
    open_window: OpenWindow, other: Connection
) -> None:
    """Thirteen rows are in a window of 1366 x 768. Only under the pointer or in focus a deletion is red."""
    refill(
        other, [(f"23000180{n:02}", f"Siti Nur Rahmawati {n}", ADDRESSES[n % 2]) for n in range(60)]
    )
    window = open_window(cdn=True, **LAPTOP)
    for path in ("/", "/?halaman=1"):
        window.goto(path)
        for look in each_look(window):
            assert all(map(in_window, window.locator("tbody tr").all()[:13])), (path, look)
            delete = window.locator("tbody tr").first.get_by_role("button", name="Delete")
            quiet = delete.evaluate(COLOUR)
            for attend in (delete.hover, delete.focus):
                attend()
                red, green, _ = map(int, re.findall("[0-9]+", str(delete.evaluate(COLOUR))))
                assert red > 2 * green, (path, look)
                window.mouse.move(0, 0)
            delete.blur()
            assert delete.evaluate(COLOUR) == quiet


def test_the_inputs_of_a_record_help_a_touch_keyboard(site: Site) -> None:
    """Nama and alamat begin words with capitals, a NIM is typed as it is, and nothing is corrected or validated."""
    names = ("autocapitalize", "inputmode", "spellcheck", "enterkeyhint", "pattern")
    inputs = site.page("/mahasiswa/add").css("input[type=text]")
    nim, nama, alamat = ([node.attributes.get(name) for name in names] for node in inputs)
    assert nim == ["off", "text", "false", "next", None]
    assert nama == ["words", None, "false", "next", None]
    assert alamat == ["words", None, "false", "done", None]


@pytest.mark.parametrize("device", [LAPTOP, TALL_PHONE])
def test_the_confirmation_of_a_change_is_in_the_window(
    open_window: OpenWindow, other: Connection, device: dict[str, object]
) -> None:
    """With 300 records it stands above everything that scrolls, after an addition with its warning and its buttons.

    The changed row is on the screen too, below the confirmation. The warning stands between the confirmation and the
    first row, and its button removes the new record. test_every_page.py has its contrast.
    """
    refill(other, numbered(300, "Nama {}", "Jalan Kaliurang 5, Sleman"))
    window = open_window(cdn=True, **device)
    confirmation = window.locator(".latest")
    warning = window.locator(".warning")

    def change(path: str, row: int, nim: str = "") -> None:
        window.goto(path)
        with window.expect_navigation():
            (window.locator("tbody tr").nth(row) if row else window).get_by_role(
                "link", name="Edit" if row else "Tambah Data"
            ).click()
        if not row:
            window.fill("input[name=nim]", nim)
            window.fill("input[name=alamat]", "Solo")
        window.fill("input[name=nama]", "Siti Aminah")
        with window.expect_navigation():
            window.keyboard.press("Enter")

    change("/?per=500", 90)
    expect(confirmation).to_have_text(re.compile(r"^Perubahan Anda: Siti Aminah \(\d+\) diubah"))
    assert in_window(confirmation)
    target = window.locator("tr:has(:target)")
    expect(target).to_contain_text("Siti Aminah")
    assert in_window(target.locator("td").last)
    for path, nim in (("/?per=500", "O0201"), ("/", "O0204")):
        change(path, 0, nim)
        for part in (confirmation, warning.locator("span"), *warning.locator("a, button").all()):
            assert in_window(part), (path, part)
    window.get_by_role("button", name="Batalkan penambahan").first.click()
    expect(confirmation).to_contain_text("penambahan Siti Aminah (O0204) dibatalkan")
    assert in_window(confirmation)


def test_a_phone_reaches_the_links_without_passing_the_list(
    open_window: OpenWindow, other: Connection
) -> None:
    """One touch shows the downloads, the printout, the check and the other pages. A tick has 24 pixels."""
    refill(other, numbered(60))
    window = open_window(cdn=True, **TALL_PHONE)
    for path in ("/", "/?halaman=1"):
        window.goto(path)
        window.get_by_text("Lainnya").tap()
        names = ["Unduh Excel", "Unduh CSV", "Siapkan cetakan", "Periksa daftar"]
        for name in [*names, *["Berikutnya", "Terakhir"] * (path != "/")]:
            link = window.get_by_role("link", name=name).first
            assert in_window(link), (path, name)
            assert (link.bounding_box() or {"height": 0})["height"] >= 44
    size = window.get_by_role("checkbox").first.bounding_box()
    assert size
    assert (size["width"], size["height"]) == (24, 24)


def test_the_buttons_of_a_preview_cover_nothing_that_has_the_focus(
    open_window: OpenWindow, site: Site
) -> None:
    """On a phone they stand at the lower edge while the rows to repair are read, and take a third of the window at most."""
    window = open_window(cdn=True, **PHONE)
    show("preview", window, site)
    buttons = window.locator(".reachable")
    fields = window.locator("#salah").locator("input:not([type=hidden]), button")
    fields.first.scroll_into_view_if_needed()
    for at, field in enumerate(fields.all()):
        field.focus() if at == 0 else window.keyboard.press("Tab")
        expect(field).to_be_focused()
        assert in_window(field), field.evaluate("element => element.outerHTML")
        if at == 0:
            assert in_window(buttons)
    box = buttons.bounding_box()
    assert box
    assert box["height"] <= 667 / 3


def test_forced_colours_keep_the_rule_under_the_header(open_window: OpenWindow) -> None:
    """With forced colours the header of the table keeps the line below it."""
    window = open_window(cdn=True, forced_colors="active")
    window.goto("/")
    head = window.locator("th").first
    for _ in each_look(window):
        expect(head).to_have_css("border-bottom", f"2px solid {head.evaluate(COLOUR)}")


def test_a_printed_list_or_history_has_no_buttons(open_window: OpenWindow, site: Site) -> None:
    """Black on white, also in dark mode. The history is a table; nothing that needs a click is printed."""
    for record in (*numbered(3), SITI):
        site.add(*record)
    window = open_window(cdn=True)
    window.goto("/")
    is_hidden = "elements => elements.every(element => !element.checkVisibility())"
    for _ in each_look(window):
        for scheme in ("light", "dark"):
            window.emulate_media(
                media="print", color_scheme="dark" if scheme == "dark" else "light"
            )
            assert window.locator("a, button, form, th:last-child, td:last-child").evaluate_all(
                is_hidden
            )
            expect(window.locator("body")).to_have_css("background-color", "rgb(255, 255, 255)")
            for text in ["h1", "th", "td"]:
                expect(window.locator(text).first).to_have_css("color", "rgb(0, 0, 0)")
    window.goto("/mahasiswa/riwayat")
    for _ in each_look(window):
        for name in ("button", "search", "navigation"):
            expect(window.get_by_role(name).first).to_be_hidden()
        expect(window.locator("tbody tr").first).to_contain_text(SITI[0])
