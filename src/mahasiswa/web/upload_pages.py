"""Renders the pages of the import and of the bulk delete."""

from functools import cached_property
from typing import Literal

from starlette.responses import Response

from mahasiswa.web.cached_page import CachedPage
from mahasiswa.web.page_renderer import PageRenderer
from mahasiswa.web.preview_view import PreviewView

Purpose = Literal["impor", "hapus"]
"""The purpose of an upload, as in the path of its form."""


class UploadPages(PageRenderer):
    """The forms to choose a file, and their previews."""

    @cached_property
    def empty_upload_forms(self) -> dict[Purpose, CachedPage]:
        """The forms before anything is chosen. No record is in them, so they are rendered once."""
        return {"impor": self.cached(self.upload_form("impor")), "hapus": self.cached(self.upload_form("hapus"))}

    def upload_form(
        self, purpose: Purpose, message: str = "", status: int = 400, pasted: str = "", view: PreviewView | None = None
    ) -> Response:
        """The page to choose a file or to paste cells, with a message about the last attempt.

        With `view`, which is a preview without its columns, a person can choose these.
        """
        return self.page(
            "upload.html",
            status if message else 200,
            self.not_stored if view else None,
            purpose=purpose,
            message=message,
            pasted=pasted,
            view=view,
        )
