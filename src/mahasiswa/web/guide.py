"""Handlers of the guide for the staff: docs/panduan.md as a page, and its pictures.

hatch_build.py makes panduan.html from it. The files of the folder panduan are links to the pictures in docs. The folder is
no link, because an sdist holds each folder once.
"""

from functools import cache
from importlib import resources

from markupsafe import Markup
from starlette.responses import Response

from mahasiswa.store import Store
from mahasiswa.web.pages import Pages
from mahasiswa.web.request import Request
from mahasiswa.work import RECORD

PICTURE_SECONDS = 24 * 60 * 60  # for which a browser keeps a picture


async def show(request: Request, _store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/panduan."""
    return await request.rendered(RECORD, lambda: pages.page("guide.html", guide=_text()))


async def picture(request: Request, _store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/panduan/:nama: a picture of the guide."""
    image = _pictures().get(request.parameter)
    if image is None:
        return pages.error("no page")
    kept = {"cache-control": f"max-age={PICTURE_SECONDS}, private"}
    return Response(image, headers={**pages.headers, **kept}, media_type="image/png")


@cache
def _text() -> Markup:
    text = (resources.files(__package__) / "panduan.html").read_text("utf-8")
    return Markup(text)  # noqa: S704 - the project's own text


@cache
def _pictures() -> dict[str, bytes]:
    folder = resources.files(__package__) / "panduan"
    return {file.name: file.read_bytes() for file in folder.iterdir()}
