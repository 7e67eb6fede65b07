"""Checks every page with axe-core (accessibility) and html-validate (valid HTML)."""

import json
import shutil
from itertools import product
from pathlib import Path

import pytest
from browser import DESKTOP, NPM, PHONE, Network, OpenWindow, run
from every_page import PAGES
from harness import Site

RUN_AXE = """async () => {
  const options = {
    rules: {"target-size": {enabled: true}},  // part of WCAG 2.2 AA, but off by default
    preload: false,                           // it would fetch the style sheet by a script, which the policy forbids
  };
  const {violations, incomplete, passes} = await axe.run(document, options);
  return {
    violations: violations.map(({id, nodes}) => id + ": " + nodes.map(node => node.html.slice(0, 80)).join(", ")),
    undecided: incomplete.map(rule => rule.id),
    passed: passes.map(rule => rule.id),
  };
}"""

# The specification (4.1.6) requires an empty table body, which axe-core cannot judge.
ALLOWED_UNDECIDED = {"empty_list": {"th-has-data-cells"}, "no_match": {"th-has-data-cells"}}


@pytest.mark.parametrize("network", ["answers", "unreachable"])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_no_violation_on_any_page(
    name: str, network: Network, open_window: OpenWindow, site: Site, node_modules: Path
) -> None:
    """axe-core finds no violation and nothing undecided, in light and dark mode, on a desktop and on a phone."""
    window = open_window(network)
    PAGES[name](window, site)
    window.page.wait_for_load_state("load")
    window.page.evaluate((node_modules / "axe-core" / "axe.min.js").read_text("utf-8"))
    for dark, (width, height) in product((False, True), (DESKTOP, PHONE)):
        window.page.emulate_media(color_scheme="dark" if dark else "light")
        window.page.set_viewport_size({"width": width, "height": height})
        found = window.page.evaluate(RUN_AXE)
        where = f"{'dark' if dark else 'light'}, {width} wide"
        assert found["violations"] == [], where
        assert set(found["undecided"]) <= ALLOWED_UNDECIDED.get(name, set()), where
        assert {"color-contrast", "html-has-lang", "document-title"} <= set(found["passed"])


def test_html_validate_finds_no_error_on_any_page(
    open_window: OpenWindow, site: Site, node_modules: Path, tmp_path: Path
) -> None:
    """html-validate finds no error and no warning in the HTML that the service sends for any page."""
    node = shutil.which("node")
    assert node is not None, "npm is installed, but node is not"
    window = open_window()
    for name, show in PAGES.items():
        show(window, site)
        (tmp_path / f"{name}.html").write_text(window.source(), "utf-8")
    # The report lists only invalid pages. This invalid page proves that the check ran.
    (tmp_path / "wrong.html").write_text(window.source().replace("</main>", ""), "utf-8")
    program = node_modules / "html-validate" / "bin" / "html-validate.mjs"
    checked = run(
        [node, str(program), "--config", str(NPM / "html-validate.cjs"), "--formatter", "json", str(tmp_path)]
    )
    report = {Path(page["filePath"]).stem: page["messages"] for page in json.loads(checked.stdout)}
    assert report.pop("wrong")
    assert report == {}
