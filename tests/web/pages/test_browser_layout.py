"""Browser tests of the layout of the list, the forms and the history: phones, screen readers, text browsers, and print."""

import re
import shutil
from functools import partial

import pytest
from browser import (
    DESKTOP,
    LAPTOP,
    PHONE,
    TALL_PHONE,
    OpenWindow,
    Window,
    contrast,
    each_look,
    in_window,
    luminance,
)
from every_page import LONG, SITI, add_many, press, show_preview
from harness import Service, Site
from playwright.sync_api import expect
from processes import run, until
from spreadsheets import Database, numbered

SLASHES = "20/456830/TK/50660"
RECTANGLE = """(selector) => {
  const {x, y, width, height} = document.querySelector(selector).getBoundingClientRect();
  return [x, y, width, height].map(Math.round);
}"""


def test_a_phone_shows_all_cells_and_large_buttons(open_window: OpenWindow, site: Site) -> None:
    """On a phone each record shows its number, texts and buttons, and the buttons are large enough for a thumb."""
    site.add(*SITI)
    window = open_window(size=PHONE, is_mobile=True, has_touch=True)
    window.open("/")
    for cell in window.rows.locator("td").all():
        expect(cell).to_be_in_viewport(ratio=1)
    rectangles = "elements => elements.map(element => element.getBoundingClientRect())"
    edit, delete = window.rows.locator("a, button").evaluate_all(rectangles)
    assert min(box[side] for box in (edit, delete) for side in ("width", "height")) >= 44
    assert delete["x"] - edit["x"] - edit["width"] >= 8
    window.page.get_by_role("button", name="Delete").tap()
    expect(window.rows).to_have_count(0)


COLOUR = "element => getComputedStyle(element).color"
ADDRESSES = (
    "Perum Griya Asri Blok C4, RT 03/RW 11, Kasihan, Bantul",
    "Jl. Kaliurang KM 5 No. 12, Caturtunggal, Depok, Sleman",
)


def test_a_laptop_shows_thirteen_students_with_quiet_buttons(
    open_window: OpenWindow, other: Database
) -> None:
    """Thirteen rows are in a window of 1366 x 768. Only under the pointer or in focus a deletion is red."""
    other.fill(
        [(f"23000180{n:02}", f"Siti Nur Rahmawati {n}", ADDRESSES[n % 2]) for n in range(60)]
    )
    window = open_window("answers", LAPTOP)
    for path in ("/", "/?halaman=1", "/?cari=siti&urut=nama"):
        window.open(path)
        for look in each_look(window):
            assert all(map(in_window, window.rows.all()[:13])), (path, look)
            delete = window.rows.first.get_by_role("button", name="Delete")
            quiet = delete.evaluate(COLOUR)
            for attend in (delete.hover, delete.focus):
                attend()
                red, green, _ = map(int, re.findall("[0-9]+", str(delete.evaluate(COLOUR))))
                assert red > 2 * green, (path, look)
                window.page.mouse.move(0, 0)
            delete.blur()
            assert delete.evaluate(COLOUR) == quiet


def test_a_phone_shows_the_first_hit_of_a_search_in_the_upper_half(
    open_window: OpenWindow, site: Site
) -> None:
    """With the latest change, the searched text and several pages above it too, with and without the CDN."""
    add_many(site, 60)
    site.add("9", "Namma", "Solo")
    window = open_window("answers", (390, 844), is_mobile=True, has_touch=True)
    for path in ("/?cari=nama", "/?cari=namma", "/?halaman=1"):
        window.open(path)
        for look in each_look(window):
            assert window.page.evaluate(RECTANGLE, "tbody tr")[1] < 844 / 2, f"{path}, {look}"


def test_each_row_of_a_page_has_five_titles_and_named_buttons(
    open_window: OpenWindow, site: Site
) -> None:
    """A screen reader gets all titles, also on a phone; the NIM is the row's header, and describes its controls."""
    site.add(*SITI)
    for size in (DESKTOP, PHONE):
        window = open_window(size=size)
        window.open("/?cari=siti")
        titles = window.page.get_by_role("columnheader").all_text_contents()
        assert " ".join(" ".join(titles).split()) == "No NIM Nama Alamat Aksi"
        expect(
            window.page.get_by_role("table", name="Daftar mahasiswa").get_by_role("rowheader")
        ).to_have_text(SITI[0])
        for control in window.rows.locator("a, button, input").all():
            expect(control).to_have_accessible_description(SITI[0])


