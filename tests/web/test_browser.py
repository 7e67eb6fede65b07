"""The service in a real browser: what a person sees and does, and what the browser sends for it."""

import base64
import hashlib
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from browser import (
    PHONE,
    Network,
    OpenWindow,
    Window,
    bootstrap,
    contrast,
    empty_site,
    install_node_modules,
    luminance,
    one_window,
    start_chromium,
    window_opener,
)
from every_page import PAGES, SITI, send_without
from harness import Service, Site
from playwright.sync_api import Page, expect

from mahasiswa.settings import BOOTSTRAP, BOOTSTRAP_INTEGRITY

# The fixtures of the browser, which pytest finds by these names.
__all__ = ["empty_site", "install_node_modules", "one_window", "start_chromium", "window_opener"]

CONFIRM = "confirm: Apakah Anda yakin ingin menghapus data ini?"
SCRIPT = """<script>document.title = "x"</script>"""
IMAGE = """<img src="data:," onerror="document.title = 'x'">"""

NIMS = {
    "slashes": ["20/456839/TK/50663", "a%2Fb", "a/../b", "//a", "/"],
    "marks": ["+ % & ; / ? # \" ' < > \\ = : @", "  spaces  12 34  ", "👩🏽‍🎓🇮🇩", "\u200f12\u202e34\u202c\u200e"],
}
"""One by one, in the same window."""


@pytest.mark.parametrize("network", ["answers", "hangs"])
def test_a_persons_whole_round(network: Network, open_window: OpenWindow, service: Service) -> None:
    """Records are added, listed, edited and deleted, and are there after the service has restarted."""
    window = open_window(network)
    page = window.page
    window.open("/")
    expect(page.get_by_text("Belum ada data mahasiswa.")).to_be_visible()
    add(window, *SITI)
    add(window, "1105", "Budi Santoso", "Bantul")
    assert window.cells() == [["1105", "Budi Santoso", "Bantul"], list(SITI)]
    page.get_by_role("row", name="Siti").get_by_role("link", name="Edit").click()
    expect(page.get_by_role("heading", name="Edit Data Mahasiswa")).to_be_visible()
    assert page.get_by_label("NIM").input_value() == "2207"
    window.type(nama="Siti Aminah Putri", alamat="Klaten")
    window.save()
    page.get_by_role("row", name="Budi").get_by_role("button", name="Delete").click()
    expect(window.rows).to_have_count(1)
    service.restart()
    window.open("/")
    assert window.cells() == [["2207", "Siti Aminah Putri", "Klaten"]]
    expect(window.rows.locator("td").first).to_have_text("1")


def test_confirmation_accepted(window: Window, site: Site) -> None:
    """Delete asks once, in the specification's words, and one POST deletes."""
    site.add(*SITI)
    window.open("/")
    window.page.get_by_role("button", name="Delete").click()
    expect(window.rows).to_have_count(0)
    assert (window.dialogs, window.posts) == ([CONFIRM], ["/mahasiswa/delete/2207"])


def test_confirmation_dismissed(window: Window, site: Site) -> None:
    """Delete asks once, and where the person says no, nothing is sent."""
    site.add(*SITI)
    window.answer = False
    window.open("/")
    window.page.get_by_role("button", name="Delete").click()
    window.open("/")
    assert (window.dialogs, window.posts) == ([CONFIRM], [])
    assert window.cells() == [list(SITI)]


@pytest.mark.parametrize("field", ["nim", "nama", "alamat"])
def test_empty_field_is_not_sent(field: str, window: Window) -> None:
    """The browser holds an incomplete form back and leads to the empty field."""
    window.open("/mahasiswa/add")
    window.type(**dict(zip(("nim", "nama", "alamat"), SITI, strict=True)) | {field: ""})
    window.page.get_by_role("button", name="Simpan").click()
    expect(window.page.locator(f"input:invalid[name={field}]")).to_be_focused()
    window.open("/")
    assert (window.posts, window.cells()) == ([], [])


