"""Handlers of the guide for the staff: docs/panduan.md as a page, and its pictures.

panduan.txt and the files of the folder panduan are links to the text and to the pictures in docs. The folder is no link,
because an sdist holds each folder once.
"""

from functools import cache
from importlib import resources
from itertools import pairwise

from markupsafe import Markup
from starlette.responses import Response

from mahasiswa.store import Store
from mahasiswa.web.pages import Pages
from mahasiswa.web.responses import rendered_in_thread
from mahasiswa.web.service import Request
from mahasiswa.work import RECORD

PICTURE_SECONDS = 24 * 60 * 60  # for which a browser keeps a picture


async def show(request: Request, _store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/panduan."""
    return await rendered_in_thread(
        request, RECORD, lambda: pages.page("guide.html", guide=_rendered())
    )


async def picture(request: Request, _store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/panduan/:nama: a picture of the guide."""
    image = _pictures().get(request.parameter)
    if image is None:
        return pages.error("no page")
    kept = {"cache-control": f"max-age={PICTURE_SECONDS}, private"}
    return Response(image, headers={**pages.headers, **kept}, media_type="image/png")


@cache
def _rendered() -> Markup:
    # Its import takes longer than the start of a worker, and most workers never show the guide.
    from markdown_it import MarkdownIt  # noqa: PLC0415

    markdown = MarkdownIt(options_update={"xhtmlOut": False}).enable("table")
    tokens = markdown.parse((resources.files(__package__) / "panduan.txt").read_text("utf-8"))

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

    html = markdown.renderer.render(tokens, markdown.options, {})
    return Markup(html)  # noqa: S704 - the project's own text


@cache
def _pictures() -> dict[str, bytes]:
    folder = resources.files(__package__) / "panduan"
    return {file.name: file.read_bytes() for file in folder.iterdir()}