def test_a_nim_with_slashes_stands_on_one_line(open_window: OpenWindow, site: Site) -> None:
    """At 1280 and at 768 pixels, a NIM of 18 characters is not broken."""
    site.add(SLASHES, "Siti", "Solo")
    window = open_window("answers")
    window.open("/")
    lines = "cell => { const r = new Range(); r.selectNodeContents(cell); return r.getClientRects().length; }"
    for _ in each_look(window):
        for width in (DESKTOP[0], 768):
            window.page.set_viewport_size({"width": width, "height": 800})
            assert window.page.locator("tbody td:nth-child(2)").evaluate(lines) == 1


def test_forced_colours_keep_the_rule_under_the_header(open_window: OpenWindow) -> None:
    """With forced colours the header of the table keeps the line below it."""
    window = open_window("answers", forced_colors="active")
    window.open("/")
    for _ in each_look(window):
        assert [window.style("th", f"borderBottom{name}") for name in ("Style", "Width")] == [
            "solid",
            "2px",
        ]
        assert (
            contrast(
                window.style("th", "borderBottomColor"), window.style("body", "backgroundColor")
            )
            >= 3
        )


def test_parts_stand_at_the_same_place_on_every_page(open_window: OpenWindow, site: Site) -> None:
    """With and without the CDN, headings begin at the same point, and columns and the file button have the same sizes."""
    site.add(*LONG)
    add_many(site, 120)
    headings, columns, buttons = set(), set(), set()
    names = ["paddingTop", "paddingLeft", "borderTopWidth", "borderInlineEndWidth", "fontSize"]
    script = "(e, names) => names.map(name => getComputedStyle(e, '::file-selector-button')[name]).join()"
    window = open_window("answers")
    for path in (
        "/",
        "/?cari=nama&urut=nama",
        "/?halaman=2&per=10",
        "/mahasiswa/add",
        "/mahasiswa/impor",
        "/x",
    ):
        window.open(path)
        for _ in each_look(window):
            headings.add(tuple(window.page.evaluate(RECTANGLE, "h1")[:2]))
            for column in range(1, 6 if window.page.locator("table").count() else 0):
                for row in ("thead tr", "tbody tr:last-child"):
                    x, _, width, _ = window.page.evaluate(
                        RECTANGLE, f"{row} > :nth-child({column})"
                    )
                    columns.add((column, x, width))
            for file in window.page.locator("[type=file]").all():
                buttons.add(
                    (file.evaluate(script, names), *window.page.evaluate(RECTANGLE, "[type=file]"))
                )
    assert (len(headings), len(columns), len(buttons)) == (1, 5, 1)


def test_the_inputs_of_a_record_help_a_touch_keyboard(site: Site) -> None:
    """Nama and alamat begin words with capitals, a NIM is typed as it is, and nothing is corrected or validated."""
    names = ("autocapitalize", "inputmode", "spellcheck", "enterkeyhint", "pattern")
    inputs = site.page("/mahasiswa/add").tree.css("input[type=text]")
    nim, nama, alamat = ([node.attributes.get(name) for name in names] for node in inputs)
    assert nim == ["off", "text", "false", "next", None]
    assert (nama, alamat) == (
        ["words", None, "false", "next", None],
        ["words", None, "false", "done", None],
    )


def test_bodies_that_are_not_on_the_screen_are_not_laid_out(
    open_window: OpenWindow, other: Database
) -> None:
    """One table has its rows in bodies of 100. A browser skips those far below, and the key End leads to the last row."""
    other.fill(numbered(501, "Nama {}", "Sleman", nim="{:04}"))
    for size in (DESKTOP, PHONE):
        window = open_window(size=size)
        window.open("/")
        window.page.wait_for_load_state("load")
        skipped = "bodies => bodies.map(body => body.rows[0].checkVisibility({contentVisibilityAuto: true}))"
        assert window.page.locator("tbody").evaluate_all(skipped) == [
            True,
            False,
            False,
            False,
            True,
            True,
        ]
        until(partial(is_end_shown_by_key, window))
        expect(window.rows.last).to_be_in_viewport(ratio=0.5)


def is_end_shown_by_key(window: Window) -> bool:
    """Press End. The browser scrolls in steps, and rows that it lays out meanwhile change the height, so it may stop early."""
    window.page.keyboard.press("End")
    return bool(window.rows.last.evaluate("row => row.getBoundingClientRect().top < innerHeight"))


def test_a_long_name_does_not_ruin_the_table_of_a_text_browser(
    service: Service, site: Site
) -> None:
    """w3m shows the table within the width of its terminal, also if a name is one word of 700 letters."""
    w3m = shutil.which("w3m")
    if w3m is None:
        pytest.skip("w3m is not installed")
    site.add(*LONG)
    site.add(*SITI)
    shown = run(w3m, "-dump", "-cols", "100", service.url)
    assert max(map(len, shown.splitlines())) <= 100
    assert "Siti Aminah" in shown


