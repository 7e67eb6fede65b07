"""Browser tests of the layout: any width, phones, light and dark, and print."""

import pytest
from browser import PHONE, Network, OpenWindow, contrast, luminance
from every_page import PAGES, SITI, add_many
from harness import Site
from playwright.sync_api import expect


def test_the_column_names_stay_visible_in_a_long_list(open_window: OpenWindow, site: Site) -> None:
    """At the end of a long list the header of the table is still visible."""
    add_many(site, 60)
    window = open_window()
    window.open("/")
    window.rows.last.scroll_into_view_if_needed()
    assert window.page.evaluate("scrollY") > 0
    expect(window.page.get_by_role("columnheader", name="Alamat")).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("network", ["answers", "unreachable"])
def test_no_page_scrolls_sideways(network: Network, open_window: OpenWindow, site: Site) -> None:
    """Long texts without spaces and all buttons fit into windows of any width."""
    # A mobile window uses the width that the page's viewport element sets.
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


def test_a_phone_shows_all_cells_and_large_buttons(open_window: OpenWindow, site: Site) -> None:
    """On a phone each record shows its number, texts and buttons, and the buttons are large enough for a thumb."""
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


@pytest.mark.parametrize("network", ["answers", "unreachable"])
def test_every_page_follows_the_dark_or_light_preference(network: Network, open_window: OpenWindow, site: Site) -> None:
    """In dark mode the backgrounds of page and fields are dark and their texts are light; in light mode the reverse."""
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
            for tag, background, text in window.page.evaluate(colours):
                where = f"{tag} of {name}, {'dark' if dark else 'light'}"
                assert luminance(background) < 0.05 if dark else luminance(background) > 0.85, where
                assert contrast(background, text) >= 4.5, where


@pytest.mark.parametrize("network", ["answers", "unreachable"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_printed_list_has_no_buttons(scheme: str, network: Network, open_window: OpenWindow, site: Site) -> None:
    """The printed list is black on white, without buttons, links and their column."""
    add_many(site, 3)
    window = open_window(network)
    window.open("/")
    window.page.wait_for_load_state("load")
    window.page.emulate_media(media="print", color_scheme="dark" if scheme == "dark" else "light")
    for hidden in ["a", "button", "form", "th:last-child", "td:last-child"]:
        for element in window.page.locator(hidden).all():
            expect(element).to_be_hidden()
    assert window.page.get_by_role("columnheader").all_inner_texts() == ["No", "NIM", "Nama", "Alamat"]
    expect(window.page.get_by_role("cell")).to_have_count(12)
    # A browser repeats a table-header-group on each printed page.
    assert window.style("thead", "display") == "table-header-group"
    assert window.style("body", "backgroundColor") == "rgb(255, 255, 255)"
    for text in ["h1", "th", "td"]:
        assert luminance(window.style(text, "color")) < 0.05
