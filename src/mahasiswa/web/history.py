"""Handlers of the history: its pages with their search and filter, and the undo of one change or of a batch."""

from datetime import date, datetime, time, timedelta, tzinfo
from functools import partial
from typing import NamedTuple, Self, cast

from starlette.datastructures import QueryParams
from starlette.responses import Response

from mahasiswa import wording
from mahasiswa.record import digest_or_dash
from mahasiswa.store import Query, Store
from mahasiswa.store.history_items import UNDO_ROWS_MAX, Days, ItemKey, ItemKind
from mahasiswa.store.store_errors import (
    BatchTooLong,
    NotInHistory,
    Refused,
    StoreError,
    UndoConflict,
)
from mahasiswa.web.list_html import latest_change
from mahasiswa.web.list_query import ListQuery, changed
from mahasiswa.web.pages import Pages
from mahasiswa.web.responses import rendered_in_thread
from mahasiswa.web.service import Request
from mahasiswa.work import RECORD, SEARCH

HISTORY_PATH = "/mahasiswa/riwayat"
BATCH_PATH = HISTORY_PATH + "/kelompok/"


class HistoryQuery(NamedTuple):
    """One page of the history, or of one of its batches. `page` has its search and number, `tanggal` is a day."""

    page: ListQuery
    batch: ItemKey | None = None
    jenis: ItemKind | None = None
    tanggal: date | None = None

    @classmethod
    def of(cls, parameters: QueryParams, batch: ItemKey | None) -> Self:
        """Read a URL's query. An invalid value is replaced by its default."""
        asked = ListQuery.of(parameters)
        jenis = cast("ItemKind | None", parameters.get("jenis"))
        try:
            tanggal = date.fromisoformat(parameters.get("tanggal", ""))
        except ValueError:
            tanggal = None
        # The day must end within the years of datetime in every time zone.
        if tanggal and not 1970 <= tanggal.year < 9999:
            tanggal = None
        jenis = jenis if jenis in wording.CHANGES else None
        page = ListQuery(Query(asked.query.cari), asked.halaman, change=asked.change)
        return cls(page, batch, jenis, tanggal)

    def days(self, timezone: tzinfo) -> Days | None:
        """The day of `tanggal` in a time zone."""
        if self.tanggal is None:
            return None
        midnight = datetime.combine(self.tanggal, time(), timezone)
        return midnight, midnight + timedelta(days=1)

    @property
    def path(self) -> str:
        """The path of the page."""
        return HISTORY_PATH if self.batch is None else f"{BATCH_PATH}{self.batch}"

    @property
    def address(self) -> str:
        """The path of the page with its query."""
        return self.path + self.at(self.page.halaman)

    def at(self, halaman: int) -> str:
        """The URL query of another page with the same search and filter. It is never empty."""
        given = (("jenis", self.jenis), ("tanggal", self.tanggal))
        filters = [f"&{name}={value}" for name, value in given if value]
        return self.page.at(halaman) + "".join(filters)

    @property
    def origin(self) -> str:
        """The URL query that a button of this page sends, so that its answer leads back to this page."""
        batch = "" if self.batch is None else f"&kelompok={self.batch}"
        return self.at(self.page.halaman) + batch