def test_a_printed_list_or_history_has_no_buttons(open_window: OpenWindow, site: Site) -> None:
    """Black on white, also in dark mode. The history is a table; nothing that needs a click is printed."""
    add_many(site, 3)
    site.add(SLASHES, *SITI[1:])
    window = open_window("answers")
    window.open("/")
    is_hidden = "elements => elements.every(element => !element.checkVisibility())"
    for _ in each_look(window):
        for scheme in ("light", "dark"):
            window.page.emulate_media(
                media="print", color_scheme="dark" if scheme == "dark" else "light"
            )
            assert window.page.locator(
                "a, button, form, th:last-child, td:last-child"
            ).evaluate_all(is_hidden)
            assert window.style("body", "backgroundColor") == "rgb(255, 255, 255)"
            for text in ["h1", "th", "td"]:
                assert luminance(window.style(text, "color")) < 0.05
    window.open("/mahasiswa/riwayat")
    for _ in each_look(window):
        for name in ("button", "search", "navigation"):
            expect(window.page.get_by_role(name).first).to_be_hidden()
        expect(window.rows.first).to_contain_text(SLASHES)


def test_a_phone_shows_a_change_side_by_side_with_a_large_button(
    open_window: OpenWindow, site: Site
) -> None:
    """The texts before and after stand beside each other, and a finger can hit the button."""
    site.add(*LONG)
    site.edit(LONG[0], "Siti", "Sleman")
    window = open_window("answers", (360, 640))
    window.open("/mahasiswa/riwayat")
    for _ in each_look(window):
        assert window.page.evaluate(RECTANGLE, "td.act button")[3] >= 44
        before, after = (
            window.page.evaluate(RECTANGLE, f"td[data-label={name}]")
            for name in ("Sebelum", "Sesudah")
        )
        assert before[1] == after[1]


@pytest.mark.parametrize("size", [LAPTOP, TALL_PHONE])
def test_the_confirmation_of_a_change_is_in_the_window(
    open_window: OpenWindow, other: Database, size: tuple[int, int]
) -> None:
    """With 1,000 records it stands above everything that scrolls, after an addition with its warning and its buttons.

    The changed row is on the screen too, below the confirmation. The warning stands between the confirmation and the
    first row, and its button removes the new record. test_every_page.py has its contrast.
    """
    other.fill(numbered(1_000, "Nama {}", "Jalan Kaliurang 5, Sleman"))
    window = open_window("answers", size)
    page = window.page
    confirmation, warning = page.locator(".latest"), page.locator(".warning")

    def change(path: str, row: int, nim: str = "") -> None:
        window.open(path)
        with window.leaving():
            (window.rows.nth(row) if row else page).get_by_role(
                "link", name="Edit" if row else "Tambah Data"
            ).click()
        window.type(nama="Siti Aminah", **({} if row else {"nim": nim, "alamat": "Solo"}))
        with window.leaving():
            page.keyboard.press("Enter")
        page.wait_for_load_state("load")

    for path, place in (("/?halaman=3", 2), ("/?per=500", 90), ("/?halaman=20&urut=nama", 3)):
        change(path, place)
        expect(confirmation).to_have_text(
            re.compile(r"^Perubahan Anda: Siti Aminah \(\d+\) diubah")
        )
        assert in_window(confirmation), path
        if "urut" not in path:
            target = page.locator("tr:has(:target)")
            expect(target).to_contain_text("Siti Aminah")
            assert in_window(target.locator("td").last), path
    for path, nim in (
        ("/?per=500", "O0901"),
        ("/?cari=O0902", "O0902"),
        ("/?halaman=1", "O0903"),
        ("/", "O0904"),
    ):
        change(path, 0, nim)
        for part in (confirmation, warning.locator("span"), *warning.locator("a, button").all()):
            assert in_window(part), (path, part)
        colours = [window.style(part, "backgroundColor") for part in (".warning", ".latest")]
        assert colours[0] != colours[1], path
    window.open("/")
    for look in each_look(window):
        tops = [page.evaluate(RECTANGLE, part)[1] for part in ("p.latest", ".warning", "tbody tr")]
        assert tops == sorted(tops), look
    for path in ("/?halaman=20", "/?cari=009"):
        window.open(path)
        with window.leaving():
            window.rows.nth(40).get_by_role("button", name="Delete").click()
        expect(confirmation).to_contain_text("dihapus")
        assert in_window(confirmation), path
    change("/?cari=00O", 0, "00O03")
    press(window, "Batalkan penambahan")
    expect(confirmation).to_contain_text("penambahan Siti Aminah (00O03) dibatalkan")
    assert in_window(confirmation)
    assert window.cells() == []
    assert "confirm: Apakah Anda yakin ingin menghapus data Nama" in window.dialogs[0]


