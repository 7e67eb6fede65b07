"""Checks every page: accessible (axe-core), valid (html-validate), at four widths, dark and light, with the CDN and without."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from engines import empty
from harness import Page, Service, Site
from playwright.sync_api import Browser
from web.browser import (
    DESKTOP,
    NPM,
    PHONE,
    OpenWindow,
    Window,
    contrast,
    each_look,
    luminance,
    new_window,
)
from web.pages.every_page import PAGES

from mahasiswa import wording
from mahasiswa.settings import BOOTSTRAP

RUN_AXE = """async only => {
  const options = {
    rules: {"target-size": {enabled: true}},  // part of WCAG 2.2 AA, but off by default
    preload: false,                           // it would fetch the style sheet by a script, which the policy forbids
    ...only.length ? {runOnly: only} : {},
  };
  const {violations, incomplete, passes} = await axe.run(document, options);
  return {
    violations: violations.map(({id, nodes}) => id + ": " + nodes.map(node => node.html.slice(0, 80)).join(", ")),
    // It cannot judge the text of a select, which stands on Bootstrap's picture of an arrow. COLOURS has selects too.
    undecided: incomplete.filter(({nodes}) => !nodes.every(node => node.html.startsWith("<select"))).map(({id}) => id),
    passed: passes.map(rule => rule.id),
  };
}"""
TOO_WIDE = """() => [innerWidth, document.documentElement.scrollWidth,
  ...[...document.body.querySelectorAll("main, main *")].filter(element => {
    const {left, right} = element.getBoundingClientRect();
    return left < 0 || right > innerWidth;
  }).map(element => element.outerHTML.slice(0, 80))]"""
COLOURS = """() => [...document.querySelectorAll(
  "body, th:not([scope=row]), select, input:not([type=hidden], [type=checkbox], [type=radio])")].map(element => {
  const {backgroundColor, color} = getComputedStyle(element);
  return [element.tagName, backgroundColor, color];
})"""
# The style sheet changes the result of these rules only.
STYLE_RULES = ["color-contrast", "target-size"]
GUIDE = Path(__file__).parents[3] / "docs" / "panduan.md"
LABELS = "a, button, h1, h2, label, legend, option, th, dt, summary"
WIDTHS = (320, 599, 600, 1280)

# The specification (4.1.6) requires an empty table body, which axe-core cannot judge. Nor can it judge a text that the
# buttons at the lower edge of a preview cover in part.
ALLOWED_UNDECIDED = {
    "empty_list": {"th-has-data-cells"},
    "no_match": {"th-has-data-cells"},
    "offered": {"th-has-data-cells"},
    "preview": {"color-contrast"},
    "preview_skipped": {"color-contrast"},
    "preview_without_addresses": {"color-contrast"},
}


@pytest.fixture(scope="module")
def sources() -> dict[str, str]:
    return {}


@pytest.fixture(scope="module")
def phone(request: pytest.FixtureRequest, chromium: Browser) -> Iterator[Window]:
    """Open a mobile window, which uses the viewport that a page sets, once for all pages."""
    window = new_window(request, chromium, "answers", PHONE, is_mobile=True, has_touch=True)
    yield window
    window.page.context.close()


@pytest.mark.parametrize("name", PAGES)
def test_every_page_fits_any_window_and_is_accessible(
    name: str, phone: Window, site: Site, sources: dict[str, str], node_modules: Path
) -> None:
    """Each page fits windows of four widths, and axe-core finds no fault, also in its colours."""
    window = phone
    window.page.emulate_media(color_scheme="light")
    window.page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    PAGES[name](window, site)
    sources[name] = window.source()
    page = Page(sources[name], site.origin)
    assert " ".join(page.texts("header a")).split() == ["Data", "Mahasiswa", "Impor", "Riwayat"]
    assert "versi 1." in page.texts("footer")[0]
    window.page.evaluate((node_modules / "axe-core" / "axe.min.js").read_text("utf-8"))
    for look in each_look(window):
        for width in WIDTHS:
            window.page.set_viewport_size({"width": width, "height": 667})
            assert window.page.evaluate(TOO_WIDE) == [width] * 2, f"{look}, {width} wide"
        for scheme in ("light", "dark"):
            window.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            for tag, background, text in window.page.evaluate(COLOURS):
                where = f"{tag}, {scheme}, {look}"
                assert (
                    luminance(background) < 0.05
                    if scheme == "dark"
                    else luminance(background) > 0.85
                ), where
                assert contrast(background, text) >= 4.5, where
            # Each size with each scheme, and each of them with and without the CDN.
            size = PHONE if (scheme == "dark") == (look == "with the CDN") else DESKTOP
            window.page.set_viewport_size({"width": size[0], "height": size[1]})
            rules = [] if look == "with the CDN" else STYLE_RULES
            found, where = window.page.evaluate(RUN_AXE, rules), f"{scheme}, {size[0]} wide, {look}"
            assert found["violations"] == [], where
            assert set(found["undecided"]) <= ALLOWED_UNDECIDED.get(name, set()), where
            assert {"color-contrast", *(rules or ["html-has-lang"])} <= set(found["passed"])
    assert (set(window.foreign), window.problems) == ({BOOTSTRAP}, [])


@pytest.fixture
def all_sources(
    open_window: OpenWindow, service: Service, sources: dict[str, str]
) -> dict[str, str]:
    """Return the HTML of every page. Those that the test above has not seen are opened."""
    window = open_window()
    for name in PAGES.keys() - sources.keys():
        empty(service)
        with service.site() as site:
            PAGES[name](window, site)
        sources[name] = window.source()
    return sources


def test_the_guide_quotes_texts_that_the_pages_show(all_sources: dict[str, str]) -> None:
    """Its bold words are links, buttons, labels or titles of the pages, or sentences of the program."""
    pages = [Page(html, "") for name, html in all_sources.items() if name != "guide"]
    texts = [" ".join(" ".join(page.texts("main")).split()) for page in pages]
    texts.append(Path(wording.__file__).read_text("utf-8"))
    labels = [" ".join(label.split()) for page in pages for label in page.texts(LABELS)]
    labels += [label for page in pages for label in page.values("[placeholder]", "placeholder")]
    quotes = re.findall(r"\*\*(.+?)\*\*", GUIDE.read_text("utf-8"), re.DOTALL)
    assert len(quotes) > 99
    for quote in (" ".join(quote.split()) for quote in quotes):
        # The pages have other numbers and names, and a number instead of "ini".
        pattern = ".+".join(map(re.escape, re.split(r"\d+|Siti Aminah|\bini\b", quote)))
        if quote.endswith((".", ":", "?")):
            assert any(re.search(pattern, text) for text in texts), quote
        else:
            assert any(re.fullmatch(f"{pattern}(, lewati .+)?", label) for label in labels), quote


def test_html_validate_finds_no_error_on_any_page(
    all_sources: dict[str, str], node_modules: Path, tmp_path: Path
) -> None:
    """html-validate finds no error and no warning in the HTML that the service sends for any page."""
    node = shutil.which("node")
    assert node is not None, "npm is installed, but node is not"
    # The report lists only invalid pages. This invalid page proves that the check ran.
    pages = {**all_sources, "wrong": all_sources["list"].replace("</main>", "")}
    for name, html in pages.items():
        (tmp_path / f"{name}.html").write_text(html, "utf-8")
    program = node_modules / "html-validate" / "bin" / "html-validate.mjs"
    # To a file, because the program ends before a long report has left through a pipe.
    found = tmp_path / "found.json"
    formatter = f"json={found}"
    command: list[str | Path] = [
        node,
        program,
        "--config",
        NPM / "html-validate.cjs",
        "--formatter",
        formatter,
        tmp_path,
    ]
    subprocess.run(command, capture_output=True, check=False, timeout=180)
    report = {
        Path(page["filePath"]).stem: page["messages"] for page in json.loads(found.read_bytes())
    }
    assert report.pop("wrong")
    assert report == {}