@pytest.mark.parametrize("field", ["nama", "alamat"])
def test_emptied_field_is_not_sent(field: str, window: Window, site: Site) -> None:
    """The edit form is held back likewise."""
    site.add(*SITI)
    window.open("/mahasiswa/edit/2207")
    window.type(**{field: ""})
    window.page.get_by_role("button", name="Simpan").click()
    expect(window.page.locator(f"input:invalid[name={field}]")).to_be_focused()
    window.open("/")
    assert (window.posts, window.cells()) == ([], [list(SITI)])


def test_nim_cannot_be_typed_over_on_the_edit_page(window: Window, site: Site) -> None:
    """The nim is read-only, and still sent; the cursor waits in the field that can be changed."""
    site.add(*SITI)
    window.open("/mahasiswa/edit/2207")
    nim = window.page.get_by_label("NIM")
    expect(window.page.get_by_label("Nama")).to_be_focused()
    expect(nim).not_to_be_editable()
    nim.press_sequentially("99")
    with window.page.expect_request(lambda request: request.method == "POST") as post:
        window.save()
    assert str(post.value.post_data).startswith("nim=2207&nama=Siti+Aminah&alamat=Jalan+Kaliurang+5%2C+Sleman")


@pytest.mark.parametrize("network", ["answers", "unreachable"])
def test_everything_by_keyboard(network: Network, open_window: OpenWindow) -> None:
    """Tab and Enter are enough for a whole round, in the order of the page, and each stop is clearly marked."""
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
    assert [tab(window), tab(window)] == ["Simpan", "Batal"]
    assert tab(window, "Shift+Tab") == "Simpan"
    follow(window)
    assert window.cells() == [["2207", "Siti", "Sleman"]]
    tab_to(window, "Edit")
    follow(window)
    expect(page.get_by_label("Nama")).to_be_focused()
    page.keyboard.press("End")
    page.keyboard.type(" Aminah")
    # Enter in a text field sends the form, too.
    follow(window)
    assert window.cells() == [["2207", "Siti Aminah", "Sleman"]]
    tab_to(window, "Edit")
    assert tab(window) == "Delete"
    page.keyboard.press("Enter")
    expect(window.rows).to_have_count(0)
    assert window.dialogs == [CONFIRM]


def test_focus_is_never_hidden_under_the_header(open_window: OpenWindow, site: Site) -> None:
    """Going back up a long list by keyboard, what has the focus is never covered by the header that stays on top."""
    fill(site, 12)
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


def test_header_stays_in_sight(open_window: OpenWindow, site: Site) -> None:
    """At the end of a long list the names of the columns are still there to read."""
    fill(site, 60)
    window = open_window()
    window.open("/")
    window.rows.last.scroll_into_view_if_needed()
    assert window.page.evaluate("scrollY") > 0
    expect(window.page.get_by_role("columnheader", name="Alamat")).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("network", ["answers", "unreachable"])
def test_no_page_scrolls_sideways(network: Network, open_window: OpenWindow, site: Site) -> None:
    """Texts of any length, broken nowhere, fit into a window of any width, and so does every button."""
    # As a phone does, the window obeys the page's own word on its width.
    window = open_window(network, PHONE, is_mobile=True, has_touch=True)
    too_wide = """() => [...document.body.querySelectorAll("main, main *")].filter(element => {
      const {left, right} = element.getBoundingClientRect();
      return left < 0 || right > innerWidth;
    }).map(element => element.outerHTML.slice(0, 80))"""
    for name, show in PAGES.items():
        show(window, site)
        window.page.wait_for_load_state("load")
        for width in (320, 375, 599, 600, 768, 1280):
            window.page.set_viewport_size({"width": width, "height": 667})
            where = f"{name} at {width}"
            assert window.page.evaluate("[innerWidth, document.documentElement.scrollWidth]") == [width] * 2, where
            assert window.page.evaluate(too_wide) == [], where


