"""Renders the pages of the history."""

from collections.abc import Sequence

from starlette.responses import Response

from mahasiswa.record import digest_or_dash
from mahasiswa.store.history import Batch, Conflict, Entry
from mahasiswa.web.list_view import View
from mahasiswa.web.page_renderer import PageRenderer


class HistoryPages(PageRenderer):
    """The pages of the history."""

    def history(self, view: View, items: Sequence[Entry | Batch], batch: int | None) -> Response:
        """One page of the history, or of one of its batches."""
        address = "/mahasiswa/riwayat" if batch is None else f"/mahasiswa/riwayat/kelompok/{batch}"
        return self.page(
            "history.html", view=view, items=items, batch=batch, address=self.path(address), days=self.history_days
        )

    def undo_conflict(self, conflicts: Sequence[Conflict], total: int, entry: int | None) -> Response:
        """The page of an undo that would overwrite newer changes: the choice for an entry, the list for a batch."""
        current = conflicts[0].current
        return self.page(
            "undo_conflict.html",
            409,
            conflicts=conflicts,
            total=total,
            address="" if entry is None else self.path(f"/mahasiswa/riwayat/perubahan/{entry}"),
            versi=digest_or_dash(current),
        )
