"""Handlers of the history: its pages with their search and filter, and the undo of one change or of a batch."""

from contextlib import suppress
from datetime import date, datetime, time, timedelta
from functools import partial
from typing import NamedTuple, Self, cast
from urllib.parse import quote

from starlette.datastructures import QueryParams
from starlette.responses import Response

from mahasiswa import wording
from mahasiswa.store import Store
from mahasiswa.store.history_items import UNDO_ROWS_MAX, ItemKind, item_key
from mahasiswa.store.store_errors import NothingToUndo, NotInHistory
from mahasiswa.web.list_query import ListQuery, changed
from mahasiswa.web.pages import Pages
from mahasiswa.web.request import Request
from mahasiswa.work import SEARCH

HISTORY_PATH = "/mahasiswa/riwayat"
BATCH_PATH = HISTORY_PATH + "/kelompok/"


class HistoryQuery(NamedTuple):
    """One page of the history, or of one of its batches. `page` has its search and number, `tanggal` is a day."""

    page: ListQuery
    batch: str | None = None
    jenis: ItemKind | None = None
    tanggal: date | None = None

    @classmethod
    def of(cls, parameters: QueryParams, batch: str | None) -> Self:
        """Read a URL's query. An invalid value is replaced by its default."""
        jenis = cast("ItemKind | None", parameters.get("jenis"))
        jenis = jenis if jenis in wording.CHANGES else None
        tanggal = None
        with suppress(ValueError):
            tanggal = date.fromisoformat(parameters.get("tanggal", ""))
        # The day must end within the years of datetime in every time zone.
        if tanggal and not 1970 <= tanggal.year < 9999:
            tanggal = None
        return cls(ListQuery.of(parameters), batch, jenis, tanggal)

    @property
    def path(self) -> str:
        """The path of the page."""
        return HISTORY_PATH if self.batch is None else f"{BATCH_PATH}{self.batch}"

    def at(self, halaman: int) -> str:
        """The URL query of another page with the same search and filter. It is never empty."""
        given = (("jenis", self.jenis), ("tanggal", self.tanggal))
        filters = [f"&{name}={value}" for name, value in given if value]
        return self.page.at(halaman) + "".join(filters)


async def show(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/riwayat, /mahasiswa/riwayat/kelompok/:id: one page of the latest changes, or of the changes of a batch."""
    batch = None if request.path == HISTORY_PATH else item_key(request.parameter)
    return await _page(request, store, pages, HistoryQuery.of(request.query_params, batch))


async def undo(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/riwayat/perubahan/:id: restore the records of a change, or of a batch, that have not changed since.

    The answer leads back to the page in the URL's query, and without one to the list.
    """
    parameters = request.query_params
    if "daftar" in parameters:  # the button stood above a page of the list
        pages = pages.at(ListQuery.of(parameters).list_query)
    try:
        change, left = await store.undo(item_key(request.parameter))
    except NotInHistory:
        return pages.error("not in history")
    except NothingToUndo as error:
        search = "" if error.nim is None else f"?cari={quote(error.nim, safe='')}"
        return pages.error("nothing to undo", history=pages.path(HISTORY_PATH) + search)
    if not parameters or "daftar" in parameters:
        return pages.shown(change, left)
    batch = parameters.get("kelompok")
    query = HistoryQuery.of(parameters, None if batch is None else item_key(batch))
    place = query.path + query.at(query.page.halaman)
    return pages.redirect_to(place + changed(change, left))


async def _page(request: Request, store: Store, pages: Pages, query: HistoryQuery) -> Response:
    page = query.page
    days = None
    if query.tanggal:
        midnight = datetime.combine(query.tanggal, time(), pages.timezone)
        days = midnight, midnight + timedelta(days=1)
    found = await store.reader(SEARCH).history(
        page.query.cari,
        page.offset,
        page.per,
        batch=query.batch,
        kind=query.jenis,
        days=days,
        change=page.change,
    )
    head = found.head
    if query.batch and (not head or head.left is None):
        return pages.error("not in history")
    query = query._replace(page=page.with_total(found.total))
    if query.page.halaman != page.halaman:  # past the end: show the last page
        return await _page(request, store, pages, query)
    render = partial(
        pages.page,
        "history.html",
        query=query,
        found=found,
        undo_rows_max=UNDO_ROWS_MAX,
    )
    return await request.rendered(SEARCH, render)