def test_phone_shows_everything(open_window: OpenWindow, site: Site) -> None:
    """On a phone each record shows its number, texts and buttons, the latter large enough for a thumb."""
    site.add(*SITI)
    window = open_window(size=PHONE, is_mobile=True, has_touch=True)
    window.open("/")
    for cell in window.rows.locator("td").all():
        expect(cell).to_be_in_viewport(ratio=1)
    for target in [window.page.get_by_role("link", name="Edit"), window.page.get_by_role("button", name="Delete")]:
        box = target.bounding_box()
        assert box is not None
        assert min(box["width"], box["height"]) >= 36
    window.page.get_by_role("button", name="Delete").tap()
    expect(window.rows).to_have_count(0)


def test_refresh_sends_nothing_again(window: Window) -> None:
    """After each change the list is shown at its own address, where a refresh asks for the list alone."""
    window.open("/")
    for change in (partial(add, window, *SITI), partial(edit, window), partial(delete, window)):
        change()
        assert len(window.posts) == 1
        assert urlsplit(window.page.url).path == "/"
        before = window.cells()
        window.requests.clear()
        window.reload()
        assert window.requests == ["GET /"]
        assert window.cells() == before


def test_duplicate_keeps_what_was_typed(window: Window, site: Site) -> None:
    """A nim that exists: the form again as it was typed, the reason at the field, the cursor in it, and a way on."""
    site.add("20/4 5", "Siti", "Sleman")
    window.open("/mahasiswa/add")
    window.type(nim="20/4 5", nama=' "Budi" & <b>', alamat="Bantul ")
    window.save()
    nim = window.page.get_by_label("NIM")
    assert [field.input_value() for field in window.page.locator("input[type=text]").all()] == [
        "20/4 5",
        ' "Budi" & <b>',
        "Bantul ",
    ]
    expect(nim).to_be_focused()
    expect(nim).to_have_accessible_description(
        "NIM ini sudah terdaftar. Periksa kembali, atau buka data dengan NIM ini."
    )
    expect(window.page.locator("[aria-invalid=true]")).to_have_count(1)
    expect(nim).to_have_attribute("aria-invalid", "true")
    expect(window.page.locator("#" + str(nim.get_attribute("aria-describedby")))).to_be_visible()
    window.type(nim="20/4 6")
    window.save()
    assert window.cells() == [["20/4 5", "Siti", "Sleman"], ["20/4 6", ' "Budi" & <b>', "Bantul "]]


def test_duplicate_leads_to_the_record(window: Window, site: Site) -> None:
    """The message about a nim that exists has a link to the record that has it."""
    site.add("20/4 5", "Siti", "Sleman")
    window.open("/mahasiswa/add")
    window.type(nim="20/4 5", nama="Budi", alamat="Bantul")
    window.save()
    window.page.get_by_role("link", name="buka data dengan NIM ini").click()
    expect(window.page.get_by_role("heading", name="Edit Data Mahasiswa")).to_be_visible()
    assert window.page.get_by_label("Nama").input_value() == "Siti"


def test_focus_goes_to_the_first_wrong_field(window: Window) -> None:
    """With two fields missing both say so, what was typed is kept, and the cursor waits in the first of the two."""
    window.open("/mahasiswa/add")
    send_without(window, "nama", "alamat")
    expect(window.page.get_by_label("Nama")).to_be_focused()
    assert window.page.get_by_label("NIM").input_value() == "2207"
    wrong = window.page.locator("[aria-invalid=true]")
    expect(wrong).to_have_count(2)
    for field, label in zip(wrong.all(), ["Nama", "Alamat"], strict=True):
        expect(field).to_have_accessible_description(f"{label} tidak terkirim. Isi kolom {label}, lalu simpan lagi.")


