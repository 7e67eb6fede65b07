"""Handlers of the history: its pages, and the undo of one change or of a batch."""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from starlette.responses import Response

from mahasiswa.digits import whole_number
from mahasiswa.record import digest_or_dash
from mahasiswa.store import Store
from mahasiswa.store.errors import NotInHistory, UndoConflict
from mahasiswa.store.history import HistoryPage
from mahasiswa.web.failures import WRITE_FAILURES, problem_of_failed_write
from mahasiswa.web.forms import read_form
from mahasiswa.web.history_view import HistoryView
from mahasiswa.web.latest_change import latest_change
from mahasiswa.web.list_view import View
from mahasiswa.web.pages import Pages
from mahasiswa.web.request import Request
from mahasiswa.web.responses import rendered_in_thread
from mahasiswa.work import SEARCH

ID_MAX_DIGITS = 18
"""Both engines count entries and batches with 64 bits."""


async def show(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/riwayat: one page of the latest changes, newest first; a batch is one of them."""
    return await request.while_connected(_page(request, store, pages, None))


async def show_batch(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/riwayat/kelompok/:id: one page of the changes of a batch."""
    batch = _id(request.path)
    if batch is None:
        return pages.error("not in history")
    return await request.while_connected(_page(request, store, pages, batch))


async def undo(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/riwayat/perubahan/:id: restore a record as it was before that change.

    `versi` comes from the page of a conflict. It is the digest of the record that the page showed and that is to be
    overwritten, "-" if there was none.
    """
    form = await read_form(request, ("versi",))
    write = partial(store.undo, is_batch=False, versi=form.values["versi"] or None)
    return await _undo(request, write, pages, is_batch=False)


async def undo_batch(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/riwayat/kelompok/:id: restore every record of a batch, or none.

    `sebagian` comes from the page of a conflict: restore only the records that have not changed since.
    """
    form = await read_form(request, ("sebagian",))
    write = partial(store.undo, is_batch=True, only_unchanged=form.values["sebagian"] == "1")
    return await _undo(request, write, pages, is_batch=True)


async def _undo(
    request: Request, write: Callable[[int], Coroutine[Any, Any, None]], pages: Pages, *, is_batch: bool
) -> Response:
    """The answer leads back to the page of the history or of the list in the URL's query, and without one to the list."""
    change = _id(request.path)
    if change is None:
        return pages.error("not in history")
    parameters = request.query_params
    view = None
    if "daftar" in parameters:  # the button stood above a page of the list
        pages = pages.at(View.of(parameters).list_query)
    elif parameters:
        view = HistoryView.of(parameters, _id(parameters.get("kelompok", "")))
    try:
        await write(change)
    except NotInHistory:
        return pages.error("not in history")
    except UndoConflict as conflict:
        show = partial(
            pages.page,
            "undo_conflict.html",
            409,
            conflict=conflict,
            is_batch=is_batch,
            address=pages.path(request.path) + (view.origin if view else ""),
            back=pages.path(view.path + view.at(view.page.halaman) if view else "/mahasiswa/riwayat"),
            versi=digest_or_dash(conflict.conflicts[0].current),
        )
        return await rendered_in_thread(request, SEARCH, show)
    except WRITE_FAILURES as error:
        return pages.error(problem_of_failed_write(error))
    return pages.redirect_to(view.path + view.at(view.page.halaman)) if view else pages.redirect


async def _page(request: Request, store: Store, pages: Pages, batch: int | None) -> Response:
    view = HistoryView.of(request.query_params, batch)
    found = await _read(store, pages, view)
    if batch is not None and (found.head is None or found.head.is_silent):
        return pages.error("not in history")
    at_end = view._replace(page=view.page.with_total(found.total))
    if at_end.page.halaman != view.page.halaman:  # past the end: show the last page
        found = await _read(store, pages, at_end)
    latest = latest_change(found.last, pages.when(found.last), "") if found.last else ""
    show = partial(pages.page, "history.html", view=at_end, page=at_end.page, found=found, latest=latest)
    return await rendered_in_thread(request, SEARCH, show)


async def _read(store: Store, pages: Pages, view: HistoryView) -> HistoryPage:
    page, days = view.page, view.days(pages.timezone)
    reader = store.reader(SEARCH)
    return await reader.history(page.query.cari, view.batch, page.offset, page.per, kind=view.jenis, days=days)


def _id(path: str) -> int | None:
    """The number at the end of a path, or None if no entry and no batch can have it."""
    return whole_number(path.rpartition("/")[2], ID_MAX_DIGITS)
