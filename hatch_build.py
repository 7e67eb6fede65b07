"""Renders docs/panduan.md, the guide for the staff, when the package is built or installed."""

from itertools import pairwise
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from markdown_it import MarkdownIt


class GuideHook(BuildHookInterface[Any]):
    """Writes the page beside `web/guide.py`, also for an editable installation."""

    def initialize(self, _version: str, _build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        guide = (root / "docs" / "panduan.md").read_text("utf-8")
        (root / "src" / "mahasiswa" / "web" / "panduan.html").write_text(rendered(guide), "utf-8")


def rendered(guide: str) -> str:
    """The guide as HTML whose headings can be linked to."""
    markdown = MarkdownIt(options_update={"xhtmlOut": False}).enable("table")
    tokens = markdown.parse(guide)

    for token, content in pairwise(tokens):
        if token.type == "heading_open":
            token.attrSet("id", content.content.lower().replace(" ", "-"))
        elif token.type == "table_open":
            token.attrSet("class", "table")
        elif token.type == "th_open":
            token.attrSet("scope", "col")
        for part in content.children or ():
            if part.type == "image":
                part.attrSet("loading", "lazy")

    html: str = markdown.renderer.render(tokens, markdown.options, {})
    return html