@pytest.mark.parametrize("size", [LAPTOP, TALL_PHONE])
def test_the_buttons_of_both_addition_forms_stand_in_one_order(
    open_window: OpenWindow, size: tuple[int, int]
) -> None:
    """Enter presses the usual one: on the form for one record "Simpan", on the next one "Simpan dan tambah lagi"."""
    window = open_window("answers", size)
    for query, target in (
        ("", "/?halaman=1#m-0"),
        ("&lagi=1", "/mahasiswa/add?halaman=1&lagi=1&nim=1"),
    ):
        window.open(f"/mahasiswa/add?halaman=1{query}")
        buttons = window.page.locator("form .btn:visible")
        for look in each_look(window):
            assert buttons.all_text_contents()[:2] == ["Simpan", "Simpan dan tambah lagi"], look
        for button in buttons.all():
            assert in_window(button)
        window.type(nim=target[-1], nama="Siti", alamat="Solo")
        with window.leaving():
            window.page.keyboard.press("Enter")
        assert re.sub(r"&perubahan=[0-9-]+", "", window.page.url) == window.url + target
    assert in_window(window.page.get_by_text("Siti (1) tersimpan."))


def test_a_phone_reaches_the_links_without_passing_the_list(
    open_window: OpenWindow, site: Site
) -> None:
    """One touch shows the downloads, the printout, the check and the other pages. A tick has 24 pixels."""
    add_many(site, 60)
    window = open_window("answers", TALL_PHONE, is_mobile=True, has_touch=True)
    for path in ("/", "/?halaman=1", "/?cari=nama"):
        window.open(path)
        window.page.get_by_text("Lainnya").tap()
        names = ["Unduh Excel", "Unduh CSV", "Siapkan cetakan", "Periksa daftar"]
        for name in [*names, *["Berikutnya", "Terakhir"] * (path != "/")]:
            link = window.page.get_by_role("link", name=name).first
            assert in_window(link), (path, name)
            assert (link.bounding_box() or {"height": 0})["height"] >= 44
    size = window.page.get_by_role("checkbox").first.bounding_box()
    assert size
    assert (size["width"], size["height"]) == (24, 24)


def test_the_buttons_of_a_preview_cover_nothing_that_has_the_focus(
    open_window: OpenWindow, site: Site
) -> None:
    """On a phone they stand at the lower edge while the rows to repair are read, and take a third of the window at most."""
    window = open_window("answers", PHONE, is_mobile=True, has_touch=True)
    show_preview(window, site)
    buttons = window.page.locator(".reachable")
    fields = window.page.locator("#salah").locator("input:not([type=hidden]), button")
    fields.first.scroll_into_view_if_needed()
    for at, field in enumerate(fields.all()):
        field.focus() if at == 0 else window.page.keyboard.press("Tab")
        expect(field).to_be_focused()
        assert in_window(field), field.evaluate("element => element.outerHTML")
        if at == 0:
            assert in_window(buttons)
    box = buttons.bounding_box()
    assert box
    assert 3 * box["height"] <= PHONE[1]


def test_no_word_that_fits_on_a_line_of_a_phone_is_broken(
    open_window: OpenWindow, site: Site
) -> None:
    """On each page with names, also with two texts beside each other."""
    nama = "Kusumawardhani Wirahadikusumah"
    for nim in ("2300018001", "2300018002", "2300018003"):
        site.add(nim, nama, "Jalan Kaliurang Ngaglik")
    site.edit("2300018001", nama, "Condongcatur Depok")
    window = open_window("answers", TALL_PHONE, is_mobile=True)
    broken = """() => {
      const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT), found = [];
      for (let node; node = walker.nextNode();)
        for (const word of node.data.matchAll(/Kusumawardhani|Wirahadikusumah|Condongcatur/g)) {
          const range = new Range();
          range.setStart(node, word.index);
          range.setEnd(node, word.index + word[0].length);
          found.push(new Set([...range.getClientRects()].map(box => box.top)).size);
        }
      return found;
    }"""
    for path in (
        "/",
        "/?halaman=1",
        "/mahasiswa/riwayat",
        "/mahasiswa/cetak",
        "/mahasiswa/periksa",
    ):
        window.open(path)
        for look in each_look(window):
            lines = window.page.evaluate(broken)
            assert lines, path
            assert set(lines) <= {0, 1}, (path, look)
