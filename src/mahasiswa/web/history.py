"""Handlers of the history: its pages, and the undo of one change or of a batch."""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from starlette.responses import Response

from mahasiswa.store import Query, Store
from mahasiswa.store.errors import NotInHistory, Unavailable, Uncertain, UndoConflict
from mahasiswa.store.history import HistoryPage
from mahasiswa.web.failures import problem_of_failed_write
from mahasiswa.web.forms import read_form
from mahasiswa.web.list_view import View
from mahasiswa.web.pages import Pages
from mahasiswa.web.request import Request
from mahasiswa.web.responses import rendered_in_thread
from mahasiswa.work import SEARCH, Busy

ID_MAX_DIGITS = 18
"""Both engines count entries and batches with 64 bits."""


async def show(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/riwayat: one page of the latest changes, newest first; a batch is one of them."""
    return await request.while_connected(_page(request, store, pages, None))


async def show_batch(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/riwayat/kelompok/:id: one page of the changes of a batch."""
    batch = _id(request)
    if batch is None:
        return pages.error("not in history")
    return await request.while_connected(_page(request, store, pages, batch))


async def undo(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/riwayat/perubahan/:id: restore a record as it was before that change.

    `versi` comes from the page of a conflict. It is the digest of the record that the page showed and that is to be
    overwritten, "-" if there was none.
    """
    form = await read_form(request, ("versi",))
    versi = form.values["versi"] or None
    return await _undo(request, partial(store.undo, is_batch=False, versi=versi), pages, can_overwrite=True)


async def undo_batch(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/riwayat/kelompok/:id: restore every record of a batch, or none. A body is not read."""
    return await _undo(request, partial(store.undo, is_batch=True), pages, can_overwrite=False)


async def _undo(
    request: Request, write: Callable[[int], Coroutine[Any, Any, None]], pages: Pages, *, can_overwrite: bool
) -> Response:
    change = _id(request)
    if change is None:
        return pages.error("not in history")
    try:
        await write(change)
    except NotInHistory:
        return pages.error("not in history")
    except UndoConflict as conflict:
        show = partial(pages.undo_conflict, conflict.conflicts, conflict.total, change if can_overwrite else None)
        return await rendered_in_thread(request, SEARCH, show)
    except (Unavailable, Uncertain, Busy) as error:
        return pages.error(problem_of_failed_write(error))
    return pages.redirect


async def _page(request: Request, store: Store, pages: Pages, batch: int | None) -> Response:
    asked = View.of(request.query_params)
    view = View(Query(asked.query.cari), asked.halaman)
    found = await _read(store, view, batch)
    at_end = view.with_total(found.total)
    if at_end.halaman != view.halaman:  # past the end: show the last page
        found = await _read(store, at_end, batch)
    if batch is not None and not found.total and not view.query.cari:
        return pages.error("not in history")
    return await rendered_in_thread(request, SEARCH, partial(pages.history, at_end, found.items, batch))


async def _read(store: Store, view: View, batch: int | None) -> HistoryPage:
    return await store.reader(SEARCH).history(view.query.cari, batch, view.offset, view.per)


def _id(request: Request) -> int | None:
    """The number at the end of the path, or None if no entry and no batch can have it."""
    text = request.path.rpartition("/")[2]
    return int(text) if text.isascii() and text.isdigit() and len(text) <= ID_MAX_DIGITS else None
