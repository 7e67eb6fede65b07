"""Every page before two judges: axe-core, in all the forms a page can take, and html-validate, for its HTML."""

import json
import shutil
from itertools import product
from pathlib import Path

import pytest
from browser import (
    DESKTOP,
    NPM,
    PHONE,
    Network,
    OpenWindow,
    empty_site,
    install_node_modules,
    run,
    start_chromium,
    window_opener,
)
from every_page import PAGES
from harness import Site

# The fixtures of the browser, which pytest finds by these names.
__all__ = ["empty_site", "install_node_modules", "start_chromium", "window_opener"]

RUN_AXE = """async () => {
  const options = {
    rules: {"target-size": {enabled: true}},  // WCAG 2.2 AA, and off unless asked for
    preload: false,                           // would fetch the sheet by a script, which the policy forbids
  };
  const {violations, incomplete, passes} = await axe.run(document, options);
  return {
    wrong: violations.map(({id, nodes}) => id + ": " + nodes.map(node => node.html.slice(0, 80)).join(", ")),
    unjudged: incomplete.map(rule => rule.id),
    passed: passes.map(rule => rule.id),
  };
}"""

# A table without a row is what the specification asks for (4.1.6).
UNJUDGED = {"empty_list": {"th-has-data-cells"}, "no_match": {"th-has-data-cells"}}


@pytest.mark.parametrize("network", ["answers", "unreachable"])
@pytest.mark.parametrize("name", PAGES)
def test_accessible(name: str, network: Network, open_window: OpenWindow, site: Site, node_modules: Path) -> None:
    """axe-core finds nothing wrong, and nothing it cannot judge, in light and dark, on a desktop and on a phone."""
    window = open_window(network)
    PAGES[name](window, site)
    window.page.wait_for_load_state("load")
    window.page.evaluate((node_modules / "axe-core" / "axe.min.js").read_text("utf-8"))
    for dark, (width, height) in product((False, True), (DESKTOP, PHONE)):
        window.page.emulate_media(color_scheme="dark" if dark else "light")
        window.page.set_viewport_size({"width": width, "height": height})
        found = window.page.evaluate(RUN_AXE)
        where = f"{'dark' if dark else 'light'}, {width} wide"
        assert found["wrong"] == [], where
        assert set(found["unjudged"]) <= UNJUDGED.get(name, set()), where
        assert {"color-contrast", "html-has-lang", "document-title"} <= set(found["passed"])


def test_html_is_valid(open_window: OpenWindow, site: Site, node_modules: Path, tmp_path: Path) -> None:
    """html-validate finds no error and no warning in the HTML of any page, as the service sends it."""
    node = shutil.which("node")
    assert node is not None, "npm is here, and node is not"
    window = open_window()
    for name, show in PAGES.items():
        show(window, site)
        (tmp_path / f"{name}.html").write_text(window.source(), "utf-8")
    # The report is silent on what is right: a page that is wrong shows that it was made at all.
    (tmp_path / "wrong.html").write_text(window.source().replace("</main>", ""), "utf-8")
    program = node_modules / "html-validate" / "bin" / "html-validate.mjs"
    judged = run([node, str(program), "--config", str(NPM / "html-validate.cjs"), "--formatter", "json", str(tmp_path)])
    report = {Path(page["filePath"]).stem: page["messages"] for page in json.loads(judged.stdout)}
    assert report.pop("wrong")
    assert report == {}
