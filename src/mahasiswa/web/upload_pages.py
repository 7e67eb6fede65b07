"""Renders the pages of the import and of the bulk delete."""

from collections.abc import Sequence
from functools import cached_property

from starlette.responses import Response

from mahasiswa import sheets, wording
from mahasiswa.record import Mahasiswa
from mahasiswa.web.cached_page import CachedPage
from mahasiswa.web.page_renderer import PageRenderer
from mahasiswa.web.preview_view import PreviewView


class UploadPages(PageRenderer):
    """The forms to choose a file, and their previews."""

    @cached_property
    def empty_import_form(self) -> CachedPage:
        """The import form before anything is chosen. No record is in it, so it is rendered once."""
        return self.cached(self.import_form())

    @cached_property
    def empty_bulk_delete_form(self) -> CachedPage:
        """The same for the bulk delete."""
        return self.cached(self.bulk_delete_form())

    def import_form(self, message: str = "", status: int = 400, pasted: str = "") -> Response:
        """The page to choose a spreadsheet or to paste cells, with a message about the last attempt."""
        return self._import_form(message, status, pasted, None)

    def preview(self, view: PreviewView) -> Response:
        """The preview of an import, or the import form with a choice of columns if they could not be found."""
        if view.columns_problem:
            return self._import_form(view.columns_problem, 400, "", view)
        status = 409 if view.alert == "changed" else 200
        return self.page(
            "preview.html",
            status,
            self.not_stored,
            view=view,
            letter=wording.column_letter,
            parts=wording.PARTS,
            other_rows=wording.OTHER_ROWS,
            lost_zeros=wording.LOST_ZEROS,
            no_alamat_column=wording.NO_ALAMAT_COLUMN,
        )

    def _import_form(self, message: str, status: int, pasted: str, view: PreviewView | None) -> Response:
        return self.page(
            "import.html",
            status if message else 200,
            self.not_stored if view else None,
            message=message,
            pasted=pasted,
            view=view,
            letter=wording.column_letter,
        )

    def bulk_delete_form(self, message: str = "", status: int = 400, pasted: str = "") -> Response:
        """The page to paste NIMs or to choose a file with them, with a message about the last attempt."""
        return self.page(
            "bulk_delete.html",
            status if message else 200,
            message=message,
            pasted=pasted,
            preview=None,
        )

    def bulk_delete(self, found: Sequence[Mahasiswa], missing: Sequence[sheets.NimCell], data: str) -> Response:
        """The preview of a bulk delete. Its confirmation sends `data` back."""
        preview = {"found": found, "missing": missing, "data": data}
        return self.page("bulk_delete.html", 200, self.not_stored, preview=preview)