async def show(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/riwayat, /mahasiswa/riwayat/kelompok/:id: one page of the latest changes, or of the changes of a batch."""
    batch = None if request.path == HISTORY_PATH else ItemKey.of(request.parameter)
    return await _page(request, store, pages, HistoryQuery.of(request.query_params, batch))


async def undo(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/riwayat/perubahan/:id: restore a record as it was before that change.

    With `kelompok` in the path, restore the records of a batch.

    `versi` and `sebagian` come from the page of a conflict. `versi` is the digest of the record that the page showed and
    that is to be overwritten, "-" if there was none. With `sebagian`, only the records of a batch that have not changed
    since are restored. The answer leads back to the page in the URL's query, and without one to the list.
    """
    form = request.fields.values
    parameters = request.query_params
    change = ItemKey.of(request.parameter)
    is_batch = request.path.startswith(BATCH_PATH)
    only_unchanged = is_batch and form["sebagian"] == "1"
    query = _page_with_button(parameters)
    if "daftar" in parameters:  # the button stood above a page of the list
        pages = pages.at(ListQuery.of(parameters).list_query)
    try:
        undoing = await store.undo(
            change.id,
            key=change,
            is_batch=is_batch,
            expected=form["versi"],
            only_unchanged=only_unchanged,
        )
    except (NotInHistory, BatchTooLong, Refused) as error:
        return _refusal(pages, error)
    except UndoConflict as conflict:
        return await _conflict(request, store, pages, query, conflict)
    if query is None:
        return pages.shown(undoing)
    return pages.redirect_to(query.address + changed(undoing))


async def _conflict(
    request: Request,
    store: Store,
    pages: Pages,
    query: HistoryQuery | None,
    conflict: UndoConflict,
) -> Response:
    """The page with the records that have changed since. If the only one has another nim, the form of that record."""
    entry, current = conflict.conflicts[0]
    record = entry.after or entry.before
    is_missing = conflict.total == 1 and not (current or conflict.unchanged)
    if is_missing and record and (new := await store.reader(RECORD).renamed(record.nim)):
        return pages.undo_renamed(new)
    origin, back = "", HISTORY_PATH
    if query:
        origin, back = query.origin, query.address
    elif pages.list_query:
        origin, back = f"{pages.list_query}&daftar=1", f"/{pages.list_query}"
    render = partial(
        pages.page,
        "undo_conflict.html",
        409,
        conflict=conflict,
        is_batch=request.path.startswith(BATCH_PATH),
        address=pages.path(request.path) + origin,
        back=pages.path(back),
        versi=digest_or_dash(current),
    )
    return await rendered_in_thread(request, SEARCH, render)


def _page_with_button(parameters: QueryParams) -> HistoryQuery | None:
    """The page of the history on which a button stood, or None if it stood elsewhere."""
    if not parameters or "daftar" in parameters:
        return None
    batch = parameters.get("kelompok")
    return HistoryQuery.of(parameters, None if batch is None else ItemKey.of(batch))


def _refusal(pages: Pages, error: StoreError) -> Response:
    """The page that says why a change was not undone."""
    if isinstance(error, Refused):
        # Another program had stored the old record in spite of the rules of the table.
        label = wording.LABELS.get(error.field, error.field)
        text = wording.UNDO_REFUSED.format(field=label)
        return pages.error("undo refused", text=text)
    if isinstance(error, BatchTooLong):
        limit = wording.number(UNDO_ROWS_MAX)
        text = wording.UNDO_TOO_LONG.format(limit=limit)
        return pages.error("undo too long", text=text)
    return pages.error("not in history")


async def _page(request: Request, store: Store, pages: Pages, query: HistoryQuery) -> Response:
    page = query.page
    found = await store.reader(SEARCH).history(
        page.query.cari,
        page.offset,
        page.per,
        batch=query.batch and query.batch.id,
        kind=query.jenis,
        days=query.days(pages.timezone),
        change=page.change,
    )
    head = found.head
    if query.batch and (not head or head.is_silent or head.key != query.batch):
        return pages.error("not in history")
    query = query._replace(page=page.with_total(found.total))
    if query.page.halaman != page.halaman:  # past the end: show the last page
        return await _page(request, store, pages, query)
    latest = ""
    if found.last:
        is_own = page.change is not None
        latest = latest_change(found.last, pages.when(found.last), "", is_own=is_own)
    render = partial(
        pages.page,
        "history.html",
        query=query,
        found=found,
        latest=latest,
        undo_rows_max=UNDO_ROWS_MAX,
    )
    return await rendered_in_thread(request, SEARCH, render)