@pytest.mark.parametrize("nims", NIMS.values(), ids=NIMS)
def test_any_nim_is_edited_by_its_link_and_deleted_by_its_button(nims: list[str], window: Window, site: Site) -> None:
    """Text as people really have it survives the browser to the byte, and only its own record is touched."""
    neighbours = [["12 34", "Tetangga", "Solo"], ["a", "Tetangga", "Solo"], ["b", "Tetangga", "Solo"]]
    for record in neighbours:
        site.add(*record)
    window.open("/")
    for nim in nims:
        window.requests.clear()
        add(window, nim, f"Nama {nim}", f"{nim} Alamat")
        window.row(nim).get_by_role("link", name="Edit").click()
        expect(window.page.get_by_role("heading", name="Edit Data Mahasiswa")).to_be_visible()
        values = window.page.locator("input[type=text]").evaluate_all("inputs => inputs.map(input => input.value)")
        assert values == [nim, f"Nama {nim}", f"{nim} Alamat"]
        window.type(nama=nim)
        window.save()
        assert sorted(window.cells()) == sorted([*neighbours, [nim, nim, f"{nim} Alamat"]])
        window.row(nim).get_by_role("button", name="Delete").click()
        expect(window.rows).to_have_count(3)
        assert window.cells() == neighbours
        segment = quote(nim, safe="")
        assert window.posts == ["/mahasiswa/add", f"/mahasiswa/edit/{segment}", f"/mahasiswa/delete/{segment}"]


def test_works_without_scripts(open_window: OpenWindow) -> None:
    """A browser with its scripts turned off can do the whole round; it only does not ask before deleting."""
    window = open_window(java_script_enabled=False)
    window.open("/")
    add(window, *SITI)
    edit(window)
    expect(window.page.get_by_role("cell", name="Klaten")).to_be_visible()
    delete(window)
    assert (window.posts[2:], window.dialogs) == (["/mahasiswa/delete/2207"], [])


def test_integrity_is_that_of_the_sheet(node_modules: Path) -> None:
    """The hash in the settings is that of the npm package's sheet, of the version that the address names."""
    digest = base64.b64encode(hashlib.sha384(bootstrap(node_modules)).digest()).decode()
    assert f"sha384-{digest}" == BOOTSTRAP_INTEGRITY
    assert f'"version": "{re.findall("bootstrap@([0-9.]+)/", BOOTSTRAP)[0]}"' in (
        node_modules / "bootstrap" / "package.json"
    ).read_text("utf-8")


def test_delivery_network_answers(open_window: OpenWindow) -> None:
    """Chromium asks for the one sheet, finds its hash right and applies it."""
    window = open_window("answers")
    window.open("/")
    window.page.wait_for_load_state("load")
    assert window.foreign == [BOOTSTRAP]
    assert applied(window)


def test_forged_sheet_is_not_applied(open_window: OpenWindow) -> None:
    """A sheet that is not the one the hash names is thrown away, and the page stands on its own."""
    window = open_window("answers", sheet=b":root { --bs-blue: red } body { display: none }")
    window.open("/")
    window.page.wait_for_load_state("load")
    assert not applied(window)
    assert "integrity" in window.problems.pop()
    expect(window.page.get_by_role("heading")).to_be_visible()


def test_delivery_network_unreachable(window: Window) -> None:
    """Without the sheet the page still has its colours, its table and its button."""
    window.open("/")
    window.page.wait_for_load_state("load")
    assert not applied(window)
    assert window.style(".btn-primary", "backgroundColor") == "rgb(11, 106, 97)"
    assert "system-ui" in window.style("body", "fontFamily")


