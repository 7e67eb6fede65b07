"""The pages that several handlers render, for one set of settings."""

from functools import cached_property
from typing import Literal

from starlette.responses import Response

from mahasiswa.web.cached_page import CachedPage
from mahasiswa.web.list_pages import ListPages
from mahasiswa.web.preview_view import PreviewView
from mahasiswa.web.record_pages import RecordPages

Purpose = Literal["impor", "hapus"]
"""The purpose of an upload, as in the path of its form."""


class Pages(ListPages, RecordPages):
    """The pages of the list, of one record, and of an upload."""

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
