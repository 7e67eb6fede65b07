"""Renders the pages of the history."""

from starlette.responses import Response

from mahasiswa import wording
from mahasiswa.record import digest_or_dash
from mahasiswa.store.errors import UndoConflict
from mahasiswa.store.history import HistoryPage
from mahasiswa.web.history_view import HistoryView
from mahasiswa.web.latest_change import latest_change
from mahasiswa.web.page_renderer import PageRenderer


class HistoryPages(PageRenderer):
    """The pages of the history."""

    def history(self, view: HistoryView, found: HistoryPage) -> Response:
        """One page of the history, or of one of its batches."""
        return self.page(
            "history.html",
            view=view,
            page=view.page,
            items=found.items,
            head=found.head,
            latest=latest_change(found.last, self.when(found.last), "") if found.last else "",
            address=self.path(view.path),
            kinds=wording.KINDS,
            days=self.history_days,
        )

    def undo_conflict(self, conflict: UndoConflict, path: str, view: HistoryView | None, *, is_batch: bool) -> Response:
        """The page of an undo that would overwrite newer changes: the choice for an entry, the list for a batch.

        `path` is that of the undo, `view` the page of the history that its button stood on, if any.
        """
        return self.page(
            "undo_conflict.html",
            409,
            conflict=conflict,
            is_batch=is_batch,
            address=self.path(path) + (view.origin if view else ""),
            back=self.path(view.path + view.at(view.page.halaman) if view else "/mahasiswa/riwayat"),
            versi=digest_or_dash(conflict.conflicts[0].current),
        )