def test_delivery_network_hangs(open_window: OpenWindow, site: Site) -> None:
    """While the sheet does not come, the whole page is painted, and can be used: also the question before deleting."""
    site.add(*SITI)
    window = open_window("hangs")
    window.open("/")
    painted = window.page.evaluate("""() => Promise.race([
      new Promise(resolve => new PerformanceObserver(list => list.getEntriesByName("first-contentful-paint")
        .forEach(entry => resolve(entry.startTime))).observe({type: "paint", buffered: true})),
      new Promise(resolve => setTimeout(resolve, 5000, Infinity)),
    ])""")
    assert painted < 5000
    assert window.foreign == [BOOTSTRAP]
    assert window.page.evaluate("document.readyState") == "loading"
    expect(window.page.get_by_role("button", name="Delete")).to_be_in_viewport(ratio=1)
    window.page.get_by_role("button", name="Delete").click()
    expect(window.rows).to_have_count(0)
    assert window.dialogs == [CONFIRM]


@pytest.fixture(scope="module")
def own_sheet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Start a service whose operator names a style sheet, but no hash of it."""
    environment = {"CDN_URL": "http://cdn.kampus.example:8080/tema.css"}
    with Service(tmp_path_factory.mktemp("own_sheet") / "mahasiswa.db", environment) as service:
        yield service


def test_own_sheet_without_a_hash(own_sheet: Service, open_window: OpenWindow) -> None:
    """The default sheet's hash is not asked of another sheet, which the policy allows and the browser applies."""
    window = open_window("answers", url=own_sheet.url, sheet=b":root { --bs-blue: blue }")
    window.open("/")
    window.page.wait_for_load_state("load")
    link = window.page.locator("link[rel=stylesheet]")
    expect(link).to_have_attribute("href", "http://cdn.kampus.example:8080/tema.css")
    assert link.get_attribute("integrity") is None
    assert link.get_attribute("crossorigin") is None
    assert window.foreign == ["http://cdn.kampus.example:8080/tema.css"]
    assert applied(window)


def test_no_page_violates_its_policy(open_window: OpenWindow, site: Site) -> None:
    """The policy lets through all that the pages have: nothing is reported, and nothing else is asked for."""
    window = open_window("answers")
    for show in PAGES.values():
        show(window, site)
        window.page.wait_for_load_state("load")
    assert window.problems == []
    assert set(window.foreign) == {BOOTSTRAP}


def test_markup_in_a_text_is_a_text(window: Window) -> None:
    """What looks like a script is shown as it was typed, in the list, in the forms and in an error, and never runs."""
    markup = SCRIPT + IMAGE
    values = "inputs => inputs.map(input => input.value)"
    window.open("/")
    add(window, markup, markup, markup)
    assert window.cells() == [[markup] * 3]
    window.page.get_by_role("link", name="Edit").click()
    expect(window.page.get_by_role("heading", name="Edit Data Mahasiswa")).to_be_visible()
    assert window.page.locator("input[type=text]").evaluate_all(values) == [markup] * 3
    window.open("/mahasiswa/add")
    window.type(nim=markup, nama=markup, alamat=markup)
    window.save()
    expect(window.page.locator("[aria-invalid]")).to_have_count(1)
    assert window.page.locator("input[type=text]").evaluate_all(values) == [markup] * 3
    assert window.page.locator("script, img").count() == 0
    assert window.page.title() == "Program Input Data Mahasiswa"


def test_policy_stops_markup_that_got_in(window: Window) -> None:
    """Were a text ever written as markup, the policy would keep its scripts from running."""
    insert = "markup => document.body.append(document.createRange().createContextualFragment(markup))"
    window.open("/")
    with window.page.expect_console_message(lambda message: "policy violated: script-src-elem" in message.text):
        window.page.evaluate(insert, SCRIPT)
    with window.page.expect_console_message(lambda message: "policy violated: script-src-attr" in message.text):
        window.page.evaluate(insert, IMAGE)
    assert window.page.title() == "Program Input Data Mahasiswa"
    window.problems.clear()


