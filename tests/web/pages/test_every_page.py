"""Checks every page: accessible (axe-core), valid (html-validate), at four widths, dark and light, with the CDN and without."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from engines import empty
from harness import Page, Service, Site, led_to
from playwright.sync_api import expect
from spreadsheets import HEADER, as_records, csv, numbered
from web.browser import NPM, PHONE, OpenWindow, Window, each_look
from web.history.test_history import HISTORY
from web.importer import IMPORT, SELECT, import_file, pressed, uploaded

from mahasiswa import wording
from mahasiswa.record import Mahasiswa
from mahasiswa.settings import BOOTSTRAP
from mahasiswa.sheets.xlsx_export import CELL_MAX_UTF16_UNITS

SITI = ("2207", "Siti Aminah", "Jalan Kaliurang 5, Sleman")
LONG = ("9" * 255, "Wolfeschlegelsteinhausenbergerdorff" * 20, "https://maps.example/" + "x" * 900)
NEAR = (LONG[0][1:], *LONG[1:])
UNKNOWN = "x" * 300
PEOPLE = [
    *(SITI, ("00O1", "Nama 1", LONG[2]), ("0099", " Siti\u00a0 ", "Solo\u200b")),
    *as_records("3|Citra|Klaten", "77|Zainab|Klaten", "088|Gita|Klaten", "99|Gita|Klaten"),
    *numbered(40, "Nama {}", SITI[2], nim="{:04}"),
    LONG,
]
PREVIEW = [
    *(HEADER, SITI, (*LONG[:2], LONG[2] + "y")),
    *as_records(
        "23||Solo", "3||Bantul", "3|Citra|Klaten", "TAMU|Eko|Solo", "2.207|Siti|Solo", "Total||9"
    ),
    *(("'004", "Dewi", LONG[2]), ("1E+5", *LONG[1:]), ("88", "Gita", LONG[2])),
]
SELECTED = [
    *(SITI[:2], (LONG[0], LONG[1] + "y"), (UNKNOWN[:255], "Eko"), ("1E+15", "")),
    *(record[:1] for record in numbered(12, nim="{:04}")),
]
ADD, EDIT_LONG = "/mahasiswa/add", f"/mahasiswa/edit/{LONG[0]}"
PRINTOUT = f"/mahasiswa/cetak?cari=0&judul={LONG[1][:200]}&kolom=99&kota=Sleman&nama={LONG[1]}"
FOUND = "/?cari=a&urut=nama&arah=turun&per=10&halaman=2"


class Shown(NamedTuple):
    """How a page is shown: its path, or the steps that lead to one, and an element that only this page has.

    On that page a button is pressed after something is typed, and after somebody else has made a change.
    """

    path: str | Callable[[Site], str]
    sees: str = "main"
    button: str = ""
    typed: tuple[str, ...] = ()
    meanwhile: Callable[[Site], object] = lambda _: None


def preview_of(*rows: tuple[str, ...]) -> Callable[[Site], str]:
    return lambda site: uploaded(site, csv(*rows)).url


def skip_a_line(site: Site) -> str:
    rows = csv(HEADER, *as_records("2207|Siti Aminah|Solo", "23001|Ani|Solo", "23002||Solo"))
    return pressed(site, uploaded(site, rows), "lewati:no_nama").url


def undo_a_part(site: Site) -> str:
    """Import ten records, edit four of them, and undo the import; return the address of the rest."""
    people = numbered(10, SITI[1], nim="23{:06}")
    import_file(site, csv(HEADER, *people))
    changes = site.page(HISTORY).target("Lihat rinciannya")
    for nim, *_ in people[:4]:
        site.edit(nim, *LONG[1:])
    return led_to(site.submit(site.page(changes).posts[0]))


def fill_history(site: Site) -> str:
    undo_a_part(site)
    site.delete(LONG[0])
    others = numbered(3, SITI[1], nim="24{:06}")
    import_file(site, csv(HEADER, *others))
    return HISTORY


PAGES = {
    "list": Shown("/"),
    "empty_list": Shown("/"),
    "add": Shown(ADD),
    "edit": Shown(EDIT_LONG),
    "nim": Shown(f"/mahasiswa/nim/{LONG[0]}"),
    "no_record": Shown(f"/mahasiswa/edit/{UNKNOWN}"),
    "no_match": Shown(f"/?cari=tidak+{UNKNOWN}"),
    "offered": Shown("/?cari=aminxh", "text=Mungkin maksud Anda"),
    "import": Shown(IMPORT),
    "guide": Shown("/mahasiswa/panduan"),
    "bulk_delete": Shown(SELECT),
    "export_refused": Shown("/mahasiswa/ekspor.xlsx", "text=unduh sebagai CSV"),
    "duplicate": Shown(ADD, "[aria-invalid]", "Simpan", (*LONG[:2], "Solo")),
    "stored": Shown(ADD, "text=Lihat datanya", "Simpan", SITI),
    "next": Shown(f"{ADD}?lagi=1&nim={LONG[0]}", "[role=status]"),
    "near_nim": Shown(lambda site: led_to(site.add(*NEAR)), "text=Batalkan penambahan"),
    "deleted": Shown(
        EDIT_LONG, "text=Tambahkan sebagai", "Simpan", SITI[1:], lambda site: site.delete(LONG[0])
    ),
    "changed": Shown(
        EDIT_LONG,
        "text=Gunakan data terbaru",
        "Simpan",
        (LONG[1] + "s", "Solo"),
        lambda site: site.edit(LONG[0], LONG[1] + "y", LONG[2]),
    ),
    "found": Shown(FOUND, "role=link[name=Berikutnya]"),
    "import_refused": Shown(IMPORT, "[role=alert]", "Lihat pratinjau"),
    "columns": Shown(preview_of(HEADER[1:], SITI[1:]), "text=Baca kolom ini"),
    "preview": Shown(preview_of(*PREVIEW), ".problem"),
    "preview_skipped": Shown(skip_a_line, "text=Jangan lewati"),
    "preview_without_addresses": Shown(
        preview_of(("NIM", "Nama", "Telepon"), ("23001", "Ani", "0812")),
        "text=alamat kosong dengan",
    ),
    "checks": Shown("/mahasiswa/periksa", "h2 >> nth=2"),
    "printout": Shown(PRINTOUT, "th.blank >> nth=30"),
    "bulk_delete_preview": Shown(
        lambda site: uploaded(site, csv(HEADER[:2], *SELECTED), path=SELECT).url
    ),
    "history": Shown(fill_history, "text=Dibatalkan"),
    "partial_undo": Shown(undo_a_part, "text=4 data lain sudah berubah lagi"),
}


def show(name: str, window: Window, site: Site) -> str:
    """Show a page of `PAGES` in a window, with all its parts open; return its source. The list of the site must be empty."""
    page = PAGES[name]
    people = {"empty_list": [], "export_refused": [("4", "x" * (CELL_MAX_UTF16_UNITS + 1), "Solo")]}
    for record in people.get(name, PEOPLE):
        led_to(site.add(*record))
    answer = window.goto(page.path if isinstance(page.path, str) else page.path(site))
    for field, text in zip(Mahasiswa._fields[-len(page.typed) :], page.typed, strict=False):
        window.fill(f"input[name={field}]", text)
    page.meanwhile(site)
    if page.button:
        with window.expect_navigation() as navigation:
            window.get_by_role("button", name=page.button, exact=True).click()
        answer = navigation.value
    expect(window.locator(page.sees).first).to_be_attached()
    window.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    assert answer
    return answer.text()


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
  const {backgroundColor, color} = getComputedStyle(element), {Color, getContrast} = axe.commons.color;
  const [background, text] = [backgroundColor, color].map(value => {
    const parsed = new Color();
    parsed.parseString(value);
    return parsed;
  });
  return [element.tagName, background.alpha * text.alpha, background.getRelativeLuminance(), getContrast(background, text)];
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


@pytest.mark.parametrize("name", PAGES)
def test_every_page_fits_any_window_and_is_accessible(
    name: str,
    open_window: OpenWindow,
    site: Site,
    sources: dict[str, str],
    node_modules: Path,
) -> None:
    """Each page fits windows of four widths, and axe-core finds no fault, also in its colours."""
    window = open_window(cdn=True, **PHONE)
    requested = set()
    window.on("request", lambda request: requested.add(request.url))
    sources[name] = show(name, window, site)
    page = Page(sources[name], site.origin)
    assert " ".join(page.texts("header a")).split() == ["Data", "Mahasiswa", "Impor", "Riwayat"]
    assert "versi 1." in page.texts("footer")[0]
    window.evaluate((node_modules / "axe-core" / "axe.min.js").read_text("utf-8"))
    for look in each_look(window):
        for width in WIDTHS:
            window.set_viewport_size({"width": width, "height": 667})
            assert window.evaluate(TOO_WIDE) == [width] * 2, f"{look}, {width} wide"
        for scheme in ("light", "dark"):
            window.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            for tag, alpha, luminance, contrast in window.evaluate(COLOURS):
                where = f"{tag}, {scheme}, {look}"
                assert luminance < 0.05 if scheme == "dark" else luminance > 0.85, where
                assert (alpha, contrast >= 4.5) == (1, True), where
            # Each size with each scheme, and each of them with and without the CDN.
            width = 375 if (scheme == "dark") == (look == "with the CDN") else 1280
            window.set_viewport_size({"width": width, "height": 667})
            rules = [] if look == "with the CDN" else STYLE_RULES
            found = window.evaluate(RUN_AXE, rules)
            where = f"{scheme}, {width} wide, {look}"
            assert found["violations"] == [], where
            assert set(found["undecided"]) <= ALLOWED_UNDECIDED.get(name, set()), where
            assert {"color-contrast", *(rules or ["html-has-lang"])} <= set(found["passed"])
    ours = (site.origin, "data:")
    assert {url for url in requested if not url.startswith(ours)} == {BOOTSTRAP}


@pytest.fixture
def all_sources(
    open_window: OpenWindow, service: Service, sources: dict[str, str]
) -> dict[str, str]:
    """Return the HTML of every page. Those that the test above has not seen are opened."""
    window = open_window()
    for name in PAGES.keys() - sources.keys():
        empty(service)
        with service.site() as site:
            sources[name] = show(name, window, site)
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
