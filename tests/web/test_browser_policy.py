"""Browser tests of the CDN's style sheet and of the content security policy."""

import base64
import hashlib
import re
from pathlib import Path

from browser import CONFIRMATION, OpenWindow, Window, bootstrap
from every_page import SITI
from harness import Service, Site
from playwright.sync_api import expect

from mahasiswa.settings import BOOTSTRAP, BOOTSTRAP_INTEGRITY

SCRIPT = """<script>document.title = "x"</script>"""
IMAGE = """<img src="data:," onerror="document.title = 'x'">"""


def test_the_default_integrity_is_the_hash_of_the_default_style_sheet(node_modules: Path) -> None:
    """The default hash is that of the style sheet in the npm package, whose version the default address names."""
    digest = base64.b64encode(hashlib.sha384(bootstrap(node_modules)).digest()).decode()
    assert f"sha384-{digest}" == BOOTSTRAP_INTEGRITY
    assert f'"version": "{re.findall("bootstrap@([0-9.]+)/", BOOTSTRAP)[0]}"' in (
        node_modules / "bootstrap" / "package.json"
    ).read_text("utf-8")


def test_a_style_sheet_with_another_hash_is_not_applied(open_window: OpenWindow) -> None:
    """The browser rejects a style sheet that does not have the expected hash, and the page stays usable."""
    window = open_window("answers", sheet=b":root { --bs-blue: red } body { display: none }")
    window.open("/")
    window.page.wait_for_load_state("load")
    assert not window.style_sheet_applies()
    assert "integrity" in window.problems.pop()
    expect(window.page.get_by_role("heading")).to_be_visible()


def test_a_page_has_its_style_without_the_cdn(window: Window) -> None:
    """If the CDN is unreachable, the inline style sheet sets the colours and the font."""
    window.open("/")
    window.page.wait_for_load_state("load")
    assert not window.style_sheet_applies()
    assert window.style(".btn-primary", "backgroundColor") == "rgb(11, 106, 97)"
    assert "system-ui" in window.style("body", "fontFamily")


def test_a_page_is_usable_while_the_cdn_hangs(open_window: OpenWindow, site: Site) -> None:
    """While the CDN does not answer, the page is painted and usable, including the question before a deletion."""
    site.add(*SITI)
    window = open_window("hangs")
    window.open("/")
    window.page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length")
    assert window.foreign == [BOOTSTRAP]
    assert window.page.evaluate("document.readyState") == "loading"
    expect(window.page.get_by_role("button", name="Delete")).to_be_in_viewport(ratio=1)
    window.page.get_by_role("button", name="Delete").click()
    expect(window.rows).to_have_count(0)
    assert window.dialogs == [CONFIRMATION]


def test_a_style_sheet_of_the_operator_is_applied_without_a_hash(tmp_path: Path, open_window: OpenWindow) -> None:
    """If only CDN_URL is set, the page has no hash, the policy allows the address, and the browser applies the sheet."""
    address = "http://cdn.kampus.example:8080/tema.css"
    with Service(tmp_path / "mahasiswa.db", {"CDN_URL": address}) as service:
        window = open_window("answers", url=service.url, sheet=b":root { --bs-blue: blue }")
        window.open("/")
        window.page.wait_for_load_state("load")
        link = window.page.locator("link[rel=stylesheet]")
        expect(link).to_have_attribute("href", address)
        assert link.get_attribute("integrity") is None
        assert link.get_attribute("crossorigin") is None
        assert window.foreign == [address]
        assert window.style_sheet_applies()


def test_markup_in_a_record_is_shown_as_text(window: Window) -> None:
    """Scripts in a record are shown as typed in the list, the forms and an error page, and never run."""
    markup = SCRIPT + IMAGE
    values = "inputs => inputs.map(input => input.value)"
    window.open("/")
    window.add(markup, markup, markup)
    assert window.cells() == [[markup] * 3]
    window.page.get_by_role("link", name="Edit").click()
    expect(window.page.get_by_role("heading", name="Edit Data Mahasiswa")).to_be_visible()
    assert window.page.locator("input[type=text]").evaluate_all(values) == [markup] * 3
    window.open("/mahasiswa/add")
    window.type(nim=markup, nama=markup, alamat=markup * 2)  # the same record would be a second click
    window.save()
    expect(window.page.locator("[aria-invalid]")).to_have_count(1)
    assert window.page.locator("input[type=text]").evaluate_all(values) == [markup, markup, markup * 2]
    assert window.page.locator("script, img").count() == 0
    assert window.page.title() == "Program Input Data Mahasiswa"


def test_the_policy_blocks_scripts_that_are_inserted_into_a_page(window: Window) -> None:
    """If a text were ever written as markup, the policy would block its scripts."""
    insert = "markup => document.body.append(document.createRange().createContextualFragment(markup))"
    window.open("/")
    with window.page.expect_console_message(lambda message: "policy violated: script-src-elem" in message.text):
        window.page.evaluate(insert, SCRIPT)
    with window.page.expect_console_message(lambda message: "policy violated: script-src-attr" in message.text):
        window.page.evaluate(insert, IMAGE)
    assert window.page.title() == "Program Input Data Mahasiswa"
    window.problems.clear()
