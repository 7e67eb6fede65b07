"""Renders the pages of the import and of the bulk delete."""

from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from typing import Literal

from starlette.responses import Response

from mahasiswa import sheets, wording
from mahasiswa.web.cached_page import CachedPage
from mahasiswa.web.page_renderer import PageRenderer
from mahasiswa.web.preview_view import MAX_REPAIRED_ROWS, REPAIRED_MAX_BYTES, Alert, PreviewView

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
            wording=wording,
        )

    def preview(self, view: PreviewView) -> Response:
        """The preview of an import, or the import form with a choice of columns if they could not be found."""
        if view.columns_problem:
            return self.upload_form("impor", view.columns_problem, view=view)
        status = 409 if view.alert == "changed" else 200
        return self.page("preview.html", status, self.not_stored, view=view, wording=wording, row_name=sheets.row_name)

    def bulk_delete(
        self, found: Sequence[sheets.FoundRow], missing: Sequence[tuple[str, sheets.NimCell]], data: str, alert: Alert
    ) -> Response:
        """The preview of a bulk delete. Its confirmation sends `data` back. A missing NIM is as it is in the file."""
        sizes = accumulate(len(text.encode()) for text, _ in missing[:MAX_REPAIRED_ROWS])
        return self.page(
            "bulk_delete.html",
            200,
            self.not_stored,
            found=found,
            renamed=[row for row in found if row.nama],
            missing=missing,
            inputs=sum(size <= REPAIRED_MAX_BYTES for size in sizes),
            most=MAX_REPAIRED_ROWS,
            wording=wording,
            data=data,
            alert=alert,
        )