@pytest.mark.parametrize("network", ["answers", "unreachable"])
def test_dark_is_dark_and_light_is_light(network: Network, open_window: OpenWindow, site: Site) -> None:
    """With the system's preference for dark, paper and fields of every page are dark and the texts light."""
    window = open_window(network)
    colours = """() => [...document.querySelectorAll("body, th, input:not([type=hidden])")].map(element => {
      const {backgroundColor, color} = getComputedStyle(element);
      return [element.tagName, backgroundColor, color];
    })"""
    for name, show in PAGES.items():
        show(window, site)
        window.page.wait_for_load_state("load")
        for dark in (False, True):
            window.page.emulate_media(color_scheme="dark" if dark else "light")
            for tag, paper, ink in window.page.evaluate(colours):
                where = f"{tag} of {name}, {'dark' if dark else 'light'}"
                assert luminance(paper) < 0.05 if dark else luminance(paper) > 0.85, where
                assert contrast(paper, ink) >= 4.5, where


@pytest.mark.parametrize("network", ["answers", "unreachable"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_paper_has_no_buttons(scheme: str, network: Network, open_window: OpenWindow, site: Site) -> None:
    """Printed, the list is black on white and has no buttons, no links and no column for them."""
    fill(site, 3)
    window = open_window(network)
    window.open("/")
    window.page.wait_for_load_state("load")
    window.page.emulate_media(media="print", color_scheme="dark" if scheme == "dark" else "light")
    for gone in ["a", "button", "form", "th:last-child", "td:last-child"]:
        for element in window.page.locator(gone).all():
            expect(element).to_be_hidden()
    assert window.page.get_by_role("columnheader").all_inner_texts() == ["No", "NIM", "Nama", "Alamat"]
    expect(window.page.get_by_role("cell")).to_have_count(12)
    # This is what a browser repeats on each sheet of paper.
    assert window.style("thead", "display") == "table-header-group"
    assert window.style("body", "backgroundColor") == "rgb(255, 255, 255)"
    for text in ["h1", "th", "td"]:
        assert luminance(window.style(text, "color")) < 0.05


def add(window: Window, nim: str, nama: str, alamat: str) -> None:
    """Add a record as a person does, from the list and back to it."""
    window.page.get_by_role("link", name="Tambah Data").click()
    expect(window.page.get_by_role("heading", name="Tambah Data Mahasiswa")).to_be_visible()
    window.type(nim=nim, nama=nama, alamat=alamat)
    window.save()
    expect(window.page.get_by_role("heading", name="List Data Mahasiswa")).to_be_visible()


def edit(window: Window) -> None:
    """Edit the one record of the list."""
    window.page.get_by_role("link", name="Edit").click()
    window.type(alamat="Klaten")
    window.save()


def delete(window: Window) -> None:
    """Delete the one record of the list."""
    window.page.get_by_role("button", name="Delete").click()
    expect(window.rows).to_have_count(0)


def fill(site: Site, count: int) -> None:
    """Add records."""
    for number in range(count):
        site.add(f"{number:04}", f"Nama {number}", "Jalan Kaliurang 5, Sleman")


def applied(window: Window) -> bool:
    """Return whether the delivery network's sheet has an effect."""
    return bool(window.page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--bs-blue')"))


def focused(page: Page) -> str:
    """Return the name or the text of what has the focus."""
    return str(page.evaluate("document.activeElement.name || document.activeElement.textContent"))


def tab(window: Window, key: str = "Tab") -> str:
    """Go to the next stop, whose mark must be seen, and return its name or text."""
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


def tab_to(window: Window, name: str) -> None:
    """Go on to the first stop of a name or text."""
    stops = [tab(window)]
    while stops[-1] != name:
        assert stops.count(stops[0]) == 1, f"{name} is none of {stops}"
        stops.append(tab(window))


def follow(window: Window) -> None:
    """Press Enter and wait for the page it leads to."""
    with window.leaving():
        window.page.keyboard.press("Enter")
